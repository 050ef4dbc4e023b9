"""The lines of a file: which are meant, how they are numbered and shown, and how they end."""

from __future__ import annotations

from chronomemory.errors import InvalidArgument
from chronomemory.mcp.quoting import quoted

__all__ = ["chosen_lines", "lines_with", "numbered", "size", "visible", "with_ends"]

#: In how many lines a text is told to stand.
_SHOWN_LINES = 40


def with_ends(text: str, eol: str) -> str:
    """Return a text whose lines end as those of the file do."""
    return text if eol == "\n" else text.replace("\r\n", "\n").replace("\n", eol)


def lines_with(text: str, old: str) -> str:
    """Return the numbers of the lines in which a text begins."""
    found: list[int] = []
    start = text.find(old)
    while start >= 0 and len(found) < _SHOWN_LINES:
        found.append(text.count("\n", 0, start) + 1)
        start = text.find(old, start + len(old))
    return ", ".join(map(str, dict.fromkeys(found)))


def chosen_lines(given: list[int], count: int) -> tuple[int, int]:
    """Return the first and the last line of a range, which must be in the file; all without one."""
    if not given:
        return 1, count
    first, last = given if len(given) == 2 else (0, 0)
    last = count if last == -1 else last
    if not 1 <= first <= last <= count:
        raise InvalidArgument(
            f"Invalid `view_range`: {given}. It should be two lines of the file, within [1, {count}]",
            field="view_range",
            recovery="Give the first and the last line, or -1 as the last for the end.",
        )
    return first, last


def numbered(lines: list[str], first: int, last: int) -> list[str]:
    """Return some lines with their numbers in front."""
    return [f"{number:>6}\t{visible(lines[number - 1])}" for number in range(first, last + 1)]


def visible(line: str) -> str:
    """Spell out what nobody sees, so that a line stays one line; tabs and the end of the line stay."""
    body, end = (line[:-1], "\r") if line.endswith("\r") else (line, "")
    return "".join(letter if letter == "\t" else _spelled(letter) for letter in body) + end


def _spelled(letter: str) -> str:
    return letter if letter.isascii() and letter.isprintable() else quoted(letter)[1:-1]


def size(count: int) -> str:
    """Spell how long a file is."""
    return f"{count / 1024:.1f}K" if count >= 1024 else f"{count}B"
