"""A pack holds the most believed records that fit, and says why the others are missing."""

from __future__ import annotations

import json

import pytest
from chronomemory import ChronoRecord, ChronoStore, ContextPack, ContextPackCompiler, DepGraph


@pytest.fixture
def full(store: ChronoStore) -> ChronoStore:
    store.upsert_many(
        [
            ChronoRecord(id="F1", label="Lint Python with ruff", confidence=0.9),
            ChronoRecord(id="F2", label="ruff is fast", confidence=0.95, data={"ms": 12}),
            ChronoRecord(id="OTHER", label="mypy checks types", confidence=0.99),
            ChronoRecord(id="LOW", label="ruff maybe", confidence=0.59),
            ChronoRecord(id="DEAD", label="ruff", status="tombstone", confidence=0.9),
            ChronoRecord(id="FALLEN", label="ruff", status="invalidated", confidence=0.9),
            ChronoRecord(id="OPEN", label="ruff", status="hypothesis", confidence=0.9),
            ChronoRecord(id="E1", kind="edge", label="ruff", confidence=1.0),
            ChronoRecord(id="M1", kind="token_metric", label="ruff", confidence=1.0),
            ChronoRecord(id="ROLL", kind="rollback_event", label="ruff", confidence=1.0),
            ChronoRecord(id="RUN", kind="skill_run", label="ruff", confidence=1.0),
        ]
    )
    return store


def reasons(pack: ContextPack) -> dict[str, str]:
    return {item.record_id: item.reason for item in pack.excluded}


def test_the_most_believed_come_first_and_the_others_have_a_reason(full: ChronoStore) -> None:
    pack = ContextPackCompiler(full).compile("T", "use RUFF")
    assert (pack.task_id, pack.goal, pack.token_budget) == ("T", "use RUFF", 4096)
    assert [entry.record_id for entry in pack.entries] == ["F2", "F1"]
    assert reasons(pack) == {
        "OTHER": "label shares no word with the goal",
        "LOW": "confidence 0.59 below 0.6",
        "DEAD": "status tombstone",
        "FALLEN": "status invalidated",
        "OPEN": "status hypothesis",
        "E1": "infrastructure kind edge",
        "M1": "infrastructure kind token_metric",
        "ROLL": "infrastructure kind rollback_event",
        "RUN": "infrastructure kind skill_run",
    }


@pytest.mark.parametrize("goal", ["", "  ", "?!"])
def test_a_goal_without_words_asks_for_everything(full: ChronoStore, goal: str) -> None:
    pack = ContextPackCompiler(full).compile("T", goal)
    assert [entry.record_id for entry in pack.entries] == ["OTHER", "F2", "F1"]


def test_words_are_whole_words(full: ChronoStore) -> None:
    assert ContextPackCompiler(full).compile("T", "ruf fast-er").entries[0].record_id == "F2"
    assert ContextPackCompiler(full).compile("T", "ruf").entries == []


def test_the_estimate_is_a_quarter_of_the_characters_and_at_least_one(full: ChronoStore) -> None:
    full.upsert(ChronoRecord(id="TINY", label="ruff", confidence=1.0))
    full.upsert(ChronoRecord(id="NONE", label="", confidence=1.0))
    pack = ContextPackCompiler(full).compile("T", "")
    estimates = {entry.record_id: entry.token_estimate for entry in pack.entries}
    assert estimates["TINY"] == estimates["NONE"] == 1
    assert estimates["F1"] == len("Lint Python with ruff") // 4
    assert estimates["F2"] == (len("ruff is fast") + len('{"ms": 12}')) // 4
    assert pack.token_count == sum(estimates.values())


def test_the_budget_is_kept_and_smaller_records_still_get_in(full: ChronoStore) -> None:
    full.upsert(ChronoRecord(id="BIG", label="ruff " + "x" * 400, confidence=1.0))
    pack = ContextPackCompiler(full).compile("T", "ruff", token_budget=9)
    assert [entry.record_id for entry in pack.entries] == ["F2"]
    assert pack.token_count == 5 <= pack.token_budget
    assert reasons(pack)["BIG"] == "101 tokens do not fit in the 9 left of 9"
    assert reasons(pack)["F1"] == "5 tokens do not fit in the 4 left of 9"
    assert ContextPackCompiler(full).compile("T", "", token_budget=0).entries == []


def test_among_equally_believed_records_those_near_the_task_win(full: ChronoStore) -> None:
    for name in ("FAR", "NEAR"):
        full.upsert(ChronoRecord(id=name, label="equal", confidence=0.7))
    graph = DepGraph()
    graph.add_edge("T", "STEP", "depends_on")
    graph.add_edge("STEP", "NEAR", "depends_on")
    pack = ContextPackCompiler(full, graph).compile("T", "equal")
    assert [entry.record_id for entry in pack.entries] == ["NEAR", "FAR"]


def test_other_faces_stay_out(full: ChronoStore) -> None:
    full.engine.upsert(ChronoRecord(id="block:1", kind="block", confidence=1.0), "blocks")
    pack = ContextPackCompiler(full).compile("T", "")
    assert "block:1" not in {entry.record_id for entry in pack.entries} | set(reasons(pack))


def test_a_pack_is_plain_json(full: ChronoStore) -> None:
    pack = ContextPackCompiler(full).compile("T", "ruff")
    told = json.loads(json.dumps(pack.to_dict()))
    assert told["task_id"] == "T"
    assert told["token_count"] == pack.token_count
    assert told["entries"][0] == {
        "record_id": "F2",
        "kind": "fact",
        "label": "ruff is fast",
        "confidence": 0.95,
        "token_estimate": 5,
        "data": {"ms": 12},
    }
    assert {"record_id": "LOW", "reason": "confidence 0.59 below 0.6"} in told["excluded"]


def test_a_pack_can_be_made_of_the_past(full: ChronoStore) -> None:
    seq = full.wal_seq()
    full.delete("F2")
    pack = ContextPackCompiler(full.as_of(seq)).compile("T", "ruff")
    assert [entry.record_id for entry in pack.entries] == ["F2", "F1"]
