"""A set of changes to a graph, the protocols to read and write one, and a graph kept in memory."""

from __future__ import annotations

import threading
from collections import defaultdict
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
    spellings,
)

One = TypeVar("One", bound=Model)


@dataclass(frozen=True, slots=True)
class Changes:
    """Items, deletions, events and audit records that are written in one batch."""

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


class GraphReader:
    """Reads a graph; every list is sorted by id."""

    def one(self, cls: type[One], item_id: str) -> One | None:
        """Return an item of a kind, or None."""
        raise NotImplementedError

    def every(self, cls: type[One]) -> list[One]:
        """Return all items of a kind."""
        raise NotImplementedError

    def nodes(self, kind: str | None = None) -> list[Node]:
        """Return the nodes of a kind, or all."""
        raise NotImplementedError

    def edges(
        self, *, source: str | None = None, target: str | None = None, kind: str | None = None
    ) -> list[Edge]:
        """Return the edges with this source, target and kind, or with any."""
        raise NotImplementedError

    def profile(self, profile_id: str) -> Profile | None:
        return self.one(Profile, profile_id)

    def node(self, node_id: str) -> Node | None:
        return self.one(Node, node_id)

    def edge(self, edge_id: str) -> Edge | None:
        return self.one(Edge, edge_id)

    def path(self, path_id: str) -> MemoryPath | None:
        return self.one(MemoryPath, path_id)

    def plan(self, plan_id: str) -> ActivationPlan | None:
        return self.one(ActivationPlan, plan_id)

    def profiles(self) -> list[Profile]:
        return self.every(Profile)

    def paths(self) -> list[MemoryPath]:
        return self.every(MemoryPath)

    def plans(self) -> list[ActivationPlan]:
        return self.every(ActivationPlan)


class Look(GraphReader):
    """Reads a graph with its events, in the order of their appending, and its audit records."""

    def event(self, event_id: str) -> MemoryEvent | None:
        return self.one(MemoryEvent, event_id)

    def events(self, kind: str | None = None) -> list[MemoryEvent]:
        raise NotImplementedError

    def audits(self) -> list[AuditRecord]:
        raise NotImplementedError

    def event_count(self) -> int:
        raise NotImplementedError

    def audit_count(self) -> int:
        raise NotImplementedError


class Home(Protocol):
    """Where a graph is kept."""

    def look(self) -> Look:
        """Return a reader of the current state."""

    def run(self, work: Callable[[Look], Changes]) -> Changes:
        """Write the changes that a function returns, all or nothing; return them with their ids."""


class Draft:
    """Uncommitted changes; reads see what was put before."""

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


class MemoryHome(Look):
    """A graph in memory; what comes in and goes out are copies."""

    def __init__(self) -> None:
        #: Whether a graph store uses it: then its events must lead to that graph.
        self.keeps_graph = False
        self._turn = threading.RLock()
        self._items: dict[type[Model], dict[str, Any]] = defaultdict(dict)
        self._audits: list[AuditRecord] = []
        #: The ids of edges by source and by target, and of nodes by kind.
        self._out: dict[str, set[str]] = defaultdict(set)
        self._in: dict[str, set[str]] = defaultdict(set)
        self._by_kind: dict[str, set[str]] = defaultdict(set)

    def look(self) -> Look:
        """Return a reader of the current state."""
        return self

    def run(self, work: Callable[[Look], Changes]) -> Changes:
        """Write the changes that a function returns, all or nothing."""
        with self._turn:
            changes = numbered(work(self), self)
            self._take(changes)
            return changes

    def _take(self, changes: Changes) -> None:
        nodes, edges = self._items[Node], self._items[Edge]
        for name in (*changes.gone_nodes, *(item.id for item in changes.nodes)):
            if (node := nodes.pop(name, None)) is not None:
                self._by_kind[node.kind].discard(name)
        for name in (*changes.gone_edges, *(item.id for item in changes.edges)):
            if (edge := edges.pop(name, None)) is not None:
                self._out[edge.source].discard(name)
                self._in[edge.target].discard(name)
        for node in changes.nodes:
            self._by_kind[node.kind].add(node.id)
        for edge in changes.edges:
            self._out[edge.source].add(edge.id)
            self._in[edge.target].add(edge.id)
        written = (
            changes.profiles,
            changes.nodes,
            changes.edges,
            changes.paths,
            changes.plans,
            changes.events,
        )
        for items in written:
            for item in items:
                self._items[type(item)][item.id] = _copy(item)
        self._audits += [_copy(item) for item in changes.audits]

    def one(self, cls: type[One], item_id: str) -> One | None:
        items = self._items[cls]
        return next((_copy(items[one]) for one in spellings(item_id) if one in items), None)

    def every(self, cls: type[One]) -> list[One]:
        items = self._items[cls]
        return [_copy(items[name]) for name in sorted(items)]

    def nodes(self, kind: str | None = None) -> list[Node]:
        names = self._items[Node] if kind is None else self._by_kind.get(kind, ())
        return [_copy(self._items[Node][name]) for name in sorted(names)]

    def edges(
        self, *, source: str | None = None, target: str | None = None, kind: str | None = None
    ) -> list[Edge]:
        names: Any = self._items[Edge].keys()
        if source is not None:
            names = self._out.get(source, set())
        if target is not None:
            names = names & self._in.get(target, set())
        found = (self._items[Edge][name] for name in sorted(names))
        return [_copy(edge) for edge in found if kind is None or edge.kind == kind]

    def events(self, kind: str | None = None) -> list[MemoryEvent]:
        events = self._items[MemoryEvent].values()
        return [_copy(event) for event in events if kind is None or event.kind == kind]

    def audits(self) -> list[AuditRecord]:
        return [_copy(record) for record in self._audits]

    def event_count(self) -> int:
        return len(self._items[MemoryEvent])

    def audit_count(self) -> int:
        return len(self._audits)


def _copy(item: One) -> One:
    """Return the same with containers of its own."""
    return type(item).from_dict(item.to_dict())
