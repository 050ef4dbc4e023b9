"""What happens to a store after damage, rough handling and odd requests."""

from __future__ import annotations

import copy
import json
import os
import shutil
import threading
import time
from pathlib import Path

import pytest
from chronomemory import ChronoRecord, ChronoStore, _core
from chronomemory.errors import HistoryUnavailable, LogCorrupted, StoreClosed
from chronomemory.query import why_do_we_believe

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def log_of(project: Path) -> Path:
    return project / ".chronomemory" / "events.wal"


def cut_batch(project: Path, size: int, kept: int, behind: bytes = b"") -> None:
    """A store whose last batch lost its end."""
    with ChronoStore(project) as store:
        store.upsert({"id": "A"})
        store.upsert_many([{"id": f"B{n}"} for n in range(size)])
    lines = log_of(project).read_bytes().splitlines(keepends=True)
    log_of(project).write_bytes(b"".join(lines[: 2 + kept]) + behind)


@pytest.mark.parametrize(
    ("size", "kept", "behind"), [(1000, 1, b"x\n"), (3, 1, b""), (3, 2, b"{\n"), (5, 0, b"")]
)
def test_nothing_is_written_behind_a_broken_batch_before_a_repair(
    tmp_path: Path, size: int, kept: int, behind: bytes
) -> None:
    cut_batch(tmp_path, size, kept, behind)
    with ChronoStore(tmp_path) as store:
        with pytest.raises(LogCorrupted, match="before a repair"):
            store.upsert({"id": "N"})
        assert {record.id for record in store.query()} == {"A"}
        assert "broken-batch" in [damage.kind for damage in store.verify().damage]
        # The batch was whole once: what is left of it is proved, and what is not is named.
        told = store.upkeep.repair()
        assert {record.id for record in store.query()} == {"A"} | {f"B{n}" for n in range(kept)}
        assert told["lost"]
        store.upsert({"id": "N"})
        assert store.verify().valid


def test_a_progress_callback_cannot_use_a_store_that_is_being_written(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"id": "A"}\n')
    with ChronoStore(tmp_path) as store:
        with pytest.raises(RuntimeError, match="progress callback"):
            store.ingest(rows, progress=lambda done, total: store.record_count())
        assert store.record_count() == 1


def test_a_progress_callback_may_use_a_store_that_is_being_compacted(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "A"})
        counts: list[int] = []
        store.compact(progress=lambda done, total: counts.append(store.record_count()))
        assert counts and set(counts) == {1}


def test_a_progress_callback_that_raises_cancels_nothing(tmp_path: Path) -> None:
    def fail(done: int, total: int) -> None:
        raise KeyError("stop")

    first, second = tmp_path / "first.ndjson", tmp_path / "second.ndjson"
    first.write_text("".join(f'{{"id": "R{number}"}}\n' for number in range(5_000)))
    second.write_text('{"id": "LATER"}\n')
    with ChronoStore(tmp_path) as store:
        with pytest.raises(KeyError, match="stop"):
            store.ingest([first, second], progress=fail)
        assert (store.record_count(), store.get("LATER")) == (5_000, None)
        with pytest.raises(KeyError, match="stop"):
            store.backup(progress=fail)
        (backup,) = (tmp_path / ".chronomemory/backup").iterdir()
        with pytest.raises(KeyError, match="stop"):
            store.compact(keep_history=False, progress=fail)
        assert [event.op for event in store.replay()] == ["compact"]
        with pytest.raises(KeyError, match="stop"):
            store.upkeep.restore(backup, progress=fail)
        assert (store.record_count(), store.verify().valid) == (5_000, True)
        assert store.replay()[0].op != "compact"


def test_other_threads_may_use_a_store_that_reports_progress(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert_many([{"id": f"R{number}"} for number in range(500)])
        counts: list[int] = []
        reader = threading.Thread(target=lambda: counts.append(store.record_count()))
        store.compact(progress=lambda done, total: None if reader.ident else reader.start())
        reader.join()
        assert counts == [500]


def compacted_thrice(project: Path) -> tuple[Path, Path]:
    """An older base that is kept, packed, and the newest."""
    with ChronoStore(project) as store:
        for label in ("one", "two", "three"):
            # More than a base is long: else the events before stand in for it.
            for number in range(60):
                store.upsert({"id": "A", "label": f"{label} {number}"})
            store.compact()
    folder = project / ".chronomemory" / "base"
    (older,), (newest,) = folder.glob("*.json.zst"), folder.glob("*.json")
    return older, newest


def test_an_edited_older_base_is_found(tmp_path: Path) -> None:
    older, _ = compacted_thrice(tmp_path)
    packed = bytearray(older.read_bytes())
    packed[len(packed) // 2] ^= 1
    older.write_bytes(packed)
    found = ChronoStore(tmp_path).verify().damage
    assert [(damage.kind, damage.path) for damage in found] == [("base-altered", f"base/{older.name}")]


def test_an_older_base_is_missed_only_where_nothing_adds_up_to_it(tmp_path: Path) -> None:
    older, _ = compacted_thrice(tmp_path)
    older.unlink()
    report = ChronoStore(tmp_path).verify()
    assert report.valid and not report.notes
    with ChronoStore(tmp_path) as store:
        then = store.as_of(70).get("A")
        assert then is not None and then.label.startswith("two")
    first = next((tmp_path / ".chronomemory" / "archive").glob("1-*"))
    first.unlink()
    report = ChronoStore(tmp_path).verify()
    assert report.valid and any("history unavailable" in note for note in report.notes)


def test_history_can_be_dropped_from_a_store_that_is_compact_already(tmp_path: Path) -> None:
    compacted_thrice(tmp_path)
    with ChronoStore(tmp_path) as store:
        assert store.as_of(1).get("A") is not None
        store.compact(keep_history=False)
        assert list((tmp_path / ".chronomemory" / "archive").iterdir()) == []
        with pytest.raises(HistoryUnavailable) as refusal:
            store.as_of(1)
        assert store.as_of(refusal.value.first_seq).get("A") == store.get("A")
        assert store.chain_valid()


def test_a_damaged_archive_can_be_repaired_and_is_kept(tmp_path: Path) -> None:
    compacted_thrice(tmp_path)
    archive = sorted((tmp_path / ".chronomemory" / "archive").iterdir())[-1]
    archive.write_bytes(archive.read_bytes() + b"x")
    with ChronoStore(tmp_path) as store:
        assert not store.chain_valid()
        assert [damage["kind"] for damage in store.upkeep.repair()["damage"]] == ["archive-altered"]
        assert store.chain_valid()
        assert store.as_of(store.wal_seq()).get("A") is not None
    (kept,) = (tmp_path / ".chronomemory" / "quarantine").rglob(archive.name)
    assert kept.read_bytes().endswith(b"x")


def test_a_restored_store_knows_its_own_end(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "A"})
        saved = store.backup()
        for number in range(5):
            store.upsert({"id": f"B{number}"})
        store.upkeep.restore(saved)
        assert store.verify().notes == ()
    with log_of(tmp_path).open("ab") as log:
        log.write(b'{"hash":"0123')
    report = ChronoStore(tmp_path).verify()
    assert report.valid
    assert report.tail is not None


def test_the_past_is_not_told_without_its_base(tmp_path: Path) -> None:
    _, newest = compacted_thrice(tmp_path)
    newest.unlink()
    with ChronoStore(tmp_path) as store:
        assert store.get("A") is None
        # What the archives add up to is the base of the past.
        assert store.as_of(store.wal_seq()).get("A") is not None
        for archive in (tmp_path / ".chronomemory" / "archive").iterdir():
            archive.unlink()
        with pytest.raises(LogCorrupted, match=newest.name):
            store.as_of(store.wal_seq())


def test_an_exclusive_store_overwrites_nothing_if_its_lock_is_taken_away(tmp_path: Path) -> None:
    with ChronoStore(tmp_path, exclusive=True) as holder:
        holder.upsert({"id": "A"})
        (tmp_path / ".chronomemory" / "lock").unlink()
        with ChronoStore(tmp_path) as other:
            other.upsert({"id": "B"})
        with pytest.raises(OSError, match="held the lock"):
            holder.upsert({"id": "C"})
    with ChronoStore(tmp_path) as store:
        assert {record.id for record in store.query()} == {"A", "B"}
        assert store.chain_valid()


def test_evidence_that_names_nothing_is_passed_over(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert(ChronoRecord(id="A", evidence=[{"page": 3}, "B", 7]))
        store.upsert(ChronoRecord(id="B"))
        assert [record.id for record in why_do_we_believe(store, "A")] == ["A", "B"]


def test_a_pipe_is_refused_as_a_source(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with ChronoStore(tmp_path) as store, pytest.raises(OSError, match="regular file"):
        store.ingest(tmp_path / "pipe")


def test_a_store_is_neither_copied_nor_given_a_negative_depth(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store, pytest.raises(TypeError, match="copied"):
        copy.copy(store)
    with pytest.raises(ValueError, match="recursion_depth"):
        ChronoStore(tmp_path, recursion_depth=-1).open()


def test_a_snapshot_that_was_refused_is_not_replaced_by_less(tmp_path: Path) -> None:
    folder = tmp_path / ".chronomemory"
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "A"})
    log = [json.loads(line) for line in log_of(tmp_path).read_bytes().splitlines()]
    log[0]["op"] = "compact"
    log[0]["hash"] = _core.event_hash(log[0])
    log_of(tmp_path).write_text(json.dumps(log[0]) + "\n")
    garbage = b'{"seq": 0, "records": ['
    (folder / "snapshot.json").write_bytes(garbage)
    with ChronoStore(tmp_path) as store:
        with pytest.raises(LogCorrupted, match="nothing is written"):
            store.upsert({"id": "N"})
        assert (folder / "snapshot.json").read_bytes() == garbage
        assert not store.chain_valid()
        with pytest.raises(LogCorrupted):
            store.upkeep.repair()
        store.upkeep.repair(unproven=True)
        assert store.chain_valid()
    kept = [path.read_bytes() for path in (folder / "quarantine").rglob("*") if path.is_file()]
    assert garbage in kept


def test_a_compaction_behind_a_damaged_archive_deletes_nothing(tmp_path: Path) -> None:
    compacted_thrice(tmp_path)
    folder = tmp_path / ".chronomemory"
    newest = max((folder / "archive").iterdir(), key=lambda path: int(path.name.split("-")[0]))
    newest.write_bytes(b"#" + newest.read_bytes()[1:])
    before = {path.name for path in (folder / "archive").iterdir()}
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "B"})
        store.compact()
    assert before < {path.name for path in (folder / "archive").iterdir()}


def test_two_restores_in_one_second_keep_both_logs(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "A"})
        saved = store.backup()
        store.upsert({"id": "B"})
        store.upkeep.restore(saved)
        store.upsert({"id": "C"})
        store.upkeep.restore(saved)
    kept = [path.read_bytes() for path in (tmp_path / ".chronomemory" / "quarantine").rglob("events.wal")]
    assert any(b'"id":"B"' in log for log in kept)
    assert any(b'"id":"C"' in log for log in kept)


def test_an_exclusive_store_notices_that_its_log_was_replaced(tmp_path: Path) -> None:
    with ChronoStore(tmp_path, exclusive=True) as store:
        store.upsert(ChronoRecord(id="A"))
        log = log_of(tmp_path)
        shutil.copy(log, log.with_suffix(".copy"))
        log.with_suffix(".copy").rename(log)
        time.sleep(0.01)
        with pytest.raises(OSError, match="reopen"):
            store.upsert(ChronoRecord(id="B"))
    with ChronoStore(tmp_path) as store:
        assert [record.id for record in store.query()] == ["A"]


def test_a_store_that_another_thread_closes_at_once_is_used_or_closed(tmp_path: Path) -> None:
    class Racing(ChronoStore):
        def _opened(self) -> _core.Engine:
            engine = super()._opened()
            self.close()  # as another thread may, just then
            return engine

    with pytest.raises(StoreClosed):
        Racing(tmp_path).upsert(ChronoRecord(id="A"))
