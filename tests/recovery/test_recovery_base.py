"""What a log starts from is found again when the lines that name it are lost, and never left out silently."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoStore, _core
from chronomemory.errors import LogCorrupted
from recovering import labels, quiet, rehashed
from verdicts import verify_log

OLD = {f"old {number}": "kept" for number in range(5)}
NEW = {f"new {number}": "later" for number in range(4)}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / ".chronomemory"


def put(store: ChronoStore, records: dict[str, str]) -> None:
    for name, label in records.items():
        store.upsert({"id": name, "label": label})


def compacted(project: Path) -> None:
    with ChronoStore(project) as store:
        put(store, OLD)
        store.compact()
        put(store, NEW)


def lines_of(home: Path) -> list[bytes]:
    return (home / "events.wal").read_bytes().splitlines(keepends=True)


def kinds(project: Path) -> set[str]:
    with quiet(), ChronoStore(project) as store:
        return {found.kind for found in store.verify().damage}


def is_marked(record: dict[str, Any]) -> bool:
    return "@unproven" in record.get("data", {})


def mended(project: Path, *, unproven: bool = False) -> dict[str, dict[str, Any]]:
    with quiet(), ChronoStore(project) as store:
        told = store.upkeep.repair(unproven=unproven)
        assert told["lost"]
        return {row["id"]: row for row in store.export_records(status="")}


ILLEGIBLE: dict[str, Callable[[list[bytes]], bytes]] = {
    "the first two lines are gone": lambda lines: b"".join(lines[2:]),
    "one line of rubbish in their place": lambda lines: b"".join([b"rubbish\n", *lines[2:]]),
    "the first four lines are gone": lambda lines: b"".join(lines[4:]),
}


@pytest.mark.parametrize("how", ILLEGIBLE)
@pytest.mark.parametrize("history", ["kept", "dropped"])
def test_a_base_that_only_fits_is_taken_on_demand_and_marked(
    tmp_path: Path, home: Path, how: str, history: str
) -> None:
    compacted(tmp_path)
    if history == "dropped":
        shutil.rmtree(home / "archive")
    (home / "events.wal").write_bytes(ILLEGIBLE[how](lines_of(home)))
    assert "base-missing" in kinds(tmp_path)
    assert not labels(tmp_path).keys() & OLD.keys()
    with quiet(), ChronoStore(tmp_path) as store:
        with pytest.raises(LogCorrupted, match="base-missing") as refused:
            store.upkeep.repair()
        assert "unproven=True" in refused.value.recovery
        with pytest.raises(LogCorrupted):
            store.compact()
    found = mended(tmp_path, unproven=True)
    assert {name for name, row in found.items() if is_marked(row)} == OLD.keys()
    assert kinds(tmp_path) == set()


def foreign(home: Path, *, is_adopted: bool) -> None:
    """A log that another tool compacted, with what it started from in its snapshot."""
    home.mkdir(parents=True)
    records = [{"id": name, "label": label, "data": {}} for name, label in OLD.items()]
    state = {"seq": 9, "last_hash": "f" * 64, "ts": "2026-01-01T00:00:00.000000Z", "records": records}
    (home / "snapshot.json").write_text(json.dumps(state))
    rest = {"recursion_depth": 0, "ts": "2026-01-01T00:00:00.000000Z"}
    event = {"op": "compact", "record_id": "__compact__", "record": {"id": "__compact__"}, "seq": 10} | rest
    first = event | {"prev_hash": ""}
    first["hash"] = _core.event_hash(first)
    second = rehashed(
        _core.canonical_json(first),
        op="upsert",
        record_id="F",
        record={"id": "F", "label": "theirs"},
        seq=11,
        prev_hash=first["hash"],
    )
    (home / "events.wal").write_bytes(_core.canonical_json(first) + b"\n" + second)
    if is_adopted:
        with ChronoStore(home.parent) as store:
            put(store, {"ours": "ours", "ours too": "ours"})


@pytest.mark.parametrize("first", [b"rubbish\n", b""])
def test_another_tools_snapshot_is_not_left_out(tmp_path: Path, home: Path, first: bytes) -> None:
    foreign(home, is_adopted=False)
    (home / "events.wal").write_bytes(first + lines_of(home)[1])
    snapshot = (home / "snapshot.json").read_bytes()
    assert "base-missing" in kinds(tmp_path)
    assert labels(tmp_path) == {"F": "theirs"}
    with quiet(), ChronoStore(tmp_path) as store:
        with pytest.raises(LogCorrupted, match="nothing is written"):
            put(store, {"G": "ours"})
        with pytest.raises(LogCorrupted, match="base-missing"):
            store.upkeep.repair()
    assert (home / "snapshot.json").read_bytes() == snapshot, "what may be the only base is not written over"
    found = mended(tmp_path, unproven=True)
    assert {name for name, row in found.items() if is_marked(row)} == OLD.keys()
    assert found.keys() == OLD.keys() | {"F"}


@pytest.mark.parametrize("lost", [1, 2])
def test_a_line_that_adopts_a_base_names_it(tmp_path: Path, home: Path, lost: int) -> None:
    foreign(home, is_adopted=True)
    (home / "events.wal").write_bytes(b"".join([b"rubbish\n", *lines_of(home)[lost:]]))
    (home / "snapshot.json").unlink()
    with quiet(), ChronoStore(tmp_path) as store:
        assert store.verify().base == "adopted"
    found = mended(tmp_path)
    assert found.keys() >= OLD.keys() and not any(map(is_marked, found.values()))


@pytest.mark.parametrize("line", [b"rubbish\n", b""])
def test_a_base_whose_adoption_is_lost_is_taken_on_demand_and_marked(
    tmp_path: Path, home: Path, line: bytes
) -> None:
    foreign(home, is_adopted=True)
    lines = lines_of(home)
    assert b'"adopt"' in lines[2]
    (home / "events.wal").write_bytes(b"".join([*lines[:2], line, *lines[3:]]))
    snapshot = home / "snapshot.json"
    snapshot.write_text(snapshot.read_text().replace("kept", "FORGED"))
    with quiet(), ChronoStore(tmp_path) as store, pytest.raises(LogCorrupted, match="adopts"):
        store.upkeep.repair()
    found = mended(tmp_path, unproven=True)
    assert {name: row["label"] for name, row in found.items() if is_marked(row)} == OLD


@pytest.mark.parametrize("is_compacted", [False, True])
def test_an_adopted_base_that_was_altered_is_put_right(
    tmp_path: Path, home: Path, is_compacted: bool
) -> None:
    foreign(home, is_adopted=True)
    adopted = json.loads(lines_of(home)[2])["record"]["base_sha256"]
    with ChronoStore(tmp_path) as store:
        store.backup()
        if is_compacted:
            store.compact()
            put(store, NEW)
    held = labels(tmp_path)
    (base,) = (home / "base").glob(f"{adopted}*")
    data = bytearray(base.read_bytes())
    data[len(data) // 2 :] = bytes(len(data) - len(data) // 2)
    base.write_bytes(data)
    assert "base-altered" in kinds(tmp_path)
    with quiet(), ChronoStore(tmp_path) as store:
        told = store.upkeep.repair()
        assert told["history_kept"] and not told["lost"]
        assert not store.verify().damage
    assert labels(tmp_path) == held
    # The history is there again, that of the other tool's log too.
    with quiet(), ChronoStore(tmp_path) as store:
        assert store.as_of(11).get("old 0") is not None


def test_an_altered_base_that_is_made_again_is_put_back(tmp_path: Path, home: Path) -> None:
    with ChronoStore(tmp_path) as store:
        put(store, OLD)
        store.compact(keep_history=False)
        put(store, NEW)
        moment = store.wal_seq() - 1
    (base,) = (home / "base").iterdir()
    data = bytearray(base.read_bytes())
    data[data.index(b"kept")] ^= 1
    base.write_bytes(data)
    with quiet(), ChronoStore(tmp_path) as store:
        told = store.upkeep.repair()
        assert told["history_kept"] and not told["lost"] and not told["unproven"]
        assert {row.id for row in store.as_of(moment).query()} == OLD.keys() | set(list(NEW)[:-1])
        assert store.erase(ids=["new 0"], reason="asked for").seq is not None
        assert not store.verify().damage
    assert labels(tmp_path) == OLD | {name: label for name, label in NEW.items() if name != "new 0"}


@pytest.mark.parametrize("history", ["redact", "drop"])
def test_a_base_of_the_past_that_is_missing_keeps_nobody_from_erasing(
    tmp_path: Path, home: Path, history: str
) -> None:
    with ChronoStore(tmp_path) as store:
        put(store, OLD)
        store.compact(keep_history=False)
        put(store, NEW)
        (first,) = (home / "base").iterdir()
        store.compact()
        put(store, {"last": "last"})
    for path in (home / "base").glob(f"{first.stem}*"):
        path.unlink()
    with quiet(), ChronoStore(tmp_path) as store:
        told = store.erase(ids=["new 0", "old 0"], reason="asked for", history=history)
        assert told.seq is not None
        assert not store.verify().damage
        assert verify_log.verify_folder(tmp_path)["valid"]
    assert labels(tmp_path).keys() == OLD.keys() - {"old 0"} | NEW.keys() - {"new 0"} | {"last"}
    assert not [path for path in home.rglob("*") if path.is_file() and b"new 0" in path.read_bytes()]


def test_a_log_that_begins_late_says_so(tmp_path: Path, home: Path) -> None:
    with ChronoStore(tmp_path) as store:
        put(store, OLD | NEW)
    (home / "snapshot.json").unlink(missing_ok=True)
    (home / "events.wal").write_bytes(b"".join(lines_of(home)[3:]))
    with quiet(), ChronoStore(tmp_path) as store:
        assert any("before event 4" in note for note in store.verify().notes)
        assert any("before event 4" in lost for lost in store.upkeep.repair()["lost"])


def test_a_kept_log_finds_its_base_again_when_it_is_restored(tmp_path: Path, home: Path) -> None:
    compacted(tmp_path)
    data = bytearray((home / "events.wal").read_bytes())
    data[232] ^= 1
    (home / "events.wal").write_bytes(data)
    with quiet(), ChronoStore(tmp_path) as store:
        kept = store.upkeep.repair()["kept"]
        store.upkeep.restore(home / kept, damaged=True)
    with quiet(), ChronoStore(tmp_path) as store:
        assert store.upkeep.repair()["lost"] == []
    assert labels(tmp_path) == OLD | NEW


def test_a_repair_finds_the_base_of_a_restored_log_in_a_backup(tmp_path: Path, home: Path) -> None:
    compacted(tmp_path)
    with ChronoStore(tmp_path) as store:
        store.backup()
    lines = lines_of(home)
    (home / "events.wal").write_bytes(
        b"".join([*lines[:2], lines[2].replace(b"later", b"latER"), *lines[3:]])
    )
    with quiet(), ChronoStore(tmp_path) as store:
        kept = store.upkeep.repair()["kept"]
        store.compact(keep_history=False)
        store.upkeep.restore(home / kept, damaged=True)
    assert "base-missing" in kinds(tmp_path)
    with quiet(), ChronoStore(tmp_path) as store:
        store.upkeep.repair()
    assert "base-missing" not in kinds(tmp_path)
    assert labels(tmp_path).keys() >= OLD.keys()
