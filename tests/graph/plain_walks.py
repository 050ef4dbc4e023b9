"""A model of graph walks: every step goes through a list of all edges."""

from __future__ import annotations

from chronomemory.graph import Edge, Node
from chronomemory.graph.stores import GraphStore


class PlainWalks:
    """Answers the walks of a graph store from plain lists of its nodes and edges."""

    def __init__(
        self, graph: GraphStore, edge_kinds: list[str] | None = None, node_kinds: list[str] | None = None
    ) -> None:
        self.nodes = {node.id: node for node in graph.nodes()}
        self.edges = graph.edges()
        self.edge_kinds, self.node_kinds = edge_kinds, node_kinds

    def within(self, start: str, hops: int, direction: str) -> dict[str, int]:
        known = {start: 0}
        met = [start]
        for name in met:  # it grows while it is gone through
            for _, far in self._steps(name, direction) if known[name] < hops else ():
                if far not in known:
                    known[far] = known[name] + 1
                    met.append(far)
        return known

    def subgraph_edges(self, starts: list[str], hops: int, direction: str) -> list[Edge]:
        inside = {name for start in starts for name in self.within(start, hops, direction)}
        edges = [edge for name in inside for edge, far in self._steps(name, "out") if far in inside]
        return sorted(edges, key=lambda edge: edge.id)

    def routes(self, source: str, target: str, hops: int, direction: str) -> list[tuple[str, ...]]:
        """Return the edges of all routes without a node twice, the shortest first."""
        found: list[tuple[str, ...]] = []
        waiting: list[tuple[str, tuple[str, ...], set[str]]] = [(source, (), {source})]
        for here, route, passed in waiting:
            if here == target:
                found.append(route)
            elif len(route) < hops:
                for edge, far in self._steps(here, direction):
                    if far not in passed:
                        waiting.append((far, (*route, edge.id), passed | {far}))
        return found

    def components(self) -> list[list[str]]:
        left = {node.id for node in self.nodes.values() if self._may_enter(node)}
        found = []
        while left:
            group = set(self.within(min(left), len(left), "both"))
            found.append(sorted(group))
            left -= group
        return sorted(found, key=lambda group: (-len(group), group))

    def _steps(self, name: str, direction: str) -> list[tuple[Edge, str]]:
        out = [(edge, edge.target) for edge in self.edges if direction != "in" and edge.source == name]
        into = [(edge, edge.source) for edge in self.edges if direction != "out" and edge.target == name]
        return [
            (edge, far)
            for edge, far in out + into
            if (self.edge_kinds is None or edge.kind in self.edge_kinds)
            and far in self.nodes
            and self._may_enter(self.nodes[far])
        ]

    def _may_enter(self, node: Node) -> bool:
        return self.node_kinds is None or node.kind in self.node_kinds
