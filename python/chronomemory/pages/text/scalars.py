"""Spells values in YAML, so that every reader of it gets back what was meant."""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["spell_value"]

#: What YAML takes for something other than a text, in one of its versions.
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
#: What a text on its own may hold: no sign that YAML, or a list in it, gives a meaning.
_PLAIN = re.compile(r"[^\W\d_][\w ./()+;=-]*", re.UNICODE)
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}[+-]\d{2}:\d{2}", re.ASCII)
#: What stands in no YAML as it is, or ends a line there.
_UNSEEN = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


def spell_value(value: Any) -> str:
    """Spell a text, a number, yes or no, or a list of texts.

    >>> spell_value("plain"), spell_value("a: b"), spell_value(["one", "2"]), spell_value(False)
    ('plain', '"a: b"', '[one, "2"]', 'false')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(spell_value, value))}]"
    text = str(value)
    if _MOMENT.fullmatch(text):
        return text
    if _PLAIN.fullmatch(text) and text == text.strip() and text.casefold() not in _WORDS and " #" not in text:
        return text
    return _UNSEEN.sub(lambda sign: f"\\u{ord(sign[0]):04x}", json.dumps(text, ensure_ascii=False))
