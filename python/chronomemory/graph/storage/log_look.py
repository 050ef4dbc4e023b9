"""A look at a graph in the chained log, by the indexes that the engine keeps for it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from chronomemory.face.batch import Connection, PrefixReader
from chronomemory.graph.errors import ModelError
from chronomemory.graph.ids import AUDIT, EDGE, EVENT, META_ID, NODE, PATH, PLAN, PROFILE, key_of, spellings
from chronomemory.graph.models import (
    ActivationPlan,
    AuditRecord,
    Edge,
    MemoryEvent,
    MemoryPath,
    Model,
    Node,
    Profile,
)
from chronomemory.graph.spelling import WORKSPACE
from chronomemory.graph.storage.records import EVENTS, PLACE, item_of
from chronomemory.record import ChronoRecord
from chronomemory.selection import view_of
from chronomemory.types import HasEngine

__all__ = ["BatchLook", "Books", "LogLook", "PastLook"]

One = TypeVar("One", bound=Model)

_READER = PrefixReader()


@dataclass(frozen=True, slots=True)
class Books:
    """What a workspace knows of itself: how often it was changed, and how many events it has."""

    revision: int = 0
    events: int = 0
    #: The event of the log that says so; 0 if there is none.
    seq: int = 0

    @classmethod
    def of(cls, record: ChronoRecord | None) -> Books | None:
        """Return what the record says, or None if there is none that says it."""
        data: dict[str, Any] = {} if record is None else record.data
        revision, events = data.get("revision"), data.get("events")
        if record is None or data.get("schema") != WORKSPACE:
            return None
        if not isinstance(revision, int) or not isinstance(events, int):
            return None
        return cls(revision, events, record.updated_seq or 0)

    def record(self) -> ChronoRecord:
        """Return the record that every batch ends with."""
        data = {"schema": WORKSPACE, "revision": self.revision, "events": self.events}
        return ChronoRecord(id=META_ID, kind="workspace", confidence=1.0, data=data)


class LogLook:
    """What is seen now by whoever holds a store."""

    def __init__(self, store: HasEngine) -> None:
        self._store = store

    def books(self) -> Books | None:
        """Return what the workspace knows of itself, or None if there is no workspace."""
        return Books.of(self._record(META_ID))

    def profile(self, item_id: str) -> Profile | None:
        return self._item(Profile, PROFILE, item_id)

    def node(self, item_id: str) -> Node | None:
        return self._item(Node, NODE, item_id)

    def edge(self, item_id: str) -> Edge | None:
        return self._item(Edge, EDGE, item_id)

    def path(self, item_id: str) -> MemoryPath | None:
        return self._item(MemoryPath, PATH, item_id)

    def plan(self, item_id: str) -> ActivationPlan | None:
        return self._item(ActivationPlan, PLAN, item_id)

    def event(self, item_id: str) -> MemoryEvent | None:
        return self._item(MemoryEvent, EVENT, item_id)

    def profiles(self) -> list[Profile]:
        return self._all(Profile, PROFILE)

    def nodes(self, kind: str | None = None) -> list[Node]:
        if kind is None:
            return self._all(Node, NODE)
        return _readable(Node, self._found("graph.nodes_by_kind", kind))

    def edges(
        self, *, source: str | None = None, target: str | None = None, kind: str | None = None
    ) -> list[Edge]:
        asked = {"source": source, "target": target, "kind": kind}
        by = next((name for name, value in asked.items() if value is not None), None)
        if by is None:
            return self._all(Edge, EDGE)
        found = _readable(Edge, self._found(f"graph.edges_by_{by}", asked[by]))
        return [edge for edge in found if target in (None, edge.target) and kind in (None, edge.kind)]

    def paths(self) -> list[MemoryPath]:
        return self._all(MemoryPath, PATH)

    def plans(self) -> list[ActivationPlan]:
        return self._all(ActivationPlan, PLAN)

    def events(self, kind: str | None = None) -> list[MemoryEvent]:
        index, key = ("graph.appended", EVENTS) if kind is None else ("graph.appended_by_kind", kind)
        found = sorted(self._found(index, key), key=lambda record: int(record.data.get(PLACE, 0)))
        return _readable(MemoryEvent, found)

    def audits(self) -> list[AuditRecord]:
        return _readable(AuditRecord, self._found("graph.audited", EVENTS))

    def event_count(self) -> int:
        books = self.books()
        return 0 if books is None else books.events

    def audit_count(self) -> int:
        return self._count(AUDIT)

    def _item(self, cls: type[One], kind: str, item_id: str) -> One | None:
        found = (self._record(key_of(kind, one)) for one in spellings(item_id))
        return next(iter(_readable(cls, [record for record in found if record is not None])), None)

    def _all(self, cls: type[One], kind: str) -> list[One]:
        return sorted(_readable(cls, self._records(kind)), key=_id_of)

    # Where it looks.

    def _record(self, record_id: str) -> ChronoRecord | None:
        record = self._store.engine.get(record_id)
        return None if record is None or record.status == "tombstone" else record

    def _records(self, kind: str) -> list[ChronoRecord]:
        return _READER.records(self._store.engine, kind, "active", None)

    def _count(self, kind: str) -> int:
        return _READER.count(self._store.engine, kind, "active")

    def _found(self, index: str, key: object) -> list[ChronoRecord]:
        return self._store.engine.find(index, [key], limit=sys.maxsize)


class BatchLook(LogLook):
    """What a batch sees; what it reads by id must stay so until it is written."""

    def __init__(self, conn: Connection) -> None:
        super().__init__(conn.store)
        self._conn = conn

    def _record(self, record_id: str) -> ChronoRecord | None:
        return self._conn.record(record_id)


class PastLook(LogLook):
    """What was there then."""

    def __init__(self, store: HasEngine, as_of: int | datetime) -> None:
        super().__init__(store)
        self._past = view_of(store.engine, as_of)

    def _record(self, record_id: str) -> ChronoRecord | None:
        record = self._past.get(record_id)
        return None if record is None or record.status == "tombstone" else record

    def _records(self, kind: str) -> list[ChronoRecord]:
        found = self._past.query(kind=kind)
        return [record for record in found if record.id.startswith(key_of(kind, ""))]

    def _count(self, kind: str) -> int:
        return len(self._records(kind))

    def _found(self, index: str, key: object) -> list[ChronoRecord]:
        return self._past.find(index, [key], limit=sys.maxsize)


def _readable(cls: type[One], records: Iterable[ChronoRecord]) -> list[One]:
    """Return what records are of; one that this face would not have written is none of its own."""
    found = []
    for record in records:
        try:
            found.append(item_of(cls, record))
        except (ModelError, KeyError, TypeError):
            continue
    return found


def _id_of(item: Any) -> str:
    name: str = item.id
    return name
