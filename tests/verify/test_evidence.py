"""Damage is found, named and survived, and a verdict claims no more than it knows."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest
from chronomemory import ChronoRecord, ChronoStore, LogCorrupted


def ids(records: list[ChronoRecord]) -> list[str]:
    return [record.id for record in records]


def test_a_good_chain_says_which_rung_it_reached(store: ChronoStore) -> None:
    store.upsert_many([{"id": "A"}, {"id": "B"}])
    report = store.verify()
    assert report.valid
    assert (report.events, report.first_seq, report.last_seq) == (3, 1, 3)
    assert (report.fast_lines, report.slow_lines, report.blank_lines) == (3, 0, 0)
    assert report.head == store.health().head
    assert report.rung == "remembered"
    assert report.rungs["signed"] == report.rungs["witnessed"] == "cannot tell"
    assert "signed: cannot tell" in report.lines()
    assert not any("proof" in line for line in report.lines())
    assert json.loads(json.dumps(report.to_dict()))["rung"] == "remembered"


def damaged(store: ChronoStore, log: Path) -> int:
    """Forge the second of four lines, and say where it begins."""
    for number in range(4):
        store.upsert(ChronoRecord(id=f"R-{number}", label="original"))
    store.close()
    lines = log.read_bytes().split(b"\n")
    lines[1] = lines[1].replace(b"original", b"forgery!")
    log.write_bytes(b"\n".join(lines))
    return len(lines[0]) + 1


def test_a_change_is_found_on_disk_while_the_store_is_open(store: ChronoStore, log: Path) -> None:
    store.upsert(ChronoRecord(id="A", label="original"))
    store.sync()
    data = log.read_bytes()
    log.write_bytes(data.replace(b"original", b"forgery!"))
    assert store.chain_valid() is False
    log.write_bytes(data)
    assert store.chain_valid() is True


@pytest.mark.damaged_before_opening
def test_damage_is_named_and_good_lines_are_loaded(store: ChronoStore, log: Path) -> None:
    offset = damaged(store, log)
    assert store.chain_valid() is False
    with pytest.warns(RuntimeWarning, match=rf"offset {offset}, seq 2: altered"):
        store.open()
    assert ids(store.query()) == ["R-0", "R-2", "R-3"]
    report = store.verify()
    assert report.rung == "corrupt"
    assert [(d.path, d.line, d.offset, d.seq, d.kind) for d in report.damage] == [
        ("events.wal", 2, offset, 2, "altered")
    ]
    assert "damage: " in "\n".join(report.lines())
    assert json.loads(json.dumps(report.to_dict()))["damage"][0]["kind"] == "altered"


@pytest.mark.parametrize("durability", ["full", "normal", "off"])
def test_damage_is_damage_however_the_log_was_synced(tmp_path: Path, log: Path, durability: str) -> None:
    offset = damaged(ChronoStore(tmp_path, durability=durability), log)
    report = ChronoStore(tmp_path).verify()
    assert [(item.kind, item.offset) for item in report.damage] == [("altered", offset)]
    assert report.tail is None


@pytest.mark.damaged_before_opening
def test_an_agent_can_go_on_and_the_break_stays_visible(store: ChronoStore, log: Path) -> None:
    damaged(store, log)
    with pytest.warns(RuntimeWarning):
        store.upsert(ChronoRecord(id="after"))
    assert "after" in ids(store.query())
    assert [item.line for item in store.verify().damage] == [2]


def test_strict_refuses_but_can_be_repaired(store: ChronoStore, log: Path) -> None:
    offset = damaged(store, log)
    bad = log.read_bytes().split(b"\n")[1]
    strict = ChronoStore(store.project_root, strict=True)
    with pytest.raises(LogCorrupted) as caught:
        strict.open()
    assert (caught.value.offset, caught.value.seq) == (offset, 2)
    assert caught.value.damage == "altered"
    assert caught.value.recovery
    strict.upkeep.repair()
    assert strict.chain_valid()
    with strict:
        assert {"R-0", "R-2", "R-3"} <= set(ids(strict.query()))
    quarantine = store.project_root / ".chronomemory" / "quarantine"
    assert any(bad in path.read_bytes() for path in quarantine.rglob("*") if path.is_file())


@pytest.mark.damaged_before_opening
def test_warnings_as_errors_leave_the_store_closed(store: ChronoStore, log: Path) -> None:
    damaged(store, log)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning):
            store.open()
    assert "closed" in repr(store)


def test_an_interrupted_write_is_reported_then_put_aside(store: ChronoStore, log: Path) -> None:
    store.upsert(ChronoRecord(id="A"))
    store.close()
    with log.open("ab") as file:
        file.write(b'{"hash":"half a li')
    assert store.chain_valid()
    assert store.verify().tail is not None
    with pytest.warns(RuntimeWarning, match="uncommitted"):
        store.open()
    assert ids(store.query()) == ["A"]
    store.upsert(ChronoRecord(id="B"))
    assert store.verify().tail is None
    assert b"half a li" not in log.read_bytes()
    aside = (store.project_root / ".chronomemory" / "quarantine").rglob("*")
    assert any(b"half a li" in path.read_bytes() for path in aside if path.is_file())
