"""The bridge reads a project with and without a log, and never takes a broken one for empty."""

from __future__ import annotations

import gc
import json
import warnings
from pathlib import Path

import pytest
from chronomemory import ChronoRecord, ChronoStore, EsdbBridge, EsdbRecord, EsdbStatus, LogCorrupted


@pytest.fixture
def with_json(tmp_path: Path) -> Path:
    source = tmp_path / ".specsmith"
    source.mkdir()
    requirements = [
        {"id": "REQ-1", "title": "First", "status": "implemented"},
        {"id": "REQ-2", "title": "Second", "confidence": 0.9},
        {"id": "REQ-3", "title": "Old", "status": "deprecated"},
    ]
    (source / "requirements.json").write_text(json.dumps(requirements), encoding="utf-8")
    testcases = [{"id": "TEST-1", "title": "Check"}]
    (source / "testcases.json").write_text(json.dumps(testcases), encoding="utf-8")
    return tmp_path


@pytest.fixture
def with_log(with_json: Path) -> Path:
    with ChronoStore(with_json) as store:
        store.migrate_from_json(with_json / ".specsmith")
        store.upsert(ChronoRecord(id="FACT", evidence=["REQ-1"], epistemic_boundary=["lab"]))
    return with_json


def test_defaults() -> None:
    assert EsdbRecord("X") == EsdbRecord("X", "fact", "active", 0.7, "", {}, [])
    assert EsdbRecord("X", data={"key": [1]}).to_dict() == {"key": [1]}
    assert EsdbRecord("X").to_dict()["id"] == "X"


class TestWithoutALog:
    def test_an_empty_project(self, tmp_path: Path) -> None:
        bridge = EsdbBridge(str(tmp_path))
        status = bridge.status()
        assert isinstance(status, EsdbStatus)
        assert status.available
        assert status.record_count == status.wal_seq == status.epoch == 0
        assert bridge.requirements() == bridge.testcases() == []
        assert list(tmp_path.iterdir()) == []

    def test_json_is_read_with_its_own_confidence(self, with_json: Path) -> None:
        bridge = EsdbBridge(with_json)
        first, second = bridge.requirements()
        assert first == EsdbRecord(
            "REQ-1",
            "requirement",
            "active",
            0.7,
            "First",
            {"id": "REQ-1", "title": "First", "status": "implemented"},
        )
        assert second.confidence == 0.9
        assert first.to_dict() == first.data
        assert [record.confidence for record in bridge.testcases()] == [1.0]
        assert bridge.record_counts() == {"requirements": 2, "testcases": 1}

    def test_the_status_says_it_is_the_fallback_and_how_to_upgrade(self, with_json: Path) -> None:
        status = EsdbBridge(with_json).status()
        assert status.to_dict() == {
            "available": True,
            "backend": status.backend,
            "record_count": 3,
            "wal_seq": 0,
            "epoch": 0,
            "chain_valid": True,
        }
        assert "JSON fallback" in status.backend
        assert "migrate" in status.backend

    def test_nothing_can_be_written(self, with_json: Path) -> None:
        bridge = EsdbBridge(with_json)
        assert bridge.upsert_record(EsdbRecord("X")) is False
        assert bridge.delete_record("REQ-1") is False
        assert not (with_json / ".chronomemory").exists()

    def test_an_unreadable_file_is_reported(self, with_json: Path) -> None:
        (with_json / ".specsmith" / "requirements.json").write_text("{", encoding="utf-8")
        bridge = EsdbBridge(with_json)
        assert "requirements.json" in bridge.status().backend
        with pytest.warns(RuntimeWarning, match=r"requirements\.json"):
            assert bridge.requirements() == []
        assert len(bridge.testcases()) == 1


class TestWithALog:
    def test_the_store_is_read_and_json_is_not(self, with_log: Path) -> None:
        (with_log / ".specsmith" / "requirements.json").unlink()
        with EsdbBridge(with_log) as bridge:
            assert [record.id for record in bridge.requirements()] == ["REQ-1", "REQ-2"]
            assert [record.label for record in bridge.testcases()] == ["Check"]
            assert bridge.record_counts() == {"requirement": 2, "testcase": 1, "fact": 1}
            status = bridge.status()
        assert status == EsdbStatus(True, "ChronoStore WAL", 4, 6, 0, True)
        with ChronoStore(with_log) as store:
            assert status.wal_seq == store.wal_seq()

    def test_writing_goes_through_and_keeps_provenance(self, with_log: Path) -> None:
        with EsdbBridge(with_log) as bridge:
            assert bridge.upsert_record(EsdbRecord("FACT", label="new", source_ids=["TEST-1"]))
            assert bridge.upsert_record(EsdbRecord("OTHER", kind="risk", data={"x": 1}))
            assert bridge.delete_record("REQ-1")
            assert [record.id for record in bridge.requirements()] == ["REQ-2"]
        with ChronoStore(with_log) as store:
            assert store.get("FACT") == ChronoRecord(
                id="FACT", label="new", evidence=["TEST-1"], epistemic_boundary=["lab"]
            )
            assert store.get("OTHER") == ChronoRecord(id="OTHER", kind="risk", data={"x": 1})

    def test_what_others_write_is_seen_at_once(self, with_log: Path) -> None:
        with EsdbBridge(with_log) as bridge, ChronoStore(with_log) as store:
            assert len(bridge.requirements()) == 2
            store.delete("REQ-1")
            assert len(bridge.requirements()) == 1

    def test_the_epoch_is_the_seq_compacted_up_to(self, with_log: Path) -> None:
        with ChronoStore(with_log) as store:
            store.compact()
            seq = store.wal_seq()
        with EsdbBridge(with_log) as bridge:
            assert (bridge.status().epoch, bridge.status().wal_seq) == (seq - 1, seq)

    def test_a_bridge_need_not_be_closed(self, with_log: Path) -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            bridge = EsdbBridge(project_dir=str(with_log))
            assert len(bridge.requirements()) == 2
            del bridge
            gc.collect()
        assert caught == []

    @pytest.mark.damaged_before_opening
    def test_a_damaged_log_is_reported(self, with_log: Path) -> None:
        log = with_log / ".chronomemory" / "events.wal"
        log.write_bytes(log.read_bytes().replace(b'"First"', b'"Forge"'))
        with EsdbBridge(with_log) as bridge:
            with pytest.warns(RuntimeWarning, match="damage"):
                status = bridge.status()
            assert status.available
            assert status.chain_valid is False

    def test_a_log_that_cannot_be_opened_is_no_empty_project(self, with_log: Path) -> None:
        log = with_log / ".chronomemory" / "events.wal"
        log.unlink()
        log.mkdir()
        bridge = EsdbBridge(with_log)
        status = bridge.status()
        assert not status.available
        assert not status.chain_valid
        assert "cannot be opened" in status.backend
        for call in (bridge.requirements, bridge.testcases, bridge.record_counts):
            with pytest.raises(OSError, match=r".+"):
                call()
        with pytest.raises(OSError, match=r".+"):
            bridge.upsert_record(EsdbRecord("X"))


class TestALostLog:
    @pytest.mark.parametrize("compacted", [False, True])
    @pytest.mark.parametrize("is_open", [False, True])
    def test_it_is_no_empty_project(self, with_log: Path, *, compacted: bool, is_open: bool) -> None:
        if compacted:
            with ChronoStore(with_log) as store:
                store.compact()
        with EsdbBridge(with_log) as bridge, warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            if is_open:
                assert bridge.status().chain_valid
            (with_log / ".chronomemory" / "events.wal").unlink()
            status = bridge.status()
            assert not status.chain_valid
            assert "fallback" not in status.backend
            with pytest.raises(LogCorrupted):
                bridge.upsert_record(EsdbRecord("NEW"))
            with pytest.raises(LogCorrupted):
                bridge.delete_record("REQ-1")

    def test_a_store_in_which_nothing_was_written_is_none(self, with_json: Path) -> None:
        (with_json / ".chronomemory").mkdir()
        (with_json / ".chronomemory" / "lock").touch()
        assert "JSON fallback" in EsdbBridge(with_json).status().backend
