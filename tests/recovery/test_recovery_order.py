"""Lines that do not belong where they stand are told from others, and nothing is taken that only fits."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chronomemory import ChronoStore
from chronomemory.errors import LogCorrupted
from recovering import quiet, rehashed


def values(project: Path) -> dict[str, tuple[str, str]]:
    with quiet(), ChronoStore(project) as store:
        return {record.id: (record.label, record.status) for record in store.query(status="")}


def repair(project: Path, **options: Any) -> dict[str, Any]:
    with quiet(), ChronoStore(project) as store:
        told = store.upkeep.repair(**options)
        assert store.verify().valid
        return told


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / ".chronomemory"


@pytest.fixture
def story(tmp_path: Path) -> dict[str, tuple[str, str]]:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "DOSE", "label": "give 90 mg"})
        store.upsert({"id": "GONE", "label": "was there"})
        store.upsert({"id": "DOSE", "label": "give 10 mg"})
        store.delete("GONE")
        store.upsert({"id": "C", "label": "third"})
        store.upsert({"id": "D", "label": "fourth"})
    return values(tmp_path)


def move(lines: list[bytes], source: int, target: int) -> None:
    lines.insert(target, lines.pop(source))


REORDERED: dict[str, Callable[[list[bytes]], None]] = {
    "first line again at the end of the middle": lambda lines: lines.insert(5, lines[0]),
    "second line again": lambda lines: lines.insert(5, lines[1]),
    "two swapped": lambda lines: move(lines, 2, 3),
    "one moved back": lambda lines: move(lines, 4, 1),
    "one moved on": lambda lines: move(lines, 1, 4),
    "some reversed": lambda lines: lines.__setitem__(slice(1, 5), lines[1:5][::-1]),
}


@pytest.mark.parametrize("how", REORDERED)
def test_lines_find_their_places_again(
    tmp_path: Path, home: Path, story: dict[str, tuple[str, str]], how: str
) -> None:
    lines = (home / "events.wal").read_bytes().splitlines(keepends=True)
    REORDERED[how](lines)
    (home / "events.wal").write_bytes(b"".join(lines))
    told = repair(tmp_path)
    assert (told["lost"], told["history_kept"]) == ([], True)
    assert values(tmp_path) == story


@pytest.mark.parametrize("has_backup", [True, False])
@pytest.mark.parametrize("number", [0, 2])
def test_a_forged_line_in_the_place_of_a_true_one_is_not_believed(
    tmp_path: Path, home: Path, story: dict[str, tuple[str, str]], number: int, has_backup: bool
) -> None:
    if has_backup:
        with ChronoStore(tmp_path) as store:
            store.backup()
    lines = (home / "events.wal").read_bytes().splitlines(keepends=True)
    record = json.loads(lines[number])["record"] | {"label": "give far too much"}
    lines[number] = rehashed(lines[number], record=record)
    (home / "events.wal").write_bytes(b"".join(lines))
    told = repair(tmp_path)
    now = values(tmp_path)
    assert now["DOSE"][0] != "give far too much"
    if has_backup or number == 0:
        assert now["DOSE"] == story["DOSE"]
    else:
        assert told["lost"][0].startswith("event 3 lost")
    assert bool(told["lost"]) != has_backup


def test_a_forged_line_between_true_ones_is_left_out(
    tmp_path: Path, home: Path, story: dict[str, tuple[str, str]]
) -> None:
    lines = (home / "events.wal").read_bytes().splitlines(keepends=True)
    event = json.loads(lines[3])
    forged = rehashed(lines[2], prev_hash=event["prev_hash"], seq=event["seq"], ts=event["ts"])
    (home / "events.wal").write_bytes(b"".join([*lines[:3], forged, *lines[3:]]))
    repair(tmp_path)
    assert values(tmp_path) == story


def test_the_end_that_synced_knows_is_missed_and_its_seqs_are_not_used_again(
    tmp_path: Path, home: Path, story: dict[str, tuple[str, str]]
) -> None:
    lines = (home / "events.wal").read_bytes().splitlines(keepends=True)
    (home / "events.wal").write_bytes(b"".join([*lines[:-1], lines[0]]))
    told = repair(tmp_path)
    assert told["lost"]
    with quiet(), ChronoStore(tmp_path) as store:
        assert store.upsert({"id": "next"}).seq > 6
        assert store.get("DOSE").label == "give 10 mg"  # type: ignore[union-attr]


@pytest.mark.parametrize("how", ["removed", "emptied"])
@pytest.mark.parametrize("is_exact", [True, False])
def test_a_lost_log_is_taken_from_a_backup_that_synced_knows(
    tmp_path: Path, home: Path, story: dict[str, tuple[str, str]], how: str, is_exact: bool
) -> None:
    with ChronoStore(tmp_path) as store:
        copy = store.backup()
        if not is_exact:
            store.upsert({"id": "later"})
    (home / "events.wal").unlink()
    if how == "emptied":
        (home / "events.wal").write_bytes(b"")
    if not is_exact:
        # The copy may belong to another history: nothing tells how the lost one went on.
        for unproven in (False, True):
            with pytest.raises(LogCorrupted, match="which restore brings back"):
                repair(tmp_path, unproven=unproven)
        with quiet(), ChronoStore(tmp_path) as store:
            store.upkeep.restore(copy)
    else:
        told = repair(tmp_path)
        assert (told["lost"], told["unproven"]) == ([], [])
    assert values(tmp_path) == story


@pytest.mark.parametrize("how", ["deleted", "blank"])
def test_a_sentinel_that_is_not_there_hides_nothing(tmp_path: Path, home: Path, how: str) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert_many([{"id": f"A{n}", "label": f"value {n}"} for n in range(5)])
        store.compact()
        store.upsert({"id": "late"})
    before = values(tmp_path)
    lines = (home / "events.wal").read_bytes().splitlines(keepends=True)
    lines[0] = b"" if how == "deleted" else b" " * (len(lines[0]) - 1) + b"\n"
    (home / "events.wal").write_bytes(b"".join(lines))
    with pytest.raises(LogCorrupted, match="the line that names the base is lost"):
        repair(tmp_path)
    assert repair(tmp_path, unproven=True)["lost"]
    assert values(tmp_path) == before


def test_of_two_branches_the_one_that_is_left_out_is_named(
    tmp_path: Path, home: Path, story: dict[str, tuple[str, str]]
) -> None:
    lines = (home / "events.wal").read_bytes().splitlines(keepends=True)
    (home / "synced").unlink()
    first = rehashed(
        lines[2], prev_hash=json.loads(lines[1])["hash"], seq=7, record_id="X", record={"id": "X"}
    )
    second = rehashed(first, prev_hash=json.loads(first)["hash"], seq=8, record_id="Y", record={"id": "Y"})
    (home / "events.wal").write_bytes(b"".join([*lines, first, second]))
    assert repair(tmp_path)["lost"]


def test_a_base_that_only_fits_is_not_believed_without_its_archive(tmp_path: Path, home: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "DOSE", "label": "give 10 mg"})
        store.compact(keep_history=False)
        store.upsert({"id": "C"})
    (home / "snapshot.json").unlink()
    lines = (home / "events.wal").read_bytes().splitlines(keepends=True)
    (home / "events.wal").write_bytes(b"#" * (len(lines[0]) - 1) + b"\n" + b"".join(lines[1:]))
    with pytest.raises(LogCorrupted):
        repair(tmp_path)
    assert repair(tmp_path, unproven=True)["unproven"] == ["DOSE"]


def test_a_batch_that_may_never_have_been_whole_leaves_no_belief_unmarked(tmp_path: Path, home: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert_many([{"id": "F"}, {"id": "D"}])
        store.upsert_many([{"id": "F", "status": "invalidated"}, {"id": "D", "label": "more than one byte"}])
    (home / "synced").unlink()
    data = (home / "events.wal").read_bytes()
    (home / "events.wal").write_bytes(data.replace(b"more than one byte", b"MORE THAN ONE BYTE"))
    told = repair(tmp_path)
    assert set(told["unsettled"]) == {"F", "D"}
    assert values(tmp_path)["F"][1] == "unsettled"


def test_what_a_lost_log_left_can_be_restored_after_another_took_its_place(
    tmp_path: Path, home: Path
) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "OLD"})
        backup = store.backup()
        store.upsert({"id": "NEW"})
        store.compact()
    for how in ("removed", "emptied"):
        (home / "events.wal").unlink()
        if how == "emptied":
            (home / "events.wal").write_bytes(b"")
        with quiet(), ChronoStore(tmp_path) as store:
            store.upkeep.restore(backup)
            assert store.get("NEW") is None
            aside = sorted((home / "quarantine").glob("*-before-restore*"))[-1]
            store.upkeep.restore(aside)
            assert store.get("NEW") is not None


def test_what_a_restore_sets_aside_keeps_its_rows(tmp_path: Path, home: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "R"})

        def attach(number: int) -> None:
            store.vectors.attach("R", np.full(4, number, dtype=np.float32), model="m")

        attach(1)
        backup = store.backup()
        attach(2)
        store.upkeep.restore(backup)
        first = sorted((home / "quarantine").iterdir())[-1]
        attach(3)
        store.upkeep.restore(first)
        assert store.vectors.get("R")[0] == 2  # type: ignore[index]
        second = next(path for path in (home / "quarantine").iterdir() if path != first)
        store.upkeep.restore(second)
        assert store.vectors.get("R")[0] == 3  # type: ignore[index]
        assert store.verify().valid


def test_an_exclusive_writer_acknowledges_nothing_into_a_log_that_was_replaced(
    tmp_path: Path, home: Path
) -> None:
    with ChronoStore(tmp_path, exclusive=True) as store:
        for number in range(20):
            store.upsert({"id": f"R-{number}"})
        store.sync()
        shutil.copy(home / "events.wal", home / "copy")
        (home / "copy").rename(home / "events.wal")
        acknowledged = 0
        for number in range(200):
            try:
                store.upsert({"id": f"N-{number}"})
                acknowledged += 1
            except OSError:
                continue
        assert acknowledged == 0


def test_another_log_written_over_this_one_is_not_followed(tmp_path: Path, home: Path) -> None:
    with ChronoStore(tmp_path / "other") as other:
        for number in range(30):
            other.upsert({"id": f"O-{number}", "label": "longer than what was there"})
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "A"})
        store.sync()
        with ChronoStore(tmp_path) as reader:
            assert reader.get("A") is not None
            (home / "events.wal").write_bytes(
                (tmp_path / "other" / ".chronomemory" / "events.wal").read_bytes()
            )
            with pytest.raises(LogCorrupted):
                reader.get("A")


def test_an_archive_that_lost_a_byte_is_found_again(tmp_path: Path, home: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "A", "label": "one"})
        store.compact()
    (archive,) = (home / "archive").iterdir()
    content = bytearray(archive.read_bytes())
    content[len(content) // 2] ^= 4
    archive.write_bytes(content)
    told = repair(tmp_path)
    assert (told["lost"], told["history_kept"]) == ([], True)
    with ChronoStore(tmp_path) as store:
        assert len(store.history("A")) == 1


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("is_before", [True, False])
@pytest.mark.parametrize("has_hint", [True, False])
@pytest.mark.parametrize("later", [0, 1])
def test_an_old_line_beside_a_sentinel_leads_nowhere(
    tmp_path: Path, home: Path, number: int, is_before: bool, has_hint: bool, later: int
) -> None:
    """What a compaction has retired is in its base: one of its lines, found in the log again, is no log."""
    log = home / "events.wal"
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "DOSE", "label": "give 90 mg"})
        store.upsert({"id": "DOSE", "label": "give 10 mg"})
        store.upsert({"id": "OTHER", "label": "was there"})
        old = log.read_bytes().splitlines(keepends=True)
        store.compact()
        for _ in range(later):
            store.upsert({"id": "LATER", "label": "goes on"})
    truth = values(tmp_path)
    whole = log.read_bytes()
    log.write_bytes(old[number] + whole if is_before else whole + old[number])
    if not has_hint:
        (home / "synced").unlink()
    told = repair(tmp_path)
    assert (told["lost"], told["history_kept"]) == ([], True)
    assert values(tmp_path) == truth
