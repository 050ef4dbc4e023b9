"""A repair follows the chain back from what was synced, whatever else was written into the log."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoStore, _core
from recovering import labels, quiet, rehashed


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / ".chronomemory"


def repair(project: Path) -> dict[str, Any]:
    with quiet(), ChronoStore(project) as store:
        told = store.upkeep.repair()
        assert store.verify().valid
        return told


def written(project: Path, backup: bool, number: int = 12) -> tuple[dict[str, str], list[bytes]]:
    with ChronoStore(project) as store:
        for at in range(number):
            store.upsert({"id": f"R{at % 5}", "label": f"true {at}"})
        if backup:
            store.backup()
    log = project / ".chronomemory" / "events.wal"
    return labels(project), log.read_bytes().splitlines(keepends=True)


def fork(lines: list[bytes], after: int, length: int) -> list[bytes]:
    """Lines with hashes of their own that follow from a true one and from each other."""
    made: list[bytes] = []
    for at in range(length):
        before = json.loads(made[-1] if made else lines[after])
        record = {"id": f"R{at % 5}", "label": f"forged {at}"}
        made.append(
            rehashed(
                lines[1],
                prev_hash=before["hash"],
                seq=before["seq"] + 1,
                ts=before["ts"],
                record=record,
                record_id=record["id"],
            )
        )
    return made


@pytest.mark.parametrize("length", [1, 2, 3, 6])
def test_forged_lines_in_the_place_of_true_ones_give_way_to_a_backup(
    tmp_path: Path, home: Path, length: int
) -> None:
    truth, lines = written(tmp_path, backup=True)
    lines[4 : 4 + min(length, 3)] = fork(lines, 3, length)
    (home / "events.wal").write_bytes(b"".join(lines))
    told = repair(tmp_path)
    assert labels(tmp_path) == truth
    assert (told["lost"], told["history_kept"]) == ([], True)


@pytest.mark.parametrize("length", [2, 5, 40])
def test_a_fork_among_true_lines_does_not_win_over_what_was_synced(
    tmp_path: Path, home: Path, length: int
) -> None:
    truth, lines = written(tmp_path, backup=False)
    forged = fork(lines, 3, length)
    mixed: list[bytes] = lines[:4]
    for at in range(max(len(lines) - 4, length)):
        mixed += forged[at : at + 1] + lines[4 + at : 5 + at]
    (home / "events.wal").write_bytes(b"".join(mixed))
    told = repair(tmp_path)
    assert labels(tmp_path) == truth
    assert (told["lost"], told["history_kept"]) == ([], True)


def test_a_line_with_a_seq_far_ahead_takes_nothing_away(tmp_path: Path, home: Path) -> None:
    truth, lines = written(tmp_path, backup=False)
    (home / "synced").unlink()
    planted = rehashed(lines[1], prev_hash="a" * 64, seq=10**9, record_id="X", record={"id": "X"})
    (home / "events.wal").write_bytes(b"".join([*lines[:6], planted, *lines[6:]]))
    repair(tmp_path)
    assert {id: label for id, label in labels(tmp_path).items() if id != "X"} == truth


@pytest.mark.parametrize("lost", [1, 4, 11])
def test_a_log_cut_at_a_line_is_completed_from_a_backup(tmp_path: Path, home: Path, lost: int) -> None:
    truth, lines = written(tmp_path, backup=True)
    (home / "events.wal").write_bytes(b"".join(lines[:-lost]))
    told = repair(tmp_path)
    assert labels(tmp_path) == truth
    assert (told["lost"], told["history_kept"]) == ([], True)
    with ChronoStore(tmp_path) as store:
        assert len(list(store.history("R0"))) == 3
        assert store.upkeep.repair() == {} or not store.upkeep.repair()["damage"]


def damaged(lines: list[bytes], choice: random.Random, keep: bool) -> list[bytes]:
    """The lines after something was done to them; with `keep`, every true one is still there."""
    lines, head = list(lines), lines[-1]
    kinds = ["fork", "again", "moved", "mixed", "planted"] + ([] if keep else ["gone", "replaced", "letters"])
    for _ in range(choice.randint(1, 3)):
        at, length = choice.randrange(max(len(lines), 1)), choice.randint(1, 5)
        kind = choice.choice(kinds)
        if not lines or (lines[at] == head and kind in ("fork", "mixed")):
            continue  # What follows from the last event is a chain like any other.
        if kind == "fork":
            target = choice.randrange(len(lines) + 1)
            lines[target:target] = fork(lines, at, length)
        elif kind == "again":
            target = choice.randrange(len(lines) + 1)
            lines[target:target] = lines[at : at + length]
        elif kind == "moved":
            taken = lines[at : at + length]
            del lines[at : at + length]
            target = choice.randrange(len(lines) + 1)
            lines[target:target] = taken
        elif kind == "mixed":
            for line in fork(lines, at, length):
                lines.insert(choice.randrange(len(lines) + 1), line)
        elif kind == "planted":
            seq = choice.choice([1, 5, 13, 10**6])
            lines.insert(at, rehashed(lines[0], prev_hash=choice.choice(["", "b" * 64]), seq=seq))
        elif kind == "gone":
            del lines[at : at + length]
        elif kind == "replaced":
            lines[at : at + length] = fork(lines, max(at - 1, 0), length)
        else:
            lines[at] = lines[at].replace(b"true", b"TRUE").replace(b"forged", b"FORGED")
    return lines


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("backup", [True, False])
def test_what_was_synced_is_found_again(tmp_path: Path, home: Path, seed: int, backup: bool) -> None:
    """With a backup whatever happens to the lines; without, as long as the true ones are still there."""
    truth, lines = written(tmp_path, backup)
    choice = random.Random(f"{seed} {backup}")
    now = b"".join(damaged(lines, choice, keep=not backup))
    (home / "events.wal").write_bytes(now)
    with quiet(), ChronoStore(tmp_path) as store:
        told = store.upkeep.repair()
        assert store.verify().valid
    assert labels(tmp_path) == truth, told


def test_hashes_of_forged_lines_are_right(tmp_path: Path) -> None:
    """Otherwise nothing above would be tried."""
    _, lines = written(tmp_path, backup=False)
    for line in fork(lines, 3, 3):
        assert json.loads(line)["hash"] == _core.event_hash(json.loads(line))
