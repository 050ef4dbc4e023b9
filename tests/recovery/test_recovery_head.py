"""Nothing is written behind a log that has lost its end, and a store notices that it has."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoStore
from chronomemory.errors import LogCorrupted
from recovering import labels, quiet

Lines = list[bytes]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / ".chronomemory"


def written(project: Path) -> dict[str, str]:
    with ChronoStore(project) as store:
        for number in range(8):
            store.upsert({"id": f"R{number % 6}", "label": f"true {number}"})
        store.backup()
    return labels(project)


def garbled(lines: Lines) -> Lines:
    return [*lines[:-1], lines[-1].replace(b"true", b"TRUE")]


def swapped(lines: Lines) -> Lines:
    return [lines[0], lines[-1], *lines[2:-1], lines[1]]


def rotated(lines: Lines) -> Lines:
    return [*lines[:2], *lines[5:], *lines[2:5]]


LOST: dict[str, Callable[[Lines], Lines]] = {
    "the last line altered": lambda lines: [*lines[:-1], lines[-1].replace(b"true", b"trUe")],
    "the last line altered beyond trying": garbled,
    "the last line swapped with another": swapped,
    "the last two lines swapped": lambda lines: [*lines[:-2], lines[-1], lines[-2]],
    "lines moved behind the last": rotated,
    "cut at a line": lambda lines: lines[:-3],
    "cut inside a line": lambda lines: [*lines[:-2], lines[-2][:70]],
    "cut inside the first line": lambda lines: [lines[0][:100]],
}


@pytest.mark.parametrize("how", LOST)
@pytest.mark.parametrize("options", [{}, {"durability": "full"}, {"exclusive": True}], ids=str)
def test_a_log_without_its_end_is_repaired_before_it_is_written(
    tmp_path: Path, home: Path, how: str, options: dict[str, Any]
) -> None:
    truth = written(tmp_path)
    lines = (home / "events.wal").read_bytes().splitlines(keepends=True)
    (home / "events.wal").write_bytes(b"".join(LOST[how](lines)))
    with quiet(), ChronoStore(tmp_path, **options) as store:
        writes: list[Callable[[], object]] = [
            lambda: store.upsert({"id": "N"}),
            lambda: store.upsert_many([{"id": "N"}, {"id": "M"}]),
            lambda: store.delete("R0"),
            store.compact,
        ]
        for write in writes:
            with pytest.raises(LogCorrupted):
                write()
    told = None
    with quiet(), ChronoStore(tmp_path, **options) as store:
        told = store.upkeep.repair()
        assert store.verify().valid
        store.upsert({"id": "N", "label": "new"})
    # The backup holds all of it.
    assert labels(tmp_path) == {**truth, "N": "new"}, told
    assert told["lost"] == []


def test_a_compacted_log_that_was_cut_keeps_its_base(tmp_path: Path, home: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert_many([{"id": f"A{n}", "label": f"value {n}"} for n in range(6)])
        store.compact()
    (home / "events.wal").write_bytes((home / "events.wal").read_bytes()[:152])
    for _ in range(2):
        with quiet(), ChronoStore(tmp_path) as store, pytest.raises(LogCorrupted):
            store.upsert({"id": "N"})
    with quiet(), ChronoStore(tmp_path) as store:
        store.upkeep.repair(unproven=True)
        assert store.record_count() == 6


def test_damage_before_the_end_keeps_nobody_from_writing(tmp_path: Path, home: Path) -> None:
    written(tmp_path)
    lines = (home / "events.wal").read_bytes().splitlines(keepends=True)
    lines[3] = lines[3].replace(b"true", b"TRUE")
    (home / "events.wal").write_bytes(b"".join(lines))
    with quiet(), ChronoStore(tmp_path) as store:
        store.upsert({"id": "N", "label": "new"})
        assert store.upkeep.repair()["lost"] == []
        assert store.get("N") is not None


@pytest.mark.parametrize("behind", [b'{"hash":"half a li', b"\0" * 512, b"garbage\n"])
def test_a_tail_keeps_no_exclusive_writer_out(tmp_path: Path, home: Path, behind: bytes) -> None:
    truth = written(tmp_path)
    with (home / "events.wal").open("ab") as log:
        log.write(behind)
    with quiet(), ChronoStore(tmp_path, exclusive=True) as store:
        store.upsert({"id": "N", "label": "new"})
        assert store.verify().valid
    assert labels(tmp_path) == {**truth, "N": "new"}


@pytest.mark.parametrize("options", [{}, {"durability": "full"}, {"exclusive": True}], ids=str)
@pytest.mark.parametrize("how", ["replaced", "cut"])
def test_a_handle_whose_log_was_changed_calls_nothing_valid(
    tmp_path: Path, home: Path, how: str, options: dict[str, Any]
) -> None:
    written(tmp_path)
    old = (home / "events.wal").read_bytes()
    store = ChronoStore(tmp_path, **options)
    store.upsert({"id": "A1"})
    store.upsert({"id": "A2"})
    if how == "replaced":
        (tmp_path / "copy").write_bytes(old)
        (tmp_path / "copy").rename(home / "events.wal")
    else:
        os.truncate(home / "events.wal", len(old))
    # Whoever keeps the lock judges by what it knows; whoever does not looks around first, and raises.
    for judge in (lambda: store.verify().valid, store.chain_valid):
        try:
            assert not judge()
        except LogCorrupted:
            continue
    with contextlib.suppress(LogCorrupted, OSError):
        store.close()
