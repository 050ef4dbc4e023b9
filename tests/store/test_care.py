"""Compaction, snapshots, backups and restoring keep every record and the evidence."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from chronomemory import ChronoError, ChronoRecord, ChronoStore
from chronomemory.errors import HistoryUnavailable

Contents = Callable[[Path], "dict[str, bytes]"]


def ids(records: list[ChronoRecord]) -> list[str]:
    return [record.id for record in records]


def test_compaction_keeps_state_evidence_and_count(store: ChronoStore, log: Path) -> None:
    for number in range(3):
        store.upsert(ChronoRecord(id=f"R-{number}"))
    store.delete("R-0")
    before = store.query(status="")
    head = store.health().head
    assert store.compact() == 4
    assert log.read_bytes().count(b"\n") == 1
    assert store.query(status="") == before
    assert store.chain_valid()
    event = store.upsert(ChronoRecord(id="next"))
    (sentinel,) = (event for event in store.replay() if event.op == "compact")
    assert sentinel.record is not None
    assert sentinel.record["data"]["previous_head"] == head
    assert event.prev_hash == sentinel.hash
    store.close()
    assert store.query(status="") == [*before, ChronoRecord(id="next")]
    assert store.verify().base == "anchored"


def test_a_changed_base_is_damage(store: ChronoStore) -> None:
    store.upsert(ChronoRecord(id="A", label="original"))
    store.compact()
    (base,) = (store.project_root / ".chronomemory" / "base").iterdir()
    base.write_bytes(base.read_bytes().replace(b"original", b"forgery!"))
    assert store.chain_valid() is False
    assert [item.kind for item in store.verify().damage] == ["base-altered"]


def test_a_lost_snapshot_loses_nothing(store: ChronoStore) -> None:
    for number in range(60):
        store.upsert(ChronoRecord(id=f"R-{number}"))
    store.close()
    snapshot = store.project_root / ".chronomemory" / "snapshot.json"
    assert set(json.loads(snapshot.read_text("utf-8"))) == {"seq", "last_hash", "ts", "records"}
    for garbage in (b"", b"{half", b"[]", None):
        snapshot.unlink()
        if garbage is not None:
            snapshot.write_bytes(garbage)
        assert store.record_count() == 60
        assert store.chain_valid()
        store.close()
        snapshot.touch()


def test_a_backup_is_a_store_and_can_be_restored(store: ChronoStore, tmp_path: Path) -> None:
    store.upsert(ChronoRecord(id="A"))
    store.compact()
    store.upsert(ChronoRecord(id="B"))
    first, second = store.backup(), store.backup()
    assert first != second
    assert re.fullmatch(r"\d{8}T\d{6}.*", first.name)
    assert first.parent == store.project_root / ".chronomemory" / "backup"
    assert not (second / "backup").exists()
    shutil.copytree(first, tmp_path / "elsewhere" / ".chronomemory")
    with ChronoStore(tmp_path / "elsewhere") as copy:
        assert ids(copy.query()) == ["A", "B"]
        assert copy.chain_valid()
    store.delete("A")
    store.upsert(ChronoRecord(id="C"))
    store.upkeep.restore(first)
    assert ids(store.query()) == ["A", "B"]
    assert store.chain_valid()
    store.upsert(ChronoRecord(id="D"))
    store.close()
    assert ids(store.query()) == ["A", "B", "D"]
    assert store.chain_valid()


def test_restoring_from_nowhere_changes_nothing(
    store: ChronoStore, tmp_path: Path, contents: Contents
) -> None:
    store.upsert(ChronoRecord(id="A"))
    store.close()
    before = contents(tmp_path)
    with pytest.raises((OSError, ChronoError)):
        store.upkeep.restore(tmp_path / "nowhere")
    assert contents(tmp_path) == before
    assert ids(store.query()) == ["A"]


@pytest.mark.parametrize("at_a_line", [True, False])
def test_a_backup_that_was_cut_off_is_refused(store: ChronoStore, at_a_line: bool) -> None:
    for number in range(20):
        store.upsert(ChronoRecord(id=f"R-{number}"))
    copy = store.backup()
    log = copy / "events.wal"
    text = log.read_bytes()
    end = text.index(b"\n", len(text) // 2) + 1
    log.write_bytes(text[: end if at_a_line else end + 50])
    with pytest.raises(ChronoError):
        store.upkeep.restore(copy)
    assert store.record_count() == 20


def test_what_changed_is_told_across_compactions(store: ChronoStore) -> None:
    told = [[store.upsert(ChronoRecord(id="A")).seq], [store.upsert(ChronoRecord(id="B")).seq]]
    store.upsert_many([ChronoRecord(id="C"), ChronoRecord(id="A")])
    store.compact()
    store.upsert(ChronoRecord(id="D"))
    store.delete("B")
    store.compact()
    assert store.changed_since(told[1][0]) == ["B", "C", "A", "D"]
    assert store.changed_since(told[1][0] + 1) == ["C", "A", "D"]
    assert store.changed_since(store.wal_seq() + 1) == []
    store.upsert(ChronoRecord(id="E"))
    assert store.changed_since(told[0][0]) == ["A", "B", "C", "D", "E"]
    store.compact(keep_history=False)
    last = store.wal_seq()
    with pytest.raises(HistoryUnavailable):
        store.changed_since(told[0][0])
    store.upsert(ChronoRecord(id="F"))
    assert store.changed_since(last) == ["F"]


def test_a_lost_archive_is_not_taken_for_an_empty_past(store: ChronoStore) -> None:
    store.upsert(ChronoRecord(id="A"))
    store.compact()
    assert len(store.history("A")) == 1
    store.close()
    shutil.rmtree(store.project_root / ".chronomemory" / "archive")
    for ask in (lambda: store.history("A"), lambda: store.changed_since(1)):
        with pytest.raises(HistoryUnavailable):
            ask()


def test_a_backup_of_an_empty_store_is_refused_by_name(tmp_path: Path) -> None:
    """There is nothing in it to go back to, which is no reason to look for a file that never was."""
    with ChronoStore(tmp_path) as store:
        empty = store.backup()
        store.upsert({"id": "kept", "label": "true"})
        with pytest.raises(ChronoError, match="had no event"):
            store.upkeep.restore(empty)
        assert store.get("kept").label == "true"
