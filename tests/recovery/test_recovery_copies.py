"""Lines come back that only a copy holds, and it is said what lies behind them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from chronomemory import ChronoStore
from chronomemory.errors import ChronoError, LogCorrupted
from recovering import labels, quiet

Lines = list[bytes]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / ".chronomemory"


def lines_of(home: Path) -> Lines:
    return (home / "events.wal").read_bytes().splitlines(keepends=True)


def put(store: ChronoStore, numbers: range, label: str = "true") -> None:
    for number in numbers:
        store.upsert({"id": f"R{number}", "label": label})


def written(project: Path) -> None:
    """Fourteen events: a backup holds the first nine, the last of which deletes a record."""
    with ChronoStore(project) as store:
        put(store, range(8))
        store.delete("R0")
        store.backup()
        put(store, range(8, 13))


GAPS: dict[str, Callable[[Lines], bytes]] = {
    "cut": lambda lines: b"".join(lines[:6]),
    "cut inside a line": lambda lines: b"".join(lines[:6]) + lines[6][:40],
    "zeros at the end": lambda lines: b"".join(lines[:6]) + bytes(sum(map(len, lines[6:]))),
    "lost in the middle": lambda lines: b"".join([*lines[:6], b"rubbish\n" * 5, *lines[11:]]),
    "taken out of the middle": lambda lines: b"".join([*lines[:6], *lines[11:]]),
    "zeros in the middle": lambda lines: b"".join([*lines[:6], bytes(700), b"\n", *lines[11:]]),
}


@pytest.mark.parametrize("how", GAPS)
@pytest.mark.parametrize("has_hint", [True, False])
def test_lines_that_follow_are_taken_as_far_as_a_copy_has_them(
    tmp_path: Path, home: Path, how: str, has_hint: bool
) -> None:
    written(tmp_path)
    (home / "events.wal").write_bytes(GAPS[how](lines_of(home)))
    if not has_hint:
        (home / "synced").unlink()
        if how.startswith("cut") or how.endswith("end"):
            pytest.skip("nothing tells that there was more")
    with quiet(), ChronoStore(tmp_path) as store:
        told = store.upkeep.repair()
        assert told["lost"], "the events behind those of the copy"
        status = {record.id: record.status for record in store.query(status="")}
    assert status["R0"] == "tombstone"
    assert {"R6", "R7"} <= status.keys()
    assert "R8" not in status
    if "middle" in how:
        assert {"R11", "R12"} <= status.keys()


def test_copies_that_go_on_differently_tell_nothing(tmp_path: Path, home: Path) -> None:
    with ChronoStore(tmp_path) as store:
        put(store, range(4))
        first = store.backup()
        put(store, range(4, 6), "given up")
        store.backup()
        store.upkeep.restore(first)
        put(store, range(6, 9), "true")
    (home / "events.wal").write_bytes(b"".join(lines_of(home)[:4]))
    with quiet(), ChronoStore(tmp_path) as store:
        told = store.upkeep.repair()
        assert told["lost"]
    assert labels(tmp_path).keys() == {"R0", "R1", "R2", "R3"}, "what was given up stays so"


def test_a_last_line_without_its_newline_is_whole(tmp_path: Path, home: Path) -> None:
    with ChronoStore(tmp_path) as store:
        put(store, range(4))
    lines = lines_of(home)
    (home / "events.wal").write_bytes(b"".join([*lines[:-2], b"rubbish\n", lines[-1].rstrip(b"\n")]))
    with quiet(), ChronoStore(tmp_path) as store:
        assert len(store.upkeep.repair()["lost"]) == 1
    assert labels(tmp_path).keys() == {"R0", "R1", "R3"}


@pytest.mark.parametrize("is_compacted", [True, False])
@pytest.mark.parametrize("lost", [1, 2])
def test_a_lost_first_line_does_not_hide_a_lost_end(
    tmp_path: Path, home: Path, is_compacted: bool, lost: int
) -> None:
    with ChronoStore(tmp_path) as store:
        put(store, range(2))
        if is_compacted:
            store.compact()
        put(store, range(2, 6))
        store.delete("R0")
    lines = lines_of(home)
    last = json.loads(lines[-1])["seq"]
    (home / "events.wal").write_bytes(b"".join([b"rubbish\n", *lines[lost:-2]]))
    with quiet(), ChronoStore(tmp_path) as store:
        assert any(f"seq {last}" in note for note in store.verify().notes)
        told = store.upkeep.repair(unproven=True)
        assert any(f"events {last - 1}–{last} lost" in one for one in told["lost"]), told["lost"]
        seqs = store.wal_seq()
    assert seqs > last, "a seq is given out once"


@pytest.mark.parametrize("is_compacted", [False, True])
@pytest.mark.parametrize("is_cut", [False, True])
def test_a_history_that_a_restore_left_does_not_come_back(
    tmp_path: Path, home: Path, is_compacted: bool, is_cut: bool
) -> None:
    with ChronoStore(tmp_path) as store:
        put(store, range(3))
        before = store.backup()
        put(store, range(2), "left behind")
        store.backup()
        if is_compacted:
            store.compact()
        store.upkeep.restore(before)
        put(store, range(3, 9))
    lines = lines_of(home)
    lost = lines[:3] if is_cut else [*lines[:3], b"rubbish\n" * 3, *lines[6:]]
    (home / "events.wal").write_bytes(b"".join(lost))
    with quiet(), ChronoStore(tmp_path) as store:
        assert store.upkeep.repair()["lost"]
        assert {store.get(f"R{number}").label for number in range(3)} == {"true"}


@pytest.mark.parametrize("end", [slice(0, 100), slice(0, -1)])
def test_a_repair_does_not_undo_a_restore(tmp_path: Path, end: slice) -> None:
    """The hint about the last sync speaks of the log that was replaced, until a whole log is synced."""
    with ChronoStore(tmp_path) as store:
        put(store, range(4))
        copy = Path(store.backup())
        put(store, range(2), "rolled back")
        log = copy / "events.wal"
        *whole, last = log.read_bytes().splitlines(keepends=True)
        log.write_bytes(b"".join([*whole, last[end]]))
        store.upkeep.restore(copy, damaged=True)
        store.upkeep.repair()
        assert {store.get(f"R{number}").label for number in range(3)} == {"true"}


@pytest.mark.parametrize("end", [slice(0, 100), slice(0, -1), slice(0, 0)])
def test_what_a_copy_has_lost_is_named_where_nothing_else_holds_it(tmp_path: Path, end: slice) -> None:
    with ChronoStore(tmp_path / "first") as store:
        put(store, range(4))
        copy = Path(store.backup())
    log = copy / "events.wal"
    *whole, last = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([*whole, last[end]]))
    with quiet(), ChronoStore(tmp_path / "second") as store:
        store.upkeep.restore(copy, damaged=True)
        told = store.upkeep.repair()
        assert bool(told["lost"]) == (end != slice(0, -1))
        assert bool(told["healed"]) == (end == slice(0, -1))
        assert {store.get(f"R{number}").label for number in range(3)} == {"true"}


@pytest.mark.parametrize("end", [slice(0, 100), slice(0, -1), slice(0, 0)])
def test_a_copy_that_lost_its_last_line_says_so_when_it_is_back(
    tmp_path: Path, home: Path, end: slice
) -> None:
    with ChronoStore(tmp_path) as store:
        put(store, range(4))
        seq = store.wal_seq()
        copy = Path(store.backup())
        log = copy / "events.wal"
        *whole, last = log.read_bytes().splitlines(keepends=True)
        log.write_bytes(b"".join([*whole, last[end]]))
        with pytest.raises(LogCorrupted):
            store.upkeep.restore(copy)
        store.upkeep.restore(copy, damaged=True)
        (note,) = [note for note in store.verify().notes if "was cut" in note]
        assert f"seq {seq}" in note
        kept = re.search(r"quarantine/\S+-synced", note)
        assert kept is not None
        assert (home / kept.group()).is_file()
    with quiet(), ChronoStore(tmp_path) as store:
        told = store.upkeep.repair()
        # The log that the restore has set aside holds that line, and the hint of the copy names it.
        assert (told["lost"], told["healed"]) == ([], 1)
        assert store.get("R3").label == "true"
        # Whoever goes on writing does not make it forgotten.
        put(store, range(7, 8))
        notes = store.verify().notes
        assert any("was cut" in note or "repaired at event" in note for note in notes)


def test_a_whole_copy_that_is_back_misses_nothing(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        put(store, range(4))
        copy = store.backup()
        put(store, range(2), "rolled back")
        store.upkeep.restore(copy, damaged=True)
        assert not any("was cut" in note for note in store.verify().notes)


@pytest.mark.parametrize("keep_history", [True, False])
def test_a_copy_whose_only_line_is_damaged_comes_back_as_it_is(tmp_path: Path, keep_history: bool) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "OLD"})
        backup = store.backup()
        for number in range(5):
            store.upsert({"id": f"NEW{number}"})
        store.compact(keep_history=keep_history)
    log = tmp_path / ".chronomemory" / "events.wal"
    content = bytearray(log.read_bytes())
    content[300] ^= 1
    log.write_bytes(content)
    with quiet(), ChronoStore(tmp_path) as store:
        store.upkeep.restore(backup)
        assert [record.id for record in store.query()] == ["OLD"]
    (aside,) = (tmp_path / ".chronomemory" / "quarantine").iterdir()
    with quiet(), ChronoStore(tmp_path) as store:
        with pytest.raises(ChronoError, match="no line of its log is a whole event, though") as refused:
            store.upkeep.restore(aside)
        assert "damaged=True" in refused.value.recovery
        store.upkeep.restore(aside, damaged=True)
        assert not store.verify().valid
        store.upkeep.repair()
        assert sorted(record.id for record in store.query()) == [*(f"NEW{n}" for n in range(5)), "OLD"]
        assert store.verify().valid


@pytest.mark.parametrize("how", GAPS)
def test_a_whole_copy_with_embeddings_comes_back_whatever_the_log_has_lost(
    tmp_path: Path, home: Path, how: str
) -> None:
    old, new = np.array([[1.0, 2.0]] * 3, dtype=np.float32), np.array([[3.0, 1.0]] * 3, dtype=np.float32)
    ids = ["R0", "R1", "R2"]
    with ChronoStore(tmp_path) as store:
        put(store, range(3))
        store.vectors.attach_many(ids, old, space="s", model="m")
        copy = store.backup()
        put(store, range(3, 8))
        store.vectors.attach_many(ids, new, space="s")
        put(store, range(8, 13))
    (home / "events.wal").write_bytes(GAPS[how](lines_of(home)))
    with quiet(), ChronoStore(tmp_path) as store:
        store.upkeep.restore(copy)
        assert [found.score for found in store.vectors.nearest(old[0], space="s")] == pytest.approx([1.0] * 3)
        assert store.verify().valid
    assert labels(tmp_path) == dict.fromkeys(ids, "true")
