"""A process that appends to a page until it is done or killed, and says what was acknowledged."""

from __future__ import annotations

import sys
from pathlib import Path

from chronomemory.pages import Pages


def main(project: str, name: str, count: str, told: str) -> None:
    with Pages(Path(project)) as pages, Path(told).open("a", encoding="ascii") as acknowledged:
        for number in range(int(count)):
            acknowledged.write(f"{pages.append('user-profile', f'{name} says {number}', ['said'])}\n")
            acknowledged.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
