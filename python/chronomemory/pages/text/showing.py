"""Divides Markdown into what a reader sees as holding, and what is hidden from one or struck."""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["divided", "without_code"]

_HIDING = re.compile(
    r"\\(?P<sign>[^\w\s])|(?P<ticks>(?<!`)`+)"
    # A comment that does not end hides all that follows. Obsidian has comments of its own.
    r"|<!--(?P<comment>.*?)(?:-->|\Z)|%%(?P<aside>.*?)%%"
    r"|~~(?P<struck>(?:\\.|(?!~~)[^\\])+)~~|<(?P<tag>del|s|strike)>(?P<marked>(?:(?!<(?:del|s|strike)>).)*?)</(?P=tag)>"
    # What stands inside a tag, and where a reference leads to; a bare address is shown, a footnote too.
    r"|</?(?P<inside>[A-Za-z][\w-]*(?:\s[^<>]*)?/?)>"
    r"|^[ ]{0,3}\[(?!\^)(?P<reference>[^\[\]\r\n]+\]:[^\r\n]*)$",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_TICKS = re.compile("`+")
_HIDDEN = ("comment", "aside", "struck", "marked", "inside", "reference")
_CODE = re.compile(r"\\[^\w\s]|(?P<ticks>(?<!`)`+)")


def divided(text: str) -> tuple[str, str]:
    r"""Return what a text shows as holding, and what it hides or strikes.

    >>> divided(r"Tea <!-- at 75 --> is ~~not~~ good, \<!-- and so on.")
    ('Tea  is  good, <!-- and so on.', ' at 75 \nnot')
    """
    hidden: list[str] = []

    def shown(found: re.Match[str]) -> str:
        if found["sign"]:
            return found["sign"]
        hidden.extend(found[name] for name in _HIDDEN if found[name])
        return ""

    return _replaced(_HIDING, text, shown, lambda code: code), "\n".join(hidden)


def without_code(text: str) -> str:
    """Return a text with a blank in place of its code."""
    return _replaced(_CODE, text, lambda found: found[0], lambda _: " ")


def _replaced(
    pattern: re.Pattern[str], text: str, other: Callable[[re.Match[str]], str], code: Callable[[str], str]
) -> str:
    """Replace what a pattern finds outside of code, and code, in which nothing hides or strikes anything.

    Code ends at the next run of as many backticks as it begins with. Without one they are just backticks.
    """
    ends: dict[int, list[int]] = {}
    for run in reversed(list(_TICKS.finditer(text))) if "`" in text else ():
        ends.setdefault(len(run[0]), []).append(run.end())
    parts, here = [], 0
    while found := pattern.search(text, here):
        parts.append(text[here : found.start()])
        here = found.end()
        if not found["ticks"]:
            parts.append(other(found))
            continue
        known = ends.get(len(found[0]), [])
        while known and known[-1] <= here:
            known.pop()
        here = known.pop() if known else here
        parts.append(code(text[found.start() : here]) if here > found.end() else found[0])
    return "".join((*parts, text[here:]))
