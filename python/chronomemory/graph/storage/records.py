"""How profiles, nodes, edges, paths, plans, events and audit records become records, and come back."""

from __future__ import annotations

from typing import TypeVar

from chronomemory.graph.ids import AUDIT, EDGE, EVENT, NODE, PATH, PLAN, PROFILE, key_of
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
from chronomemory.record import ChronoRecord

__all__ = ["EVENTS", "KINDS", "PLACE", "item_of", "record_of"]

KINDS: dict[type[Model], str] = {
    Profile: PROFILE,
    Node: NODE,
    Edge: EDGE,
    MemoryPath: PATH,
    ActivationPlan: PLAN,
    MemoryEvent: EVENT,
    AuditRecord: AUDIT,
}
#: Under which name the index knows all events, and all audit records.
EVENTS = "all"

_LOG = "log"
#: The number of an event in its workspace. Earlier versions wrote none.
PLACE = "place"

One = TypeVar("One", bound=Model)


def record_of(item: Model, place: int = 0) -> ChronoRecord:
    """Return the record of something; its label is what a search finds it by.

    The ``place`` of an event keeps the order of events, which an erasure changes by writing some again.
    """
    fields = item.shown()
    kind = KINDS[type(item)]
    if kind in (EVENT, AUDIT):
        fields[_LOG] = EVENTS
    if kind == EVENT:
        fields[PLACE] = place
    label = fields.get("label") or fields.get("name") or ""
    return ChronoRecord(id=key_of(kind, fields["id"]), kind=kind, label=label, confidence=1.0, data=fields)


def item_of(cls: type[One], record: ChronoRecord) -> One:
    """Return what a record is of; the record is not used any more."""
    return cls.known(record.data)
