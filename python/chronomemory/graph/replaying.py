"""Replays events into a graph: what they say was saved, changed and taken away, in their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from chronomemory._core import canonical_json
from chronomemory.graph.changes import Changes, Look
from chronomemory.graph.errors import ModelError
from chronomemory.graph.models import Edge, MemoryEvent, MemoryPath, Node, Profile

__all__ = ["GRAPH_KINDS", "GraphSnapshot", "replayed", "saved_events", "snapshot_of", "told"]

#: The kinds of events that change a graph; all others are skipped.
GRAPH_KINDS = frozenset(
    {
        "profile.saved",
        "node.saved",
        "edge.saved",
        "path.branched",
        "path.recorded",
        "path.merged",
        "path.abandoned",
        "path.compacted",
        "action.applied",
    }
)
#: Of a large import, so many things are told by one event, and so many bytes of them: a line holds 16 MiB.
_AT_ONCE = 500
_BYTES_AT_ONCE = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class GraphSnapshot:
    """A graph at some moment, by id, and how many events led to it."""

    profiles: dict[str, Profile] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    edges: dict[str, Edge] = field(default_factory=dict)
    paths: dict[str, MemoryPath] = field(default_factory=dict)
    #: How many events changed it, were of no kind that does, and could not be read. None of that is compared.
    applied: int = field(default=0, compare=False)
    skipped: int = field(default=0, compare=False)
    unreadable: int = field(default=0, compare=False)


def snapshot_of(look: Look) -> GraphSnapshot:
    """Return the graph as it is kept."""
    return GraphSnapshot(
        {item.id: item for item in look.profiles()},
        {item.id: item for item in look.nodes()},
        {item.id: item for item in look.edges()},
        {item.id: item for item in look.paths()},
    )


def replayed(events: Iterable[MemoryEvent]) -> GraphSnapshot:
    """Return the graph that events lead to; one that cannot be read changes nothing."""
    graph = GraphSnapshot()
    applied = skipped = unreadable = 0
    for event in events:
        if event.kind not in GRAPH_KINDS:
            skipped += 1
            continue
        try:
            _take(graph, event)
        except (ModelError, KeyError, TypeError, AttributeError):
            # Anybody may append an event of these kinds: what it says need not make sense.
            unreadable += 1
        else:
            applied += 1
    return replace(graph, applied=applied, skipped=skipped, unreadable=unreadable)


def _take(graph: GraphSnapshot, event: MemoryEvent) -> None:
    data = event.data
    profiles = [Profile.from_dict(item) for item in data.get("profiles", ())]
    nodes = [Node.from_dict(item) for item in data.get("nodes", ())]
    edges = [Edge.from_dict(item) for item in data.get("edges", ())]
    paths = [MemoryPath.from_dict(item) for item in data.get("paths", ())]
    gone_nodes, gone_edges = list(data.get("gone_nodes", ())), list(data.get("gone_edges", ()))
    if event.kind.startswith("path.") and event.path_id is not None:
        paths.append(_path_after(graph, event.path_id, event.kind, data))
    graph.profiles.update((item.id, item) for item in profiles)
    graph.nodes.update((item.id, item) for item in nodes)
    graph.edges.update((item.id, item) for item in edges)
    graph.paths.update((item.id, item) for item in paths)
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


def told(changes: Changes) -> dict[str, Any]:
    """Return what an event says of changes, as ``replayed`` reads it."""
    said: dict[str, Any] = {
        "profiles": [item.to_dict() for item in changes.profiles],
        "nodes": [item.to_dict() for item in changes.nodes],
        "edges": [item.to_dict() for item in changes.edges],
        "paths": [item.to_dict() for item in changes.paths],
        "gone_nodes": list(changes.gone_nodes),
        "gone_edges": list(changes.gone_edges),
    }
    return {name: items for name, items in said.items() if items}


def saved_events(
    *,
    profiles: Iterable[Profile] = (),
    nodes: Iterable[Node] = (),
    edges: Iterable[Edge] = (),
    paths: Iterable[MemoryPath] = (),
    ts: str,
) -> list[MemoryEvent]:
    """Return the events that say that things were saved, many of them in one."""
    events = []
    for name, kind, items in (
        ("profiles", "profile.saved", profiles),
        ("nodes", "node.saved", nodes),
        ("edges", "edge.saved", edges),
        ("paths", "path.branched", paths),
    ):
        for some in _portions(item.shown() for item in items):
            said = {name: some}
            # What is in it was looked at when it was made: a large graph is not looked at twice.
            events.append(
                MemoryEvent.known(
                    {"id": "", "kind": kind, "ts": ts, "path_id": None, "refs": (), "data": said}
                )
            )
    return events


def _portions(items: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Yield so many at a time that one event can tell of them."""
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
