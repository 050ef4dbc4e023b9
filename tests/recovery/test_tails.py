"""Nothing whole goes to quarantine without a way back."""

from __future__ import annotations

import json
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoStore
from chronomemory.errors import LogCorrupted
from recovering import labels, only, quiet


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / ".chronomemory"


def unsynced(project: Path, home: Path, count: int = 6) -> dict[str, str]:
    """A store of which only the first event is known to be synced; what it holds."""
    with ChronoStore(project) as store:
        store.upsert({"id": "first", "label": "synced"})
    hint = (home / "synced").read_bytes()
    with ChronoStore(project) as store:
        for number in range(count):
            store.upsert({"id": f"R-{number}", "label": f"value {number}"})
    (home / "synced").write_bytes(hint)
    return labels(project)


def alter(home: Path, *places: tuple[bytes, bytes]) -> None:
    data = (home / "events.wal").read_bytes()
    for old, new in places:
        assert data.count(old) == 1
        data = data.replace(old, new)
    (home / "events.wal").write_bytes(data)


ONE = ((b"value 2", b"valve 2"),)
SEVERAL = ((b"value 2", b"v-l-e 2"),)


def repair(project: Path) -> dict[str, Any]:
    with quiet(), ChronoStore(project) as store:
        return store.upkeep.repair()


def test_a_repair_before_the_next_write_takes_back_what_is_whole(tmp_path: Path, home: Path) -> None:
    before = unsynced(tmp_path, home)
    alter(home, *ONE)
    with (
        pytest.warns(RuntimeWarning, match=r"whole events.*repair\(\) before"),
        ChronoStore(tmp_path) as store,
    ):
        assert store.verify().tail is not None
        told = store.upkeep.repair()
    assert (told["healed"], told["lost"]) == (1, [])
    assert [item["kind"] for item in told["damage"]] == ["altered"]
    assert labels(tmp_path) == before
    report = ChronoStore(tmp_path).verify()
    assert report.valid
    assert any("repaired at event" in note for note in report.notes)


def test_what_cannot_be_mended_is_named_and_the_rest_comes_back(tmp_path: Path, home: Path) -> None:
    before = unsynced(tmp_path, home)
    alter(home, *SEVERAL)
    told = repair(tmp_path)
    assert len(told["lost"]) == 1
    assert told["lost"][0].startswith("event 4 lost")
    assert labels(tmp_path) == {name: text for name, text in before.items() if name != "R-2"}


def test_the_only_line_of_a_tail_is_mended_by_its_hash(tmp_path: Path, home: Path) -> None:
    before = unsynced(tmp_path, home)
    alter(home, (b"value 5", b"valve 5"))
    assert repair(tmp_path)["healed"] == 1
    assert labels(tmp_path) == before


def test_a_damaged_batch_in_a_tail_comes_back(tmp_path: Path, home: Path) -> None:
    unsynced(tmp_path, home, 1)
    hint = (home / "synced").read_bytes()
    with ChronoStore(tmp_path) as store:
        store.upsert_many([{"id": f"B-{number}", "label": f"batch {number}"} for number in range(5)])
        store.upsert({"id": "late"})
    before = labels(tmp_path)
    (home / "synced").write_bytes(hint)
    alter(home, (b"batch 3", b"botch 3"))
    assert labels(tmp_path).keys() < before.keys()
    assert repair(tmp_path)["lost"] == []
    assert labels(tmp_path) == before


@pytest.mark.parametrize("what", ["a torn line", "half a batch", "half a batch with a fault", "one bad line"])
def test_an_interrupted_write_stays_a_tail(tmp_path: Path, home: Path, what: str) -> None:
    unsynced(tmp_path, home, 1)
    hint = (home / "synced").read_bytes()
    log = (home / "events.wal").read_bytes()
    with ChronoStore(tmp_path) as store:
        store.upsert_many([{"id": f"B-{number}", "label": f"batch {number}"} for number in range(5)])
    lines = (home / "events.wal").read_bytes().removeprefix(log).splitlines(keepends=True)
    (home / "synced").write_bytes(hint)
    if what == "a torn line":
        (home / "events.wal").write_bytes(log + lines[1][:-40])
    elif what == "half a batch":
        (home / "events.wal").write_bytes(log + b"".join(lines[:3]))
    elif what == "one bad line":
        (home / "events.wal").write_bytes(log + b"rubbish\n")
    else:
        (home / "events.wal").write_bytes(log + lines[0] + bytes(len(lines[1])) + b"\n" + lines[2])
    told = repair(tmp_path)
    assert told["damage"] == []
    assert told["quarantine"] == []
    assert ChronoStore(tmp_path).verify().valid


def cut(project: Path, home: Path, *places: tuple[bytes, bytes]) -> tuple[dict[str, str], Path]:
    before = unsynced(project, home)
    alter(home, *places)
    with quiet(), ChronoStore(project) as store:
        store.upsert({"id": "after", "label": "went on"})
    return before, only(home / "quarantine")


@pytest.mark.parametrize("places", [ONE, SEVERAL])
def test_a_tail_that_was_cut_is_listed_and_taken_back(
    tmp_path: Path, home: Path, places: tuple[tuple[bytes, bytes]]
) -> None:
    before, tail = cut(tmp_path, home, *places)
    assert "R-4" not in labels(tmp_path)
    report = ChronoStore(tmp_path).verify()
    assert report.valid
    assert any(f"quarantine/{tail.name} holds 3 whole events from seq 5 on" in note for note in report.notes)
    (listed,) = repair(tmp_path)["quarantine"]
    assert listed == {
        "what": "tail",
        "path": f"quarantine/{tail.name}",
        "offset": int(tail.name.rpartition("-")[2]),
        "events": 3,
        "first_seq": 5,
        "restorable": True,
        "why": None,
    }
    with quiet(), ChronoStore(tmp_path) as store:
        told = store.upkeep.restore(tail)
        assert told is not None
        assert len(told["lost"]) == (places is SEVERAL)
        # What came back, and what was written since the cut: that is kept where the report says.
        back = {f"R-{number}" for number in range(2, 6)} - ({"R-2"} if places is SEVERAL else set())
        assert set(told["changed"]) == back | {"after"}
    lost = {"R-2"} if places is SEVERAL else set()
    assert labels(tmp_path) == {name: text for name, text in before.items() if name not in lost}
    report = ChronoStore(tmp_path).verify()
    assert report.valid
    assert not any("whole events" in note for note in report.notes)
    (aside,) = (home / "quarantine").glob("*-before-restore")
    assert told["kept"] == f"quarantine/{aside.name}"
    with quiet(), ChronoStore(tmp_path) as store:
        store.upkeep.restore(aside)
    assert labels(tmp_path)["after"] == "went on"


def test_the_note_of_a_tail_says_what_its_restore_sets_aside(tmp_path: Path, home: Path) -> None:
    cut(tmp_path, home, *ONE)
    assert any("sets aside what was written since" in note for note in ChronoStore(tmp_path).verify().notes)


def test_no_compaction_takes_the_way_back_from_a_tail_in_quarantine(tmp_path: Path, home: Path) -> None:
    before, tail = cut(tmp_path, home, *ONE)
    with quiet(), ChronoStore(tmp_path) as store:
        store.upkeep.accept_head()
        for history in (True, False):
            with pytest.raises(LogCorrupted, match=f"{tail.name}.*3 whole events") as refused:
                store.compact(keep_history=history)
            assert "restore()" in refused.value.recovery
            assert "out of quarantine/" in refused.value.recovery
        assert labels(tmp_path)["after"] == "went on"
        store.upkeep.restore(tail)
        store.compact()
    assert labels(tmp_path) == before


def test_no_compaction_cuts_a_tail_with_whole_events(tmp_path: Path, home: Path) -> None:
    before = unsynced(tmp_path, home)
    alter(home, *ONE)
    log = (home / "events.wal").read_bytes()
    with quiet(), ChronoStore(tmp_path) as store:
        with pytest.raises(LogCorrupted, match="3 whole events") as refused:
            store.compact()
        assert "repair()" in refused.value.recovery
        assert (home / "events.wal").read_bytes() == log
        store.upkeep.repair()
        store.compact()
    assert labels(tmp_path) == before


def test_a_tail_that_cannot_be_restored_any_more_is_still_named(tmp_path: Path, home: Path) -> None:
    _, tail = cut(tmp_path, home, *ONE)
    alter(home, (b"went on", b"w-n- on"))
    with quiet(), ChronoStore(tmp_path) as store:
        told = store.upkeep.repair()
        assert told["damage"]
        for kept in (told["quarantine"], store.upkeep.repair()["quarantine"]):
            (listed,) = (item for item in kept if item["what"] == "tail")
            assert (listed["path"], listed["restorable"]) == (f"quarantine/{tail.name}", False)
            assert "not the present one" in listed["why"]
        named = f"quarantine/{tail.name} holds 3 whole events from seq 5 on.*cannot be restored: the log"
        assert any(re.search(named, note) for note in store.verify().notes)
        store.upkeep.accept_head()
        store.compact()
        assert any(re.search(named, note) for note in store.verify().notes)


def test_a_tail_of_another_log_is_refused(tmp_path: Path, home: Path) -> None:
    _, tail = cut(tmp_path, home, *ONE)
    with quiet(), ChronoStore(tmp_path) as store:
        store.upkeep.accept_head()
        # With the tail in its place this would be refused.
        elsewhere = tail.rename(tmp_path / tail.name)
        store.compact()
        with pytest.raises(LogCorrupted, match="a single file") as refused:
            store.upkeep.restore(elsewhere)
        assert "quarantine/" in refused.value.recovery
        elsewhere.rename(tail)
        store.upsert({"id": "later"})
        held = labels(tmp_path)
        with pytest.raises(LogCorrupted, match="another log"):
            store.upkeep.restore(tail)
        (listed,) = store.upkeep.repair()["quarantine"]
        assert not listed["restorable"]
    assert labels(tmp_path) == held


# A log that was cut at a line.


def cut_at_a_line(project: Path, home: Path) -> bytes:
    with ChronoStore(project) as store:
        for number in range(6):
            store.upsert({"id": f"R-{number}"})
    lines = (home / "events.wal").read_bytes().splitlines(keepends=True)
    (home / "events.wal").write_bytes(b"".join(lines[:3]))
    return (home / "synced").read_bytes()


def test_whoever_opens_a_log_that_was_cut_is_told_to_repair_it(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_at_a_line(tmp_path, home)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another home"))
    with pytest.warns(RuntimeWarning, match=r"ends before the last known sync.*repair\(\) before") as told:
        ChronoStore(tmp_path).open().close()
    assert "until then a write is refused" in str(told[0].message)
    assert any("ends before the last known sync" in note for note in ChronoStore(tmp_path).verify().notes)


def test_the_warning_points_at_who_opened_it(tmp_path: Path, home: Path) -> None:
    cut_at_a_line(tmp_path, home)
    with pytest.warns(RuntimeWarning) as by_with, ChronoStore(tmp_path):
        pass
    with pytest.warns(RuntimeWarning) as by_open:
        ChronoStore(tmp_path).open().close()
    with pytest.warns(RuntimeWarning) as by_call, closing(ChronoStore(tmp_path)) as store:
        store.get("R-0")
    for told in (by_with, by_open, by_call):
        assert {warning.filename for warning in told} == {__file__}


def test_nothing_is_written_behind_a_log_that_was_cut(tmp_path: Path, home: Path) -> None:
    hint = cut_at_a_line(tmp_path, home)
    with quiet(), ChronoStore(tmp_path) as store:
        for write in (lambda: store.upsert({"id": "one"}), store.compact):
            with pytest.raises(LogCorrupted, match="before a repair"):
                write()
        store.backup()
        assert (home / "synced").read_bytes() == hint
        told = store.upkeep.repair()
        assert any("event 6 lost" in entry or "–6 lost" in entry for entry in told["lost"]), told["lost"]
        assert store.upsert({"id": "one"}).seq > 6


def test_who_accepts_a_head_keeps_what_the_hint_knew(tmp_path: Path, home: Path) -> None:
    hint = cut_at_a_line(tmp_path, home)
    with quiet(), ChronoStore(tmp_path) as store:
        store.upkeep.accept_head()
        store.upsert({"id": "one"})
    kept = only(home / "quarantine")
    assert kept.name.endswith("-synced")
    assert kept.read_bytes() == hint
    report = ChronoStore(tmp_path).verify()
    assert any(f"quarantine/{kept.name} knows it with" in note for note in report.notes)
    (listed,) = repair(tmp_path)["quarantine"]
    assert (listed["what"], listed["path"], listed["seq"]) == ("synced", f"quarantine/{kept.name}", 6)


def test_a_hint_that_a_log_lives_up_to_is_not_kept(tmp_path: Path, home: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "A"})
        backup = store.backup()
        store.upsert({"id": "B"})
        store.upkeep.restore(backup)
        store.upsert({"id": "C"})
        store.compact()
        store.upsert({"id": "D"})
    assert not list((home / "quarantine").glob("*-synced"))
    assert json.loads((home / "snapshot.json").read_text())["records"]


@pytest.mark.parametrize("gone", [2, 4])
def test_a_line_that_is_gone_before_it_was_synced_costs_no_other(
    tmp_path: Path, home: Path, gone: int
) -> None:
    """The lines behind it are whole. Whoever writes next cuts them off, and they can be taken back."""
    truth = unsynced(tmp_path, home)
    lines = (home / "events.wal").read_bytes().splitlines(keepends=True)
    taken = json.loads(lines[gone])["record_id"]
    whole = [json.loads(line)["record_id"] for line in lines[gone + 1 :]]
    (home / "events.wal").write_bytes(b"".join(lines[:gone] + lines[gone + 1 :]))
    with quiet(), ChronoStore(tmp_path) as store:
        store.upsert({"id": "new", "label": "written since"})
        (note,) = [note for note in store.verify().notes if "restore takes them back" in note]
        assert f"{len(whole)} whole event" in note
        with pytest.raises(LogCorrupted):
            store.compact()
    (tail,) = (home / "quarantine").glob("*-tail-at-*")
    with quiet(), ChronoStore(tmp_path) as store:
        told = store.upkeep.restore(tail)
        assert told["lost"], "one line is nowhere"
        assert {name: store.get(name).label for name in whole} == {name: truth[name] for name in whole}
        assert taken not in whole and store.get("new") is None


@pytest.mark.parametrize("blank", [b"\n", b"\n\n \r\n"])
def test_blank_lines_at_the_end_keep_nobody_from_compacting(tmp_path: Path, blank: bytes) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "a", "label": "1"})
    log = tmp_path / ".chronomemory" / "events.wal"
    log.write_bytes(log.read_bytes() + blank)
    with ChronoStore(tmp_path) as store:
        assert store.compact() == 1
        store.upsert({"id": "b"})
        assert store.verify().valid and store.get("a").label == "1"
        assert len(store.history("a")) == 1


def test_a_log_that_ends_before_its_last_sync_is_not_healthy(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ChronoStore(tmp_path) as store:
        for name in "ABC":
            store.upsert({"id": name})
    log = home / "events.wal"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-1]))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another machine"))
    with quiet(), ChronoStore(tmp_path) as store:
        assert not store.health().ok
        assert (store.verify().rung, store.health().rung) == ("cut short", "cut short")
    with (
        pytest.raises(LogCorrupted, match="ends before the last known sync"),
        ChronoStore(tmp_path, strict=True) as store,
    ):
        store.count()
