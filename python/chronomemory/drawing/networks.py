"""Makes a graph of networkx. Needs the extra ``graph``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

try:
    import networkx
except ImportError as error:  # pragma: no cover (the tests have it)
    raise ImportError("a graph of networkx needs networkx: pip install 'chronomemory-rs[graph]'") from error

from chronomemory.drawing.parts import Dot, Line


def network(dots: Iterable[Dot], lines: Iterable[Line], *, directed: bool) -> Any:
    """Return the graph; facts are kept as one attribute, so that none hides a label or a kind."""
    graph = networkx.MultiDiGraph() if directed else networkx.MultiGraph()
    for dot in dots:
        graph.add_node(dot.id, kind=dot.kind, label=dot.label, facts=dict(dot.facts))
    for line in lines:
        graph.add_edge(line.source, line.target, kind=line.kind, weight=line.weight, alarm=line.alarm)
    return graph
