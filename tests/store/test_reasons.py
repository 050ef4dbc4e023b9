"""The tree of reasons holds what a belief stands on, nothing that cannot be seen, and ends."""

from __future__ import annotations

import json
from typing import Any

import pytest
from chronomemory import ChronoRecord, ChronoStore, DepGraph, InvalidArgument
from chronomemory.reasons import Reason


def shape(reason: Reason) -> Any:
    """Return a place and what is below it as plain tuples."""
    return (reason.relation, reason.record_id, reason.again, [shape(ground) for ground in reason.grounds])


@pytest.fixture
def graph(store: ChronoStore) -> DepGraph:
    """DEC-2 stands on DEC-1, that on HYP-1, that on OBS-1."""
    store.upsert_many(
        [
            ChronoRecord(id="OBS-1", label="The gauge reads 5", evidence=["photo 17"]),
            ChronoRecord(id="HYP-1", evidence=["OBS-1"]),
            ChronoRecord(id="DEC-1"),
            ChronoRecord(id="DEC-2"),
        ]
    )
    graph = DepGraph(store)
    graph.add_edge("DEC-1", "HYP-1", "depends_on")
    graph.add_edge("DEC-2", "DEC-1", "depends_on")
    return graph


def test_evidence_and_edges_are_followed_to_the_ground(store: ChronoStore, graph: DepGraph) -> None:
    told = store.why("DEC-2")
    word = ("evidence", "photo 17", "", [])
    obs = ("evidence", "OBS-1", "", [word])
    hyp = ("depends on", "HYP-1", "", [obs])
    assert shape(told.root) == ("", "DEC-2", "", [("depends on", "DEC-1", "", [hyp])])
    assert (told.size, told.circles, told.left_out) == (5, (), 0)


def test_each_place_has_its_events_and_times(store: ChronoStore, graph: DepGraph) -> None:
    (ground,) = store.why("DEC-2").root.grounds
    edge = store.get(ground.edge_id)
    assert edge is not None
    assert edge.data["to_id"] == "DEC-1"
    assert (ground.edge_seq, ground.edge_at) == (edge.created_seq, edge.created_at)
    assert ground.record is not None
    events = store.history("DEC-1")
    assert (ground.record.created_seq, ground.record.updated_seq) == (events[0].seq, events[-1].seq)


def test_rollbacks_stand_where_they_struck(store: ChronoStore, graph: DepGraph) -> None:
    graph.add_edge("HYP-1", "OBS-1", "derived_from")
    store.invalidate("OBS-1", "the gauge was broken")
    root = store.why("DEC-2").root
    assert [told.reason for told in root.rollbacks] == ["the gauge was broken"]
    assert root.rollbacks[0].target_id == "OBS-1"
    assert root.grounds[0].rollbacks[0].change.new_status == "hypothesis"


def test_what_speaks_against_it_is_named_and_not_followed(store: ChronoStore, graph: DepGraph) -> None:
    store.upsert(ChronoRecord(id="NO", evidence=["rumour"]))
    store.upsert(ChronoRecord(id="YES", evidence=["a second gauge"]))
    for edge_type in ("contradicts", "invalidates", "supersedes"):
        graph.add_edge("NO", "OBS-1", edge_type)
    graph.add_edge("YES", "OBS-1", "supports")
    graph.add_edge("OBS-1", "DEC-2", "supports")
    against = [shape(ground) for ground in store.why("OBS-1").root.grounds]
    assert against == [
        ("evidence", "photo 17", "", []),
        ("contradicted by, invalidated by, superseded by", "NO", "", []),
        ("supported by", "YES", "", [("evidence", "a second gauge", "", [])]),
    ]


def test_circles_are_told(store: ChronoStore, graph: DepGraph) -> None:
    graph.add_edge("HYP-1", "DEC-2", "assumes")
    told = store.why("DEC-2")
    assert told.circles == ("DEC-2",)
    graph.add_edge("OBS-1", "OBS-1", "depends_on")
    assert store.why("OBS-1").circles == ("OBS-1",)


def test_a_circle_beside_the_way_is_told(store: ChronoStore) -> None:
    graph = DepGraph(store)
    for ends in (("A", "B"), ("A", "C"), ("B", "C"), ("C", "B")):
        graph.add_edge(*ends, "depends_on")
    assert set(store.why("A").circles) == {"B", "C"}


def test_what_is_met_twice_without_a_circle_is_followed_once(store: ChronoStore, graph: DepGraph) -> None:
    graph.add_edge("DEC-2", "HYP-1", "depends_on")
    told = store.why("DEC-2")
    assert told.circles == ()
    places = [shape(told.root)]
    again = []
    while places:
        place = places.pop()
        again += [place[1]] if place[2] == "told" else []
        places += place[3]
    assert again == ["HYP-1"]


def test_depth_and_limit_bound_it_and_count_what_they_leave_out(store: ChronoStore) -> None:
    edges = ({"from_id": f"N{n}", "to_id": f"N{n + 1}", "edge_type": "depends_on"} for n in range(300))
    store.upsert_many({"id": f"E{n}", "kind": "edge", "data": edge} for n, edge in enumerate(edges))
    shallow = store.why("N0", depth=5)
    assert (shallow.size, shallow.left_out) == (6, 1)
    assert store.why("N0", depth=200).size == 201
    store.upsert(ChronoRecord(id="WIDE", evidence=[f"word {number}" for number in range(100)]))
    wide = store.why("WIDE", limit=10)
    assert (wide.size, wide.left_out) == (10, 91)
    assert json.loads(json.dumps(store.why("N0", depth=200).to_dict()))["size"] == 201


@pytest.mark.parametrize(
    "wrong", [{"depth": 0}, {"depth": 201}, {"limit": 0}, {"limit": 5001}, {"depth": "3"}]
)
def test_bounds_outside_their_range_are_refused(store: ChronoStore, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        store.why("A", **wrong)


def test_an_id_that_only_edges_know_has_reasons_too(store: ChronoStore) -> None:
    DepGraph(store).add_edge("PAPER", "LAB", "derived_from")
    told = store.why("PAPER")
    assert told.root.record is None
    assert [ground.record_id for ground in told.root.grounds] == ["LAB"]
    assert store.why("NOBODY").size == 1


def test_a_handle_is_told_only_what_it_sees(store: ChronoStore) -> None:
    ann, bob = store.scoped(user="ann"), store.scoped(user="bob")
    store.upsert(ChronoRecord(id="SHARED"))
    secret, mine = ann.id("SECRET"), bob.id("MINE")
    ann.upsert({"id": secret, "label": "Ann is ill"})
    bob.upsert({"id": mine, "evidence": [secret, "SHARED"]})
    DepGraph(ann).add_edge(secret, "SHARED", "supports")
    grounds = bob.why(mine).root.grounds
    assert [(ground.record_id, ground.record is None) for ground in grounds] == [
        (secret, True),
        ("SHARED", False),
    ]
    assert bob.why("SHARED").root.grounds == ()
    assert ann.why(secret).root.record is not None
    everyone = store.everyone().why(mine).root
    assert all(ground.record is not None for ground in everyone.grounds)
    assert [(below.relation, below.again) for below in everyone.grounds[1].grounds] == [
        ("supported by", "told")
    ]


def test_as_json_it_can_be_spelled(store: ChronoStore, graph: DepGraph) -> None:
    store.invalidate("DEC-1", "wrong")
    told = json.loads(json.dumps(store.why("DEC-2").to_dict()))
    assert told["id"] == "DEC-2"
    assert told["rollbacks"][0]["reason"] == "wrong"
    assert told["grounds"][0]["created_at"].endswith("+00:00")
