"""Replays events into a graph: what they say was saved, changed and taken away, in their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from chronomemory._core import canonical_json
from chronomemory.graph.changes import Changes, Look
from chronomemory.graph.errors import ModelError
from chronomemory.graph.models import Edge, MemoryEvent, MemoryPath, Model, Node, Profile, exact

#: The prefix of the ids of events that record an applied action.
APPLIED = "action.applied:"
#: What a graph is made of, and the kind of the event that saves it.
FAMILIES: dict[str, tuple[type[Model], str]] = {
    "profiles": (Profile, "profile.saved"),
    "nodes": (Node, "node.saved"),
    "edges": (Edge, "edge.saved"),
    "paths": (MemoryPath, "path.branched"),
}

#: The kinds of events that change a graph; all others are skipped.
GRAPH_KINDS = frozenset(
    {"path.recorded", "path.merged", "path.abandoned", "path.compacted", "action.applied"}
    | {kind for _, kind in FAMILIES.values()}
)
#: Maximum number of items and bytes in one event: a line holds 16 MiB.
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
        """How many events could not be read."""
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
    """Return the graph as it is kept."""
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
    """Yield items in lists that fit one event each."""
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
