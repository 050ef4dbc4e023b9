"""Divides Markdown into what a reader sees as holding, and what is hidden from one or struck."""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["divided", "without_code"]

_HIDING = re.compile(
    r"\\(?P<sign>[^\w\s])|(?P<ticks>(?<!`)`+)"
    # A comment that does not end hides all that follows. Obsidian has comments of its own.
    r"|<!--(?P<comment>.*?)(?:-->|\Z)|%%(?P<aside>.*?)%%"
    r"|(?P<strike>~~(?!~~))|<(?P<tag>del|s|strike)>"
    # What stands inside a tag, and where a reference leads to; a bare address is shown, a footnote too.
    r"|</?(?P<inside>[A-Za-z][\w-]*(?:\s[^<>]*)?/?)>"
    r"|^[ ]{0,3}\[(?!\^)(?P<reference>[^\[\]\r\n]+\]:[^\r\n]*)$",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
#: What may end a strike. Scanning for it takes no memory, a pattern of the struck text many times its length.
_STRIKE_ENDS = re.compile(r"\\.|(?P<end>~~)", re.DOTALL)
_TAG_ENDS = re.compile(r"<(?P<end>/)?(?P<tag>del|s|strike)>", re.IGNORECASE)
_TICKS = re.compile("`+")
_HIDDEN = ("comment", "aside", "inside", "reference")
_CODE = re.compile(r"\\[^\w\s]|(?P<ticks>(?<!`)`+)")


def divided(text: str) -> tuple[str, str]:
    r"""Return what a text shows as holding, and what it hides or strikes.

    >>> divided(r"Tea <!-- at 75 --> is ~~not~~ good, \<!-- and so on.")
    ('Tea  is  good, <!-- and so on.', ' at 75 \nnot')
    """
    hidden: list[str] = []

    def shown(found: re.Match[str]) -> tuple[str, int]:
        if found["sign"]:
            return found["sign"], found.end()
        if found["strike"] or found["tag"]:
            end = _end_of(found, text)
            if end is None and found["strike"]:
                return "~", found.start() + 1
            struck = found["tag"] if end is None else text[found.end() : end.start()]
            hidden.extend([struck] if struck else [])
            return "", (end or found).end()
        hidden.extend(found[name] for name in _HIDDEN if found[name])
        return "", found.end()

    return _replaced(_HIDING, text, shown, lambda code: code), "\n".join(hidden)


def without_code(text: str) -> str:
    """Return a text with a blank in place of its code."""
    return _replaced(_CODE, text, lambda found: (found[0], found.end()), lambda _: " ")


def _end_of(begin: re.Match[str], text: str) -> re.Match[str] | None:
    """Return what ends a strike or a tag that strikes; such tags do not nest."""
    if begin["strike"]:
        return next((one for one in _STRIKE_ENDS.finditer(text, begin.end()) if one["end"]), None)
    name = begin["tag"].lower()
    ends = _TAG_ENDS.finditer(text, begin.end())
    end = next((one for one in ends if not one["end"] or one["tag"].lower() == name), None)
    return end if end is not None and end["end"] else None


def _replaced(
    pattern: re.Pattern[str],
    text: str,
    other: Callable[[re.Match[str]], tuple[str, int]],
    code: Callable[[str], str],
) -> str:
    """Replace what a pattern finds outside of code, and code, in which nothing hides or strikes anything.

    ``other`` returns what takes the place of a match, and where the text goes on.
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
            instead, here = other(found)
            parts.append(instead)
            continue
        known = ends.get(len(found[0]), [])
        while known and known[-1] <= here:
            known.pop()
        here = known.pop() if known else here
        parts.append(code(text[found.start() : here]) if here > found.end() else found[0])
    return "".join((*parts, text[here:]))
