"""Graphs and paths to draw, what of a page can be read without a browser, and the browser."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from chronomemory.drawing import Branch, Dot, Line, Step

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None
)

#: Texts that would do harm if they were taken for anything but text.
HOSTILE = {
    "ends the script": "</script><script>document.title = 'taken'</script>",
    "is a script": "<script>document.title = 'taken'</script>",
    "begins a comment": "<!-- <script>",
    "has an event": "<img src=x onerror=\"document.title = 'taken'\">",
    "turns around": "\u202etxt.exe \u2067abc\u200f",
    "is long": "word " * 2_000,
    "is one long word": "x" * 10_000,
    "is half a character": "half \ud800 here",
    "is control characters": "\x00\x01\x1b[31m\x7f\x85\ufffe",
    "ends lines": "one\u2028two\u2029three\rfour",
    "speaks to the page": "__DATA__ __SCRIPT__ __STYLE__ ${data} `x`",
    "is an entity": "&lt;b&gt; &quot; \\u003c",
}


def graph(size: int, seed: int = 1) -> tuple[list[Dot], list[Line]]:
    """Return a graph of groups, with a few lines between them."""
    chance = random.Random(seed)
    groups = max(2, round(size**0.5 / 2))
    dots = [
        Dot(f"node:{number}", chance.choice(["person", "service", "goal"]), f"Label of number {number}")
        for number in range(size)
    ]
    lines = []
    for number in range(size):
        other = number % groups + groups * chance.randrange(max(1, size // groups))
        if chance.random() < 0.1 or other >= size:
            other = chance.randrange(size)
        lines.append(Line(f"node:{number}", f"node:{other}", chance.choice(["knows", "needs"])))
    return dots, lines


def history() -> tuple[list[Branch], list[Step]]:
    """Return paths of which one was merged, one abandoned, one compacted, and one is still open."""
    steps = [
        Step(f"e{place}", "node.saved", f"2026-11-16T10:{place:02}:00Z", place=place)
        for place in range(1, 13)
    ]
    branches = [
        Branch("main", event_ids=("e1", "e2", "e7", "e12"), compaction="2 into 1", compacted_by="e8"),
        Branch("left", "main", ("e4",), False, merged_into="main", begun_by="e3", ended_by="e6"),
        Branch("right", "main", ("e9",), False, abandoned_reason="too slow", begun_by="e5", ended_by="e10"),
        Branch("late", "main", ("e11", "unknown")),
    ]
    return branches, steps


def data_of(page: str) -> dict[str, Any]:
    """Return what a page draws."""
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    told: dict[str, Any] = json.loads(found[1])
    return told


class Elements(HTMLParser):
    """Lists the elements of a page and what they would load."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.loads: list[str] = []
        self.handlers: list[str] = []
        self.ids: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loads += [f"{tag} {name}" for name, _ in attrs if name in ("src", "href", "action", "data")]
        self.handlers += [f"{tag} {name}" for name, _ in attrs if name.startswith("on") or name == "style"]
        self.ids += [value for name, value in attrs if name == "id" and value]


def rendered(page: str, folder: Path, *, size: str = "1280,800", ask: str = "") -> str:
    """Let a browser draw a page; return its elements, once it has not complained."""
    assert BROWSER is not None
    (folder / "page.html").write_text(page, encoding="utf-8")
    done = subprocess.run(
        [
            BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0",
            "--virtual-time-budget=3000", f"--window-size={size}", f"--user-data-dir={folder / 'profile'}",
            "--dump-dom", f"file://{folder / 'page.html'}{ask}",
        ],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert re.findall(r"CONSOLE.*", done.stderr) == []
    return done.stdout
