"""No update is lost, whatever another process writes between a read and the write made from it."""

from __future__ import annotations

import fcntl
import json
import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoRecord, ChronoStore, DepGraph, EsdbBridge, EsdbRecord
from chronomemory.blocks import BatchConflict, open_blocks, sync
from chronomemory.cli import app
from chronomemory.errors import InvalidArgument
from typer.testing import CliRunner

PATIENCE_SECONDS = 20


def someone_waits(project: Path) -> bool:
    """Say whether a writer waits for the lock: it shows by a shared lock on the folder."""
    folder = os.open(project / ".chronomemory", os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(folder)
    return False


def beside(project: Path, verb: Callable[[], Any], meanwhile: Callable[[ChronoStore], Any]) -> Any:
    """Run a verb that has read and waits for the lock, and let whoever has the lock write before it goes."""
    outcome: list[Any] = []

    def act() -> None:
        try:
            outcome.append(verb())
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=act)
    with ChronoStore(project, exclusive=True, own_engine=True) as other:
        other.record_count()
        thread.start()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not someone_waits(project):
            assert time.monotonic() < deadline and thread.is_alive(), outcome
            time.sleep(0.001)
        meanwhile(other)
    thread.join(PATIENCE_SECONDS)
    assert outcome, "the verb is still waiting"
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]


def correct(record_id: str) -> Callable[[ChronoStore], None]:
    """Return what corrects a record: another process, acknowledged."""

    def act(other: ChronoStore) -> None:
        record = other.get(record_id) or ChronoRecord(id=record_id)
        record.evidence = [*record.evidence, "corrected"]
        record.data = {**record.data, "dose": "10 mg"}
        other.upsert(record)

    return act


@pytest.fixture
def project(tmp_path: Path) -> Path:
    with ChronoStore(tmp_path) as store:
        store.upsert(ChronoRecord(id="FACT", label="first", confidence=0.8, data={"dose": "90 mg"}))
        store.upsert(ChronoRecord(id="REST", confidence=0.6))
        DepGraph(store).add_edge("REST", "FACT", "depends_on")
    return tmp_path


class TestBesideAWriterThatWasFirst:
    @pytest.mark.parametrize("corrected", ["FACT", "REST"])
    def test_invalidate(self, project: Path, corrected: str) -> None:
        with ChronoStore(project, lock_timeout=PATIENCE_SECONDS) as store:
            store.record_count()
            report = beside(project, lambda: store.invalidate("FACT", "wrong"), correct(corrected))
            assert report.affected_ids == ["FACT", "REST"]
            kept = store.get(corrected)
            assert kept is not None
            assert (kept.evidence, kept.data["dose"]) == (["corrected"], "10 mg")
            assert [store.get(name).status for name in ("FACT", "REST")] == ["invalidated", "hypothesis"]
            assert store.get("REST").confidence == pytest.approx(0.3)

    def test_a_dependent_that_was_withdrawn_meanwhile_stays_withdrawn(self, project: Path) -> None:
        with ChronoStore(project, lock_timeout=PATIENCE_SECONDS) as store:
            store.record_count()
            report = beside(
                project, lambda: store.invalidate("FACT", "wrong"), lambda other: other.delete("REST")
            )
            assert report.affected_ids == ["FACT"]
            assert store.get("REST").status == "tombstone"

    def test_put(self, project: Path) -> None:
        arguments = ["put", "FACT", "--label", "second", "--project", str(project)]
        result = beside(project, lambda: CliRunner().invoke(app, arguments), correct("FACT"))
        assert result.exit_code == 0, result.output
        with ChronoStore(project) as store:
            kept = store.get("FACT")
        assert (kept.label, kept.evidence, kept.data) == ("second", ["corrected"], {"dose": "10 mg"})

    def test_rollback(self, project: Path) -> None:
        arguments = ["rollback", "FACT", "--reason", "wrong", "--project", str(project)]
        result = beside(project, lambda: CliRunner().invoke(app, arguments), correct("FACT"))
        assert result.exit_code == 0, result.output
        with ChronoStore(project) as store:
            kept = store.get("FACT")
        assert (kept.status, kept.evidence, kept.data) == ("invalidated", ["corrected"], {"dose": "10 mg"})

    def test_a_rollback_that_another_one_has_done_meanwhile_is_refused(self, project: Path) -> None:
        arguments = ["rollback", "FACT", "--reason", "wrong", "--project", str(project)]
        result = beside(
            project,
            lambda: CliRunner().invoke(app, arguments),
            lambda other: other.invalidate("FACT", "wrong too"),
        )
        assert result.exit_code == 2
        with ChronoStore(project) as store:
            assert store.get("REST").confidence == pytest.approx(0.3)

    def test_the_bridge(self, project: Path) -> None:
        with EsdbBridge(project) as bridge:
            bridge.record_counts()
            wanted = EsdbRecord(id="FACT", label="second", source_ids=["bridge"])

            def meanwhile(other: ChronoStore) -> None:
                record = other.get("FACT")
                record.epistemic_boundary = ["adults"]
                other.upsert(record)

            assert beside(project, lambda: bridge.upsert_record(wanted), meanwhile)
        with ChronoStore(project) as store:
            kept = store.get("FACT")
        assert (kept.label, kept.evidence, kept.epistemic_boundary) == ("second", ["bridge"], ["adults"])

    def test_an_edge_takes_no_other_edges_place(self, project: Path) -> None:
        # Both ask for the record EDGE-A-B-C-supports.
        with ChronoStore(project, lock_timeout=PATIENCE_SECONDS) as store:
            graph = DepGraph.from_store(store)
            beside(
                project,
                lambda: graph.add_edge("A-B", "C", "supports"),
                lambda other: DepGraph(other).add_edge("A", "B-C", "supports"),
            )
            ends = {(edge.from_id, edge.to_id) for edge in DepGraph.from_store(store).edges()}
        assert ends >= {("A-B", "C"), ("A", "B-C")}

    def test_migrate_writes_over_nothing_that_came_meanwhile(self, project: Path) -> None:
        source = project / ".specsmith"
        source.mkdir()
        (source / "requirements.json").write_text(json.dumps([{"id": "REQ", "title": "Same"}]))
        with ChronoStore(project, lock_timeout=PATIENCE_SECONDS) as store:
            store.record_count()
            told = beside(
                project,
                lambda: store.migrate_from_json(source),
                lambda other: other.upsert(ChronoRecord(id="REQ", label="Same", evidence=["reviewed"])),
            )
            assert told == {"requirements": 0, "testcases": 0, "skipped": 1}
            assert store.get("REQ").evidence == ["reviewed"]

    def test_blocks(self, project: Path) -> None:
        with ExitStack() as open_ones:
            blocks = open_ones.enter_context(open_blocks(project, lock_timeout=PATIENCE_SECONDS))
            with blocks.begin() as conn:
                sync.insert_block(conn, block_id="a", content="a", category="c", source="s")

            def meanwhile(other: ChronoStore) -> None:
                with open_blocks(other).begin() as conn:
                    sync.reinforce_blocks(conn, ["a"], 1.0)

            beside(
                project,
                lambda: blocks.run(lambda conn: sync.reinforce_blocks(conn, ["a"], 2.0)),
                meanwhile,
            )
            with blocks.connect() as conn:
                assert sync.get_block(conn, "a")["reinforcement_count"] == 2

    def test_what_was_not_read_is_no_conflict(self, project: Path) -> None:
        calls = []
        with ChronoStore(project, lock_timeout=PATIENCE_SECONDS) as store:
            store.record_count()

            def change(record: ChronoRecord | None) -> ChronoRecord | None:
                calls.append(record)
                return record

            beside(project, lambda: store.update("FACT", change), lambda other: other.upsert({"id": "X"}))
        assert len(calls) == 1


class TestWhatTheLogMayHaveBecome:
    """The head tells whether a log goes on from what was read; a seq does not."""

    def changed(self, store: ChronoStore, meanwhile: Callable[[], Any]) -> list[str]:
        """Return what a change was made from, each time it was made."""
        seen: list[str] = []

        def change(record: ChronoRecord | None) -> ChronoRecord:
            record = record or ChronoRecord(id="FACT")
            seen.append(record.label)
            if len(seen) == 1:
                meanwhile()
            record.evidence = ["changed"]
            return record

        store.update("FACT", change)
        assert store.get("FACT").label == seen[-1]
        assert store.get("FACT").evidence == ["changed"]
        return seen

    def test_a_restore_and_enough_other_events(self, tmp_path: Path) -> None:
        with ChronoStore(tmp_path) as store, ChronoStore(tmp_path) as other:
            store.upsert({"id": "FACT", "label": "old"})
            saved = store.backup()
            store.upsert({"id": "FACT", "label": "new"})

            def restore() -> None:
                other.upkeep.restore(saved)
                for number in range(10):
                    other.upsert({"id": f"N-{number}"})

            assert self.changed(store, restore) == ["new", "old"]

    def test_blocks_too(self, tmp_path: Path) -> None:
        with open_blocks(tmp_path) as blocks, ChronoStore(tmp_path) as other:
            with blocks.begin() as conn:
                sync.insert_block(conn, block_id="a", content="a", category="c", source="s")
            saved = other.backup()
            blocks.run(lambda conn: sync.reinforce_blocks(conn, ["a"], 1.0))
            with pytest.raises(BatchConflict), blocks.begin() as conn:
                sync.reinforce_blocks(conn, ["a"], 1.0)
                other.upkeep.restore(saved)
                for number in range(10):
                    other.upsert({"id": f"N-{number}"})
            with blocks.connect() as conn:
                assert sync.get_block(conn, "a")["reinforcement_count"] == 0

    def test_a_restore_of_what_was_read_changes_nothing(self, tmp_path: Path) -> None:
        with ChronoStore(tmp_path) as store, ChronoStore(tmp_path) as other:
            store.upsert({"id": "FACT", "label": "old"})
            saved = store.backup()
            assert self.changed(store, lambda: other.upkeep.restore(saved)) == ["old"]

    def test_a_compaction_at_this_head_is_no_conflict(self, tmp_path: Path) -> None:
        with ChronoStore(tmp_path) as store, ChronoStore(tmp_path) as other:
            store.upsert({"id": "FACT", "label": "old"})

            def compact() -> None:
                other.compact()
                other.upsert({"id": "X"})

            assert self.changed(store, compact) == ["old"]

    @pytest.mark.parametrize("keep_history", [True, False])
    def test_a_compaction_later_on_is_a_conflict_once(self, tmp_path: Path, keep_history: bool) -> None:
        with ChronoStore(tmp_path) as store, ChronoStore(tmp_path) as other:
            store.upsert({"id": "FACT", "label": "old"})

            def compact() -> None:
                other.upsert({"id": "FACT", "label": "new"})
                other.compact(keep_history=keep_history)
                other.upsert({"id": "X"})

            assert self.changed(store, compact) == ["old", "new"]

    def test_a_log_that_was_begun_meanwhile(self, tmp_path: Path) -> None:
        with ChronoStore(tmp_path) as store, ChronoStore(tmp_path) as other:
            assert self.changed(store, lambda: other.upsert({"id": "X"})) == [""]

        def begin() -> None:
            with ChronoStore(tmp_path / "b") as second:
                second.upsert({"id": "FACT", "label": "new"})
                second.compact()

        with ChronoStore(tmp_path / "b") as store:
            store.record_count()
            assert self.changed(store, begin) == ["", "new"]


class TestUpdate:
    def test_nothing_is_written_for_none(self, store: ChronoStore) -> None:
        assert store.update("A", lambda record: None) is None
        assert store.wal_seq() == 0

    def test_what_the_change_raises_is_raised_and_nothing_written(self, store: ChronoStore) -> None:
        with pytest.raises(ZeroDivisionError):
            store.update("A", lambda record: 1 / 0)
        assert store.wal_seq() == 0

    def test_another_record_is_not_written_over(self, store: ChronoStore) -> None:
        store.upsert({"id": "B", "label": "its own"})
        for made in (ChronoRecord(id="B"), {"id": "B"}):
            with pytest.raises(InvalidArgument, match="'B' of \"A\""):
                store.update("A", lambda record, made=made: made)
        assert store.get("B").label == "its own"


def _count_up(project: Path, name: str, times: int, errors: Any) -> None:
    """Count one record up, and invalidate, in competition with other processes."""

    def change(record: ChronoRecord | None) -> ChronoRecord:
        record = record or ChronoRecord(id="COUNTER")
        record.data = {**record.data, name: record.data.get(name, 0) + 1}
        record.data["all"] = record.data.get("all", 0) + 1
        return record

    try:
        with ChronoStore(project, lock_timeout=60) as store:
            for number in range(times):
                store.update("COUNTER", change)
                if number % 5 == 0:
                    store.invalidate("COUNTER", f"{name} {number}")
    except BaseException as error:
        errors.put(f"{type(error).__name__}: {error}")
        raise


def test_of_two_processes_every_update_is_there(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    errors = context.Queue()
    names = ("one", "two")
    counting = [context.Process(target=_count_up, args=(tmp_path, name, 100, errors)) for name in names]
    for process in counting:
        process.start()
    for process in counting:
        process.join(120)
    assert [process.exitcode for process in counting] == [0, 0], errors.get() if not errors.empty() else ""
    with ChronoStore(tmp_path) as store:
        assert store.get("COUNTER").data == {"one": 100, "two": 100, "all": 200}
        assert store.chain_valid()
