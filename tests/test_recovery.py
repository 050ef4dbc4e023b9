"""Does recovery believe only what is proved, and lose nothing that is there?"""

from __future__ import annotations

import json
import shutil
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoRecord, ChronoStore, DepGraph
from chronomemory.errors import LogCorrupted


@contextmanager
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def labels(project: Path) -> dict[str, str]:
    with quiet(), ChronoStore(project) as store:
        return {record.id: record.label for record in store.query(status="")}


def repair(project: Path, **options: Any) -> dict[str, Any]:
    with quiet(), ChronoStore(project) as store:
        return store.repair(**options)


def only(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / ".chronomemory"


@pytest.fixture
def compacted(tmp_path: Path) -> dict[str, str]:
    """A store of a base, an archive and a few lines; what it holds."""
    with ChronoStore(tmp_path) as store:
        store.upsert_many([{"id": f"R-{n}", "label": f"value {n}"} for n in range(40)])
        store.upsert({"id": "dose", "label": "give 10 mg"})
        store.compact()
        store.upsert({"id": "late", "label": "after"})
    return labels(tmp_path)


def flip(path: Path, old: bytes, new: bytes) -> None:
    data = path.read_bytes()
    assert data.count(old) >= 1
    path.write_bytes(data.replace(old, new, 1))


# The base.


def test_an_altered_base_is_not_believed_while_the_archive_can_rebuild_it(
    tmp_path: Path, home: Path, compacted: dict[str, str]
) -> None:
    flip(only(home / "base"), b"give 10 mg", b"give 90 mg")
    with pytest.warns(RuntimeWarning, match="base-altered"), ChronoStore(tmp_path) as store:
        record = store.get("dose")
        assert record is not None
        assert record.label == "give 10 mg"
        assert any("rebuilt from archive/" in note for note in store.verify().notes)
    assert labels(tmp_path) == compacted


@pytest.mark.parametrize("how", ["altered", "broken", "missing"])
def test_repair_rebuilds_the_base_and_keeps_history(
    tmp_path: Path, home: Path, compacted: dict[str, str], how: str
) -> None:
    base = only(home / "base")
    if how == "missing":
        base.unlink()
    else:
        flip(base, b"give 10 mg", b"give 90 mg" if how == "altered" else b'give" 0 mg')
    told = repair(tmp_path)
    assert (told["lost"], told["unproven"], told["history_kept"]) == ([], [], True)
    assert labels(tmp_path) == compacted
    with ChronoStore(tmp_path) as store:
        assert store.chain_valid()
        assert [event.record["label"] for event in store.history("dose") if event.record] == ["give 10 mg"]
        assert any("repaired at event" in note for note in store.verify().notes)


def test_a_base_is_read_from_a_backup_when_the_archive_is_gone(tmp_path: Path, home: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "A", "label": "original"})
        store.compact(keep_history=False)
        store.backup()
    flip(only(home / "base"), b"original", b"forgery!")
    assert labels(tmp_path) == {"A": "original"}
    repair(tmp_path)
    assert labels(tmp_path) == {"A": "original"}


def test_what_nothing_proves_is_refused_or_marked(tmp_path: Path, home: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert_many([{"id": "A", "label": "original"}, {"id": "B", "label": "other"}])
        store.compact(keep_history=False)
        store.upsert({"id": "C", "label": "proved"})
    (home / "snapshot.json").unlink()
    flip(only(home / "base"), b"original", b"forgery!")
    with pytest.raises(LogCorrupted) as caught:
        repair(tmp_path)
    assert "unproven=True" in caught.value.recovery
    told = repair(tmp_path, unproven=True)
    assert told["unproven"] == ["A", "B"]
    with ChronoStore(tmp_path) as store:
        marked = {record.id for record in store.query(status="") if "@unproven" in record.data}
        assert marked == {"A", "B"}
        assert store.chain_valid()


# The first line.


@pytest.mark.parametrize("damage", [b"a flip", b"zeros"])
def test_a_lost_first_line_hides_nothing(
    tmp_path: Path, home: Path, compacted: dict[str, str], damage: bytes
) -> None:
    log = home / "events.wal"
    lines = log.read_bytes().split(b"\n")
    if damage == b"a flip":
        lines[0] = lines[0].replace(b"Compacted", b"Cimpacted")
    else:
        lines[0] = b"0" * len(lines[0])
    log.write_bytes(b"\n".join(lines))
    assert labels(tmp_path) == compacted
    told = repair(tmp_path)
    assert labels(tmp_path) == compacted
    assert told["healed"] == (damage == b"a flip")
    with ChronoStore(tmp_path) as store:
        assert store.chain_valid()
        assert (store.history("dose") != []) == (damage == b"a flip")


def test_what_a_repair_sets_aside_can_be_brought_back(
    tmp_path: Path, home: Path, compacted: dict[str, str]
) -> None:
    log = home / "events.wal"
    whole = log.read_bytes()
    lines = whole.split(b"\n")
    lines[0] = b"0" * len(lines[0])
    log.write_bytes(b"\n".join(lines))
    told = repair(tmp_path)
    aside = home / told["kept"]
    assert {"events.wal", "base", "archive"} <= {path.name for path in aside.iterdir()}
    (aside / "events.wal").write_bytes(whole)  # somebody found the lost line elsewhere
    with ChronoStore(tmp_path) as store:
        store.restore(aside)
        assert [event.record["label"] for event in store.history("dose") if event.record] == ["give 10 mg"]
    assert labels(tmp_path) == compacted


def test_a_damaged_copy_comes_back_only_when_asked_for(tmp_path: Path, home: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert_many([{"id": "A", "label": "one"}, {"id": "B", "label": "two"}])
    flip(home / "events.wal", b'"label":"one"', b'"label":"111"')
    told = repair(tmp_path)
    assert told["lost"]
    with quiet(), ChronoStore(tmp_path) as store:
        with pytest.raises(LogCorrupted):
            store.restore(home / told["kept"])
        store.restore(home / told["kept"], damaged=True)
        assert not store.chain_valid()


# Lines.


def test_one_altered_byte_of_a_line_is_found_again(tmp_path: Path, home: Path) -> None:
    with ChronoStore(tmp_path) as store:
        for number in range(5):
            store.upsert({"id": f"R-{number}", "label": f"value {number}"})
    before = labels(tmp_path)
    for place in (b"value 0", b"value 2", b"value 4"):
        flip(home / "events.wal", place, place.replace(b"value", b"valve"))
    assert repair(tmp_path)["healed"] == 3
    assert labels(tmp_path) == before


def test_lines_are_taken_from_a_backup(tmp_path: Path, home: Path) -> None:
    with ChronoStore(tmp_path) as store:
        for number in range(9):
            store.upsert({"id": f"R-{number}", "label": f"value {number}"})
        store.backup()
        store.upsert({"id": "late", "label": "after"})
    before = labels(tmp_path)
    log = home / "events.wal"
    lines = log.read_bytes().split(b"\n")
    log.write_bytes(b"\n".join([*lines[:2], b"rubbish", *lines[5:]]))
    told = repair(tmp_path)
    assert (told["healed"], told["lost"]) == (1, [])
    assert labels(tmp_path) == before


def withdrawn(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "F", "label": "fact"})
        store.upsert({"id": "D", "label": "decision", "confidence": 0.9})
        graph = DepGraph()
        graph.add_edge("D", "F", "depends_on")
        store.invalidate("F", "fact was wrong", graph)
        store.upsert({"id": "later", "label": "goes on"})


@pytest.mark.parametrize("letters", [b"fact wAs wrong", b"FACT WAS WRONG"])
def test_a_belief_that_a_damaged_batch_withdrew_does_not_come_back(
    tmp_path: Path, home: Path, letters: bytes
) -> None:
    withdrawn(tmp_path)
    flip(home / "events.wal", b"fact was wrong", letters)
    told = repair(tmp_path)
    with ChronoStore(tmp_path) as store:
        fact, decision = store.get("F"), store.get("D")
        assert fact is not None
        assert decision is not None
        assert (fact.status, decision.status) == ("invalidated", "hypothesis")
    assert bool(told["lost"]) == (letters == b"FACT WAS WRONG")
    assert {"F", "D"} <= set(told["changed"])


def test_a_record_whose_last_event_is_lost_is_on_hold(tmp_path: Path, home: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "F", "label": "fact"})
        store.upsert({"id": "F", "label": "fact", "status": "invalidated", "data": {"why": "it was wrong"}})
        store.upsert({"id": "later", "label": "goes on"})
    flip(home / "events.wal", b"it was wrong", b"so it was...")
    told = repair(tmp_path)
    assert told["unsettled"] == ["F"]
    assert told["lost"][0].count('"F"') == 1
    with ChronoStore(tmp_path) as store:
        record = store.get("F")
        assert record is not None
        assert record.status == "unsettled"
        assert record.data["@unsettled"]["status"] == "active"
        assert [found.id for found in store.query()] == ["later"]


def test_a_repaired_store_says_so_for_ever(tmp_path: Path, home: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert_many([{"id": "A", "label": "one"}, {"id": "B", "label": "two"}])
    flip(home / "events.wal", b'"label":"one"', b'"label":"111"')
    repair(tmp_path)
    with ChronoStore(tmp_path) as store:
        for round_ in range(3):
            store.upsert({"id": f"R-{round_}"})
            store.compact(keep_history=False)
            assert sum("repaired at event" in note for note in store.verify().notes) == 1


# The log itself.


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
            lambda: store.attach("R-1", [1.0, 2.0], model="m"),
            store.compact,
            store.backup,
        ):
            with pytest.raises(LogCorrupted) as caught:
                write()
            assert caught.value.damage == "log-missing"
    assert files <= {path for path in home.rglob("*") if path.is_file()}
    if is_compacted:
        assert labels(tmp_path) == before
    repair(tmp_path)
    assert labels(tmp_path) == (before if is_compacted else {})
    with ChronoStore(tmp_path) as store:
        assert store.chain_valid()
        assert store.upsert({"id": "new"}).seq > 9


def test_compaction_refuses_while_the_head_is_lost_and_deletes_nothing_it_does_not_retire(
    tmp_path: Path, home: Path, compacted: dict[str, str]
) -> None:
    base, archive = only(home / "base").read_bytes(), only(home / "archive").read_bytes()
    other = tmp_path / "other"
    with ChronoStore(other) as store:
        store.upsert({"id": "X"})
    shutil.copy(other / ".chronomemory" / "events.wal", home / "events.wal")
    with quiet(), ChronoStore(tmp_path) as store:
        store.upsert({"id": "Y"})
        with pytest.raises(LogCorrupted):
            store.compact()
        store.accept_head()
        store.upsert({"id": "Z"})
        store.compact()
    kept = {path.read_bytes() for path in (home / "quarantine").rglob("*") if path.is_file()}
    assert {base, archive} <= kept


def test_an_interrupted_compaction_leaves_nothing_behind(tmp_path: Path, home: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "A"})
        store.compact()
    names = (only(home / "base"), only(home / "archive"))
    left = [(path, path.read_bytes()) for path in names]
    log = home / "events.wal"
    for path in names:
        path.unlink()
    log.unlink()
    (home / "synced").unlink()
    with quiet(), ChronoStore(tmp_path) as store:
        store.accept_head()
        assert left
    # The same first events again: the leftovers hold only what the log holds too.
    with ChronoStore(tmp_path / "again") as store:
        store.upsert({"id": "B"})
        store.backup()
        store.compact()
    again = tmp_path / "again" / ".chronomemory"
    (backup,) = (again / "backup").iterdir()
    shutil.copy(backup / "events.wal", again / "events.wal")
    with quiet(), ChronoStore(tmp_path / "again") as store:
        store.accept_head()
        store.upsert({"id": "C"})
        store.compact()
        assert store.chain_valid()
    assert not (again / "quarantine").exists()
    assert len(list((again / "base").iterdir())) == 1


# An open handle.


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
        other.restore(backup)
        assert store.get("B") is None
        store.upsert({"id": "C"})
        assert other.get("C") is not None


def test_sentinels_name_what_a_repair_could_not_bring_back(tmp_path: Path, home: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert_many([{"id": "A", "label": "one"}, {"id": "B", "label": "two"}])
    flip(home / "events.wal", b'"label":"one"', b'"label":"111"')
    repair(tmp_path)
    first = json.loads((home / "events.wal").read_text("utf-8").splitlines()[0])
    data = first["record"]["data"]
    assert len(data["repaired"]) == 2
    assert len(data["lost"]) == 1
    assert data["repairs"] == [
        {"findings": 2, "open": 1, "seq": first["seq"], "ts": data["repairs"][0]["ts"]},
    ]


def test_a_record_of_any_shape_survives_being_marked(tmp_path: Path, home: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert(ChronoRecord(id="odd", data={"deep": {"er": [1, 2.5, None]}}))
        store.upsert(ChronoRecord(id="odd", label="second", data={"deep": "changed to this"}))
        store.upsert({"id": "next"})
    flip(home / "events.wal", b"changed to this", b"CHANGED TO THIS")
    repair(tmp_path)
    with ChronoStore(tmp_path) as store:
        record = store.get("odd")
        assert record is not None
        assert record.data["deep"] == {"er": [1, 2.5, None]}
