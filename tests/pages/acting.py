"""Does everything to pages that writes, and tells what they say after each deed, for a test to play back."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator

from chronomemory.pages import Pages


def deeds(pages: Pages) -> Iterator[Callable[[], object]]:
    """Yield what is done, one thing after the other."""
    yield lambda: None
    yield lambda: pages.create("topic-tea", "Tea")
    for number in range(10):  # more often than a page remembers its texts
        yield lambda number=number: pages.append("user-profile", f"Fact {number}.", ["said"])
    ids: list[str] = []
    yield lambda: ids.append(pages.append("topic-tea", "Tea is green.", ["tea"]))
    yield lambda: pages.supersede("topic-tea", ids[0], "Tea is black.", "somebody looked")
    yield lambda: pages.flag_compact("topic-tea", "a chain")
    yield lambda: pages.compact("topic-tea")
    yield lambda: pages.set_status("topic-tea", "archived")
    yield lambda: pages.create("topic-one", "One")
    yield lambda: pages.append("topic-one", "One more.", ["more"])
    yield pages.sync


def main(project: str, told: str) -> None:
    """Act, and tell after each deed what is on the pages."""
    telling = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with Pages(project, "memory", durability="full") as pages:
        for deed in deeds(pages):
            deed()
            shown = {place.stem: place.read_text() for place in pages.folder.glob("*-*.md")}
            os.write(telling, f"{json.dumps(shown)}\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
