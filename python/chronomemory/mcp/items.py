"""How a memory is told: what it says, and beside it id, kind, source, status, confidence, times and tags."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from chronomemory.mcp.quoting import clipped, one_line, quoted
from chronomemory.record import ChronoRecord

__all__ = ["item_of", "line_of", "source_of", "tags_of", "text_of"]

#: Where a record says what it says, the first that is there.
_TEXTS = ("content", "text", "body", "summary", "description", "title", "name")
#: Fields of ``data`` that an answer tells in words of its own, or that nobody needs.
_TOLD = frozenset({"@scope", "content", "source", "tags"})


def text_of(record: ChronoRecord) -> str:
    """Return what a record says: a label, or the text of a face."""
    said = [record.label, *(record.data.get(name) for name in _TEXTS)]
    found = next((text for text in said if isinstance(text, str) and text), "")
    if found or record.kind not in ("node", "fact"):
        return found
    parts = (record.data.get(name) for name in ("subject", "predicate", "object"))
    return " ".join(str(part) for part in parts if part)


def source_of(record: ChronoRecord) -> str:
    """Return where it comes from, as far as it says so."""
    source = record.data.get("source")
    return source if isinstance(source, str) and source else record.source_type


def tags_of(record: ChronoRecord) -> list[str]:
    """Return its tags: a list, or the keys of an object."""
    tags = record.data.get("tags", [])
    return [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list | dict) else []


def _moment(moment: datetime | None) -> str:
    return "" if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def item_of(record: ChronoRecord, *, tokens: int, score: float | None = None) -> dict[str, Any]:
    """Return a memory for the structured channel; a text beyond so many tokens is cut, and says so."""
    text, is_cut = clipped(text_of(record), tokens)
    item: dict[str, Any] = {
        "id": record.id,
        "kind": record.kind,
        "text": text,
        "source": source_of(record),
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
    """Return what else a record holds: its own fields, and what it names as evidence."""
    more = {name: value for name, value in record.data.items() if name not in _TOLD}
    return {"evidence": list(record.evidence), "data": more}


def line_of(item: Mapping[str, Any]) -> str:
    """Return a memory for the text channel: its facts, then what it says, quoted, on one line."""
    facts = {
        "id": item["id"],
        "kind": item["kind"],
        "status": item["status"],
        "confidence": item["confidence"],
        "source": item["source"],
        "created": item["created_at"],
        "updated": item["updated_at"] if item["updated_at"] != item["created_at"] else "",
        "tags": item["tags"],
        "score": item.get("score"),
    }
    cut = " (cut: get_memory has all of it)" if item.get("cut") else ""
    return f"- {one_line(facts)} text={quoted(item['text'])}{cut}"
