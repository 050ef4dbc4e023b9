"""A program that watches over a store can tell how it is, and its log hears what it should."""

from __future__ import annotations

import importlib
import json
import logging
import subprocess
import sys
import threading
import warnings
from datetime import datetime, timezone
from pathlib import Path

import pytest
from chronomemory import ChronoStore, Memory
from chronomemory.health import Counters
from chronomemory.watching import LOGGER, watched

SECRET = "Ann has the flu"


def test_a_healthy_store_says_so(store: ChronoStore, log: Path) -> None:
    began = datetime.now(timezone.utc)
    store.upsert({"id": "A", "label": SECRET})
    store.upsert_many([{"id": "B"}, {"id": "C"}])
    store.sync()
    health = store.health()
    assert health.ok
    assert (health.rung, health.damaged_places, health.poisoned) == ("remembered", 0, None)
    assert (health.last_seq, health.head, health.records) == (4, store.health().head, 3)
    assert health.log_bytes == log.stat().st_size
    assert health.unsynced_bytes == 0
    assert health.synced_until is not None
    assert health.synced_until >= began.replace(microsecond=0)
    assert health.open_handles == 1
    assert (health.disk_free_bytes or 0) > 0
    assert health.indexes == 0
    assert json.loads(json.dumps(health.to_dict()))["counters"]["events"] == 4
    assert SECRET not in json.dumps(health.to_dict())


def test_an_empty_one_too(store: ChronoStore) -> None:
    health = store.health()
    assert health.ok
    assert (health.last_seq, health.head, health.records, health.log_bytes) == (0, "", 0, 0)
    assert health.synced_until is None
    assert health.text_index_seq is None


def test_what_is_not_on_disk_yet_is_told(tmp_path: Path) -> None:
    with ChronoStore(tmp_path, durability="off") as store:
        store.upsert({"id": "A"})
        store.upsert({"id": "B"})
        assert store.health().unsynced_bytes > 0
        store.sync()
        assert store.health().unsynced_bytes == 0


def test_damage_is_told_without_reading_the_log_again(tmp_path: Path, log: Path) -> None:
    with ChronoStore(tmp_path) as store:
        for number in range(4):
            store.upsert({"id": f"R{number}", "label": "original"})
    log.write_bytes(log.read_bytes().replace(b"original", b"forgery!", 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        store = ChronoStore(tmp_path).open()
    with store:
        health = store.health()
        assert not health.ok
        assert (health.rung, health.damaged_places) == ("corrupt", 1)


@pytest.mark.skipif(sys.platform != "linux", reason="counts what is read by /proc")
def test_it_reads_next_to_nothing(store: ChronoStore, log: Path) -> None:
    store.upsert_many({"id": f"R{number}", "label": "x" * 500} for number in range(2000))
    store.sync()

    def read() -> int:
        return int(Path("/proc/self/io").read_text().split("rchar: ")[1].split()[0])

    before = read()
    for _ in range(10):
        assert store.health().ok
    assert log.stat().st_size > 1_000_000
    assert read() - before < 200_000


@pytest.mark.shared_engines
def test_counters_count_what_all_have_done(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as one, ChronoStore(tmp_path) as two:
        assert one.health().counters == Counters()
        one.upsert({"id": "A"})
        two.upsert_many([{"id": "B"}, {"id": "C"}])
        one.search("tea")
        one.scoped(user="ann").search("tea")
        counted = two.health().counters
        assert (counted.commits, counted.events, counted.searches) == (2, 4, 2)
        assert counted.bytes == one.health().log_bytes
        assert two.health().open_handles == 2


@pytest.mark.skipif(sys.platform == "win32", reason="locks a file as POSIX does")
def test_a_wait_for_another_writer_is_counted(tmp_path: Path) -> None:
    fcntl = importlib.import_module("fcntl")
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "A"})
        assert store.health().counters.lock_waits == 0
    lock_file = tmp_path / ".chronomemory" / "lock"
    with lock_file.open("r+") as lock, ChronoStore(tmp_path, lock_timeout=60) as store:
        fcntl.flock(lock, fcntl.LOCK_EX)
        release = threading.Timer(0.2, fcntl.flock, (lock, fcntl.LOCK_UN))
        release.start()
        store.upsert({"id": "B"})
        release.join()
        assert store.health().counters.lock_waits == 1
        assert "chronomemory_lock_waits_total 1" in store.health().counters.prometheus().splitlines()


def test_a_monitoring_system_can_read_them() -> None:
    lines = Counters(commits=3, bytes=70).prometheus({"store": 'a "b"\\\n'}).splitlines()
    assert "# TYPE chronomemory_commits_total counter" in lines
    assert 'chronomemory_commits_total{store="a \\"b\\"\\\\\\n"} 3' in lines
    assert "chronomemory_bytes_total 70" in Counters(bytes=70).prometheus().splitlines()


def test_damage_is_logged_at_every_opening(
    tmp_path: Path, log: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with ChronoStore(tmp_path) as store:
        for number in range(4):
            store.upsert({"id": f"R{number}", "label": SECRET})
    log.write_bytes(log.read_bytes().replace(b"Ann has", b"Bob has", 1))
    for _ in range(3):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ChronoStore(tmp_path).open().close()
    told = [record for record in caplog.records if "damage in events.wal" in record.getMessage()]
    assert len(told) == 3
    assert {record.levelno for record in told} == {logging.WARNING}
    assert {record.name for record in told} == {"chronomemory"}


def test_large_tasks_are_logged_and_contents_never(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="chronomemory")
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "SECRET-1", "label": SECRET})
        store.compact()
        store.backup()
        store.upkeep.repair()
        store.verify()
        store.search(SECRET)
        store.invalidate("SECRET-1", SECRET)
    told = caplog.text
    for task in ("compact", "backup", "repair", "verify"):
        assert f": {task} took " in told
    assert SECRET not in told
    assert "SECRET-1" not in told


def test_slow_questions_are_logged_and_not_what_was_asked(
    store: ChronoStore, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.upsert({"id": "A", "label": SECRET})
    store.vectors.attach("A", [1.0, 0.0], model="m")
    memory = Memory(store)
    memory.remember(SECRET)

    def ask() -> None:
        assert store.search(SECRET) and store.vectors.nearest([1.0, 0.0]) and memory.recall(SECRET)

    for slow, is_told in ((float("inf"), False), (0.0, True)):
        monkeypatch.setattr("chronomemory.watching.SLOW_SECONDS", slow)
        ask()
        for question in ("a search", "a question for neighbours", "a recall"):
            assert (f"slow: {question} took " in caplog.text) == is_told
    assert SECRET not in caplog.text


def test_what_is_slow_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chronomemory.watching.SLOW_SECONDS", 0.0)
    with watched("sync", tmp_path):
        pass
    assert "slow: sync took 0.00" in caplog.text
    caplog.set_level(logging.INFO, logger="chronomemory")
    with pytest.raises(ValueError, match="x"), watched("backup", tmp_path):
        raise ValueError("x")
    assert "backup failed after 0.00" in caplog.text
    assert any(isinstance(handler, logging.NullHandler) for handler in LOGGER.handlers)


def test_nothing_is_printed_unasked(tmp_path: Path, log: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "A", "label": "original"})
        store.upsert({"id": "B"})
    log.write_bytes(log.read_bytes().replace(b"original", b"forgery!", 1))
    script = "import sys, chronomemory; chronomemory.ChronoStore(sys.argv[1]).open().close()"
    quiet = [sys.executable, "-W", "ignore", "-c", script, str(tmp_path)]
    done = subprocess.run(quiet, capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")
