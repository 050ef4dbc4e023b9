"""Questions about what is joined to what: neighbours, ways between two nodes, surroundings, components."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from chronomemory._core import Engine
from chronomemory._core import View as EngineView
from chronomemory.errors import Limit
from chronomemory.face.arguments import count, string, string_list, word
from chronomemory.face.arguments import refuse as refuse_argument
from chronomemory.graph.changes import Look
from chronomemory.graph.errors import UnknownNode
from chronomemory.graph.log_home import NODE, item_of, key_of
from chronomemory.graph.models import Edge, Node, spellings
from chronomemory.selection import view_of

DIRECTIONS = ("out", "in", "both")
#: The network that the engine knows the edges as.
_NETWORK = "graph.edges"
#: So many steps are tried for the ways between two nodes, and so long is one, here as in the engine.
_MOST_STEPS = 1_000_000
_MOST_HOPS = 256


@dataclass(frozen=True, slots=True)
class Steps:
    """Which steps are taken: which way, over edges of which kinds, to nodes of which; None is any."""

    direction: str
    kinds: list[str] | None
    end_kinds: list[str] | None

    def to_dict(self) -> dict[str, Any]:
        """Return what the engine takes."""
        return {"direction": self.direction, "kinds": self.kinds, "end_kinds": self.end_kinds}


@dataclass(frozen=True, slots=True)
class Route:
    """A way from one node to another: the nodes on it, and the edges between them."""

    node_ids: tuple[str, ...]
    edges: tuple[Edge, ...]

    def __len__(self) -> int:
        return len(self.edges)


@dataclass(frozen=True, slots=True)
class Subgraph:
    """Some nodes and the edges between them, both sorted by id; ``hops`` says how far each node is."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    hops: dict[str, int]


class Walker(Protocol):
    """Traverses a graph."""

    def node(self, node_id: str) -> Node | None: ...
    def some_nodes(self, node_ids: Sequence[str]) -> list[Node]: ...
    def reach(
        self, starts: Sequence[str], hops: int, steps: Steps, *, joints: bool
    ) -> tuple[list[tuple[str, int]], list[Edge]]: ...
    def routes(
        self, source: str, target: str, steps: Steps, *, hops: int, limit: int
    ) -> list[list[Edge]]: ...
    def islands(self, steps: Steps) -> list[list[str]]: ...


class EngineWalker:
    """Goes along the indexes of edges in the engine, as they are or as they were."""

    def __init__(self, engine: Engine, as_of: int | datetime | None) -> None:
        self._past: EngineView | None = None if as_of is None else view_of(engine, as_of)
        self._engine: Engine | EngineView = engine if self._past is None else self._past

    def node(self, node_id: str) -> Node | None:
        """Return a node, or None."""
        return next(iter(self.some_nodes(spellings(node_id))), None)

    def some_nodes(self, node_ids: Sequence[str]) -> list[Node]:
        """Return nodes that are there."""
        return [item_of(Node, record) for record in self._records([key_of(NODE, name) for name in node_ids])]

    def reach(
        self, starts: Sequence[str], hops: int, steps: Steps, *, joints: bool
    ) -> tuple[list[tuple[str, int]], list[Edge]]:
        """Return the nodes within some hops with their distance, and the edges between them."""
        ends, keys = self._engine.reach(_NETWORK, list(starts), hops, steps.to_dict(), joints=joints)
        return ends, [item_of(Edge, record) for record in self._records(keys)]

    def routes(self, source: str, target: str, steps: Steps, *, hops: int, limit: int) -> list[list[Edge]]:
        """Return the shortest ways between two nodes."""
        found = self._engine.routes(_NETWORK, source, target, steps.to_dict(), hops=hops, limit=limit)
        keys = list(dict.fromkeys(key for route in found for key in route))
        edges = {record.id: item_of(Edge, record) for record in self._records(keys)}
        return [[edges[key] for key in route] for route in found]

    def islands(self, steps: Steps) -> list[list[str]]:
        """Return the connected components."""
        return self._engine.islands(_NETWORK, steps.to_dict())

    def _records(self, keys: list[str]) -> Iterator[Any]:
        if isinstance(self._engine, Engine):
            found: Iterable[Any] = self._engine.get_many(keys)
        else:
            found = map(self._engine.get, keys)
        return (record for record in found if record is not None and record.status == "active")


class LookWalker:
    """Goes along edges that are in memory, by the same rules."""

    def __init__(self, look: Look) -> None:
        self._look = look

    def node(self, node_id: str) -> Node | None:
        """Return a node, or None."""
        return self._look.node(node_id)

    def some_nodes(self, node_ids: Sequence[str]) -> list[Node]:
        """Return nodes that are there."""
        return [node for name in node_ids if (node := self._look.node(name)) is not None]

    def reach(
        self, starts: Sequence[str], hops: int, steps: Steps, *, joints: bool
    ) -> tuple[list[tuple[str, int]], list[Edge]]:
        """Return the nodes within some hops with their distance, and the edges between them."""
        there = [name for name in starts if self._look.node(name) is not None]
        known = self._distances(there, hops, steps, steps.direction)
        edges = (edge for name in known for edge, far in self._steps_from(name, steps, "out") if far in known)
        return list(known.items()), list(edges) if joints else []

    def routes(self, source: str, target: str, steps: Steps, *, hops: int, limit: int) -> list[list[Edge]]:
        """Return the shortest ways between two nodes."""
        back = {"out": "in", "in": "out", "both": "both"}[steps.direction]
        ahead = self._distances([target], hops, steps, back)
        found: list[list[Edge]] = []
        tried = 0

        def go_on(here: str, left: int, route: list[Edge], passed: set[str]) -> None:
            nonlocal tried
            if here == target:
                found.extend([list(route)] if left == 0 else [])
                return
            for edge, far in self._steps_from(here, steps, steps.direction):
                tried += 1
                if tried > _MOST_STEPS:
                    raise Limit("there are too many ways; ask for fewer hops")
                if len(found) < limit and far not in passed and ahead.get(far, left) < left:
                    go_on(far, left - 1, [*route, edge], passed | {far})

        # Nobody enters the node where a way begins: it may be one that no way leads into.
        near = [far for _, far in self._steps_from(source, steps, steps.direction) if far in ahead]
        if source == target or near:
            shortest = 0 if source == target else 1 + min(ahead[far] for far in near)
            for length in range(shortest, hops + 1):
                if len(found) < limit:
                    go_on(source, length, [], {source})
        return found

    def islands(self, steps: Steps) -> list[list[str]]:
        """Return the connected components."""
        left = {node.id for node in self._look.nodes() if self._may_enter(node, steps)}
        found = []
        while left:
            start = min(left)
            group = set(self._distances([start], len(left), steps, "both"))
            found.append(sorted(group))
            left -= group
        return found

    def _distances(self, starts: Sequence[str], hops: int, steps: Steps, direction: str) -> dict[str, int]:
        known = dict.fromkeys(starts, 0)
        met = list(known)
        for name in met:  # it grows while it is gone through
            if known[name] < hops:
                for _, far in self._steps_from(name, steps, direction):
                    if far not in known:
                        known[far] = known[name] + 1
                        met.append(far)
        return known

    def _steps_from(self, node_id: str, steps: Steps, direction: str) -> Iterator[tuple[Edge, str]]:
        ways: list[tuple[Edge, str]] = []
        if direction != "in":
            ways += [(edge, edge.target) for edge in self._look.edges(source=node_id)]
        if direction != "out":
            ways += [(edge, edge.source) for edge in self._look.edges(target=node_id)]
        for edge, far in ways:
            if steps.kinds is None or edge.kind in steps.kinds:
                node = self._look.node(far)
                if node is not None and self._may_enter(node, steps):
                    yield edge, far

    def _may_enter(self, node: Node, steps: Steps) -> bool:
        return steps.end_kinds is None or node.kind in steps.end_kinds


class Walks:
    """Graph queries on top of a walker."""

    def walker(self, as_of: int | datetime | None) -> Walker:
        """Return who goes from node to node, now or then."""
        raise NotImplementedError

    def neighbours(
        self,
        node_id: str,
        *,
        direction: str = "both",
        edge_kinds: Iterable[str] | None = None,
        node_kinds: Iterable[str] | None = None,
        as_of: int | datetime | None = None,
    ) -> list[Node]:
        """Return the nodes joined to one, sorted by id; ``direction`` is out, in or both."""
        walker = self.walker(as_of)
        steps = _steps(direction, edge_kinds, node_kinds)
        found = _reached(walker, node_id, 1, steps)
        return walker.some_nodes(sorted(name for name, hops in found if hops == 1))

    def within(
        self,
        node_id: str,
        hops: int,
        *,
        direction: str = "both",
        edge_kinds: Iterable[str] | None = None,
        node_kinds: Iterable[str] | None = None,
        as_of: int | datetime | None = None,
    ) -> dict[str, int]:
        """Return the distance of every node within some hops, itself included."""
        walker, steps = self.walker(as_of), _steps(direction, edge_kinds, node_kinds)
        return dict(_reached(walker, node_id, _hops(hops), steps))

    def subgraph(
        self,
        node_ids: str | Iterable[str],
        hops: int = 1,
        *,
        direction: str = "both",
        edge_kinds: Iterable[str] | None = None,
        node_kinds: Iterable[str] | None = None,
        as_of: int | datetime | None = None,
    ) -> Subgraph:
        """Return the nodes within some hops of some nodes, and all edges between them."""
        walker, steps = self.walker(as_of), _steps(direction, edge_kinds, node_kinds)
        given = [node_ids] if isinstance(node_ids, str) else string_list("node_ids", node_ids)
        starts = [_there(walker, name) for name in dict.fromkeys(given)]
        found, edges = walker.reach(starts, _hops(hops), steps, joints=True)
        nodes = walker.some_nodes(sorted(name for name, _ in found))
        return Subgraph(tuple(nodes), tuple(sorted(edges, key=lambda edge: edge.id)), dict(found))

    def routes(
        self,
        source: str,
        target: str,
        *,
        hops: int = 6,
        limit: int = 10,
        direction: str = "out",
        edge_kinds: Iterable[str] | None = None,
        node_kinds: Iterable[str] | None = None,
        as_of: int | datetime | None = None,
    ) -> list[Route]:
        """Return the ways from one node to another, the shortest first; none meets a node twice."""
        walker, steps = self.walker(as_of), _steps(direction, edge_kinds, node_kinds)
        ends = _there(walker, source), _there(walker, target)
        most = count("hops", hops, 0, _MOST_HOPS)
        found = walker.routes(*ends, steps, hops=most, limit=count("limit", limit, 1))
        return [_route(ends[0], edges) for edges in found]

    def components(
        self,
        *,
        edge_kinds: Iterable[str] | None = None,
        node_kinds: Iterable[str] | None = None,
        as_of: int | datetime | None = None,
    ) -> list[list[str]]:
        """Return the ids of each connected component, the largest first."""
        groups = self.walker(as_of).islands(_steps("both", edge_kinds, node_kinds))
        return sorted((sorted(group) for group in groups), key=lambda group: (-len(group), group))


def _steps(direction: str, edge_kinds: Iterable[str] | None, node_kinds: Iterable[str] | None) -> Steps:
    return Steps(
        word("direction", direction, DIRECTIONS),
        None if edge_kinds is None else _kinds("edge_kinds", edge_kinds),
        None if node_kinds is None else _kinds("node_kinds", node_kinds),
    )


def _kinds(field: str, given: Iterable[str]) -> list[str]:
    return [string(field, given)] if isinstance(given, str) else string_list(field, given)


def _hops(given: int) -> int:
    return count("hops", given, 0, 2**32 - 1)


def _reached(walker: Walker, node_id: str, hops: int, steps: Steps) -> list[tuple[str, int]]:
    return walker.reach([_there(walker, node_id)], hops, steps, joints=False)[0]


def _there(walker: Walker, node_id: str) -> str:
    node = walker.node(string("node_id", node_id))
    if node is None:
        raise UnknownNode(node_id=node_id)
    return node.id


def _route(source: str, edges: list[Edge]) -> Route:
    nodes = [source]
    for edge in edges:
        nodes.append(edge.target if edge.source == nodes[-1] else edge.source)
    return Route(tuple(nodes), tuple(edges))


def no_past() -> Exception:
    """Return the error for a query of the past of a graph in memory."""
    return refuse_argument("a graph in memory has no past", "as_of")
