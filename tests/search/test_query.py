"""All eighteen questions are answered, with a graph and without one."""

from __future__ import annotations

import pytest
from chronomemory import ChronoRecord, ChronoStore, DepGraph, query


def ids(records: list[ChronoRecord]) -> list[str]:
    return [record.id for record in records]


@pytest.fixture
def full(store: ChronoStore) -> ChronoStore:
    store.upsert_many(
        [
            ChronoRecord(id="FACT-1", label="Root fact", confidence=0.9, evidence=["FACT-2", "book"]),
            ChronoRecord(id="FACT-2", label="weak fact", confidence=0.3),
            ChronoRecord(id="DEC-1", kind="decision", label="Use Ruff for linting"),
            ChronoRecord(id="OPEN-1", label="open", status="hypothesis", confidence=0.7),
            ChronoRecord(id="OPEN-2", label="weaker", status="hypothesis", confidence=0.2),
            ChronoRecord(id="FALLEN", label="fallen", status="invalidated", confidence=0.9),
            ChronoRecord(id="ACT-1", kind="action", label="run lint"),
            ChronoRecord(id="ACT-2", kind="action", label="ship"),
            ChronoRecord(id="STOP", kind="stop_condition", label="never delete production"),
            ChronoRecord(id="SKILL", kind="skill", label="lint", data={"activation": ["lint"]}),
            ChronoRecord(id="WORLD-1", kind="world_state", label="it rains"),
            ChronoRecord(id="WORLD-2", kind="world_state", label="it does not"),
            ChronoRecord(id="WORLD-3", kind="world_state", label="somewhere else"),
            ChronoRecord(id="ART-1", kind="artifact", label="report"),
            ChronoRecord(id="ART-2", kind="artifact", label="chart"),
            ChronoRecord(id="EDGE-X", kind="edge", label="bookkeeping", confidence=1.0),
        ]
    )
    store.upsert(ChronoRecord(id="GONE", label="deleted"))
    store.delete("GONE")
    return store


@pytest.fixture
def graph() -> DepGraph:
    graph = DepGraph()
    for from_id, edge_type, to_id in (
        ("DEC-1", "contradicts", "FALLEN"),
        ("GONE", "contradicts", "DEC-1"),
        ("ACT-1", "depends_on", "FACT-1"),
        ("ACT-2", "depends_on", "FACT-1"),
        ("ACT-2", "depends_on", "OPEN-1"),
        ("DEC-1", "assumes", "FACT-1"),
        ("FACT-1", "assumes", "FACT-2"),
        ("WORLD-1", "contradicts", "WORLD-2"),
        ("WORLD-3", "contradicts", "FACT-1"),
        ("ART-1", "generated_from", "DRAFT"),
        ("DRAFT", "derived_from", "FACT-1"),
        ("ART-2", "supports", "FACT-1"),
        ("GOAL", "depends_on", "ACT-2"),
    ):
        graph.add_edge(from_id, to_id, edge_type)
    return graph


def test_there_are_eighteen() -> None:
    assert len(query.__all__) == 18


def test_what_is_known(full: ChronoStore) -> None:
    known = query.what_is_known(full)
    assert "FACT-1" in ids(known)
    assert {"FACT-2", "OPEN-1", "FALLEN", "GONE", "EDGE-X"}.isdisjoint(ids(known))
    assert ids(query.what_is_known(full, kind="decision")) == ["DEC-1"]
    assert ids(query.what_is_known(full, kind="edge")) == ["EDGE-X"]


def test_what_conflicts_with(full: ChronoStore, graph: DepGraph) -> None:
    assert ids(query.what_conflicts_with(full, "DEC-1", graph)) == ["FALLEN"]
    assert ids(query.what_conflicts_with(full, "FALLEN", graph)) == ["DEC-1"]
    assert query.what_conflicts_with(full, "DEC-1") == []


def test_what_depends_on(full: ChronoStore, graph: DepGraph) -> None:
    assert ids(query.what_depends_on(full, "FACT-1", graph)) == ["ACT-1", "ACT-2"]
    assert query.what_depends_on(full, "FACT-1") == []


def test_what_changed_since(full: ChronoStore) -> None:
    seq = full.wal_seq()
    full.upsert(ChronoRecord(id="FACT-2", label="again"))
    full.upsert(ChronoRecord(id="NEW"))
    full.upsert(ChronoRecord(id="FACT-2", label="and again"))
    full.delete("FACT-1")
    full.engine.upsert(ChronoRecord(id="block:1", kind="block"), "blocks")
    assert query.what_changed_since(full, seq + 1) == [
        ChronoRecord(id="FACT-2", label="and again"),
        ChronoRecord(id="NEW"),
    ]
    assert ids(query.what_changed_since(full, seq + 3)) == ["FACT-2"]
    assert query.what_changed_since(full, full.wal_seq() + 1) == []
    assert len(query.what_changed_since(full, 0)) == 18


def test_what_requires_reverification(full: ChronoStore) -> None:
    assert ids(query.what_requires_reverification(full)) == ["OPEN-1", "OPEN-2"]


@pytest.mark.parametrize(
    ("label", "done"),
    [("RUFF", True), ("root fact", True), ("run lint", False), ("deleted", False), (" ", False)],
)
def test_work_done_and_duplicate_actions(full: ChronoStore, label: str, done: bool) -> None:
    assert query.has_this_work_been_done(full, label) is done
    assert query.is_this_action_duplicate(full, label) is done


def test_why_do_we_believe(full: ChronoStore) -> None:
    assert ids(query.why_do_we_believe(full, "FACT-1")) == ["FACT-1", "FACT-2"]
    assert query.why_do_we_believe(full, "nobody") == []
    full.upsert(ChronoRecord(id="SELF", evidence=["SELF", "FACT-1", "FACT-1", ""]))
    assert ids(query.why_do_we_believe(full, "SELF")) == ["SELF", "FACT-1"]


def test_what_context_packs_are_stale(full: ChronoStore) -> None:
    for name, entries in (
        ("STALE", [{"record_id": "FACT-1"}, {"record_id": "FALLEN"}]),
        ("STALE-IDS", ["FALLEN"]),
        ("CLEAN", [{"record_id": "FACT-1"}]),
        ("ODD", 7),
    ):
        full.upsert(ChronoRecord(id=name, kind="context_pack", data={"entries": entries}))
    assert ids(query.what_context_packs_are_stale(full)) == ["STALE", "STALE-IDS"]


def test_what_world_models_conflict(full: ChronoStore, graph: DepGraph) -> None:
    assert ids(query.what_world_models_conflict(full, graph)) == ["WORLD-1", "WORLD-2"]
    assert query.what_world_models_conflict(full) == []


def test_what_assumptions_underlie(full: ChronoStore, graph: DepGraph) -> None:
    assert ids(query.what_assumptions_underlie(full, "DEC-1", graph)) == ["FACT-1", "FACT-2"]
    assert ids(query.what_assumptions_underlie(full, "DEC-1")) == ["DEC-1"]
    assert query.what_assumptions_underlie(full, "nobody") == []


def test_what_generated_artifacts_depend_on(full: ChronoStore, graph: DepGraph) -> None:
    assert ids(query.what_generated_artifacts_depend_on(full, "FACT-1", graph)) == ["ART-1"]
    assert query.what_generated_artifacts_depend_on(full, "FACT-1") == []


def test_what_confidence_collapsed(full: ChronoStore) -> None:
    assert ids(query.what_confidence_collapsed(full)) == ["OPEN-2"]
    assert ids(query.what_confidence_collapsed(full, threshold=0.8)) == ["OPEN-1", "OPEN-2"]


def test_what_can_agent_do_next(full: ChronoStore, graph: DepGraph) -> None:
    assert ids(query.what_can_agent_do_next(full, "GOAL", graph)) == ["ACT-1"]
    assert ids(query.what_can_agent_do_next(full, "GOAL")) == ["ACT-1", "ACT-2"]
    graph.add_edge("ACT-1", "nobody", "depends_on")
    assert query.what_can_agent_do_next(full, "GOAL", graph) == []


def test_what_should_agent_not_do(full: ChronoStore) -> None:
    assert ids(query.what_should_agent_not_do(full)) == ["STOP"]


def test_what_skills_apply(full: ChronoStore) -> None:
    assert ids(query.what_skills_apply(full, "please LINT this")) == ["SKILL"]
    assert query.what_skills_apply(full, "sleep") == []


def test_what_state_delta_would_complete(full: ChronoStore, graph: DepGraph) -> None:
    assert ids(query.what_state_delta_would_complete(full, "GOAL", graph)) == ["OPEN-1"]
    assert ids(query.what_state_delta_would_complete(full, "GOAL")) == ["OPEN-1", "OPEN-2"]


def test_what_context_pack_minimizes_tokens(full: ChronoStore, graph: DepGraph) -> None:
    full.upsert(ChronoRecord(id="HUGE", label="x" * 9_000, confidence=1.0))
    chosen = query.what_context_pack_minimizes_tokens(full, "T", graph)
    assert chosen[0] == full.get("FACT-1")
    assert all(record.passes_rag_filter() for record in chosen)
    assert {"HUGE", "EDGE-X", "GONE"}.isdisjoint(ids(chosen))


def test_the_past_can_be_asked_too(full: ChronoStore) -> None:
    seq = full.wal_seq()
    full.delete("FACT-1")
    assert "FACT-1" in ids(query.what_is_known(full.as_of(seq)))
    assert "FACT-1" not in ids(query.what_is_known(full))
