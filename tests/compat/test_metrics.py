"""Costs are counted without one count swallowing another, and skills are found."""

from __future__ import annotations

import multiprocessing
import re
import threading
from pathlib import Path

import pytest
from chronomemory import ChronoRecord, ChronoStore, InvalidRecord, metrics

FROZEN_MS = 1_800_000_000_000


@pytest.fixture
def frozen(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("time.time_ns", lambda: FROZEN_MS * 1_000_000)
    return FROZEN_MS


def test_a_metric_is_a_record(store: ChronoStore, frozen: int) -> None:
    record = metrics.record_token_metric(
        store, "T-1", 100, 200, 50, 3, 500, False, duplicates_blocked=2, claims_rejected=1
    )
    assert store.query(kind="token_metric") == [record]
    assert re.fullmatch(f"METRIC-T-1-{frozen}-[0-9a-f]{{16}}", record.id)
    assert record.data == {
        "task_id": "T-1",
        "context_tokens": 100,
        "input_tokens": 200,
        "output_tokens": 50,
        "tool_calls": 3,
        "elapsed_ms": 500,
        "success": False,
        "duplicates_blocked": 2,
        "claims_rejected": 1,
        "total_tokens": 350,
    }


def test_metrics_of_one_task(store: ChronoStore) -> None:
    store.record_token_metric("A", 1, 1, 1)
    store.record_token_metric("B", 2, 2, 2)
    store.record_token_metric("A", 3, 3, 3)
    assert [m.data["total_tokens"] for m in store.get_token_metrics("A")] == [3, 9]
    assert metrics.get_token_metrics(store, "nobody") == []


def test_metrics_of_one_millisecond_do_not_collide(tmp_path: Path, frozen: int) -> None:
    for _ in range(3):  # also not across reopenings
        with ChronoStore(tmp_path) as store:
            store.record_token_metric("T", 1, 0, 0)
            store.record_token_metric("T", 2, 0, 0)
            found = store.get_token_metrics("T")
    assert len({record.id for record in found}) == 6
    assert all(record.id.startswith(f"METRIC-T-{frozen}-") for record in found)
    assert [record.data["total_tokens"] for record in found] == [1, 2, 1, 2, 1, 2]


def test_threads_do_not_swallow_each_others_metrics(store: ChronoStore, frozen: int) -> None:
    def write(worker: int) -> None:
        for number in range(10):
            store.record_token_metric("T", worker, number, 0)

    workers = [threading.Thread(target=write, args=(worker,)) for worker in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    seen = {(m.data["context_tokens"], m.data["input_tokens"]) for m in store.get_token_metrics("T")}
    assert seen == {(worker, number) for worker in range(4) for number in range(10)}


def _write_metrics(project: str, worker: int) -> None:
    metrics._now_ms = lambda: FROZEN_MS
    with ChronoStore(project, lock_timeout=60) as store:
        for number in range(10):
            store.record_token_metric("T", worker, number, 0)


def test_processes_do_not_swallow_each_others_metrics(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    with spawn.Pool(3) as pool:
        pool.starmap(_write_metrics, [(str(tmp_path), worker) for worker in range(3)])
    with ChronoStore(tmp_path) as store:
        found = store.get_token_metrics("T")
        assert store.chain_valid()
    seen = {(m.data["context_tokens"], m.data["input_tokens"]) for m in found}
    assert seen == {(worker, number) for worker in range(3) for number in range(10)}


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("", 1, 1, 1), "task_id"),
        (("T", -1, 1, 1), "context_tokens"),
        (("T", 1, 1.5, 1), "input_tokens"),
        (("T", 1, 1, True), "output_tokens"),
        (("T", 1, 1, 1, "3"), "tool_calls"),
    ],
)
def test_a_count_that_is_none_is_refused(
    store: ChronoStore, arguments: tuple[object, ...], field: str
) -> None:
    with pytest.raises(InvalidRecord) as caught:
        store.record_token_metric(*arguments)  # type: ignore[arg-type]
    assert caught.value.field == field
    assert store.wal_seq() == 0


def test_the_report_without_metrics_is_all_zeros(store: ChronoStore) -> None:
    assert store.token_efficiency_report() == {
        "tokens_per_success": 0.0,
        "avg_tool_calls": 0.0,
        "duplicate_block_rate": 0.0,
    }


def test_the_report(store: ChronoStore) -> None:
    store.record_token_metric("A", 100, 100, 100, tool_calls=2, duplicates_blocked=1)
    store.record_token_metric("B", 200, 200, 200, tool_calls=4, success=False)
    store.upsert(ChronoRecord(id="strange", kind="token_metric", data={"tool_calls": "many"}))
    store.delete("strange")
    assert metrics.token_efficiency_report(store) == {
        "tokens_per_success": 300.0,
        "avg_tool_calls": 3.0,
        "duplicate_block_rate": 0.5,
    }


def test_a_metric_of_another_tool_does_not_break_the_report(store: ChronoStore) -> None:
    store.upsert(ChronoRecord(id="strange", kind="token_metric", data={"tool_calls": "many"}))
    assert store.token_efficiency_report()["avg_tool_calls"] == 0


def test_skills_are_found_by_their_words(store: ChronoStore) -> None:
    for name, activation in (
        ("list", ["Lint", "ruff"]),
        ("text", "git commit, git push"),
        ("phrases", ["type check"]),
        ("broken", 7),
        ("empty", []),
    ):
        store.upsert(ChronoRecord(id=name, kind="skill", data={"activation": activation}))
    store.upsert(ChronoRecord(id="none", kind="skill"))
    store.upsert(ChronoRecord(id="fact", kind="fact", data={"activation": ["lint"]}))
    for label, expected in (
        ("run LINT now", ["list"]),
        ("please push", ["text"]),
        ("check", ["phrases"]),
        ("something else", []),
        ("", []),
    ):
        assert [skill.id for skill in store.find_skills(label)] == expected


def test_a_run_of_a_skill_is_a_record(store: ChronoStore, frozen: int) -> None:
    good = metrics.record_skill_run(store, "S", True, 50, {"errors": 0})
    bad = store.record_skill_run("S", success=False, tokens_used=9, output="crashed")
    assert store.query(kind="skill_run") == [good, bad]
    assert (good.confidence, bad.confidence) == (1.0, 0.5)
    assert good.id != bad.id
    assert good.data == {
        "skill_id": "S",
        "success": True,
        "tokens_used": 50,
        "output": {"errors": 0},
    }
    with pytest.raises(InvalidRecord, match="tokens_used"):
        store.record_skill_run("S", True, -1, None)
