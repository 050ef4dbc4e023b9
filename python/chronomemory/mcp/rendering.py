"""Rendering of memories: stored text may be hostile, so it is always quoted and never a line of its own."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import takewhile
from typing import Any, TypeVar

from chronomemory._core import canonical_json
from chronomemory.record import ChronoRecord
from chronomemory.tools import short_id

_BYTES_A_TOKEN = 4
_HIDDEN = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
_LOOKS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_CUT = "…"
_CUT_TOKENS = 14

T = TypeVar("T")
Item = dict[str, Any]


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
    """Return fields as ``name=value`` on one line, without empty ones."""
    parts = []
    for name, value in values.items():
        if value in (None, "", [], ()):
            continue
        parts.append(f"{name}={_spelled(value)}")
    return " ".join(parts)


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
    """Return the beginning of a text that fits some tokens, and whether it was cut."""
    room = max(tokens, 1) * _BYTES_A_TOKEN
    spelled = text.encode("utf-8", "surrogatepass")
    if len(spelled) <= room:
        return text, False
    return spelled[:room].decode("utf-8", "ignore") + _CUT, True


class Budget:
    """The tokens left for an answer: of its text, and with ``both`` of its structured content too."""

    #: The fixed words of an answer, in one channel.
    FRAME_TOKENS = 55

    def __init__(self, tokens: int, *named: str, both: bool) -> None:
        self.channels = 2 if both else 1
        self.left = tokens - self.channels * (self.FRAME_TOKENS + tokens_of(*named))

    def cost(self, item: Mapping[str, Any], line: str) -> int:
        return tokens_of(line, canonical_json(dict(item)) if self.channels == 2 else "") + 1

    def take(self, item: Mapping[str, Any], line: str) -> bool:
        """Reserve room for an item; return whether there was enough."""
        cost = self.cost(item, line)
        if cost > self.left:
            return False
        self.left -= cost
        return True

    def fit(self, items: Iterable[Item], line: Callable[[Item], str]) -> list[Item]:
        return list(takewhile(lambda item: self.take(item, line(item)), items))

    def fit_texts(
        self, things: Iterable[T], make: Callable[[T, int], Item], line: Callable[[Item], str], tokens: int
    ) -> list[Item]:
        """Return the first items that fit; ``make`` is given the tokens of a text, at most a quarter."""
        most = tokens // 4

        def made() -> Iterator[Item]:
            for number, thing in enumerate(things):
                room = most
                if not number:
                    bare = make(thing, 1)
                    fitting = (self.left - self.cost(bare, line(bare))) // self.channels - _CUT_TOKENS
                    room = min(most, max(fitting, 1))
                yield make(thing, room)

        return self.fit(made(), line)


_TEXTS = ("content", "text", "body", "summary", "description", "title", "name")
#: Fields of ``data`` that an answer shows elsewhere or not at all.
_OWN_FIELDS = frozenset({"@scope", "content", "source", "tags"})


def text_of(record: ChronoRecord) -> str:
    """Return the text of a record: its label, or the text of its face."""
    texts = [record.label, *(record.data.get(name) for name in _TEXTS)]
    found = next((text for text in texts if isinstance(text, str) and text), "")
    if found or record.kind not in ("node", "fact"):
        return found
    parts = (record.data.get(name) for name in ("subject", "predicate", "object"))
    return " ".join(str(part) for part in parts if part)


def tags_of(record: ChronoRecord) -> list[str]:
    """Return its tags: a list, or the keys of an object."""
    tags = record.data.get("tags", [])
    return [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list | dict) else []


def _moment(moment: datetime | None) -> str:
    return "" if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def item_of(record: ChronoRecord, *, tokens: int, score: float | None = None) -> dict[str, Any]:
    """Return a memory for the structured channel; a long text is cut and marked."""
    source, (text, is_cut) = record.data.get("source"), clipped(text_of(record), tokens)
    item: dict[str, Any] = {
        "id": record.id,
        "kind": record.kind,
        "text": text,
        "source": source if isinstance(source, str) and source else record.source_type,
        "status": record.status,
        "confidence": round(record.confidence, 4),
        "created_at": _moment(record.created_at),
        "updated_at": _moment(record.updated_at),
        "tags": tags_of(record),
    }
    if score is not None:
        item["score"] = round(score, 4)
    if is_cut:
        item["cut"] = True
    return item


def more_of(record: ChronoRecord) -> dict[str, Any]:
    """Return the evidence of a record and its other fields."""
    more = {name: value for name, value in record.data.items() if name not in _OWN_FIELDS}
    return {"evidence": list(record.evidence), "data": more}


#: Values that a line leaves out, because most memories have them.
_USUAL = {"kind": "block", "status": "active", "confidence": 0.5}


def line_of(item: Mapping[str, Any]) -> str:
    """Return a memory as one line: short id, day, source, tags and unusual fields, then its quoted text."""
    unusual = {name: item[name] for name, usual in _USUAL.items() if item[name] != usual}
    facts = {
        "id": short_id(item["id"]),
        "day": item["created_at"][:10],
        "updated": item["updated_at"][:10] if item["updated_at"][:10] != item["created_at"][:10] else "",
        "source": item["source"],
        "tags": item["tags"],
        **unusual,
    }
    cut = " (cut: get_memory has all of it)" if item.get("cut") else ""
    return f"- {one_line(facts)} text={quoted(item['text'])}{cut}"
