"""Measures an append, a search and a rebuild in a folder of many pages.

`python -m benches.pages [PAGES ENTRIES [FOLDER]]`. The pages are imported as files, as another tool would
leave them; then entries are appended to pages at random, words are looked for, and the folder is thrown away
and written anew. Every answer is checked. Times are by the clock, and in brackets those of a core: on a
machine that others use, and whose disk they use, they say more. The line `disk` is what a file of the size of
a page takes that is written, synced and renamed, and nothing else: no append can take less there.
"""

from __future__ import annotations

import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from chronomemory.pages import Pages
from chronomemory.pages.text.entries import EntryText
from chronomemory.pages.text.frontmatter import new_frontmatter
from chronomemory.pages.text.page import Stretch

APPENDS = 500
QUESTIONS = 500
COMMON = [f"common{number}" for number in range(50)]
RARE = [f"word{number}" for number in range(20_000)]
MOMENT = "2026-05-01T10:00:00+00:00"
NOW = datetime(2026, 5, 2, 10, tzinfo=timezone.utc)


def page_of(chance: random.Random, number: int, entries: int) -> str:
    """Spell a page with some entries."""
    front = new_frontmatter(
        {
            "description": f"Page {number}",
            "tags": ["bench"],
            "status": "active",
            "created": MOMENT,
            "updated": MOMENT,
            "entry_count": entries,
            "needs_compact": False,
        }
    )
    parts = [f"{front}\n\n# Page {number}"]
    for place in range(entries):
        entry_id = f"20260501-{place // 60:02}{place % 60:02}-{chance.randrange(16**6):06x}"
        words = [*chance.choices(COMMON, k=6), *chance.choices(RARE, k=chance.randint(4, 30))]
        entry = EntryText(entry_id, f"2026-05-01T10:{place % 60:02}:00", ("fact",), " ".join(words))
        parts.append(Stretch.of(entry, "\n").raw)
    return "".join([*parts, "\n"])


def each(work: Callable[[Any], Any], given: list[Any]) -> tuple[list[float], list[float]]:
    """Time something for each of many arguments, by the clock and by the core."""
    walls, cores = [], []
    for one in given:
        wall, core = time.perf_counter(), time.thread_time()
        work(one)
        walls.append(1e3 * (time.perf_counter() - wall))
        cores.append(1e3 * (time.thread_time() - core))
    return walls, cores


def tell(what: str, walls: list[float], cores: list[float]) -> None:
    spread, own = statistics.quantiles(walls, n=20), statistics.quantiles(cores, n=20)
    print(
        f"{what:12} median {spread[9]:8.2f} ({own[9]:.2f}) ms   p95 {spread[18]:8.2f} ({own[18]:.2f}) ms",
        flush=True,
    )


def bare(folder: Path, content: bytes) -> Callable[[str], None]:
    """Return what an append asks of the disk at least."""

    def write(name: str) -> None:
        with (folder / ".draft").open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        (folder / ".draft").replace(folder / name)

    return write


def once(what: str, work: Callable[[], Any]) -> Any:
    wall, core = time.perf_counter(), time.process_time()
    told = work()
    print(f"{what:12} {time.perf_counter() - wall:8.1f} ({time.process_time() - core:.1f}) s", flush=True)
    return told


def main(pages: int, entries: int) -> None:
    chance = random.Random(7)
    with tempfile.TemporaryDirectory(dir=sys.argv[3] if len(sys.argv) > 3 else None) as folder:
        root = Path(folder)
        notes = root / "project" / "memory"
        notes.mkdir(parents=True)
        for number in range(pages):
            (notes / f"topic-{number:05}.md").write_text(
                page_of(chance, number, entries // pages), encoding="utf-8"
            )
        with Pages(root / "project", clock=lambda: NOW) as book:
            told = once("take in", book.sync)
            assert len(told.created) == pages and not told.problems
            names = chance.choices(told.created, k=APPENDS)
            (root / "bare").mkdir()
            page = (book.folder / f"{names[0]}.md").read_bytes()
            tell("disk", *each(bare(root / "bare", page), names[:100]))
            tell("append", *each(lambda name: book.append(name, "appended to a page", ["late"]), names))
            questions = [f"{chance.choice(COMMON)} {chance.choice(RARE)}" for _ in range(QUESTIONS)]
            assert book.search(questions[0])
            tell("search", *each(lambda words: book.search(words), questions))
            tell("read", *each(lambda name: book.read(name), names))
            tell("recent", *each(lambda _: book.recent(), names[:100]))
            assert len(book.search("appended", limit=APPENDS)) == APPENDS
            before = (book.folder / f"{names[0]}.md").read_bytes()
            assert once("sync", book.sync).summary == "pages and log agree"
            shutil.rmtree(book.folder)
            assert len(once("rebuild", book.rebuild).written) == pages + 2
            assert (book.folder / f"{names[0]}.md").read_bytes() == before
            assert once("index", book.rebuild_index).corrected == 0


if __name__ == "__main__":
    main(*(int(given) for given in (sys.argv[1:3] if len(sys.argv) > 2 else (10_000, 200_000))))
