"""A log that is gone is missed, and nothing begins in its place."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest
from chronomemory import ChronoStore
from chronomemory.errors import LogCorrupted, StoreReadOnly
from recovering import labels, only, quiet


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / ".chronomemory"


@pytest.mark.parametrize("how", ["removed", "emptied"])
@pytest.mark.parametrize("is_compacted", [True, False])
def test_a_lost_log_is_damage_in_a_fresh_home_too(
    tmp_path: Path, home: Path, how: str, is_compacted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert_many([{"id": f"R-{n}", "label": f"value {n}"} for n in range(9)])
        if is_compacted:
            store.compact()
    before = labels(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another home"))
    if how == "removed":
        (home / "events.wal").unlink()
    else:
        (home / "events.wal").write_bytes(b"")
    files = {path for path in home.rglob("*") if path.is_file()}
    report = ChronoStore(tmp_path).verify()
    assert [item.kind for item in report.damage] == ["log-missing"]
    with pytest.warns(RuntimeWarning, match="log-missing"), ChronoStore(tmp_path) as store:
        for write in (
            lambda: store.upsert({"id": "new"}),
            lambda: store.upsert_many([{"id": "new"}]),
            lambda: store.vectors.attach("R-1", [1.0, 2.0], model="m"),
            store.compact,
            store.backup,
        ):
            with pytest.raises(LogCorrupted) as caught:
                write()
            assert caught.value.damage == "log-missing"
    assert files <= {path for path in home.rglob("*") if path.is_file()}
    assert labels(tmp_path) == {}
    with quiet(), ChronoStore(tmp_path) as store:
        with pytest.raises(LogCorrupted):
            store.upkeep.repair()
        store.upkeep.repair(unproven=True)
    assert labels(tmp_path) == (before if is_compacted else {})
    with ChronoStore(tmp_path) as store:
        assert store.chain_valid()
        assert store.upsert({"id": "new"}).seq > 9


def test_compaction_refuses_while_the_head_is_lost_and_deletes_nothing_it_does_not_retire(
    tmp_path: Path, home: Path
) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "A"})
        store.compact()
    base, archive = only(home / "base").read_bytes(), only(home / "archive").read_bytes()
    other = tmp_path / "other"
    with ChronoStore(other) as store:
        store.upsert({"id": "X"})
    shutil.copy(other / ".chronomemory" / "events.wal", home / "events.wal")
    with quiet(), ChronoStore(tmp_path) as store:
        with pytest.raises(LogCorrupted):
            store.upsert({"id": "Y"})
        with pytest.raises(LogCorrupted):
            store.compact()
        store.upkeep.accept_head()
        store.upsert({"id": "Z"})
        store.compact()
    kept = {path.read_bytes() for path in (home / "quarantine").rglob("*") if path.is_file()}
    assert {base, archive} <= kept


def test_an_interrupted_compaction_leaves_nothing_behind(tmp_path: Path, home: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "B"})
        backup = store.backup()
        store.compact()
    # As if it had been interrupted before the logs were swapped: base and archive hold what the log holds.
    shutil.copy(backup / "events.wal", home / "events.wal")
    with quiet(), ChronoStore(tmp_path) as store:
        store.upkeep.accept_head()
        store.upsert({"id": "C"})
        store.compact()
        assert store.chain_valid()
    assert not (home / "quarantine").exists()
    assert len(list((home / "base").iterdir())) == 1


def take_away(project: Path, home: Path, how: str) -> None:
    log = home / "events.wal"
    if how == "removed":
        log.unlink()
    elif how == "moved":
        project.rename(project.with_name("elsewhere"))
    elif how == "emptied":
        log.write_bytes(b"")
    elif how == "cut":
        lines = log.read_bytes().splitlines(keepends=True)
        log.write_bytes(b"".join(lines[: len(lines) // 2]))
    elif how == "cut in place":
        lines = log.read_bytes().splitlines(keepends=True)
        with log.open("r+b") as stream:
            stream.truncate(sum(map(len, lines[: len(lines) // 2])))
    else:
        log.unlink()
        with ChronoStore(project / "other") as other:
            other.upsert({"id": "stranger"})
        shutil.copy(project / "other" / ".chronomemory" / "events.wal", log)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("how", ["removed", "moved", "emptied", "cut", "cut in place", "replaced"])
def test_a_log_that_vanishes_under_an_open_handle_is_an_error_and_no_second_history(
    tmp_path: Path, how: str, strict: bool
) -> None:
    project = tmp_path / "project"
    home = project / ".chronomemory"
    store = ChronoStore(project, strict=strict).open()
    try:
        for number in range(50):
            store.upsert({"id": f"R-{number}"})
        store.sync()
        time.sleep(0.05)  # the lock is kept for a moment after a write, and nobody looks around meanwhile
        take_away(project, home, how)
        for call in (
            lambda: store.get("R-1"),
            store.record_count,
            lambda: store.upsert({"id": "new"}),
            lambda: store.upsert_many([{"id": "new"}]),
            lambda: store.history("R-1"),
        ):
            with pytest.raises(LogCorrupted) as caught:
                call()
            assert caught.value.damage == "log-missing"
            assert "open the store again" in caught.value.recovery
        if how == "moved":
            assert not project.exists()
            project.with_name("elsewhere").rename(project)
            assert store.record_count() == 50
            store.upsert({"id": "new"})
    finally:
        with quiet():
            store.close()


def test_a_restore_and_a_repair_elsewhere_are_followed(tmp_path: Path, home: Path) -> None:
    with ChronoStore(tmp_path) as other, ChronoStore(tmp_path) as store:
        store.upsert({"id": "A", "label": "one"})
        backup = store.backup()
        store.upsert({"id": "B"})
        other.upkeep.restore(backup)
        assert store.get("B") is None
        store.upsert({"id": "C"})
        assert other.get("C") is not None


@pytest.mark.parametrize(
    "deeds", ["compact restore", "compact compact restore", "erase restore", "restore erase"]
)
def test_what_was_retired_before_a_restore_elsewhere_is_followed(tmp_path: Path, deeds: str) -> None:
    with ChronoStore(tmp_path, own_engine=True) as other, ChronoStore(tmp_path, own_engine=True) as store:
        other.upsert({"id": "A", "label": "one"})
        backup = other.backup(to=tmp_path / "copies")
        for name in ("B", "C"):
            other.upsert({"id": name})
        assert store.get("C") is not None
        for deed in deeds.split():
            match deed:
                case "compact":
                    other.compact()
                    other.upsert({"id": "D"})
                case "erase":
                    other.erase(ids=["A"] if deeds == "restore erase" else ["B"], reason="asked for")
                case _:
                    other.upkeep.restore(backup)
        assert store.record_count() == other.record_count()
        assert store.verify().valid
        store.upsert({"id": "E"})
        assert other.get("E") is not None


def test_a_backup_that_lost_its_log_is_no_empty_project(tmp_path: Path, home: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "A"})
        backup = store.backup()
    (backup / "events.wal").unlink()
    assert [item.kind for item in ChronoStore(backup).verify().damage] == ["log-missing"]
    with quiet(), ChronoStore(backup) as store, pytest.raises((LogCorrupted, StoreReadOnly)):
        store.upsert({"id": "B"})
    assert not (backup / ".chronomemory").exists()


# Nothing is left but copies.


def only_copies_left(project: Path, home: Path, where: str) -> dict[str, str]:
    """A store whose log and hint are gone, and what the copy that is left held."""
    with ChronoStore(project) as store:
        store.upsert_many([{"id": f"R-{n}", "label": f"value {n}"} for n in range(9)])
        backup = store.backup()
        if where == "quarantine":
            store.upkeep.restore(backup)
    held = labels(project)
    if where == "quarantine":
        shutil.rmtree(home / "backup")
    for name in ("events.wal", "synced", "snapshot.json"):
        (home / name).unlink(missing_ok=True)
    return held


@pytest.mark.parametrize("where", ["backup", "quarantine"])
@pytest.mark.parametrize("how", ["removed", "emptied"])
def test_a_log_of_which_only_copies_are_left_is_missed(
    tmp_path: Path, home: Path, where: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = only_copies_left(tmp_path, home, where)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another home"))
    if how == "emptied":
        (home / "events.wal").write_bytes(b"")
    copy = only(home / where)
    for named in (tmp_path, home):
        report = ChronoStore(named).verify()
        assert [item.kind for item in report.damage] == ["log-missing"]
        assert f"{where}/{copy.name}" in report.damage[0].reason
    with pytest.warns(RuntimeWarning, match="log-missing"), ChronoStore(tmp_path) as store:
        for write in (lambda: store.upsert({"id": "new"}), store.compact, store.backup, store.upkeep.repair):
            with pytest.raises(LogCorrupted, match="restore brings back") as caught:
                write()
            assert caught.value.damage == "log-missing"
        store.upkeep.restore(copy)
        assert store.upsert({"id": "new"}).seq > 9
    assert labels(tmp_path).items() >= held.items()
    assert ChronoStore(tmp_path).verify().valid


def test_a_copy_that_ends_before_the_last_sync_is_left_to_restore(tmp_path: Path, home: Path) -> None:
    held = only_copies_left(tmp_path, home, "backup")
    with quiet(), ChronoStore(tmp_path) as store:
        with pytest.raises(LogCorrupted, match="restore brings back"):
            store.upkeep.repair(unproven=True)
        store.upkeep.restore(max((home / "backup").iterdir()))
    assert labels(tmp_path) == held


def test_copies_of_nothing_and_folders_of_others_show_no_log(tmp_path: Path, home: Path) -> None:
    with ChronoStore(tmp_path / "other") as other:
        other.upsert({"id": "A"})
    stranger = tmp_path / "other" / ".chronomemory" / "events.wal"
    with ChronoStore(tmp_path) as store:
        store.backup()  # of nothing
    for name in ("mine", "20261115T190743.tmp"):
        (home / "backup" / name).mkdir()
        shutil.copy(stranger, home / "backup" / name / "events.wal")
    report = ChronoStore(tmp_path).verify()
    assert report.valid, report.damage
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "first"})
    assert ChronoStore(tmp_path).verify().valid


# A draft of a restore.


@pytest.mark.parametrize("draft", ["empty", "whole"])
def test_a_draft_of_a_restore_hides_no_loss(tmp_path: Path, home: Path, draft: str) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert_many([{"id": f"R-{n}"} for n in range(9)])
        store.compact()
    log = (home / "events.wal").read_bytes()
    (home / "archive" / "restored.wal.tmp").write_bytes(log if draft == "whole" else b"")
    for name in ("events.wal", "synced"):
        (home / name).unlink()
    report = ChronoStore(tmp_path).verify()
    assert [item.kind for item in report.damage] == ["log-missing"]
    assert "restore again" in report.damage[0].reason
    with quiet(), ChronoStore(tmp_path) as store, pytest.raises(LogCorrupted):
        store.upsert({"id": "new"})


def test_a_restore_into_an_empty_folder_that_was_killed_is_done_again(tmp_path: Path) -> None:
    project, copy = tmp_path / "project", tmp_path / "copy"
    with ChronoStore(project) as store:
        store.upsert_many([{"id": f"R-{n}", "label": f"value {n}"} for n in range(9)])
        store.compact()
        store.upsert({"id": "late", "label": "after"})
        shutil.copytree(store.backup(), copy)
    held = labels(project)
    empty = tmp_path / "empty"
    home = empty / ".chronomemory"
    # What is there when it was killed just before the log got its name.
    (home / "archive").mkdir(parents=True)
    shutil.copy(copy / "events.wal", home / "archive" / "restored.wal.tmp")
    shutil.copytree(copy / "base", home / "base")
    shutil.copytree(copy / "archive", home / "archive", dirs_exist_ok=True)
    with quiet(), ChronoStore(empty) as store:
        with pytest.raises(LogCorrupted, match="restore again"):
            store.upsert({"id": "new"})
        store.upkeep.restore(copy)
    assert labels(empty) == held
    report = ChronoStore(empty).verify()
    assert report.valid
    assert not any("repaired" in note for note in report.notes)


@pytest.mark.parametrize("then", ["upsert", "compact", "drop"])
def test_nothing_is_written_behind_an_end_that_another_process_synced_and_that_is_cut(
    tmp_path: Path, home: Path, then: str
) -> None:
    """The log is as long as the writer knows it: only the hint about the last sync tells of more."""
    log = home / "events.wal"
    with (
        quiet(),
        ChronoStore(tmp_path, own_engine=True) as one,
        ChronoStore(tmp_path, own_engine=True) as two,
    ):
        two.upsert_many([{"id": f"R-{n}"} for n in range(4)])
        two.compact()
        assert one.get("R-1") is not None
        cut = log.stat().st_size
        event = two.upsert({"id": "X", "label": "acknowledged and synced"})
        two.sync()
        os.truncate(log, cut)
        write = {
            "upsert": lambda: one.upsert({"id": "Y"}),
            "compact": one.compact,
            "drop": lambda: one.compact(keep_history=False),
        }[then]
        with pytest.raises(LogCorrupted, match="before the last known sync"):
            write()
        assert log.stat().st_size == cut
        told = one.upkeep.repair()
    assert any(f"event {event.seq}" in lost for lost in told["lost"]), told["lost"]
