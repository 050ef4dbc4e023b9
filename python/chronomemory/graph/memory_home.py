"""A graph in memory: the twin of the workspace on disk, gone when nobody holds it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from chronomemory.graph.changes import Changes, Look, numbered
from chronomemory.graph.ids import spellings
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

__all__ = ["MemoryHome"]

One = TypeVar("One", bound=Model)


class MemoryHome:
    """Keeps a graph in dicts; what comes in and goes out are copies."""

    def __init__(self) -> None:
        #: Whether a graph store uses it: then its events must lead to that graph.
        self.keeps_graph = False
        self._turn = threading.RLock()
        self._profiles: dict[str, Profile] = {}
        self._nodes: dict[str, Node] = {}
        self._edges: dict[str, Edge] = {}
        self._paths: dict[str, MemoryPath] = {}
        self._plans: dict[str, ActivationPlan] = {}
        self._events: dict[str, MemoryEvent] = {}
        self._audits: list[AuditRecord] = []
        #: Edges by source and by target, and nodes by kind: ids.
        self._out: dict[str, set[str]] = {}
        self._in: dict[str, set[str]] = {}
        self._by_kind: dict[str, set[str]] = {}

    def look(self) -> Look:
        """Return a look at what is there."""
        return self

    def run(self, work: Callable[[Look], Changes]) -> Changes:
        """Write what a function makes of a look, all of it or nothing."""
        with self._turn:
            changes = numbered(work(self), self)
            self._take(changes)
            return changes

    def _take(self, changes: Changes) -> None:
        self._profiles.update((item.id, _copy(item)) for item in changes.profiles)
        self._paths.update((item.id, _copy(item)) for item in changes.paths)
        self._plans.update((item.id, _copy(item)) for item in changes.plans)
        self._events.update((item.id, _copy(item)) for item in changes.events)
        self._audits += [_copy(item) for item in changes.audits]
        for name in (*changes.gone_nodes, *(item.id for item in changes.nodes)):
            if (node := self._nodes.pop(name, None)) is not None:
                self._by_kind[node.kind].discard(name)
        for name in (*changes.gone_edges, *(item.id for item in changes.edges)):
            if (edge := self._edges.pop(name, None)) is not None:
                self._out[edge.source].discard(name)
                self._in[edge.target].discard(name)
        for node in changes.nodes:
            self._nodes[node.id] = _copy(node)
            self._by_kind.setdefault(node.kind, set()).add(node.id)
        for edge in changes.edges:
            self._edges[edge.id] = _copy(edge)
            self._out.setdefault(edge.source, set()).add(edge.id)
            self._in.setdefault(edge.target, set()).add(edge.id)

    # What is there.

    def profile(self, item_id: str) -> Profile | None:
        return _found(self._profiles, item_id)

    def node(self, item_id: str) -> Node | None:
        return _found(self._nodes, item_id)

    def edge(self, item_id: str) -> Edge | None:
        return _found(self._edges, item_id)

    def path(self, item_id: str) -> MemoryPath | None:
        return _found(self._paths, item_id)

    def plan(self, item_id: str) -> ActivationPlan | None:
        return _found(self._plans, item_id)

    def event(self, item_id: str) -> MemoryEvent | None:
        return _found(self._events, item_id)

    def profiles(self) -> list[Profile]:
        return _listed(self._profiles)

    def nodes(self, kind: str | None = None) -> list[Node]:
        if kind is None:
            return _listed(self._nodes)
        return [_copy(self._nodes[name]) for name in sorted(self._by_kind.get(kind, ()))]

    def edges(
        self, *, source: str | None = None, target: str | None = None, kind: str | None = None
    ) -> list[Edge]:
        names: Any = self._edges
        if source is not None:
            names = self._out.get(source, set())
        if target is not None:
            ends = self._in.get(target, set())
            names = ends if source is None else names & ends
        found = (self._edges[name] for name in sorted(names))
        return [_copy(edge) for edge in found if kind is None or edge.kind == kind]

    def paths(self) -> list[MemoryPath]:
        return _listed(self._paths)

    def plans(self) -> list[ActivationPlan]:
        return _listed(self._plans)

    def events(self, kind: str | None = None) -> list[MemoryEvent]:
        return [_copy(event) for event in self._events.values() if kind is None or event.kind == kind]

    def audits(self) -> list[AuditRecord]:
        return [_copy(record) for record in self._audits]

    def event_count(self) -> int:
        return len(self._events)

    def audit_count(self) -> int:
        return len(self._audits)


def _copy(item: One) -> One:
    """Return the same with containers of its own: whoever changes them changes nothing here."""
    return type(item).from_dict(item.to_dict())


def _found(items: dict[str, One], item_id: str) -> One | None:
    return next((_copy(items[one]) for one in spellings(item_id) if one in items), None)


def _listed(items: dict[str, One]) -> list[One]:
    return [_copy(items[name]) for name in sorted(items)]
