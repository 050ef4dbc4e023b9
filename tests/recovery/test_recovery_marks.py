"""Every record is on hold that a lost event may have changed, and each lost event is told."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoRecord, ChronoStore, DepGraph
from recovering import quiet


def log_of(project: Path) -> Path:
    return project / ".chronomemory" / "events.wal"


def lines_of(project: Path) -> list[bytes]:
    return log_of(project).read_bytes().splitlines()


def destroy(project: Path, *numbers: int, keep: int = 75) -> None:
    """Leave of some lines their beginning, which names nobody."""
    lines = lines_of(project)
    for number in numbers:
        lines[number] = lines[number][:keep] + b"#" * (len(lines[number]) - keep)
    log_of(project).write_bytes(b"\n".join(lines) + b"\n")


def zero(project: Path, start: int, length: int) -> None:
    data = bytearray(log_of(project).read_bytes())
    data[start : start + length] = bytes(length)
    log_of(project).write_bytes(data)


def repair(project: Path) -> tuple[dict[str, Any], dict[str, ChronoRecord]]:
    with quiet(), ChronoStore(project) as store:
        told = store.upkeep.repair()
        return told, {record.id: record for record in store.query(status="", faces=True)}


def withdraw(project: Path) -> int:
    """Withdraw a belief that others rest on; the line that opens the batch."""
    with ChronoStore(project) as store:
        for name in "ABCZ":
            store.upsert({"id": name, "label": f"belief {name}"})
        graph = DepGraph(store)
        graph.add_edge("B", "A", "depends_on")
        graph.add_edge("C", "B", "depends_on")
        begin = len(lines_of(project))
        store.invalidate("A", "it was false")
        store.upsert({"id": "later", "label": "goes on"})
    return begin


def is_on_hold(record: ChronoRecord) -> bool:
    return record.status == "unsettled" and "@unsettled" in record.data


def test_a_line_that_says_who_it_was_of_puts_nobody_else_on_hold(tmp_path: Path) -> None:
    begin = withdraw(tmp_path)
    lines = lines_of(tmp_path)
    lines[begin + 1] = lines[begin + 1].replace(b'"label":"belief A"', b'"label":"BELIEF a"')
    log_of(tmp_path).write_bytes(b"\n".join(lines) + b"\n")
    told, records = repair(tmp_path)
    assert told["unsettled"] == ["A"]
    assert records["B"].status == "hypothesis"


def test_what_was_written_anew_is_settled(tmp_path: Path) -> None:
    begin = withdraw(tmp_path)
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "A", "label": "written anew"})
    destroy(tmp_path, begin + 1)
    told, records = repair(tmp_path)
    assert records["A"].status == "active"
    assert "A" not in told["unsettled"]


# How many are lost.


@pytest.fixture
def twice(tmp_path: Path) -> Path:
    # Without salt: which bytes are zeroed below goes by how long the lines are.
    with ChronoStore(tmp_path, salt=False) as store:
        for label in ("old", "NEW"):
            for number in range(4):
                store.upsert({"id": f"R-{number}", "label": f"{label} {number}"})
    return tmp_path


@pytest.mark.parametrize("start", [-432, -200, 60, -330])
def test_two_events_that_one_damage_took_are_both_told(twice: Path, start: int) -> None:
    newline = len(b"\n".join(lines_of(twice)[:6]))
    zero(twice, newline + start, 512)
    told, records = repair(twice)
    stale = [name for name, record in records.items() if not record.label.startswith("NEW")]
    (lost,) = told["lost"]
    first, last = map(int, re.findall(r"^events (\d+)–(\d+) lost", lost)[0])
    assert len(stale) == last + 1 - first


def test_a_lone_event_of_which_nothing_is_left_says_so(twice: Path) -> None:
    destroy(twice, 5)
    told, _ = repair(twice)
    (lost,) = told["lost"]
    assert lost.startswith("event 6 lost")
    assert told["unsettled"] == []


def test_events_that_were_taken_out_are_counted(twice: Path) -> None:
    lines = lines_of(twice)
    del lines[4:7]
    log_of(twice).write_bytes(b"\n".join(lines) + b"\n")
    told, _ = repair(twice)
    (lost,) = told["lost"]
    assert lost.startswith("events 5–7 lost") and lost.endswith("the lines are missing")


# What a later event settles.


def delete(store: ChronoStore) -> None:
    store.delete("X")


def write_anew(store: ChronoStore) -> None:
    store.upsert({"id": "X", "label": "three"})


@pytest.mark.parametrize(("later", "status"), [(delete, "tombstone"), (write_anew, "active")])
def test_a_later_event_settles_a_lost_one(
    tmp_path: Path, later: Callable[[ChronoStore], None], status: str
) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "X", "label": "one", "data": {"k": 1}})
        store.upsert({"id": "X", "label": "two", "data": {"k": 2}})
        later(store)
        store.upsert({"id": "Y"})
    data = log_of(tmp_path).read_bytes()
    log_of(tmp_path).write_bytes(data.replace(b'"label":"two"', b'"label":"@#?"').replace(b'"k":2', b'"k":9'))
    told, records = repair(tmp_path)
    assert records["X"].status == status
    assert "@unsettled" not in records["X"].data
    assert told["unsettled"] == []


def test_a_record_that_was_deleted_before_is_on_hold(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "X", "label": "one"})
        store.delete("X")
        store.upsert({"id": "X", "label": "back again"})
        store.upsert({"id": "Y"})
    data = log_of(tmp_path).read_bytes()
    log_of(tmp_path).write_bytes(data.replace(b"back again", b"BACK AGAIN"))
    _, records = repair(tmp_path)
    assert is_on_hold(records["X"])
    assert records["X"].data["@unsettled"]["status"] == "tombstone"
