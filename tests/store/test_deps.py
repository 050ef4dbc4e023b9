"""The graph answers who rests on whom, quickly, and the store remembers it."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path

import pytest
from chronomemory import ChronoRecord, ChronoStore, DependencyEdge, DepGraph, InvalidRecord
from chronomemory.deps import EDGE_TYPES


def chain(*ids: str) -> DepGraph:
    graph = DepGraph()
    for from_id, to_id in pairwise(ids):
        graph.add_edge(from_id, to_id, "depends_on")
    return graph


def test_the_nine_types_and_no_other() -> None:
    assert isinstance(EDGE_TYPES, frozenset)
    assert sorted(EDGE_TYPES) == [
        "assumes",
        "contradicts",
        "depends_on",
        "derived_from",
        "generated_from",
        "invalidates",
        "supersedes",
        "supports",
        "validated_by",
    ]
    graph = DepGraph()
    for call in (graph.add_edge, graph.remove_edge):
        with pytest.raises(ValueError, match=r"edge_type must be one of assumes, .*, got 'likes'"):
            call("A", "B", "likes")
        with pytest.raises(ValueError, match="Unknown edge type"):
            call("A", "B", "likes")
    with pytest.raises(ValueError, match="edge_type must be one of"):
        graph.successors("A", ["likes"])
    assert graph.edge_count() == 0


def test_an_edge_needs_both_ends() -> None:
    graph = DepGraph()
    for ends, field in ((("", "B"), "from_id"), (("A", ""), "to_id"), ((7, "B"), "from_id")):
        with pytest.raises(InvalidRecord) as caught:
            graph.add_edge(*ends, "supports")  # type: ignore[arg-type]
        assert caught.value.field == field


def test_edges_keep_their_order_and_come_once() -> None:
    graph = DepGraph()
    first = graph.add_edge("A", "B", "supports")
    graph.add_edge("A", "C", "assumes")
    graph.add_edge("A", "B", "supports")
    assert first == DependencyEdge("A", "B", "supports")
    assert graph.edges() == [first, DependencyEdge("A", "C", "assumes")]
    assert graph.edge_count() == 2


def test_removing_an_edge() -> None:
    graph = chain("A", "B", "C")
    assert graph.remove_edge("A", "B", "depends_on") is True
    assert graph.remove_edge("A", "B", "depends_on") is False
    assert graph.remove_edge("B", "C", "supports") is False
    assert graph.edges() == [DependencyEdge("B", "C", "depends_on")]
    assert graph.successors("A") == graph.predecessors("B") == []


def test_the_three_named_questions() -> None:
    graph = DepGraph()
    graph.add_edge("REPORT", "FACT", "depends_on")
    graph.add_edge("NOTE", "FACT", "supports")
    graph.add_edge("FACT", "RIVAL", "contradicts")
    graph.add_edge("OTHER", "FACT", "contradicts")
    graph.add_edge("FACT", "GROUND", "assumes")
    assert graph.what_depends_on("FACT") == ["REPORT"]
    assert graph.what_contradicts("FACT") == ["RIVAL", "OTHER"]
    assert graph.what_contradicts("RIVAL") == ["FACT"]
    assert graph.what_assumes("FACT") == ["GROUND"]
    assert graph.what_assumes("nobody") == []


def test_neighbours_by_type() -> None:
    graph = DepGraph()
    for edge_type in ("supports", "depends_on"):
        graph.add_edge("A", "B", edge_type)
    graph.add_edge("A", "C", "assumes")
    assert graph.successors("A") == ["B", "C"]
    assert graph.successors("A", {"assumes"}) == ["C"]
    assert graph.successors("A", "assumes") == ["C"]
    assert graph.predecessors("B", ["supports", "depends_on"]) == ["A"]
    assert graph.successors("A", []) == []


def test_transitive_walks_survive_cycles_and_leave_the_start_out() -> None:
    graph = chain("A", "B", "C", "A")
    graph.add_edge("C", "C", "depends_on")
    graph.add_edge("C", "D", "assumes")
    assert graph.transitive_successors("A") == {"B", "C", "D"}
    assert graph.transitive_successors("A", ["depends_on"]) == {"B", "C"}
    assert graph.transitive_predecessors("D") == {"A", "B", "C"}
    assert graph.transitive_predecessors("nobody") == set()
    assert graph.dependents_in_order("A", ["depends_on"]) == ["C", "B"]


def test_a_deep_chain_does_not_exhaust_the_stack() -> None:
    graph = chain(*(f"N{number}" for number in range(5_000)))
    assert len(graph.transitive_successors("N0")) == 4_999


def test_many_edges_do_not_make_a_lookup_slow() -> None:
    graph = DepGraph()
    for number in range(100_000):
        graph.add_edge(f"N{number}", "HUB", "supports")
    graph.add_edge("N7", "HUB", "depends_on")
    start = time.thread_time()  # other work on the machine does not count
    for _ in range(1_000):
        assert graph.what_depends_on("HUB") == ["N7"]
        assert graph.remove_edge("N9", "HUB", "supports")
        graph.add_edge("N9", "HUB", "supports")
    assert time.thread_time() - start < 1.0


def test_an_edge_is_a_record(store: ChronoStore) -> None:
    graph = DepGraph(store=store)
    graph.add_edge("REQ-1", "TEST-1", "validated_by")
    assert store.query(kind="edge") == [
        ChronoRecord(
            id="EDGE-REQ-1-TEST-1-validated_by",
            kind="edge",
            label="REQ-1 --validated_by--> TEST-1",
            confidence=1.0,
            data={"from_id": "REQ-1", "to_id": "TEST-1", "edge_type": "validated_by"},
        )
    ]
    graph.add_edge("REQ-1", "TEST-1", "validated_by")
    assert store.wal_seq() == 1
    graph.remove_edge("REQ-1", "TEST-1", "validated_by")
    assert store.query(kind="edge") == []
    graph.remove_edge("REQ-1", "TEST-1", "validated_by")
    assert store.wal_seq() == 2
    assert store.chain_valid()


def test_edges_come_back_from_the_store(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        graph = DepGraph(store)
        for name in "BCD":
            graph.add_edge("A", name, "supports")
        graph.remove_edge("A", "C", "supports")
        store.upsert(ChronoRecord(id="EDGE-broken", kind="edge", data={"from_id": 7}))
        expected = graph.edges()
    with ChronoStore(tmp_path) as store:
        again = DepGraph.from_store(store)
        assert again.edges() == expected
        again.add_edge("A", "C", "supports")
        assert DepGraph.from_store(store).edge_count() == 3


def test_a_graph_that_did_not_load_an_edge_can_still_remove_it(store: ChronoStore) -> None:
    DepGraph(store).add_edge("A", "B", "supports")
    assert DepGraph(store).remove_edge("A", "B", "supports") is True
    assert DepGraph.from_store(store).edge_count() == 0


def test_edges_that_ask_for_the_same_id_do_not_overwrite_each_other(store: ChronoStore) -> None:
    graph = DepGraph(store)
    ends = [("A-B", "C"), ("A", "B-C"), ("A-B", "C")]
    for from_id, to_id in ends:
        graph.add_edge(from_id, to_id, "supports")
    assert [record.id for record in store.query(kind="edge")] == [
        "EDGE-A-B-C-supports",
        "EDGE-A-B-C-supports-2",
    ]
    assert DepGraph.from_store(store).edges() == graph.edges()
    assert graph.remove_edge("A", "B-C", "supports")
    assert DepGraph.from_store(store).edges() == [DependencyEdge("A-B", "C", "supports")]
    graph.remove_edge("A-B", "C", "supports")
    graph.add_edge("A", "B-C", "supports")
    assert DepGraph.from_store(store).edges() == [DependencyEdge("A", "B-C", "supports")]


def test_an_edge_never_replaces_a_record_of_another_kind(store: ChronoStore) -> None:
    mine = ChronoRecord(id="EDGE-A-B-supports", kind="fact", label="mine")
    store.upsert(mine)
    DepGraph(store).add_edge("A", "B", "supports")
    assert store.get("EDGE-A-B-supports") == mine
    assert DepGraph.from_store(store).edge_count() == 1
