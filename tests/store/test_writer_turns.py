"""A writer that lost a race holds the writer lock while it computes again, so it cannot lose twice."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoRecord, ChronoStore, Scope, StoreLocked
from chronomemory.blocks import open_blocks, sync
from chronomemory.errors import WriteConflict
from chronomemory.mcp import remembering
from chronomemory.mcp.served_store import ServedStore

PROCESSES, UPDATES, ADDITIONS = 4, 500, 60
SHORT_SECONDS, TURN_SECONDS, LONG_SECONDS = 0.05, 1.0, 60.0
SPAWNED = multiprocessing.get_context("spawn")

Change = Callable[[ChronoRecord | None], ChronoRecord]


def label(record: ChronoRecord | None, text: str) -> ChronoRecord:
    record = record or ChronoRecord(id="A")
    record.label = text
    return record


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ChronoStore]:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "A", "data": {"writes": 0}})
        yield store


@pytest.fixture
def other(store: ChronoStore) -> Iterator[ChronoStore]:
    """Another process, as far as the lock is concerned: an engine of its own."""
    with ChronoStore(store.project_root, own_engine=True, lock_timeout=SHORT_SECONDS) as other:
        other.record_count()
        yield other


def losing(other: ChronoStore, in_turn: Change) -> Change:
    """Return a change that loses its first race to ``other``; ``in_turn`` computes the second attempt."""
    calls: list[int] = []

    def change(record: ChronoRecord | None) -> ChronoRecord:
        calls.append(len(calls))
        assert len(calls) <= 2, "a third attempt"
        if len(calls) == 2:
            return in_turn(record)
        other.upsert({"id": "A", "label": "other"})
        return label(record, "lost")

    return change


class TestTheSecondAttempt:
    def test_succeeds_beside_a_writer_that_never_pauses(self, store: ChronoStore, tmp_path: Path) -> None:
        over = threading.Event()

        def write_always() -> None:
            with ChronoStore(tmp_path, own_engine=True, lock_timeout=LONG_SECONDS) as busy:
                while not over.is_set():
                    busy.upsert({"id": "A", "label": "busy"})

        def change(record: ChronoRecord | None) -> ChronoRecord:
            time.sleep(SHORT_SECONDS)
            return label(record, "mine")

        thread = threading.Thread(target=write_always)
        thread.start()
        try:
            began = time.monotonic()
            event = store.update("A", change)
            took = time.monotonic() - began
        finally:
            over.set()
            thread.join()
        assert event is not None
        assert took < 4.0

    def test_keeps_other_processes_from_writing(self, store: ChronoStore, other: ChronoStore) -> None:
        def in_turn(record: ChronoRecord | None) -> ChronoRecord:
            with pytest.raises(StoreLocked):
                other.upsert({"id": "B"})
            return label(record, "mine")

        store.update("A", losing(other, in_turn))
        assert other.get("A").label == "mine"
        other.upsert({"id": "B"})

    def test_of_a_batch_keeps_other_processes_from_writing(
        self, store: ChronoStore, other: ChronoStore
    ) -> None:
        blocks, attempts = open_blocks(store), []
        with blocks.begin() as conn:
            sync.insert_block(conn, block_id="a", content="a", category="c", source="s")

        def work(conn: Any) -> None:
            attempts.append(conn)
            sync.reinforce_blocks(conn, ["a"], 1.0)
            if len(attempts) == 1:
                open_blocks(other).run(lambda conn: sync.reinforce_blocks(conn, ["a"], 1.0))
            else:
                with pytest.raises(StoreLocked):
                    other.upsert({"id": "B"})

        blocks.run(work)
        with blocks.connect() as conn:
            assert sync.get_block(conn, "a")["reinforcement_count"] == 2
        assert len(attempts) == 2

    def test_may_write_other_records(self, store: ChronoStore, other: ChronoStore) -> None:
        def in_turn(record: ChronoRecord | None) -> ChronoRecord:
            store.upsert({"id": "B"})
            store.update("C", lambda _: ChronoRecord(id="C"))
            with pytest.raises(StoreLocked):
                other.upsert({"id": "D"})
            return label(record, "mine")

        store.update("A", losing(other, in_turn))
        assert [other.get(name) is not None for name in "BCD"] == [True, True, False]
        assert other.get("A").label == "mine"

    def test_that_writes_the_record_itself_is_refused(self, store: ChronoStore) -> None:
        def change(record: ChronoRecord | None) -> ChronoRecord:
            store.upsert({"id": "A", "label": "inside"})
            return label(record, "mine")

        with pytest.raises(WriteConflict, match="nothing was written") as refusal:
            store.update("A", change)
        assert refusal.value.recovery
        assert store.get("A").label == "inside"

    def test_that_raises_gives_the_lock_back(self, store: ChronoStore, other: ChronoStore) -> None:
        def in_turn(record: ChronoRecord | None) -> ChronoRecord:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            store.update("A", losing(other, in_turn))
        other.upsert({"id": "A", "label": "after"})
        assert store.get("A").label == "after"

    def test_waits_no_longer_than_the_lock_timeout_for_a_holder(self, tmp_path: Path) -> None:
        with ChronoStore(tmp_path, lock_timeout=SHORT_SECONDS) as store:
            store.upsert({"id": "A"})
            holders: list[ChronoStore] = []

            def change(record: ChronoRecord | None) -> ChronoRecord:
                holders.append(ChronoStore(tmp_path, own_engine=True, exclusive=True))
                holders[0].upsert({"id": "A", "label": "held"})
                return label(record, "mine")

            with pytest.raises(StoreLocked):
                store.update("A", change)
            holders[0].close()
            assert store.get("A").label == "held"


class TestAnAttemptThatTakesTooLong:
    def test_lets_other_processes_write_and_is_refused_if_they_did(
        self, store: ChronoStore, other: ChronoStore
    ) -> None:
        def in_turn(record: ChronoRecord | None) -> ChronoRecord:
            time.sleep(TURN_SECONDS + 0.5)
            other.upsert({"id": "A", "label": "later"})
            return label(record, "mine")

        with pytest.raises(WriteConflict):
            store.update("A", losing(other, in_turn))
        assert store.get("A").label == "later"

    def test_succeeds_if_nobody_changed_what_it_read(self, store: ChronoStore, other: ChronoStore) -> None:
        def in_turn(record: ChronoRecord | None) -> ChronoRecord:
            time.sleep(TURN_SECONDS + 0.5)
            other.upsert({"id": "B"})
            return label(record, "mine")

        store.update("A", losing(other, in_turn))
        assert (other.get("A").label, other.get("B") is not None) == ("mine", True)

    @pytest.mark.parametrize("exclusive", [False, True])
    def test_does_not_block_a_thread_that_it_waits_for(self, tmp_path: Path, exclusive: bool) -> None:
        with ChronoStore(tmp_path, exclusive=exclusive) as store:
            store.upsert({"id": "A"})
            calls: list[float] = []

            def change(record: ChronoRecord | None) -> ChronoRecord:
                calls.append(time.monotonic())
                if len(calls) == 1:
                    store.upsert({"id": "A", "label": "first"})
                else:
                    thread = threading.Thread(target=lambda: store.upsert({"id": "B"}))
                    thread.start()
                    thread.join()
                return label(record, "mine")

            store.update("A", change)
            assert TURN_SECONDS * 0.9 < time.monotonic() - calls[1] < 60
            assert (store.get("A").label, store.get("B") is not None) == ("mine", True)


def test_threads_of_one_process_take_turns(store: ChronoStore) -> None:
    def count_up() -> None:
        def change(record: ChronoRecord | None) -> ChronoRecord:
            assert record is not None
            record.data["writes"] += 1
            return record

        for number in range(100):
            store.update("A", change)
            store.upsert({"id": f"{threading.get_ident()}-{number}"})

    threads = [threading.Thread(target=count_up) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.get("A").data == {"writes": 400}


def hold_a_turn(project: Path, held: Any) -> None:
    with ChronoStore(project) as store, ChronoStore(project, own_engine=True) as other:

        def in_turn(record: ChronoRecord | None) -> ChronoRecord:
            held.set()
            time.sleep(LONG_SECONDS)
            raise AssertionError("it should have been killed")

        store.update("A", losing(other, in_turn))


def test_a_process_that_is_killed_in_its_turn_gives_the_lock_back(store: ChronoStore, tmp_path: Path) -> None:
    held = SPAWNED.Event()
    process = SPAWNED.Process(target=hold_a_turn, args=(tmp_path, held))
    process.start()
    assert held.wait(LONG_SECONDS)
    process.kill()
    process.join()
    store.upsert({"id": "A", "label": "after"})
    assert store.chain_valid()


def update_often(project: Path, name: str, refused: Any) -> None:
    def change(record: ChronoRecord | None) -> ChronoRecord:
        record = record or ChronoRecord(id="COUNTER")
        record.data = {**record.data, name: record.data.get(name, 0) + 1}
        return record

    with ChronoStore(project) as store:
        for _ in range(UPDATES):
            try:
                store.update("COUNTER", change)
            except Exception as error:
                refused.put(f"{type(error).__name__}: {error}")


def add_often(project: Path, name: str, refused: Any) -> None:
    with ChronoStore(project) as store:
        served = ServedStore(store, Scope(user="ann"))
        for number in range(ADDITIONS):
            try:
                remembering.add(
                    served,
                    f"{name} said statement {number}",
                    tags=[],
                    category="knowledge",
                    source="user",
                    confidence=0.5,
                    operation_id=f"{name}/{number}",
                )
            except Exception as error:
                refused.put(f"{type(error).__name__}: {error}")


def run_together(project: Path, work: Callable[[Path, str, Any], None]) -> list[str]:
    """Run the work in four processes and return their names; none of its calls may be refused."""
    names, refused = [f"process-{number}" for number in range(PROCESSES)], SPAWNED.Queue()
    processes = [SPAWNED.Process(target=work, args=(project, name, refused)) for name in names]
    for process in processes:
        process.start()
    for process in processes:
        process.join(300)
    assert refused.empty(), refused.get()
    assert [process.exitcode for process in processes] == [0] * PROCESSES
    return names


def test_of_four_processes_no_conditional_write_is_refused(tmp_path: Path) -> None:
    names = run_together(tmp_path, update_often)
    with ChronoStore(tmp_path) as store:
        assert store.get("COUNTER").data == dict.fromkeys(names, UPDATES)
        assert store.chain_valid()


def test_of_four_servers_no_memory_is_refused(tmp_path: Path) -> None:
    names = run_together(tmp_path, add_often)
    with ChronoStore(tmp_path) as store:
        blocks = store.scoped(user="ann").query(kind="block", status=None)
        wanted = {f"{name} said statement {number}" for name in names for number in range(ADDITIONS)}
        assert sorted(block.data["content"] for block in blocks) == sorted(wanted)
        assert store.chain_valid()
