"""Spells values in YAML, so that every reader of it gets back what was meant, and reads them again."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any

__all__ = ["read_spelled", "spell_value"]

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


#: A line that is spelled so, or as simply.
_LINE = re.compile(
    r"""(?P<key>[A-Za-z_]+):[ ](?:(?P<yes>true|false)|(?P<number>0|[1-9]\d{0,8})|(?P<list>\[[^\[\]\r\n]*\])"""
    r"""|(?P<moment>\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}[+-]\d{2}:\d{2})|(?P<text>[^\r\n]+))\r?""",
    re.ASCII,
)
#: The keys whose values are moments; elsewhere one is a text to us.
_MOMENTS = ("created", "updated")
_QUOTED = re.compile('"[ !#-\\[\\]-~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe]*"')


def read_spelled(yaml: str) -> dict[str, Any] | None:
    """Return the keys and values of lines as we spell them; None if one is anything else.

    A reader of YAML takes milliseconds for the same.
    """
    told: dict[str, Any] = {}
    for line in yaml.split("\n")[:-1]:
        found = _LINE.fullmatch(line)
        value = None if found is None else _read_value(found)
        if found is None or value is None or found["key"].casefold() in _WORDS or found["key"] in told:
            return None
        told[found["key"]] = value
    return told


def _read_value(found: re.Match[str]) -> Any:
    if found["yes"]:
        return found["yes"] == "true"
    if found["number"]:
        return int(found["number"])
    if found["moment"]:
        if found["key"] not in _MOMENTS or found["moment"].endswith("-00:00"):
            return None
        try:
            return datetime.fromisoformat(found["moment"])
        except ValueError:
            return None
    if not found["list"]:
        return _read_text(found["text"])
    inside = found["list"][1:-1]
    texts = [_read_text(part) for part in inside.split(", ")] if inside else []
    return None if None in texts else texts


def _read_text(text: str) -> str | None:
    if _QUOTED.fullmatch(text):
        return text[1:-1]
    is_plain = _PLAIN.fullmatch(text) and text == text.strip() and text.casefold() not in _WORDS
    return text if is_plain and " #" not in text else None
