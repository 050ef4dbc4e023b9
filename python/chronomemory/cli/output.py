"""Answers on stdout, as JSON with ``--json``, and messages on stderr, without terminal control characters."""

from __future__ import annotations

import importlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

import typer

from chronomemory._core import canonical_json

if TYPE_CHECKING:
    # The version, JSON output and the MCP server need neither rich nor a store.
    from rich.console import Console, RenderableType
    from rich.text import Text

    from chronomemory.types import Progress

_LINES_AT_ONCE = 2_000
#: How wide a pipe or file is: no line of a table is cut or wrapped there, unless COLUMNS says so.
_PIPE_COLUMNS = 1_000_000

#: Characters that a terminal may obey, that turn the direction of writing, or that cannot be seen.
_HIDDEN = (
    "\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\u2800\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff"
    "\U00013430-\U0001343f\U000e0100-\U000e0fff"
)
#: After one of these, and before the frame of a key, what asks for a plain or colourful look is part of it.
_EMOJI = "\xa9\xae\u203c\u2049\u2100-\u27bf\u2900-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
_LOOKS = "\ufe0e\ufe0f"
_STEERING = re.compile(f"[{_HIDDEN}\ud800-\udfff]|(?<![{_EMOJI}])[{_LOOKS}](?!\u20e3)")
#: Between the strings of our JSON is nothing but ASCII, and line ends between its lines.
_RAW = re.compile(f"[{_HIDDEN}\u200c\u200d{_LOOKS}]".replace("\x00-\x1f", ""))


class Output:
    """One command's two streams."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json

    @cached_property
    def console(self) -> Console:
        return _console(stderr=False)

    @cached_property
    def errors(self) -> Console:
        return _console(stderr=True)

    def document(self, value: Mapping[str, Any]) -> None:
        typer.echo(escaped(canonical_json(dict(value))))

    def lines(self, lines: Iterable[bytes]) -> None:
        """Write lines of JSON, many at a time; what could steer a terminal is escaped, and means the same."""
        for part in _joined(lines):
            typer.echo(escaped(part))

    def bytes(self, lines: Iterable[bytes]) -> None:
        """Write lines byte for byte, except to a terminal."""
        for part in _joined(lines):
            typer.echo(escaped(part) if self.console.is_terminal else part)

    def show(self, *things: RenderableType) -> None:
        for thing in things:
            self.console.print(thing)

    def answer(self, document: Mapping[str, Any], *parts: str | tuple[str, str]) -> None:
        """Write a JSON document, or one line for a person."""
        if self.as_json:
            self.document(document)
        else:
            self.done(*parts)

    def report(self, document: Mapping[str, Any], *things: RenderableType) -> None:
        """Write a JSON document, or show something to a person."""
        if self.as_json:
            self.document(document)
        else:
            self.show(*things)

    def listing(self, items: Iterable[Any], shown: RenderableType, nothing: str) -> None:
        """Write one JSON object a line, or show a table; ``nothing`` replaces an empty one."""
        listed = list(items)
        if self.as_json:
            self.lines(canonical_json(item if isinstance(item, dict) else item.to_dict()) for item in listed)
        else:
            self.show(shown if listed else nothing)

    def hint(self, text: str) -> None:
        self.console.print(_text()(text, style="dim"))

    def done(self, *parts: str | tuple[str, str]) -> None:
        _say(self.console, _text().assemble(("✔ ", "bold green"), *parts))

    def warn(self, message: str) -> None:
        if self.as_json:
            self._complain({"warning": message})
        else:
            _say(self.errors, _text().assemble(("warning: ", "bold yellow"), clean(message)))

    def note_project(self, project: object) -> None:
        """Say on stderr which project was found, where none was named."""
        if self.as_json:
            self._complain({"project": spelled(project)})
        else:
            _say(self.errors, _text()(f"project: {clean(project)}", style="dim"))

    def fail(self, message: str, recovery: str, name: str) -> None:
        """Say on stderr what went wrong, and below it what to do next."""
        if self.as_json:
            self._complain({"error": name, "message": message, "recovery": recovery})
            return
        _say(self.errors, _text()(f"error: {clean(message)}", style="bold red"))
        if recovery:
            _say(self.errors, _text().assemble(("  try: ", "bold"), clean(recovery)))

    def _complain(self, value: Mapping[str, str]) -> None:
        typer.echo(escaped(canonical_json({key: spelled(text) for key, text in value.items()})), err=True)

    @contextmanager
    def progress(self, title: str, *, beside_answer: bool = False) -> Iterator[Progress | None]:
        """Yield a callback that moves a progress bar, or None where none is shown."""
        if self.as_json or not self.errors.is_terminal or (beside_answer and self.console.is_terminal):
            yield None
            return
        rich = importlib.import_module("rich.progress")
        columns = (
            rich.TextColumn("{task.description}"),
            rich.BarColumn(bar_width=None, complete_style="cyan", finished_style="green"),
            rich.TextColumn("{task.percentage:>3.0f} %"),
            rich.TimeElapsedColumn(),
        )
        with rich.Progress(*columns, console=self.errors, transient=True) as bars:
            bar = bars.add_task(title, total=None)
            yield lambda done, total: bars.update(bar, completed=done, total=total)


def _joined(lines: Iterable[bytes]) -> Iterator[bytes]:
    rest = iter(lines)
    while some := list(islice(rest, _LINES_AT_ONCE)):
        yield b"\n".join(some)


def _text() -> type[Text]:
    text: type[Text] = importlib.import_module("rich.text").Text
    return text


def _console(*, stderr: bool) -> Console:
    # INVARIANT: no markup, for what a record says must never be taken for our own words.
    console: Console = importlib.import_module("rich.console").Console(
        stderr=stderr, highlight=False, markup=False, emoji=False
    )
    if not console.is_terminal and not os.environ.get("COLUMNS"):
        console.width = _PIPE_COLUMNS
    return console


def _say(console: Console, text: Text) -> None:
    """Keep a line whole for those who search it; wrap it between words for those who read it."""
    console.print(text, soft_wrap=not console.is_terminal)


def spelled(path: object) -> str:
    """Spell a path so that JSON can carry it: it may hold bytes that are no text."""
    return str(path).encode("utf-8", "backslashreplace").decode()


def clean(value: object, keep: str = "") -> str:
    """Make hidden characters visible, so that no record controls the terminal."""
    text = str(value)
    if text.isascii() and text.isprintable():
        return text

    def visible(found: re.Match[str]) -> str:
        if found[0] in keep:
            return found[0]
        return chr(0x2400 + ord(found[0])) if found[0] < " " else "\ufffd"

    return _STEERING.sub(visible, text)


def escaped(spelling: bytes) -> bytes:
    """Return the same JSON with hidden characters escaped."""
    if spelling.isascii() and b"\x7f" not in spelling:
        return spelling
    return _RAW.sub(lambda found: json.dumps(found[0])[1:-1], spelling.decode("utf-8")).encode("utf-8")


def size(count: int) -> str:
    amount = float(count)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"
