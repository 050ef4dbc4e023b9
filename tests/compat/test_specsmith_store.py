"""A real store that another tool wrote and compacted opens, migrates and becomes anchored."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from chronomemory import ChronoRecord, ChronoStore, EsdbBridge

ORIGINAL = Path(__file__).parents[3] / "shared" / "data" / "specsmith-store"

pytestmark = pytest.mark.skipif(not ORIGINAL.exists(), reason="the foreign store is not beside this checkout")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    copy = tmp_path / "copy"
    shutil.copytree(ORIGINAL, copy)
    for path in (copy, *copy.rglob("*")):  # the original is read-only
        path.chmod(0o755 if path.is_dir() else 0o644)
    return copy


def test_it_opens_with_all_its_records(project: Path) -> None:
    with ChronoStore(project) as store:
        assert store.record_count() == len(store.query()) == 894
        assert store.wal_seq() == 978
        assert store.count(by="kind")["requirement"] == 414
        assert len(store.replay()) == 195


def test_verify_says_that_its_base_is_not_anchored(project: Path) -> None:
    store = ChronoStore(project)
    report = store.verify()
    assert report.valid
    assert report.base == "unanchored"
    assert (report.events, report.first_seq, report.last_seq) == (195, 784, 978)
    assert (report.fast_lines, report.slow_lines) == (0, 195)
    assert "base: unanchored" in report.lines()


def test_reading_leaves_it_byte_for_byte(project: Path) -> None:
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    with ChronoStore(project) as store:
        store.query()
        store.verify()
    with EsdbBridge(project) as bridge:
        assert bridge.status().record_count == 894
        assert len(bridge.requirements()) == 414
    after = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    assert after == before


def test_the_first_write_anchors_it(project: Path) -> None:
    log = project / ".chronomemory" / "events.wal"
    snapshot = (project / ".chronomemory" / "snapshot.json").read_bytes()
    foreign = log.read_bytes()
    with ChronoStore(project) as store:
        store.upsert(ChronoRecord(id="OURS"))
        assert log.read_bytes().startswith(foreign)
        adopt, upsert = store.replay(from_seq=979)
        assert (adopt.op, upsert.op) == ("adopt", "upsert")
        assert adopt.record is not None
        base = project / ".chronomemory" / "base" / f"{adopt.record['base_sha256']}.json"
        assert base.read_bytes() == snapshot
        report = store.verify()
        assert report.valid
        assert report.base == "adopted"
    (project / ".chronomemory" / "snapshot.json").unlink()
    with ChronoStore(project, strict=True) as store:
        assert store.record_count() == 895
        assert store.chain_valid()
        base.write_bytes(snapshot.replace(b"Govern", b"govern"))
        assert not store.chain_valid()


def test_without_its_snapshot_the_loss_is_named(project: Path) -> None:
    (project / ".chronomemory" / "snapshot.json").unlink()
    store = ChronoStore(project)
    assert [item.kind for item in store.verify().damage] == ["base-missing"]
    with pytest.warns(RuntimeWarning, match="base-missing"):
        store.open()
    store.close()


def test_it_migrates(project: Path) -> None:
    source = project / ".specsmith"
    with ChronoStore(project) as store:
        known = {(record.id, record.label) for record in store.query()}
        new = {
            name: sum(
                (entry["id"], entry["title"]) not in known
                for entry in json.loads((source / f"{name}.json").read_text("utf-8"))
            )
            for name in ("requirements", "testcases")
        }
        counts = store.migrate_from_json(source)
        assert counts == {**new, "skipped": 444 + 467 - sum(new.values())}
        assert len(store.query(kind="requirement")) == 444
        assert len(store.query(kind="testcase")) == 467
        head = store.health().head
        assert store.migrate_from_json(source)["skipped"] == 911
        assert store.health().head == head
        assert store.chain_valid()


def test_it_compacts_into_our_own_form(project: Path) -> None:
    with ChronoStore(project) as store:
        before = store.query(status="")
        store.compact()
        assert store.query(status="") == before
        report = store.verify()
        assert (report.valid, report.base, report.slow_lines) == (True, "anchored", 0)
        store.upsert(ChronoRecord(id="OURS"))
    with ChronoStore(project) as store:
        assert store.record_count() == 895
        assert store.as_of(978).record_count() == 894
