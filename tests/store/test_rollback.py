"""What rests on a wrong belief falls with it, all at once."""

from __future__ import annotations

import pytest
from chronomemory import ChronoRecord, ChronoStore, DepGraph, InvalidRecord, RollbackReport
from chronomemory.rollback import RecordStatusChange, invalidate


@pytest.fixture
def graph(store: ChronoStore) -> DepGraph:
    """C was derived from B, which depends on A; S only supports A."""
    store.upsert_many(
        [
            ChronoRecord(id="A", confidence=0.9),
            ChronoRecord(id="B", confidence=0.8),
            ChronoRecord(id="C", confidence=0.5, data={"kept": True}),
            ChronoRecord(id="S", confidence=0.8),
        ]
    )
    graph = DepGraph()
    graph.add_edge("B", "A", "depends_on")
    graph.add_edge("C", "B", "derived_from")
    graph.add_edge("S", "A", "supports")
    return graph


def found(store: ChronoStore, record_id: str) -> ChronoRecord:
    record = store.get(record_id)
    assert record is not None
    return record


def test_the_target_is_invalidated_and_what_rests_on_it_becomes_a_hypothesis(
    store: ChronoStore, graph: DepGraph
) -> None:
    report = invalidate("A", "measured wrongly", store, graph)
    assert report == RollbackReport(
        "A",
        "measured wrongly",
        RecordStatusChange("A", "active", "invalidated", 0.9, 0.9),
        [
            RecordStatusChange("B", "active", "hypothesis", 0.8, 0.4),
            RecordStatusChange("C", "active", "hypothesis", 0.5, 0.25),
        ],
    )
    assert report.affected_ids == ["A", "B", "C"]
    assert found(store, "A") == ChronoRecord(id="A", status="invalidated", confidence=0.9)
    assert found(store, "C") == ChronoRecord(
        id="C", status="hypothesis", is_hypothesis=True, confidence=0.25, data={"kept": True}
    )
    assert found(store, "S").status == "active"


def test_the_store_keeps_the_report(store: ChronoStore, graph: DepGraph) -> None:
    report = store.invalidate("A", "measured wrongly", graph)
    assert report.to_dict() == {
        "target_id": "A",
        "reason": "measured wrongly",
        "affected": ["A", "B", "C"],
        "cascaded_count": 2,
    }
    kept = found(store, "ROLLBACK-A")
    assert kept.kind == "rollback_event"
    assert report.to_dict().items() <= kept.data.items()
    assert [change["record_id"] for change in kept.data["changes"]] == ["A", "B", "C"]


def test_the_cascade_is_one_atomic_batch(store: ChronoStore, graph: DepGraph) -> None:
    seq = store.wal_seq()
    invalidate("A", "wrong", store, graph)
    events = store.replay(from_seq=seq + 1)
    assert [event.op for event in events] == ["begin", *["upsert"] * 4]
    assert events[0].record == {"events": 4}
    assert store.chain_valid()


def test_a_cascade_that_cannot_be_written_changes_nothing(store: ChronoStore, graph: DepGraph) -> None:
    with pytest.raises(InvalidRecord):
        invalidate("A", "lone surrogate \ud800", store, graph)
    assert [record.status for record in store.query(status="")] == ["active"] * 4


def test_cycles_end(store: ChronoStore, graph: DepGraph) -> None:
    graph.add_edge("A", "C", "depends_on")
    graph.add_edge("A", "A", "depends_on")
    assert invalidate("A", "circle", store, graph).affected_ids == ["A", "B", "C"]
    assert found(store, "A").status == "invalidated"


def test_an_unknown_target_still_takes_its_dependents_down(store: ChronoStore, graph: DepGraph) -> None:
    graph.add_edge("S", "PAPER", "depends_on")
    report = invalidate("PAPER", "retracted", store, graph)
    assert report.direct_change is None
    assert report.affected_ids == ["S"]
    assert store.get("PAPER") is None
    assert found(store, "ROLLBACK-PAPER").data["affected"] == ["S"]
    assert invalidate("nobody", "typing error", store, graph).affected_ids == []


def test_what_was_withdrawn_stays_withdrawn(store: ChronoStore, graph: DepGraph) -> None:
    store.delete("B")
    assert invalidate("A", "wrong", store, graph).affected_ids == ["A", "C"]
    assert found(store, "B").status == "tombstone"
    graph.add_edge("A", "S", "depends_on")
    assert invalidate("S", "wrong too", store, graph).affected_ids == ["S", "C"]
    assert found(store, "A").status == "invalidated"


def test_without_a_graph_the_edges_of_the_store_count(store: ChronoStore, graph: DepGraph) -> None:
    DepGraph(store).add_edge("S", "A", "depends_on")
    assert store.invalidate("A", "wrong").affected_ids == ["A", "S"]


def test_the_report_goes_over_no_record_that_is_none(store: ChronoStore, graph: DepGraph) -> None:
    mine = [ChronoRecord(id="ROLLBACK-A", label="mine"), ChronoRecord(id="ROLLBACK-A-2", label="too")]
    store.upsert_many(mine)
    invalidate("A", "wrong", store, graph)
    assert [found(store, record.id) for record in mine] == mine
    assert found(store, "ROLLBACK-A-3").kind == "rollback_event"
    invalidate("A", "wrong again", store, graph)
    # Each has its own: a rollback is taken back by the id of its report.
    assert "again" not in found(store, "ROLLBACK-A-3").label
    assert "again" in found(store, "ROLLBACK-A-4").label


def test_a_report_that_falls_itself_is_kept_beside_the_new_one(store: ChronoStore, graph: DepGraph) -> None:
    invalidate("A", "wrong", store, graph)
    graph.add_edge("ROLLBACK-A", "A", "depends_on")
    assert "ROLLBACK-A" in invalidate("A", "again", store, graph).affected_ids
    assert found(store, "ROLLBACK-A").status == "hypothesis"
    assert found(store, "ROLLBACK-A-2").data["reason"] == "again"
