"""How a fact and its lineage are kept as records."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

from chronomemory._core import canonical_json
from chronomemory.episodes.ids import FACT, RULE, episode_key, fact_key, lineage_key, plain_id
from chronomemory.episodes.models import Fact
from chronomemory.errors import InvalidRecord, RecordTooLarge
from chronomemory.face.arguments import contents, string, within
from chronomemory.face.moments import instant, is_instant
from chronomemory.record import ChronoRecord
from chronomemory.scope import Scope

Step: TypeAlias = dict[str, Any]

#: So many steps stand in a fact at most, unless somebody pins one with more.
_MOST_STEPS = 32
#: A piece is no knowledge: it stays out of answers, and the log has it.
_STATUS = "archived"


@dataclass(frozen=True)
class Lineage:
    """Steps, and the record ids of the pieces whose steps come before them."""

    steps: list[Step]
    earlier: list[str] = field(default_factory=list)


def lineage_in(record: ChronoRecord) -> Lineage:
    """Return what a fact or a piece says itself; another tool may have written anything there."""
    return Lineage(_listed(record.data.get("lineage"), dict), _listed(record.data.get("earlier"), str))


def _listed(found: object, kind: type[Any]) -> list[Any]:
    return [one for one in found if isinstance(one, kind)] if isinstance(found, list) else []


def whole(lineage: Lineage, look: Callable[[str], ChronoRecord | None]) -> list[Step]:
    """Return all steps, the first first and each once; ``look`` reads a piece, or None if it is not there."""
    steps: dict[bytes, Step] = {}
    seen: set[str] = set()
    waiting: list[str | list[Step]] = [lineage.steps, *reversed(lineage.earlier)]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            _add(steps, part)
        elif part not in seen:
            seen.add(part)
            if (record := look(part)) is not None:
                lineage = lineage_in(record)
                waiting += [lineage.steps, *reversed(lineage.earlier)]
    return list(steps.values())


def joined(lineages: Iterable[Lineage], scope: Scope) -> tuple[Lineage, list[ChronoRecord]]:
    """Return several one behind the other, and the pieces to be written of what is too long for a fact."""
    pieces: list[ChronoRecord] = []
    earlier: list[str] = []
    steps: dict[bytes, Step] = {}
    for lineage in lineages:
        new = [name for name in lineage.earlier if name not in earlier]
        if new and steps:
            # What was told so far comes before them.
            pieces.append(_piece(Lineage(list(steps.values()), earlier), scope))
            earlier, steps = [pieces[-1].id], {}
        earlier = [*earlier, *new]
        _add(steps, lineage.steps)
    latest = list(steps.values())
    if len(latest) > _MOST_STEPS:
        pieces.append(_piece(Lineage(latest[:-1], earlier), scope))
        earlier, latest = [pieces[-1].id], latest[-1:]
    return Lineage(latest, earlier), pieces


def _add(steps: dict[bytes, Step], more: Iterable[Step]) -> None:
    for step in more:
        steps.setdefault(canonical_json(step), step)


def _piece(lineage: Lineage, scope: Scope) -> ChronoRecord:
    data = {"@scope": scope.to_dict(), "earlier": lineage.earlier, "lineage": lineage.steps}
    return ChronoRecord(
        # Drawn, not a digest: an erased episode could be guessed from that.
        id=lineage_key(uuid.uuid4().hex),
        kind=RULE,
        status=_STATUS,
        label=f"earlier steps of a lineage, {len(lineage.steps)}",
        source_type="inferred",
        evidence=evidence_of(lineage),
        data=data,
    )


def evidence_of(lineage: Lineage) -> list[str]:
    """Return what these steps rest on: the pieces before them, and their episodes."""
    sources = (episode_key(source) for step in lineage.steps for source in sources_of(step))
    return list(dict.fromkeys([*lineage.earlier, *sources]))


def sources_of(step: Step) -> list[str]:
    """Return the episodes of a step."""
    return _listed(step.get("source_episode_ids"), str)


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
