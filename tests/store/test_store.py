"""The store keeps, finds, hides and proves what it was told."""

from __future__ import annotations

import gc
import json
import warnings
from collections.abc import Callable
from pathlib import Path

import chronomemory
import pytest
from chronomemory import (
    ChronoRecord,
    ChronoStore,
    VerifyReport,
    open_store,
)

Contents = Callable[[Path], "dict[str, bytes]"]


def ids(records: list[ChronoRecord]) -> list[str]:
    return [record.id for record in records]


def test_everything_promised_is_at_the_root() -> None:
    promised = """ChronoStore ChronoRecord WalEvent open_store EsdbBridge EsdbRecord EsdbStatus
        DepGraph DependencyEdge RollbackReport invalidate ContextPack ContextPackCompiler
        ContextPackEntry query metrics VerifyReport"""
    for name in promised.split():
        assert name in chronomemory.__all__
        assert hasattr(chronomemory, name)


class TestLife:
    def test_a_store_that_is_only_read_leaves_no_trace(self, tmp_path: Path) -> None:
        with ChronoStore(tmp_path) as store:
            assert store.query() == []
            assert store.get("A") is None
            assert store.record_count() == store.wal_seq() == 0
            assert store.health().head == ""
            assert store.replay() == store.history("A") == []
            assert store.chain_valid()
        assert list(tmp_path.iterdir()) == []

    def test_verifying_an_unopened_store_opens_and_creates_nothing(self, tmp_path: Path) -> None:
        store = ChronoStore(tmp_path)
        assert store.chain_valid()
        assert store.verify() == VerifyReport()
        assert "closed" in repr(store)
        assert list(tmp_path.iterdir()) == []

    def test_the_first_call_opens_also_after_close(self, tmp_path: Path) -> None:
        store = ChronoStore(str(tmp_path))
        store.upsert(ChronoRecord(id="A"))
        assert "open" in repr(store)
        store.close()
        store.close()
        assert store.get("A") == ChronoRecord(id="A")
        assert store.open() is store.open() is store
        store.close()

    def test_open_store_hands_its_options_on(self, tmp_path: Path) -> None:
        with open_store(tmp_path, recursion_depth=3, durability="full") as store:
            store.upsert(ChronoRecord(id="A"))
            found = store.get("A")
        assert found is not None
        assert found.recursion_depth == 3

    def test_a_store_not_closed_warns_when_collected(self, tmp_path: Path) -> None:
        store = ChronoStore(tmp_path)
        store.upsert(ChronoRecord(id="A"))
        with pytest.warns(ResourceWarning, match="unclosed store"):
            del store
            gc.collect()
        with ChronoStore(tmp_path) as again:
            assert ids(again.query()) == ["A"]

    def test_a_store_never_opened_or_closed_does_not_warn(self, tmp_path: Path) -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ChronoStore(tmp_path)
            ChronoStore(tmp_path).open().close()
            gc.collect()
        assert caught == []

    @pytest.mark.parametrize("option", ["durability", "verify"])
    def test_an_unknown_mode_is_refused_at_once(self, tmp_path: Path, option: str) -> None:
        with pytest.raises(ValueError, match=option):
            ChronoStore(tmp_path, **{option: "sometimes"})  # type: ignore[arg-type]


class TestWriting:
    def test_last_write_wins_and_each_write_is_one_event(self, store: ChronoStore) -> None:
        first = store.upsert(ChronoRecord(id="A", label="old"))
        second = store.upsert(ChronoRecord(id="A", label="new"))
        assert (first.seq, second.seq) == (1, 2)
        assert second.prev_hash == first.hash
        assert store.query() == [ChronoRecord(id="A", label="new")]
        assert store.wal_seq() == 2
        assert store.health().head == second.hash

    def test_the_depth_of_the_store_is_stamped_on_the_record(self, tmp_path: Path) -> None:
        record = ChronoRecord(id="A", recursion_depth=9)
        with ChronoStore(tmp_path, recursion_depth=2) as store:
            event = store.upsert(record)
            store.upsert_many([{"id": "B", "recursion_depth": 9}])
            assert event.recursion_depth == record.recursion_depth == 2
            assert store.get("A") == record
            assert [found.recursion_depth for found in store.query()] == [2, 2]

    def test_a_batch_takes_records_and_dicts_and_returns_its_seqs(self, store: ChronoStore) -> None:
        store.upsert(ChronoRecord(id="first"))
        batch = (ChronoRecord(id="A"), {"id": "B", "label": "b"}, ChronoRecord(id="C"))
        seqs = store.upsert_many(record for record in batch)
        assert len(seqs) == 3
        assert store.wal_seq() == seqs[-1] == 5
        events = store.replay()
        assert [event.op for event in events] == ["upsert", "begin", *["upsert"] * 3]
        assert [event.record_id for event in events if event.seq in seqs] == ["A", "B", "C"]
        assert store.get("B") == ChronoRecord(id="B", label="b")

    def test_an_empty_batch_writes_nothing(self, store: ChronoStore, tmp_path: Path) -> None:
        assert len(store.upsert_many([])) == 0
        assert store.wal_seq() == 0
        assert store.chain_valid()

    def test_delete_leaves_a_tombstone(self, store: ChronoStore) -> None:
        store.upsert(ChronoRecord(id="A", label="kept", data={"x": 1}))
        event = store.delete("A")
        assert (event.op, event.seq) == ("delete", 2)
        found = store.get("A")
        assert found == ChronoRecord(id="A", label="kept", status="tombstone", data={"x": 1})
        assert store.query() == []
        assert ids(store.query(status="tombstone")) == ["A"]
        store.upsert(ChronoRecord(id="A"))
        assert ids(store.query()) == ["A"]

    def test_deleting_an_unknown_id_writes_an_event_and_shows_nothing(self, store: ChronoStore) -> None:
        assert store.delete("nobody").seq == store.wal_seq() == 1
        assert store.query(status=None) == []
        assert store.record_count() == 0
        assert store.chain_valid()

    def test_what_is_read_is_a_copy(self, store: ChronoStore) -> None:
        store.upsert(ChronoRecord(id="A", evidence=["x"], data={"deep": [1]}))
        for record in (store.get("A"), *store.query()):
            assert record is not None
            record.evidence.append("y")
            record.data["deep"].append(2)
            record.status = "invalidated"
        assert store.query() == [ChronoRecord(id="A", evidence=["x"], data={"deep": [1]})]


class TestIngest:
    def test_files_of_records_come_in_with_a_report(self, store: ChronoStore, tmp_path: Path) -> None:
        paths = []
        for name, numbers in (("one", range(5)), ("two", range(5, 8))):
            paths.append(tmp_path / f"{name}.ndjson")
            lines = (json.dumps({"id": f"R-{n}", "label": f"rëcord {n}"}) for n in numbers)
            paths[-1].write_text("\n".join(lines) + "\n", encoding="utf-8")
        calls: list[tuple[int, int]] = []
        report = store.ingest(paths, progress=lambda done, total: calls.append((done, total)))
        assert report.records == store.record_count() == 8
        assert report.last_seq == store.wal_seq()
        assert report.bytes == sum(path.stat().st_size for path in paths)
        assert report.to_dict()["files"] == [str(path) for path in paths]
        assert calls[-1] == (report.bytes, report.bytes)
        assert calls == sorted(calls)
        assert store.get("R-7") == ChronoRecord(id="R-7", label="rëcord 7")
        assert store.chain_valid()

    def test_one_path_is_enough_and_an_empty_file_is_fine(self, store: ChronoStore, tmp_path: Path) -> None:
        source = tmp_path / "none.ndjson"
        source.write_bytes(b"")
        report = store.ingest(str(source))
        assert (report.records, report.first_seq, report.last_seq) == (0, None, None)

    def test_a_missing_file_is_an_os_error(self, store: ChronoStore, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            store.ingest(tmp_path / "nowhere.ndjson")


class TestReading:
    @pytest.fixture
    def full(self, store: ChronoStore) -> ChronoStore:
        store.upsert_many(
            [
                ChronoRecord(id="F1", kind="fact", confidence=0.95),
                ChronoRecord(id="R1", kind="requirement", confidence=0.6),
                ChronoRecord(id="F2", kind="fact", confidence=0.59),
                ChronoRecord(id="D1", kind="decision", status="deprecated", confidence=0.9),
            ]
        )
        store.engine.upsert(ChronoRecord(id="block:1", kind="block", confidence=0.9), "blocks")
        return store

    def test_filters(self, full: ChronoStore) -> None:
        assert ids(full.query()) == ["F1", "R1", "F2"]
        assert ids(full.query(kind="fact")) == ["F1", "F2"]
        assert ids(full.query(rag_filter=True)) == ["F1", "R1"]
        assert ids(full.query(rag_filter=True, min_confidence=0.9)) == ["F1"]
        assert ids(full.query(rag_filter=True, min_confidence=0.1)) == ["F1", "R1"]
        assert ids(full.query(min_confidence=0.59)) == ["F1", "R1", "F2"]
        assert ids(full.query(limit=2)) == ["F1", "R1"]
        assert full.query(limit=0) == []
        assert ids(full.query(status="deprecated")) == ["D1"]
        assert ids(full.query(status="")) == ids(full.query(status=None)) == ["F1", "R1", "F2", "D1"]

    def test_records_of_other_faces_appear_only_when_asked_for(self, full: ChronoStore) -> None:
        assert ids(full.query(kind="block")) == ["block:1"]
        assert ids(full.query(faces=True)) == ["F1", "R1", "F2", "block:1"]
        assert full.record_count() == 3
        assert full.count(by="kind") == {"fact": 2, "requirement": 1}
        assert full.count(by="kind", status=None, faces=True) == {
            "fact": 2,
            "requirement": 1,
            "decision": 1,
            "block": 1,
        }

    def test_insertion_order_survives_updates_and_reopening(self, full: ChronoStore) -> None:
        full.upsert(ChronoRecord(id="F1", kind="fact", label="changed"))
        assert ids(full.query()) == ["F1", "R1", "F2"]
        full.close()
        assert ids(full.query()) == ["F1", "R1", "F2"]

    def test_export_gives_whole_records(self, full: ChronoStore) -> None:
        exported = full.export_records()
        assert [ChronoRecord.from_dict(fields) for fields in exported] == full.query()
        assert all(set(fields) == set(ChronoRecord().to_dict()) for fields in exported)
        assert len(full.export_records(status=None, faces=True)) == 5


def test_two_stores_on_one_project_see_each_other(store: ChronoStore, tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as other:
        store.upsert(ChronoRecord(id="A"))
        assert ids(other.query()) == ["A"]
        other.upsert(ChronoRecord(id="B"))
        assert ids(store.query()) == ["A", "B"]
        store.compact()
        other.upsert(ChronoRecord(id="C"))
        assert ids(store.query()) == ["A", "B", "C"]
    assert store.chain_valid()


def test_a_store_stays_where_it_is_when_the_process_goes_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with ChronoStore("project") as store:
        store.upsert({"id": "A"})
        monkeypatch.chdir(tmp_path / "elsewhere")
        store.upsert({"id": "B"})
        store.compact()
        store.close()
        assert [record.id for record in store.query()] == ["A", "B"]
    assert list((tmp_path / "elsewhere").iterdir()) == []
