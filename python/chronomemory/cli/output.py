"""Where does an answer go, and how does it get there unharmed?

Answers go to stdout, everything else to stderr. With ``--json`` stdout holds JSON and nothing
else: one document, or one object a line where a command lists things.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any

import typer
from rich.console import Console, RenderableType
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as ProgressBar
from rich.text import Text

from chronomemory._core import canonical_json
from chronomemory.types import Progress

__all__ = ["Output", "clean", "counted", "size", "spelled"]

_LINES_AT_ONCE = 2_000

#: Control characters, lone surrogates, separators of lines: a terminal may obey them.
_STEERING = frozenset({"Cc", "Cs", "Zl", "Zp"})

#: Characters that turn the direction of writing, and so can make one text look like another.
_TURNING = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


class Output:
    """One command's two streams."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        # INVARIANT: no markup, for what a record says must never be taken for our own words.
        self.console = Console(highlight=False, markup=False, emoji=False)
        self.errors = Console(stderr=True, highlight=False, markup=False, emoji=False)

    def document(self, value: Mapping[str, Any]) -> None:
        """Write one JSON document."""
        typer.echo(canonical_json(dict(value)))

    def lines(self, lines: Iterable[bytes]) -> None:
        """Write lines of JSON, many at a time."""
        rest = iter(lines)
        while some := list(islice(rest, _LINES_AT_ONCE)):
            typer.echo(b"\n".join(some))

    def show(self, *things: RenderableType) -> None:
        """Show something to a person."""
        for thing in things:
            self.console.print(thing)

    def hint(self, text: str) -> None:
        """Say something in passing."""
        self.console.print(Text(text, style="dim"))

    def done(self, *parts: str | tuple[str, str]) -> None:
        """Say in one line what was done."""
        _say(self.console, Text.assemble(("✔ ", "bold green"), *parts))

    def warn(self, message: str) -> None:
        """Say on stderr what a person should know."""
        if self.as_json:
            self._complain({"warning": message})
        else:
            _say(self.errors, Text.assemble(("warning: ", "bold yellow"), clean(message)))

    def fail(self, message: str, recovery: str, name: str) -> None:
        """Say on stderr what went wrong, and below it what to do next."""
        if self.as_json:
            self._complain({"error": name, "message": message, "recovery": recovery})
            return
        _say(self.errors, Text(f"error: {clean(message)}", style="bold red"))
        if recovery:
            _say(self.errors, Text.assemble(("  try: ", "bold"), clean(recovery)))

    def _complain(self, value: Mapping[str, str]) -> None:
        typer.echo(canonical_json({key: spelled(text) for key, text in value.items()}), err=True)

    @contextmanager
    def progress(self, title: str) -> Iterator[Progress | None]:
        """Lend a callback that moves a bar, or None where nobody is looking."""
        if self.as_json or not self.errors.is_terminal:
            yield None
            return
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=None, complete_style="cyan", finished_style="green"),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeElapsedColumn(),
        )
        with ProgressBar(*columns, console=self.errors, transient=True) as bars:
            bar = bars.add_task(title, total=None)
            yield lambda done, total: bars.update(bar, completed=done, total=total)


def _say(console: Console, text: Text) -> None:
    """Keep a line whole for those who search it; wrap it between words for those who read it."""
    console.print(text, soft_wrap=not console.is_terminal)


def spelled(path: object) -> str:
    """Spell a path so that JSON can carry it: it may hold bytes that are no text."""
    return str(path).encode("utf-8", "backslashreplace").decode()


def clean(value: object, keep: str = "") -> str:
    """Make control characters visible: what a record says must not steer the terminal."""
    text = str(value)
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c in keep else _visible(c) for c in text)


def _visible(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    harmful = unicodedata.category(character) in _STEERING or character in _TURNING
    return "\ufffd" if harmful else character


def counted(number: int, noun: str) -> str:
    """Spell a number of things."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size(count: int) -> str:
    """Spell a number of bytes."""
    amount = float(count)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"
