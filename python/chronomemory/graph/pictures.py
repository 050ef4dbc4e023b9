"""Pictures of a graph and of its paths, and the graph as other tools read it."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable
from typing import Any

from chronomemory import drawing
from chronomemory.drawing import Branch, Dot, Line, Step
from chronomemory.graph.models import MemoryEvent, MemoryPath
from chronomemory.graph.runtime import MemoryGraphStore

_BEGINS, _ENDS, _SUMS_UP = "path.branched", ("path.merged", "path.abandoned"), "path.compacted"


def graph_page(graph: MemoryGraphStore, *, title: str = "Graph") -> str:
    """Return a page that draws nodes and edges and needs nothing but a browser."""
    return drawing.graph_page(_dots(graph), _lines(graph), title=title)


def paths_page(paths: Iterable[MemoryPath], events: Iterable[MemoryEvent], *, title: str = "Paths") -> str:
    """Return a page that draws paths beside each other: where each branched off, and how it ended."""
    listed = list(events)
    begun = {event.path_id: event.id for event in listed if event.kind == _BEGINS}
    ended = {event.path_id: event.id for event in listed if event.kind in _ENDS}
    summed_up = {event.path_id: event.id for event in listed if event.kind == _SUMS_UP}
    branches = [
        Branch(
            path.id,
            path.parent_id,
            path.event_ids,
            path.active,
            path.merged_into,
            path.abandoned_reason,
            None if path.compaction is None else _compaction(path.compaction),
            begun_by=begun.get(path.id),
            ended_by=ended.get(path.id),
            compacted_by=summed_up.get(path.id),
        )
        for path in paths
    ]
    marks = [name for path in branches for name in (path.begun_by, path.ended_by, path.compacted_by)]
    shown = {*marks, *(name for path in branches for name in path.event_ids)}
    steps = [
        Step(event.id, event.kind, event.ts, ", ".join(event.refs), place)
        for place, event in enumerate(listed, 1)
        if event.id in shown
    ]
    return drawing.paths_page(branches, steps, title=title)


def to_dot(graph: MemoryGraphStore, *, name: str = "graph") -> str:
    """Return the graph as Graphviz reads it."""
    return drawing.to_dot(_dots(graph), _lines(graph), name=name)


def to_graphml(graph: MemoryGraphStore) -> str:
    """Return the graph as GraphML."""
    return drawing.to_graphml(_dots(graph), _lines(graph))


def to_networkx(graph: MemoryGraphStore) -> Any:
    """Return a ``MultiDiGraph`` of networkx, without edges whose ends are missing."""
    try:
        made = importlib.import_module("networkx").MultiDiGraph()
    except ImportError as error:  # pragma: no cover (the tests have it)
        raise ImportError("to_networkx needs networkx: pip install 'chronomemory-rs[graph]'") from error
    for node in graph.nodes():
        made.add_node(node.id, kind=node.kind, label=node.label, phase=node.phase, data=node.data)
    for edge in graph.edges():
        if edge.source in made and edge.target in made:
            made.add_edge(edge.source, edge.target, key=edge.id, kind=edge.kind, data=edge.data)
    return made


def _dots(graph: MemoryGraphStore) -> list[Dot]:
    dots = []
    for node in graph.nodes():
        data: dict[str, Any] = node.data if node.phase is None else {"phase": node.phase, **node.data}
        spelled = (
            one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in data.values()
        )
        dots.append(Dot(node.id, node.kind, node.label, tuple(zip(data, spelled, strict=True))))
    return dots


def _lines(graph: MemoryGraphStore) -> list[Line]:
    return [Line(edge.source, edge.target, edge.kind) for edge in graph.edges()]


def _compaction(compaction: dict[str, Any]) -> str:
    by = compaction.get("summary_id")
    return f"{compaction.get('events')} events" + ("" if by is None else f", summed up by {by}")
