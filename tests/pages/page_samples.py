"""What do the tests of pages share: a clock that moves, the seed's page, and texts that try to break out."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

from hypothesis import strategies as st

SEED = """---
description: Identity and background of the user
tags: [identity, background]
status: active           # active | dormant | archived
created: 2026-04-20T14:02:11+08:00
updated: 2026-04-21T09:15:00+08:00
entry_count: 4
needs_compact: false
---

# User Profile

## [2026-04-20T14:02:11] {id: 20260420-1402-a1b23c} #identity
User goes by Kming. Based in Shanghai.

## [2026-04-20T16:30:05] {id: 20260420-1630-3f0e99} #work #employer
~~User works at Old Corp as a principal engineer.~~ #superseded-by:20260421-0915-c4f1a5

## [2026-04-21T09:15:00] {id: 20260421-0915-c4f1a5} #work #employer
User joined Acme Corp as a senior engineer.
"""

#: Pieces that mean something on a page.
PIECES = [
    "~",
    "~~",
    "~~~",
    "\\",
    "<!--",
    "-->",
    "\n",
    "\r\n",
    "\r",
    "## [2026-04-20T14:02:11] {id: evil} #a",
    "## [",
    "```",
    "#superseded-by:evil",
    "<!-- reason: x -->",
    "---",
    " ",
    "a",
    "שלום",
    "漢字",
    "\u2028",
    "\x85",
    "\ufeff",
    "[[x]]",
]
TEXTS = st.one_of(st.text(max_size=40), st.lists(st.sampled_from(PIECES), max_size=8).map("".join))
CONTENTS = TEXTS.filter(lambda text: bool(text.strip()))
TAGS = st.lists(st.sampled_from(["work", "a-b", "漢字", "שלום", "x/y", "true", "12"]), min_size=1, max_size=3)


class Clock:
    """Moves on by a minute at each look, unless it is told to stay."""

    def __init__(self, start: datetime = datetime(2026, 5, 1, 9, tzinfo=timezone.utc)) -> None:
        self.now = start
        self.step = timedelta(minutes=1)

    def __call__(self) -> datetime:
        self.now += self.step
        return self.now


def files(folder: Path) -> dict[str, bytes]:
    """Return what is in a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
