"""A set of changes to a graph, the protocols to read and write one, and a graph kept in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from chronomemory.graph.errors import DuplicateEventError, PathError
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


@dataclass(frozen=True, slots=True)
class Changes:
    """What is written together."""

    profiles: tuple[Profile, ...] = ()
    nodes: tuple[Node, ...] = ()
    edges: tuple[Edge, ...] = ()
    paths: tuple[MemoryPath, ...] = ()
    plans: tuple[ActivationPlan, ...] = ()
    #: The ids of nodes and edges that are taken away.
    gone_nodes: tuple[str, ...] = ()
    gone_edges: tuple[str, ...] = ()
    #: In the order in which they are appended; those without an id are given one.
    events: tuple[MemoryEvent, ...] = ()
    audits: tuple[AuditRecord, ...] = ()

    @property
    def of_graph(self) -> bool:
        """Whether anything but the audit changes."""
        return self != Changes(audits=self.audits)


class Look(Protocol):
    """A look at what is there; what is listed is sorted by id, events are in the order of their appending."""

    def profile(self, item_id: str) -> Profile | None: ...
    def node(self, item_id: str) -> Node | None: ...
    def edge(self, item_id: str) -> Edge | None: ...
    def path(self, item_id: str) -> MemoryPath | None: ...
    def plan(self, item_id: str) -> ActivationPlan | None: ...
    def event(self, item_id: str) -> MemoryEvent | None: ...
    def profiles(self) -> list[Profile]: ...
    def nodes(self, kind: str | None = None) -> list[Node]: ...
    def edges(
        self, *, source: str | None = None, target: str | None = None, kind: str | None = None
    ) -> list[Edge]: ...
    def paths(self) -> list[MemoryPath]: ...
    def plans(self) -> list[ActivationPlan]: ...
    def events(self, kind: str | None = None) -> list[MemoryEvent]: ...
    def audits(self) -> list[AuditRecord]: ...
    def event_count(self) -> int: ...
    def audit_count(self) -> int: ...


class Home(Protocol):
    """Where a graph is kept."""

    def look(self) -> Look:
        """Return a look at what is there now."""

    def run(self, work: Callable[[Look], Changes]) -> Changes:
        """Write what a function makes of a look, all or nothing; return it with the ids it was given."""


class Draft:
    """Changes in the making: reads see what was put before."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._nodes: dict[str, Node | None] = {}
        self._edges: dict[str, Edge | None] = {}
        self._paths: dict[str, MemoryPath] = {}
        self.events: list[MemoryEvent] = []

    def node(self, item_id: str) -> Node | None:
        """Return a node as it will be, or None."""
        return self._nodes[item_id] if item_id in self._nodes else self._look.node(item_id)

    def edge(self, item_id: str) -> Edge | None:
        """Return an edge as it will be, or None."""
        return self._edges[item_id] if item_id in self._edges else self._look.edge(item_id)

    def path(self, item_id: str) -> MemoryPath | None:
        """Return a path as it will be, or None."""
        return self._paths.get(item_id) or self._look.path(item_id)

    def event(self, item_id: str) -> MemoryEvent | None:
        """Return an event that was appended, or will be, or None."""
        found = next((event for event in self.events if event.id == item_id), None)
        return found or self._look.event(item_id)

    def edges_of(self, node_id: str) -> list[Edge]:
        """Return the edges that will begin or end at a node, sorted by id."""
        there = [*self._look.edges(source=node_id), *self._look.edges(target=node_id)]
        found = {edge.id: edge for edge in there if edge.id not in self._edges}
        put = (edge for edge in self._edges.values() if edge is not None)
        found |= {edge.id: edge for edge in put if node_id in (edge.source, edge.target)}
        return [found[name] for name in sorted(found)]

    def put(self, item: Node | Edge | MemoryPath) -> None:
        """Write a node, an edge or a path."""
        if isinstance(item, Node):
            self._nodes[item.id] = item
        elif isinstance(item, Edge):
            self._edges[item.id] = item
        else:
            self._paths[item.id] = item

    def drop_node(self, item_id: str) -> None:
        """Take a node away."""
        self._nodes[item_id] = None

    def drop_edge(self, item_id: str) -> None:
        """Take an edge away."""
        self._edges[item_id] = None

    def changes(self) -> Changes:
        """Return all of it, sorted by id."""
        nodes = [self._nodes[name] for name in sorted(self._nodes)]
        edges = [self._edges[name] for name in sorted(self._edges)]
        return Changes(
            nodes=tuple(node for node in nodes if node is not None),
            edges=tuple(edge for edge in edges if edge is not None),
            paths=tuple(self._paths[name] for name in sorted(self._paths)),
            gone_nodes=tuple(name for name in sorted(self._nodes) if self._nodes[name] is None),
            gone_edges=tuple(name for name in sorted(self._edges) if self._edges[name] is None),
            events=tuple(self.events),
        )


def numbered(changes: Changes, look: Look) -> Changes:
    """Return changes whose events and audit records all have ids, or refuse an event that may not come."""
    events: list[MemoryEvent] = []
    taken: set[str] = set()
    number = look.event_count()
    paths = {path.id: path for path in changes.paths}
    for event in changes.events:
        number += 1
        if not event.id:
            event = replace(event, id=_free_id(event.kind, number, taken, look))
        elif event.id in taken or look.event(event.id) is not None:
            raise DuplicateEventError(event_id=event.id)
        taken.add(event.id)
        _check_path_is_open(event, paths, look)
        events.append(event)
    audits = [
        replace(record, id=f"{place:012d}")
        for place, record in enumerate(changes.audits, look.audit_count() + 1)
    ]
    if not events and not audits:
        return changes
    return replace(changes, events=tuple(events), audits=tuple(audits))


def _free_id(kind: str, number: int, taken: set[str], look: Look) -> str:
    while (name := f"{kind}-{number:08d}") in taken or look.event(name) is not None:
        number += 1
    return name


def _check_path_is_open(event: MemoryEvent, changed: Mapping[str, MemoryPath], look: Look) -> None:
    """Refuse what would come onto a path that has ended; what ends it, and what imports bring, may come."""
    if event.path_id is None or event.kind.startswith("path.") or event.path_id in changed:
        return
    path = look.path(event.path_id)
    if path is not None and not path.active:
        raise PathError(f"path {path.id!r} has ended: it takes no new events", path_id=path.id)


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
    found = items.get(item_id)
    return None if found is None else _copy(found)


def _listed(items: dict[str, One]) -> list[One]:
    return [_copy(items[name]) for name in sorted(items)]
