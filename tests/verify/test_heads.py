"""A log is missed whose end was cut off, that was replaced, or that is gone."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import pytest
from chronomemory import ChronoStore
from chronomemory.layout import head_file


def _fill(project: Path, first: int = 0, count: int = 5) -> None:
    with ChronoStore(project) as store:
        for number in range(first, first + count):
            store.upsert({"id": f"R-{number}"})


def _cut_last_line(log: Path) -> None:
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:-1]))
    # Whoever cuts the log knows of the hint beside it, too.
    (log.parent / "synced").unlink()


def test_what_was_seen_is_still_there(tmp_path: Path) -> None:
    _fill(tmp_path)
    report = ChronoStore(tmp_path).verify()
    assert report.rung == "remembered"
    assert report.rungs["remembered"] == "ok"
    note = json.loads((head_file(tmp_path) or Path()).read_text())
    assert note["seq"] == 5
    assert note["head"] == report.head


def test_a_tail_cut_at_a_line_boundary_is_missed(tmp_path: Path, log: Path) -> None:
    _fill(tmp_path)
    _cut_last_line(log)
    store = ChronoStore(tmp_path)
    report = store.verify()
    assert report.valid
    assert store.chain_valid()
    assert report.remembered == "lost"
    assert report.rung == "chain ok"
    assert "event 5 was seen here" in report.remembered_reason
    assert any("event 5" in line for line in report.lines())


def test_opening_warns_and_writing_on_does_not_hide_it(tmp_path: Path, log: Path) -> None:
    _fill(tmp_path)
    _cut_last_line(log)
    with pytest.warns(RuntimeWarning, match="accept-head"):
        _fill(tmp_path, 10)
    assert ChronoStore(tmp_path).verify().remembered == "lost"


def test_a_log_that_is_gone_or_another_one_is_missed(tmp_path: Path, log: Path) -> None:
    _fill(tmp_path)
    kept = log.read_bytes()
    shutil.rmtree(log.parent)
    assert ChronoStore(tmp_path).verify().remembered == "lost"
    with pytest.warns(RuntimeWarning, match="there is no log"):
        _fill(tmp_path, 100)
    report = ChronoStore(tmp_path).verify()
    assert report.remembered == "lost"
    assert "another log" in report.remembered_reason
    log.write_bytes(kept)
    assert ChronoStore(tmp_path).verify().remembered == "kept"


def test_accepting_ends_it(tmp_path: Path, log: Path) -> None:
    _fill(tmp_path)
    _cut_last_line(log)
    with pytest.warns(RuntimeWarning, match="seen here"), ChronoStore(tmp_path) as store:
        store.upkeep.accept_head()
        assert store.verify().rung == "remembered"
    _fill(tmp_path, 10)
    assert ChronoStore(tmp_path).verify().rung == "remembered"


@pytest.mark.parametrize("keep_history", [True, False])
def test_compaction_is_followed(tmp_path: Path, keep_history: bool) -> None:
    _fill(tmp_path)
    old = (head_file(tmp_path) or Path()).read_bytes()
    with ChronoStore(tmp_path) as store:
        store.compact(keep_history=keep_history)
        assert store.verify().rung == "remembered"
        store.upsert({"id": "later"})
        store.compact(keep_history=keep_history)
    assert ChronoStore(tmp_path).verify().rung == "remembered"
    # Someone who saw the log only before both compactions.
    (head_file(tmp_path) or Path()).write_bytes(old)
    report = ChronoStore(tmp_path).verify()
    assert report.remembered == ("kept" if keep_history else "unknown")


def test_restore_is_a_change_that_was_meant(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "A"})
        saved = store.backup()
        store.upsert({"id": "B"})
        store.sync()
        store.upkeep.restore(saved)
        assert store.verify().rung == "remembered"
    assert ChronoStore(tmp_path).verify().rung == "remembered"


def test_a_file_of_ones_own(tmp_path: Path, log: Path, state: Path) -> None:
    note = tmp_path / "elsewhere" / "head.json"
    project = tmp_path / "project"
    with ChronoStore(project, head_file=note) as store:
        store.upsert({"id": "A"})
    assert json.loads(note.read_text())["seq"] == 1
    assert not list(state.rglob("*.json"))
    assert ChronoStore(project, head_file=note).verify().rung == "remembered"
    assert ChronoStore(project).verify().rung == "chain ok"


def test_a_note_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with ChronoStore(tmp_path / "project", head_file=tmp_path / "file" / "head.json") as store:
        store.upsert({"id": "A"})
        store.sync()
        report = store.verify()
        assert report.rung == "chain ok"
        assert "could not be remembered" in report.remembered_reason
        assert "head.json" in report.remembered_reason
    closed = ChronoStore(tmp_path / "project", head_file=tmp_path / "file" / "head.json")
    assert "head.json" in closed.verify().remembered_reason


def test_a_damaged_note_cannot_tell(tmp_path: Path) -> None:
    _fill(tmp_path)
    (head_file(tmp_path) or Path()).write_text("{")
    assert ChronoStore(tmp_path).verify().rungs["remembered"] == "cannot tell"


def test_heads_of_projects_that_are_gone_are_swept(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chronomemory.layout._MANY_NOTES", 3)
    for number in range(4):
        _fill(tmp_path / str(number), count=1)
    shutil.rmtree(tmp_path / "1")
    shutil.rmtree(tmp_path / "2")
    for note in state.rglob("*.json"):
        if Path(json.loads(note.read_text())["folder"]).parent.name != "2":
            os.utime(note, (0, 0))
    _fill(tmp_path / "new", count=1)
    folders = {json.loads(note.read_text())["folder"] for note in state.rglob("*.json")}
    assert {Path(folder).parent.name for folder in folders} == {"0", "2", "3", "new"}


def test_a_restore_is_never_taken_for_a_loss(tmp_path: Path) -> None:
    """Others who open and close meanwhile must not bring back the head from before."""
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "A"})
        saved = store.backup()
        for number in range(30):
            store.upsert({"id": f"B-{number}"})
            store.sync()
            other = ChronoStore(tmp_path).open()
            store.upkeep.restore(saved)
            other.close()
            assert ChronoStore(tmp_path).verify().remembered == "kept"


def test_a_history_that_was_dropped_elsewhere_is_told(tmp_path: Path) -> None:
    _fill(tmp_path)
    with ChronoStore(tmp_path, head_file=tmp_path / "of someone else.json") as store:
        store.upsert({"id": "X"})
        store.compact(keep_history=False)
    with pytest.warns(RuntimeWarning, match="history that could tell was dropped"):
        ChronoStore(tmp_path).open().close()
    store = ChronoStore(tmp_path)
    assert store.verify().remembered == "unknown"
    store.upkeep.accept_head()
    assert store.verify().rung == "remembered"


def test_accepting_nothing_makes_nothing(tmp_path: Path) -> None:
    store = ChronoStore(tmp_path / "empty")
    store.upkeep.accept_head()
    store.close()
    assert not (tmp_path / "empty").exists()


def test_a_head_that_was_synced_soon_after_another_is_noted_all_the_same(tmp_path: Path) -> None:
    note = tmp_path / "head"
    with ChronoStore(tmp_path / "p", head_file=note, durability="full") as store:
        for number in range(7):
            store.upsert({"id": f"R{number}"})
        store.sync()
        patience = time.monotonic() + 20
        while json.loads(note.read_text())["seq"] != store.wal_seq():
            assert time.monotonic() < patience, "nobody came back for it"
            time.sleep(0.05)
