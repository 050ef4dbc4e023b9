"""Divides Markdown into what a reader sees as holding, and what is hidden from one or struck."""

from __future__ import annotations

import re

__all__ = ["divided", "without_code"]

#: Code shows its letters as they are: nothing in it hides or strikes anything.
_CODE = r"(?P<ticks>(?<!`)`+(?!`)).*?(?<!`)(?P=ticks)(?!`)"
_HIDING = re.compile(
    rf"\\(?P<sign>[^\w\s])|(?P<code>{_CODE})"
    # A comment that does not end hides all that follows. Obsidian has comments of its own.
    r"|<!--(?P<comment>.*?)(?:-->|\Z)|%%(?P<aside>.*?)%%"
    r"|~~(?P<struck>(?:\\.|(?!~~).)+)~~|<(?P<tag>del|s|strike)>(?P<marked>(?:(?!<(?:del|s|strike)>).)*?)</(?P=tag)>"
    # What stands inside a tag, and where a reference leads to; a bare address is shown, a footnote too.
    r"|</?(?P<inside>[A-Za-z][\w-]*(?:\s[^<>]*)?/?)>"
    r"|^[ ]{0,3}\[(?!\^)(?P<reference>[^\[\]\r\n]+\]:[^\r\n]*)$",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_HIDDEN = ("comment", "aside", "struck", "marked", "inside", "reference")
_CODE_ALONE = re.compile(rf"\\[^\w\s]|(?P<code>{_CODE})", re.DOTALL)


def divided(text: str) -> tuple[str, str]:
    r"""Return what a text shows as holding, and what it hides or strikes.

    >>> divided(r"Tea <!-- at 75 --> is ~~not~~ good, \<!-- and so on.")
    ('Tea  is  good, <!-- and so on.', ' at 75 \nnot')
    """
    hidden: list[str] = []

    def shown(found: re.Match[str]) -> str:
        if found["sign"]:
            return found["sign"]
        if found["code"]:
            return found["code"]
        hidden.extend(found[name] for name in _HIDDEN if found[name])
        return ""

    return _HIDING.sub(shown, text), "\n".join(hidden)


def without_code(text: str) -> str:
    """Return a text with a blank in place of its code."""
    return _CODE_ALONE.sub(lambda found: " " if found["code"] else found[0], text)
