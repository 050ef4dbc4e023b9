"""A set of changes to a graph, the protocols to read and write one, and the replay of events into one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, Protocol, TypeVar

from chronomemory._core import canonical_json
from chronomemory.graph.errors import DuplicateEventError, ModelError, PathError
from chronomemory.graph.models import (
    ActivationPlan,
    AuditRecord,
    Edge,
    MemoryEvent,
    MemoryPath,
    Model,
    Node,
    Profile,
    exact,
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
    gone_nodes: tuple[str, ...] = ()
    gone_edges: tuple[str, ...] = ()
    #: In the order in which they are appended; those without an id are given one.
    events: tuple[MemoryEvent, ...] = ()
    audits: tuple[AuditRecord, ...] = ()

    @property
    def of_graph(self) -> bool:
        """Whether anything but the audit changes."""
        return self != Changes(audits=self.audits)


class ItemReader:
    """Reads items of a graph by their ids."""

    def one(self, cls: type[One], item_id: str) -> One | None:
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


class GraphReader(ItemReader):
    """Reads a graph; every list is sorted by id."""

    def every(self, cls: type[One]) -> list[One]:
        raise NotImplementedError

    def nodes(self, kind: str | None = None) -> list[Node]:
        raise NotImplementedError

    def edges(
        self, *, source: str | None = None, target: str | None = None, kind: str | None = None
    ) -> list[Edge]:
        """Return the edges with this source, target and kind, or with any."""
        raise NotImplementedError

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


class Draft(ItemReader):
    """Uncommitted changes; reads see what was put before."""

    def __init__(self, look: Look) -> None:
        self._look = look
        #: By class and id; None for what is taken away.
        self._changed: dict[tuple[type[Model], str], Any] = {}
        self.events: list[MemoryEvent] = []

    def one(self, cls: type[One], item_id: str) -> One | None:
        key = (cls, item_id)
        found: One | None = self._changed[key] if key in self._changed else self._look.one(cls, item_id)
        return found

    def event(self, item_id: str) -> MemoryEvent | None:
        found = next((event for event in self.events if event.id == item_id), None)
        return found or self._look.event(item_id)

    def edges_of(self, node_id: str) -> list[Edge]:
        """Return the edges that will begin or end at a node, sorted by id."""
        there = [*self._look.edges(source=node_id), *self._look.edges(target=node_id)]
        edges: dict[str, Edge | None] = {edge.id: edge for edge in there}
        edges |= {name: item for (cls, name), item in self._changed.items() if cls is Edge}
        joined = [edge for edge in edges.values() if edge and node_id in (edge.source, edge.target)]
        return sorted(joined, key=attrgetter("id"))

    def put(self, changes: Changes) -> None:
        items: list[Any] = [*changes.nodes, *changes.edges, *changes.paths]
        self._changed |= {(type(item), item.id): item for item in items}
        self._changed |= {(Node, name): None for name in changes.gone_nodes}
        self._changed |= {(Edge, name): None for name in changes.gone_edges}
        self.events += changes.events

    def changes(self) -> Changes:
        changed = sorted(self._changed.items(), key=lambda one: one[0][1])
        kept: dict[str, Any] = {
            name: tuple(item for (kind, _), item in changed if kind is cls and item is not None)
            for name, cls in (("nodes", Node), ("edges", Edge), ("paths", MemoryPath))
        }
        kept |= {
            name: tuple(item_id for (kind, item_id), item in changed if kind is cls and item is None)
            for name, cls in (("gone_nodes", Node), ("gone_edges", Edge))
        }
        return Changes(**kept, events=tuple(self.events))


def numbered(changes: Changes, look: Look) -> Changes:
    """Return changes whose events and audit records all have ids, or refuse an event that may not come."""
    events: list[MemoryEvent] = []
    taken: set[str] = set()
    number = look.event_count()
    paths = {path.id: path for path in changes.paths}

    def is_taken(event_id: str) -> bool:
        return event_id in taken or look.event(event_id) is not None

    for event in changes.events:
        number += 1
        if not event.id:
            event = replace(event, id=free_id(event.kind, number, is_taken))
        elif is_taken(event.id):
            raise DuplicateEventError(event_id=event.id)
        taken.add(event.id)
        events.append(event)
        # What ends a path, and what imports bring, may come onto one that has ended.
        if event.path_id is None or event.kind.startswith("path.") or event.path_id in paths:
            continue
        path = look.path(event.path_id)
        if path is not None and not path.active:
            raise PathError(f"path {path.id!r} has ended: it takes no new events", path_id=path.id)
    audits = [
        replace(record, id=f"{place:012d}")
        for place, record in enumerate(changes.audits, look.audit_count() + 1)
    ]
    if not events and not audits:
        return changes
    return replace(changes, events=tuple(events), audits=tuple(audits))


def free_id(kind: str, number: int, is_taken: Callable[[str], bool]) -> str:
    """Return the first id of a kind that is not taken, counted from a number."""
    while is_taken(name := f"{kind}-{number:08d}"):
        number += 1
    return name


APPLIED = "action.applied:"
#: What a graph is made of, and the kind of the event that saves it.
FAMILIES: dict[str, tuple[type[Model], str]] = {
    "profiles": (Profile, "profile.saved"),
    "nodes": (Node, "node.saved"),
    "edges": (Edge, "edge.saved"),
    "paths": (MemoryPath, "path.branched"),
}

GRAPH_KINDS = frozenset(
    {"path.recorded", "path.merged", "path.abandoned", "path.compacted", "action.applied"}
    | {kind for _, kind in FAMILIES.values()}
)
_AT_ONCE = 500
_BYTES_AT_ONCE = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class GraphSnapshot:
    """A graph at some moment, by id, and how many events led to it."""

    profiles: dict[str, Profile] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    edges: dict[str, Edge] = field(default_factory=dict)
    paths: dict[str, MemoryPath] = field(default_factory=dict)
    #: How many events changed it and were of no kind that does, and which could not be read; not compared.
    applied: int = field(default=0, compare=False)
    skipped: int = field(default=0, compare=False)
    unreadable_ids: tuple[str, ...] = field(default=(), compare=False)

    @property
    def unreadable(self) -> int:
        return len(self.unreadable_ids)


def reserved(event: MemoryEvent) -> str:
    """Return why only the verbs of the graph write such an event, or an empty text."""
    if event.id.startswith(APPLIED):
        return f"event.id: {event.id!r} is reserved for a change of the graph by an action"
    if event.kind in GRAPH_KINDS or event.kind.startswith("path."):
        return f"event.kind: {event.kind!r} describes a change of the graph"
    return ""


def misnamed(event: MemoryEvent) -> str:
    """Return why an event is not what its id or kind says of an applied action, or an empty text."""
    action = event.data.get("action", {"id": event.id[len(APPLIED) :]})  # an erasure may have removed it
    is_named = isinstance(action, dict) and event.id == f"{APPLIED}{action.get('id')}"
    if (event.kind == "action.applied") == event.id.startswith(APPLIED) == is_named:
        return ""
    return f"event {event.id!r}: kind action.applied and ids {APPLIED}ACTION are reserved for each other"


def own_events(events: Iterable[MemoryEvent]) -> tuple[MemoryEvent, ...]:
    """Return events of the caller's own kinds; refuse those that only the verbs of the graph write."""
    listed = exact(MemoryEvent, events)
    for event in listed:
        if reason := reserved(event):
            raise ModelError(
                reason,
                field=reason[len("event.") :].partition(":")[0],
                recovery="Change the graph by its verbs, which write such events, or rename yours.",
            )
    return tuple(listed)


def snapshot_of(look: Look) -> GraphSnapshot:
    kept: list[Any] = [{item.id: item for item in getattr(look, name)()} for name in FAMILIES]
    return GraphSnapshot(*kept)


def replayed(events: Iterable[MemoryEvent]) -> GraphSnapshot:
    """Return the graph that events lead to; one that cannot be read changes nothing."""
    graph = GraphSnapshot()
    applied = skipped = 0
    unreadable = []
    for event in events:
        if event.kind not in GRAPH_KINDS:
            skipped += 1
            continue
        try:
            _take(graph, event)
        except (ModelError, KeyError, TypeError, AttributeError):
            # Anybody may append an event of these kinds: what it says need not make sense.
            unreadable.append(event.id)
        else:
            applied += 1
    return replace(graph, applied=applied, skipped=skipped, unreadable_ids=tuple(unreadable))


def _take(graph: GraphSnapshot, event: MemoryEvent) -> None:
    data = event.data
    saved: dict[str, list[Any]] = {
        name: [cls.from_dict(item) for item in data.get(name, ())] for name, (cls, _) in FAMILIES.items()
    }
    gone_nodes, gone_edges = list(data.get("gone_nodes", ())), list(data.get("gone_edges", ()))
    if event.kind.startswith("path.") and event.path_id is not None:
        saved["paths"].append(_path_after(graph, event.path_id, event.kind, data))
    for name, items in saved.items():
        getattr(graph, name).update((item.id, item) for item in items)
    for name in gone_nodes:
        graph.nodes.pop(name, None)
    for name in gone_edges:
        graph.edges.pop(name, None)


def _path_after(graph: GraphSnapshot, path_id: str, kind: str, data: Mapping[str, Any]) -> MemoryPath:
    if kind == "path.branched":
        return MemoryPath(path_id, parent_id=data["parent_id"])
    path = graph.paths[path_id]
    if kind == "path.recorded":
        return replace(path, event_ids=(*path.event_ids, *data["event_ids"]))
    if kind == "path.merged":
        return replace(path, active=False, merged_into=data["merged_into"])
    if kind == "path.abandoned":
        return replace(path, active=False, abandoned_reason=data["reason"])
    return replace(path, compaction=data["compaction"])


def change_data(changes: Changes) -> dict[str, Any]:
    """Return changes as the data of an event, which ``replayed`` reads."""
    data = {name: [item.to_dict() for item in getattr(changes, name)] for name in FAMILIES}
    data |= {"gone_nodes": list(changes.gone_nodes), "gone_edges": list(changes.gone_edges)}
    return {name: items for name, items in data.items() if items}


def saved_events(changes: Changes, ts: str) -> tuple[MemoryEvent, ...]:
    """Return the events that say that things were saved, many of them in one."""
    events = []
    for name, (_, kind) in FAMILIES.items():
        for some in _portions(item.shown() for item in getattr(changes, name)):
            data = {name: some}
            # What is in it was looked at when it was made: a large graph is not looked at twice.
            events.append(
                MemoryEvent.known(
                    {"id": "", "kind": kind, "ts": ts, "path_id": None, "refs": (), "data": data}
                )
            )
    return tuple(events)


def _portions(items: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    some: list[dict[str, Any]] = []
    room = _BYTES_AT_ONCE
    for item in items:
        taken = len(canonical_json(item))
        if some and (len(some) >= _AT_ONCE or taken > room):
            yield some
            some, room = [], _BYTES_AT_ONCE
        some.append(item)
        room -= taken
    if some:
        yield some
