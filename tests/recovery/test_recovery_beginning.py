"""The beginning of a log comes back from a copy, though some lines behind it are nowhere."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from chronomemory import ChronoStore
from chronomemory.errors import LogCorrupted
from recovering import quiet

LOG = "events.wal"
Lines = list[bytes]

#: What is left of a log that lost its first lines.
LOSSES: dict[str, Callable[[Lines, int], bytes]] = {
    "cut": lambda lines, count: b"".join(lines[count:]),
    "zeroed": lambda lines, count: bytes(sum(map(len, lines[:count]))) + b"".join(lines[count:]),
    "zeroed but for a newline": lambda lines, count: (
        bytes(sum(map(len, lines[:count])) - 1) + b"\n" + b"".join(lines[count:])
    ),
    "rubbish": lambda lines, count: b"rubbish\n" * count + b"".join(lines[count:]),
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / ".chronomemory"


def put(store: ChronoStore, numbers: range, label: str = "true") -> None:
    for number in numbers:
        store.upsert({"id": f"R{number}", "label": label})


def lines_of(home: Path) -> Lines:
    return (home / LOG).read_bytes().splitlines(keepends=True)


def lose(home: Path, how: str, count: int) -> None:
    (home / LOG).write_bytes(LOSSES[how](lines_of(home), count))


@pytest.mark.parametrize("is_compacted", [False, True], ids=["plain", "compacted"])
@pytest.mark.parametrize("how", LOSSES)
def test_the_lines_of_a_copy_are_taken_and_the_others_named(
    tmp_path: Path, home: Path, how: str, is_compacted: bool
) -> None:
    with ChronoStore(tmp_path) as store:
        if is_compacted:
            put(store, range(20, 24))
            store.backup()
            store.compact(keep_history=False)
        put(store, range(6))
        store.delete("R0")
        held = len((Path(store.backup()) / LOG).read_bytes().splitlines())
        put(store, range(6, 12))
    lose(home, how, held + 2)
    with quiet(), ChronoStore(tmp_path) as store:
        told = store.upkeep.repair()
        assert told["unproven"] == []
        assert store.verify().valid
        status = {record.id: record.status for record in store.query(status="")}
        # The event behind a zeroed stretch stands in one line with it.
        next_one = 9 if how == "zeroed" else 8
        kept = {f"R{number}" for number in (*range(6), *range(next_one, 12))}
        kept |= {f"R{number}" for number in range(20, 24)} if is_compacted else set()
        assert status.keys() == kept, "the two behind the copy are nowhere"
        assert status["R0"] == "tombstone"
        assert {record.label for record in store.query(status="")} == {"true"}
        first = held + 1 + (4 if is_compacted else 0)
        named = f"events {first}–{first + next_one - 7} lost"
        assert any(named in one for one in told["lost"]), told["lost"]


def test_a_copy_of_another_log_is_no_beginning(tmp_path: Path, home: Path) -> None:
    """A backup from before a compaction holds older values: what came between is in the base."""
    with ChronoStore(tmp_path) as store:
        put(store, range(4), "old")
        store.backup()
        put(store, range(4), "new")
        store.compact()
        put(store, range(4, 8), "new")
    lose(home, "cut", 2)
    with quiet(), ChronoStore(tmp_path) as store:
        told = store.upkeep.repair(unproven=True)
        assert told["lost"]
        assert {record.label for record in store.query()} == {"new"}


def test_only_the_first_event_is_proved_where_a_restore_went_back(tmp_path: Path, home: Path) -> None:
    """A copy may be of the way that was left; but the first line, and what the log starts from, are known."""
    with ChronoStore(tmp_path) as store:
        put(store, range(3))
        store.compact(keep_history=False)
        before = store.backup()
        put(store, range(3), "left behind")
        store.backup()
        store.upkeep.restore(before)
        put(store, range(3, 9))
    lose(home, "cut", 3)
    with quiet(), ChronoStore(tmp_path) as store:
        told = store.upkeep.repair()
        assert told["lost"]
        assert {record.label for record in store.query()} == {"true"}
        assert store.get("R8") is not None


def test_bytes_without_a_line_were_a_log_if_a_snapshot_was_made_of_it(tmp_path: Path, home: Path) -> None:
    """All of a log is zeros, its newlines too. What its snapshot says is brought back, and marked."""
    with ChronoStore(tmp_path) as store:
        put(store, range(4))
        store.compact()
    for name in ("base", "archive"):
        shutil.rmtree(home / name)
    (home / "synced").unlink()
    (home / LOG).write_bytes(bytes(500))
    with quiet(), ChronoStore(tmp_path) as store:
        assert [found.kind for found in store.verify().damage] == ["log-missing"]
        with pytest.raises(LogCorrupted):
            put(store, range(9, 10))
        with pytest.raises(LogCorrupted):
            store.upkeep.repair()
        told = store.upkeep.repair(unproven=True)
        assert sorted(told["unproven"]) == [f"R{number}" for number in range(4)]
        assert {store.get(f"R{number}").label for number in range(4)} == {"true"}
