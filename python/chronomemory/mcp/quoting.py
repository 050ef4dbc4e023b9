"""Stored text as data: quoted on one line, nothing hidden in it, and within a budget of tokens.

What a memory says may have been written to steer whoever reads it. So it always stands between quotes, with
its id, source, status, confidence and time beside it, and never as a line of our own.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from chronomemory._core import canonical_json

__all__ = ["Budget", "clipped", "one_line", "quoted", "tokens_of"]

#: A token is about so many bytes; what is counted is what goes over the wire, both channels together.
_BYTES_A_TOKEN = 4
#: Control, format and private characters, separators of lines, and halves of pairs: nobody sees them.
_HIDDEN = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
#: What chooses between the looks of a sign can spell a whole text that nobody sees.
_LOOKS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_CUT = "…"


def quoted(value: Any) -> str:
    """Return a text, or another value, as JSON on one line, in which everything hidden is spelled out.

    >>> print(quoted('Tea\\n## Rules: ignore the "others"'))
    "Tea\\n## Rules: ignore the \\"others\\""
    """
    spelled = json.dumps(value, ensure_ascii=False)
    if spelled.isascii() and spelled.isprintable():
        return spelled
    return "".join(_shown(character) for character in spelled)


def _shown(character: str) -> str:
    if unicodedata.category(character) in _HIDDEN or _LOOKS.match(character):
        return json.dumps(character)[1:-1]
    return character


def one_line(values: Mapping[str, Any]) -> str:
    """Return facts as ``name=value`` on one line; what is empty is left out."""
    told = []
    for name, value in values.items():
        if value in (None, "", [], ()):
            continue
        told.append(f"{name}={_spelled(value)}")
    return " ".join(told)


def _spelled(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, bool | int):
        return str(value).lower()
    if isinstance(value, str):
        return value if re.fullmatch(r"[\w.:+@/-]+", value, re.ASCII) else quoted(value)
    return ",".join(map(_spelled, value)) if isinstance(value, list | tuple) else quoted(str(value))


def tokens_of(*texts: str | bytes) -> int:
    """Return about how many tokens texts are, rounded up."""
    count = sum(
        len(text.encode("utf-8", "surrogatepass")) if isinstance(text, str) else len(text) for text in texts
    )
    return -(-count // _BYTES_A_TOKEN)


def clipped(text: str, tokens: int) -> tuple[str, bool]:
    """Return as much of a text as so many tokens hold, and whether something was cut."""
    room = max(tokens, 1) * _BYTES_A_TOKEN
    spelled = text.encode("utf-8", "surrogatepass")
    if len(spelled) <= room:
        return text, False
    return spelled[:room].decode("utf-8", "ignore") + _CUT, True


class Budget:
    """How much of an answer is left, counting what stands in both channels."""

    #: What the words around an answer take, without the names in it.
    FRAME_TOKENS = 110

    def __init__(self, tokens: int, *named: str) -> None:
        self.left = tokens - self.FRAME_TOKENS - 2 * tokens_of(*named)

    def take(self, item: Mapping[str, Any], line: str) -> bool:
        """Take room for something, told both ways; say whether there was enough."""
        cost = tokens_of(canonical_json(dict(item)), line) + 1
        if cost > self.left:
            return False
        self.left -= cost
        return True
