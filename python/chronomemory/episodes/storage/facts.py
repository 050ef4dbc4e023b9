"""How a fact becomes a record, and a record a fact."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from chronomemory._core import canonical_json
from chronomemory.episodes.ids import FACT, fact_key, plain_id
from chronomemory.episodes.models import Fact
from chronomemory.episodes.storage.lineages import Lineage, evidence_of, lineage_in, whole
from chronomemory.errors import InvalidRecord, RecordTooLarge
from chronomemory.face.arguments import contents, string, within
from chronomemory.face.moments import instant, is_instant
from chronomemory.record import ChronoRecord
from chronomemory.scope import Scope

__all__ = ["check_size", "fact_of", "is_fact", "record_of"]

_PREFIX = fact_key("")
#: What a line of the log holds at most, without the other fields of an event.
_MOST_BYTES = 16 * 1024 * 1024 - 1024
#: A record has at most so many times as many bytes as its data.
_TIMES_LARGER = 3


@contents
def record_of(fact: Fact, scope: Scope, lineage: Lineage) -> ChronoRecord:
    """Return the record of a fact: its evidence are the episodes of its steps, and the pieces before them."""
    pinned_at = instant("pinned_at", fact.pinned_at)
    fact_id = string("id", fact.id, empty=False)
    if not fact_id.strip():
        raise InvalidRecord("id must not be blank", field="id")
    data: dict[str, Any] = {
        "@scope": scope.to_dict(),
        **({"earlier": lineage.earlier} if lineage.earlier else {}),
        "lineage": lineage.steps,
        "metadata": fact.metadata,
        "payload": fact.payload,
        "timestamp": pinned_at.isoformat(),
    }
    return ChronoRecord(
        id=fact_key(fact_id),
        kind=FACT,
        label=_said(fact.payload),
        confidence=within("confidence", fact.confidence),
        source_type="inferred",
        evidence=evidence_of(lineage),
        data=data,
    )


def check_size(record: ChronoRecord) -> None:
    """Refuse a fact that no line of the log can hold: it says twice what its episode said, to be found."""
    if _TIMES_LARGER * len(canonical_json(record.data)) < _MOST_BYTES:
        return
    if len(canonical_json(record.to_dict())) > _MOST_BYTES:
        raise RecordTooLarge(f"fact {plain_id(record.id)!r}: no line of the log can hold it", field="data")


def is_fact(record: ChronoRecord) -> bool:
    """Say whether a record is a fact as this face writes it: plain ones of its kind are none."""
    data, scope = record.data, record.scope
    steps = data.get("lineage")
    return (
        record.id.startswith(_PREFIX)
        and bool(plain_id(record.id).strip())
        and scope is not None
        and set(scope.to_dict()) == {"user", "agent"}
        and isinstance(steps, list)
        and all(isinstance(step, dict) for step in steps)
        and is_instant(data.get("timestamp"))
        and all(isinstance(data.get(name), dict) for name in ("metadata", "payload"))
    )


def fact_of(
    record: ChronoRecord, look: Callable[[str], ChronoRecord | None], columns: Iterable[str] = ()
) -> Fact:
    """Return the fact of a record with its whole lineage; ``look`` reads what comes before its last steps.

    Columns that were added read as None until somebody fills them.
    """
    data = record.data
    return Fact(
        id=plain_id(record.id),
        payload=data["payload"],
        lineage=whole(lineage_in(record), look),
        confidence=record.confidence,
        pinned_at=datetime.fromisoformat(data["timestamp"]),
        metadata={**dict.fromkeys(columns), **data["metadata"]},
        **data["@scope"],
    )


def _said(payload: dict[str, Any]) -> str:
    """Return what a fact says, in words that are searched."""
    if isinstance(content := payload.get("content"), str) and content.strip():
        return content
    parts = (payload.get(name) for name in ("subject", "predicate", "object"))
    return " ".join(str(part) for part in parts if part is not None)
