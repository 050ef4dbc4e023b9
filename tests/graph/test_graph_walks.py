"""Neighbours, routes, surroundings and components agree with a plain model."""

from __future__ import annotations

import pytest
from chronomemory import InvalidArgument
from chronomemory.errors import Limit
from chronomemory.graph import (
    Action,
    Approval,
    Edge,
    InMemoryGraphStore,
    Node,
    UnknownNode,
    Workspace,
)
from chronomemory.graph.stores import GraphStore
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_walks import PlainWalks
from workbench import Bench


def build(graph: GraphStore, *edges: str, nodes: str = "") -> None:
    """Nodes are letters, capitals of kind ``upper``; ``ab`` is an edge from a to b, ``abx`` one of kind x."""
    letters = sorted({letter for edge in edges for letter in edge[:2]} | set(nodes))
    graph.save(
        nodes=[Node(letter, "upper" if letter.isupper() else "lower") for letter in letters],
        edges=[Edge(f"{n:03d}{edge}", edge[0], edge[1], edge[2:] or "k") for n, edge in enumerate(edges)],
    )


def ids(nodes: list[Node]) -> str:
    return "".join(node.id for node in nodes)


def test_neighbours(bench: Bench) -> None:
    build(bench.graph, "ab", "ca", "aD", "bd", "aax", "abx", nodes="z")
    graph = bench.graph
    assert ids(graph.neighbours("a")) == "Dbc"
    assert ids(graph.neighbours("a", direction="out")) == "Db"
    assert ids(graph.neighbours("a", direction="in")) == "c"
    assert ids(graph.neighbours("a", edge_kinds=["x"])) == "b"
    assert ids(graph.neighbours("a", node_kinds="upper")) == "D"
    assert graph.neighbours("a", edge_kinds=[]) == graph.neighbours("z") == []


def test_surroundings(bench: Bench) -> None:
    build(bench.graph, "ab", "bc", "cd", "dB", "ca", nodes="z")
    assert bench.graph.within("a", 0) == {"a": 0}
    assert bench.graph.within("a", 2, direction="out") == {"a": 0, "b": 1, "c": 2}
    assert bench.graph.within("a", 9, node_kinds=["lower"]) == {"a": 0, "b": 1, "c": 1, "d": 2}
    part = bench.graph.subgraph("a", 1)
    assert (ids(list(part.nodes)), part.hops) == ("abc", {"a": 0, "b": 1, "c": 1})
    # The edge between two that are as far is part of it.
    assert [edge.id for edge in part.edges] == ["000ab", "001bc", "004ca"]
    both = bench.graph.subgraph(["a", "z"], 0)
    assert (ids(list(both.nodes)), both.edges) == ("az", ())


def test_ways_between_two(bench: Bench) -> None:
    build(bench.graph, "ab", "bd", "ac", "cd", "ad", "de", "ea", "adx", nodes="z")
    routes = bench.graph.routes("a", "d")
    assert ["".join(route.node_ids) for route in routes] == ["ad", "ad", "abd", "acd"]
    assert [edge.id for edge in routes[2].edges] == ["000ab", "001bd"]
    assert [len(route) for route in bench.graph.routes("a", "d", limit=3)] == [1, 1, 2]
    assert [len(route) for route in bench.graph.routes("a", "d", hops=1)] == [1, 1]
    assert [len(route) for route in bench.graph.routes("a", "d", edge_kinds=["x"])] == [1]
    assert ["".join(route.node_ids) for route in bench.graph.routes("d", "a")] == ["dea"]
    assert ["".join(route.node_ids) for route in bench.graph.routes("d", "a", direction="in", hops=1)] == [
        "da"
    ] * 2
    assert len(bench.graph.routes("a", "e", direction="both")) == 5
    assert bench.graph.routes("a", "z") == []
    (itself,) = bench.graph.routes("a", "a")
    assert (itself.node_ids, itself.edges) == (("a",), ())


def test_components(bench: Bench) -> None:
    build(bench.graph, "ab", "cb", "xy", "Dx", nodes="z")
    assert bench.graph.components() == [["D", "x", "y"], ["a", "b", "c"], ["z"]]
    assert bench.graph.components(node_kinds=["lower"]) == [["a", "b", "c"], ["x", "y"], ["z"]]
    assert bench.graph.components(edge_kinds=["other"]) == [[letter] for letter in "Dabcxyz"]


def test_an_edge_into_nothing_leads_nowhere(bench: Bench) -> None:
    bench.graph.save(nodes=[Node("a", "k"), Node("b", "k")], edges=[Edge("1", "a", "ghost", "k")])
    bench.graph.save_edge(Edge("2", "ghost", "b", "k"))
    assert bench.graph.neighbours("a") == []
    assert bench.graph.routes("a", "b") == []
    assert bench.graph.components() == [["a"], ["b"]]
    bench.graph.save_node(Node("ghost", "k"))
    assert [route.node_ids for route in bench.graph.routes("a", "b")] == [("a", "ghost", "b")]


def test_what_is_asked_wrongly_is_refused(bench: Bench) -> None:
    build(bench.graph, "ab")
    for ask in (
        lambda: bench.graph.neighbours("a", direction="up"),
        lambda: bench.graph.within("a", -1),
        lambda: bench.graph.routes("a", "b", limit=0),
        lambda: bench.graph.routes("a", "b", hops=257),
        lambda: bench.graph.neighbours(3),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidArgument):
            ask()
    for missing in (lambda: bench.graph.neighbours("x"), lambda: bench.graph.routes("a", "x")):
        with pytest.raises(UnknownNode, match="there is no node 'x'"):
            missing()


def test_a_walk_sees_every_write_before_it(bench: Bench) -> None:
    build(bench.graph, "ab")
    assert ids(bench.graph.neighbours("a")) == "b"
    build(bench.graph, "cb")
    bench.graph.save_edge(Edge("new", "a", "c", "k"))
    assert ids(bench.graph.neighbours("a")) == "bc" if bench.graph.edge("000ab") else "c"
    delete = Action("d", "delete_node", "c", {"edges": True})
    bench.runtime.apply([delete], [Approval.of(delete, "ann")])
    assert "c" not in ids(bench.graph.neighbours("a"))


def test_the_past_can_be_walked(workspace: Workspace) -> None:
    build(workspace.graph, "ab", "bc")
    then = workspace.store.wal_seq()
    moment = workspace.graph._clock()
    delete = Action("d", "delete_node", "b", {"edges": True})
    workspace.runtime.apply([delete], [Approval.of(delete, "ann")])
    workspace.store.compact()
    workspace.graph.save_edge(Edge("ac", "a", "c", "k"))
    graph = workspace.graph
    assert ids(graph.neighbours("a", as_of=then)) == ids(graph.neighbours("a", as_of=moment)) == "b"
    assert ids(graph.neighbours("a")) == "c"
    assert graph.components(as_of=then) == [["a", "b", "c"]]
    assert [route.node_ids for route in graph.routes("a", "c", as_of=then)] == [("a", "b", "c")]
    assert [edge.id for edge in graph.subgraph("a", 2, as_of=then).edges] == ["000ab", "001bc"]
    assert graph.within("a", 9, as_of=then) == {"a": 0, "b": 1, "c": 2}
    with pytest.raises(UnknownNode):
        graph.neighbours("a", as_of=1)


def test_a_graph_in_memory_has_a_past_too() -> None:
    graph = InMemoryGraphStore()
    build(graph, "ab")
    then = graph.home.handle.project.wal_seq()
    build(graph, "ac")
    assert ids(graph.neighbours("a", as_of=then)) == "b"
    assert ids(graph.neighbours("a")) == "bc"


def test_too_many_ways_are_an_error_and_no_wait(workspace: Workspace) -> None:
    # A ladder with a detour at each rung has more ways than anybody can wait for, and none arrives.
    letters = [chr(0x4E00 + number) for number in range(44)]
    edges = [f"{a}{b}" for n, a in enumerate(letters) for b in letters[n + 1 :]]
    build(workspace.graph, *edges)
    assert len(workspace.graph.routes(letters[0], letters[-1], hops=43, limit=100)) == 100
    with pytest.raises(Limit, match="too many ways"):
        workspace.graph.routes(letters[0], letters[-1], hops=43, limit=10**9)


def test_walks_of_a_scope_see_only_its_own(tmp_path: object) -> None:
    with Workspace.create(f"{tmp_path}/w", user="ann") as workspace:
        build(workspace.graph, "ab")
        everyone = workspace.store.everyone()
        assert everyone.engine.islands("graph.edges", {"direction": "both", "kinds": None, "end_kinds": None})
        shared = workspace.store.engine
        assert shared.islands("graph.edges", {"direction": "both", "kinds": None, "end_kinds": None}) == []
        assert workspace.graph.components() == [["a", "b"]]


LETTERS = "abcdEF"
EDGES = st.lists(
    st.builds(
        "".join, st.tuples(st.sampled_from(LETTERS), st.sampled_from(LETTERS), st.sampled_from(["", "x"]))
    ),
    max_size=12,
)
KINDS = st.sampled_from([None, ["k"], ["x"], ["k", "x"]])
NODE_KINDS = st.sampled_from([None, ["lower"], ["upper"]])
DIRECTIONS = st.sampled_from(["out", "in", "both"])


@settings(max_examples=30, deadline=None)
@given(edges=EDGES, edge_kinds=KINDS, node_kinds=NODE_KINDS, direction=DIRECTIONS, hops=st.integers(0, 4))
def test_the_engine_walks_as_a_plain_walk_does(
    edges: list[str],
    edge_kinds: list[str] | None,
    node_kinds: list[str] | None,
    direction: str,
    hops: int,
) -> None:
    asked = {"edge_kinds": edge_kinds, "node_kinds": node_kinds}
    graph = InMemoryGraphStore()
    build(graph, *edges, nodes="ab")
    plain = PlainWalks(graph, **asked)
    reached = plain.within("a", hops, direction)
    assert graph.within("a", hops, direction=direction, **asked) == reached
    near = sorted(name for name, far in plain.within("a", 1, direction).items() if far)
    assert ids(graph.neighbours("a", direction=direction, **asked)) == "".join(near)
    subgraph = graph.subgraph(["a", "b"], hops, direction=direction, **asked)
    assert list(subgraph.edges) == plain.subgraph_edges(["a", "b"], hops, direction)
    routes = graph.routes("a", "b", hops=hops, direction=direction, limit=99, **asked)
    found = [tuple(edge.id for edge in route.edges) for route in routes]
    assert sorted(found, key=lambda route: (len(route), route)) == sorted(
        plain.routes("a", "b", hops, direction), key=lambda route: (len(route), route)
    )
    assert [len(route) for route in found] == sorted(len(route) for route in found)
    assert graph.components(**asked) == plain.components()


def test_a_way_begins_at_a_node_of_any_kind_and_enters_only_those_asked_for(bench: Bench) -> None:
    build(bench.graph, "Ab", "bc", "AD", "Dc")
    graph = bench.graph
    assert [route.node_ids for route in graph.routes("A", "c", node_kinds=["lower"])] == [("A", "b", "c")]
    assert graph.routes("b", "D", direction="both", node_kinds=["lower"]) == []
