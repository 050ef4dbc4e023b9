"""Packs beliefs into the budget of a prompt, and tells what was left out and why."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from chronomemory.deps import DepGraph
from chronomemory.record import INFRASTRUCTURE_KINDS, RAG_CONFIDENCE, ChronoRecord, words
from chronomemory.types import Readable

__all__ = ["ContextPack", "ContextPackCompiler", "ContextPackEntry", "ExclusionReason"]

_CHARACTERS_PER_TOKEN = 4
_UNBELIEVED = frozenset({"tombstone", "invalidated", "hypothesis"})


@dataclass(slots=True)
class ContextPackEntry:
    """One record as a prompt gets it."""

    record_id: str
    kind: str
    label: str
    confidence: float
    token_estimate: int
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExclusionReason:
    """Why one record is not in the pack."""

    record_id: str
    reason: str


@dataclass(slots=True)
class ContextPack:
    """The records chosen for a task, the most believed first, and the others with their reasons."""

    task_id: str
    goal: str
    token_budget: int = 4096
    entries: list[ContextPackEntry] = field(default_factory=list)
    excluded: list[ExclusionReason] = field(default_factory=list)

    @property
    def token_count(self) -> int:
        """The estimate of all entries together, never above the budget."""
        return sum(entry.token_estimate for entry in self.entries)

    def to_dict(self) -> dict[str, Any]:
        """Return the pack as JSON can carry it."""
        return {**asdict(self), "token_count": self.token_count}


class ContextPackCompiler:
    """Chooses what a prompt may hold; with a graph, records that the task leads to come first."""

    def __init__(self, store: Readable, dep_graph: DepGraph | None = None) -> None:
        self._store = store
        self._graph = dep_graph

    def compile(self, task_id: str, goal: str, token_budget: int = 4096) -> ContextPack:
        """Choose records for a task; an empty goal asks for everything believed."""
        pack = ContextPack(task_id, goal, token_budget)
        wanted = words(goal)
        candidates: list[ChronoRecord] = []
        for record in self._store.query(status=None):
            reason = _why_not(record, wanted)
            if reason is None:
                candidates.append(record)
            else:
                pack.excluded.append(ExclusionReason(record.id, reason))
        near = set() if self._graph is None else self._graph.transitive_successors(task_id)
        candidates.sort(key=lambda record: (-record.confidence, record.id not in near))
        room = token_budget
        for record in candidates:
            data = json.dumps(record.data, ensure_ascii=False) if record.data else ""
            estimate = max(1, (len(record.label) + len(data)) // _CHARACTERS_PER_TOKEN)
            if estimate > room:
                reason = f"{estimate} tokens do not fit in the {room} left of {token_budget}"
                pack.excluded.append(ExclusionReason(record.id, reason))
                continue
            room -= estimate
            pack.entries.append(
                ContextPackEntry(
                    record.id, record.kind, record.label, record.confidence, estimate, record.data
                )
            )
        return pack


def _why_not(record: ChronoRecord, wanted: frozenset[str]) -> str | None:
    if record.status in _UNBELIEVED:
        return f"status {record.status}"
    if record.kind in INFRASTRUCTURE_KINDS:
        return f"infrastructure kind {record.kind}"
    if record.confidence < RAG_CONFIDENCE:
        return f"confidence {record.confidence} below {RAG_CONFIDENCE}"
    if wanted and wanted.isdisjoint(words(record.label)):
        return "label shares no word with the goal"
    return None
