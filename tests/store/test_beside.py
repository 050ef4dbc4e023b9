"""Readers and writers go on while a store is compacted, backed up and restored, and nothing is lost."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from chronomemory import ChronoStore
from chronomemory.errors import LogCorrupted, StoreLocked
from shares import share

WRITERS = 3


@contextmanager
def threads(*targets: Callable[[threading.Event], None]) -> Iterator[list[BaseException]]:
    """Run functions until the body is done; what they raise is handed back."""
    stop, raised = threading.Event(), list[BaseException]()

    def guarded(target: Callable[[threading.Event], None]) -> None:
        try:
            target(stop)
        except BaseException as error:
            raised.append(error)

    running = [threading.Thread(target=guarded, args=(target,)) for target in targets]
    for thread in running:
        thread.start()
    try:
        yield raised
    finally:
        stop.set()
        for thread in running:
            thread.join()


class Writer:
    """Counts one record up, and puts new ones beside it; remembers what was acknowledged."""

    def __init__(self, store: ChronoStore, name: str) -> None:
        self.store, self.name, self.count = store, name, 0

    def __call__(self, stop: threading.Event) -> None:
        while not stop.is_set():
            number = self.count + 1
            self.store.upsert({"id": f"{self.name}-counter", "label": str(number)})
            self.store.upsert_many([{"id": f"{self.name}-{number}"}, {"id": f"{self.name}-{number}-twin"}])
            self.count = number
            stop.wait(0.001)


class Reader:
    """What it reads never goes back."""

    def __init__(self, store: ChronoStore, names: list[str]) -> None:
        self.store, self.names, self.reads = store, names, 0

    def __call__(self, stop: threading.Event) -> None:
        last = dict.fromkeys(self.names, 0)
        while not stop.is_set():
            for name in self.names:
                record = self.store.get(f"{name}-counter")
                number = int(record.label) if record else 0
                assert number >= last[name], f"{name} went back from {last[name]} to {number}"
                if number > 1:
                    assert self.store.get(f"{name}-{number - 1}-twin") is not None
                last[name] = number
            self.reads += 1


def assert_complete(project: Path, writers: list[Writer]) -> None:
    with ChronoStore(project, strict=True) as store:
        report = store.verify()
        assert report.valid and report.tail is None, report
        for writer in writers:
            counter = store.get(f"{writer.name}-counter")
            assert counter is not None and int(counter.label) >= writer.count
            labels = [int(event.record["label"]) for event in store.history(counter.id)]
            assert labels == list(range(1, int(counter.label) + 1)), "each event once, in order"
            for number in range(1, writer.count + 1):
                assert store.get(f"{writer.name}-{number}") is not None
                assert store.get(f"{writer.name}-{number}-twin") is not None


@pytest.mark.parametrize("durability", ["full", "normal", "off"])
def test_threads_go_on_while_their_store_is_compacted_and_backed_up(tmp_path: Path, durability: str) -> None:
    with ChronoStore(tmp_path, durability=durability) as store:
        store.upsert_many([{"id": f"old-{number}", "label": "x" * 200} for number in range(6_000)])
        writers = [Writer(store, f"W{number}") for number in range(WRITERS)]
        reader = Reader(store, [writer.name for writer in writers])
        backups: list[tuple[Path, int]] = []
        with threads(*writers, reader) as raised:
            for _ in range(3):
                before = writers[0].count
                assert store.compact() > 0
                backups.append((store.backup(), before))
        assert raised == []
        assert all(writer.count > 0 for writer in writers) and reader.reads > 0
    assert_complete(tmp_path, writers)
    for folder, before in backups:
        with ChronoStore(folder, strict=True) as copy:
            assert copy.verify().valid
            counter = copy.get("W0-counter")
            assert int(counter.label if counter else 0) >= before


def test_stores_that_are_open_twice_follow_a_compaction(tmp_path: Path) -> None:
    """Two handles are two processes, as far as files and locks go."""
    with ChronoStore(tmp_path) as one, ChronoStore(tmp_path) as two:
        one.upsert_many([{"id": f"old-{number}", "label": "x" * 200} for number in range(5_000)])
        writers = [Writer(two, "T"), Writer(one, "O")]
        readers = [Reader(one, ["T", "O"]), Reader(two, ["T", "O"])]
        with threads(*writers, *readers) as raised:
            for round_ in range(6):
                (one if round_ % 2 else two).compact()
        assert raised == []
    assert_complete(tmp_path, writers)


def test_what_is_written_beside_a_restore_is_there_or_in_quarantine(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert_many([{"id": f"old-{number}"} for number in range(2_000)])
        backup = store.backup()
        writer = Writer(store, "W")
        with threads(writer) as raised:
            store.upkeep.restore(backup)
        assert raised == []
        assert store.verify().valid
        kept = [path.read_bytes() for path in (tmp_path / ".chronomemory" / "quarantine").rglob("events.wal")]
        everything = b"".join([*kept, (tmp_path / ".chronomemory" / "events.wal").read_bytes()])
        for number in range(1, writer.count + 1):
            assert f'"W-{number}-twin"'.encode() in everything


def test_a_second_long_task_waits_and_then_says_who_is_at_work(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as one, ChronoStore(tmp_path, lock_timeout=0.05) as two:
        one.upsert({"id": "A"})
        said: list[str] = []

        def meanwhile(done: int, total: int) -> None:
            if not said:
                with pytest.raises(StoreLocked) as refused:
                    two.backup()
                said.append(str(refused.value))
                two.upsert({"id": "B"})

        one.compact(progress=meanwhile)
        assert "process" in said[0] and "care.lock" in said[0]
        assert two.get("B") is not None
        assert two.backup().exists()


def compact_until(project: str, ready: multiprocessing.synchronize.Event) -> None:
    with ChronoStore(project) as store:
        ready.set()
        for number in range(1000):
            store.upsert({"id": "ticker", "label": str(number)})
            store.compact()
            store.backup()


def test_what_a_killed_task_leaves_behind_is_cleared_away(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert_many([{"id": f"old-{number}", "label": "x" * 200} for number in range(3_000)])
    context = multiprocessing.get_context("spawn")
    folder = tmp_path / ".chronomemory"
    for wait in (0.05, 0.12, 0.2, 0.27)[:: share(2, 1)]:
        ready = context.Event()
        process = context.Process(target=compact_until, args=(str(tmp_path), ready))
        process.start()
        assert ready.wait(60)
        process.join(wait)
        process.kill()
        process.join()
        with ChronoStore(tmp_path, strict=True) as store:
            assert store.verify().valid
            assert store.record_count() >= 3_000
            store.backup()
        assert [path for path in folder.rglob("*.tmp") if path.parent != folder] == []


def test_unfinished_files_are_removed_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / ".chronomemory"
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "A"})
        store.compact()
        backup = store.backup()
        before = {path for path in folder.rglob("*") if path.is_file()}
        for name in (
            "backup/20200101T000000.tmp/events.wal",
            f"backup/20200101T000000.tmp/base/{'ab' * 32}.json.tmp",
            "backup/20200101T000000.tmp/archive/1-2-0123456789abcdef.wal.zst",
            "base/new.json.tmp",
            "archive/new.wal.zst.tmp",
            "quarantine/20200101T000000-tail-at-7.tmp",
        ):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"unfinished")
        second = store.backup()
        after = {path for path in folder.rglob("*") if path.is_file() and second not in path.parents}
        assert after == before and backup != second
        assert not (folder / "backup" / "20200101T000000.tmp").exists()


def read_for_a_while(store: ChronoStore, name: str) -> None:
    """Read until the reader no longer looks at the path of the log at every call."""
    end = time.monotonic() + 0.05
    while time.monotonic() < end:
        store.get(name)


def test_a_busy_reader_sees_a_log_that_took_the_place_of_its_own(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as reader, ChronoStore(tmp_path, own_engine=True) as other:
        other.upsert({"id": "A", "label": "first"})
        backup = other.backup()
        other.upsert({"id": "B"})
        for _ in range(3):
            read_for_a_while(reader, "B")
            other.upkeep.compact()
            other.upsert({"id": "A", "label": "compacted"})
            assert reader["A"].label == "compacted"
            # The restore keeps the old log under another name, so its number of names does not change.
            read_for_a_while(reader, "B")
            other.upkeep.restore(backup)
            time.sleep(0.002)
            assert "B" not in reader and reader["A"].label == "first"
            other.upsert({"id": "B"})
            assert "B" in reader


def test_a_busy_reader_sees_that_its_log_was_moved_away(tmp_path: Path) -> None:
    with ChronoStore(tmp_path / "here") as reader:
        reader.upsert({"id": "A"})
        read_for_a_while(reader, "A")
        (tmp_path / "here").rename(tmp_path / "there")
        time.sleep(0.002)
        with pytest.raises(LogCorrupted):
            reader.get("A")
        (tmp_path / "there").rename(tmp_path / "here")
        assert reader.get("A") is not None
