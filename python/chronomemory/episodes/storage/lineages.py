"""How the lineage of a fact stands in the log: its last steps in the fact, those before them in pieces.

A piece never changes, unless an episode that it names is erased. It names the pieces before it, so a fact
that was updated thousands of times is as short as one that was updated twice, and its whole story can still
be read.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from chronomemory._core import canonical_json
from chronomemory.episodes.ids import RULE, episode_key, lineage_key
from chronomemory.record import ChronoRecord
from chronomemory.scope import Scope

__all__ = ["Lineage", "Step", "evidence_of", "joined", "lineage_in", "sources_of", "whole"]

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
                told = lineage_in(record)
                waiting += [told.steps, *reversed(told.earlier)]
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
    told = list(steps.values())
    if len(told) > _MOST_STEPS:
        pieces.append(_piece(Lineage(told[:-1], earlier), scope))
        earlier, told = [pieces[-1].id], told[-1:]
    return Lineage(told, earlier), pieces


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
