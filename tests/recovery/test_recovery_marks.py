"""Every record is on hold that a lost event may have changed, and each lost event is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoRecord, ChronoStore, DepGraph
from chronomemory.blocks import Memory
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


# A batch is A, B, C and the report, behind the line that opens it.
@pytest.mark.parametrize(
    ("lost", "meant"),
    [
        ([1], "A"),
        ([2], "B"),
        ([1, 2], "AB"),
        ([1, 2, 3], "ABC"),
        ([1, 4], "A"),
        ([1, 2, 4], "AB"),
        ([0, 1], "A"),
        ([0, 1, 2, 3], "ABC"),
        ([0, 2], "B"),
        ([0, 3], "C"),
        ([0, 2, 3], "BC"),
    ],
)
def test_a_belief_that_a_damaged_batch_withdrew_does_not_come_back_unmarked(
    tmp_path: Path, lost: list[int], meant: str
) -> None:
    begin = withdraw(tmp_path)
    destroy(tmp_path, *(begin + number for number in lost))
    told, records = repair(tmp_path)
    for name in meant:
        assert is_on_hold(records[name]), name
    assert set(meant) <= set(told["unsettled"])
    assert records["Z"].status == "active"
    assert sum("it is not known which record" in lost for lost in told["lost"]) == len(lost)


def test_the_report_of_a_rollback_says_whose_it_was(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        for name in ("belief", "other"):
            store.upsert({"id": name, "label": "x" * 400})
        store.invalidate("belief", "it was false")
        store.upsert({"id": "later"})
    lines = lines_of(tmp_path)
    # All of the withdrawn belief that names it is gone, and so is most of the report, but not its own name.
    start = sum(len(line) + 1 for line in lines[:3]) + 230
    end = sum(len(line) + 1 for line in lines[:4]) + 500
    assert b'"ROLLBACK-belief"' in lines[4][500:] and b"belief" not in lines[3][:230]
    zero(tmp_path, start, end - start)
    _, records = repair(tmp_path)
    assert is_on_hold(records["belief"])
    assert records["other"].status == "active"


def test_lines_of_a_batch_that_were_taken_out_are_missed(tmp_path: Path) -> None:
    begin = withdraw(tmp_path)
    lines = lines_of(tmp_path)
    del lines[begin + 1]
    log_of(tmp_path).write_bytes(b"\n".join(lines) + b"\n")
    told, records = repair(tmp_path)
    assert is_on_hold(records["A"])
    seq = begin + 2
    assert any(f"event {seq} is lost here: lines were taken out" in lost for lost in told["lost"])


def test_a_false_name_in_a_damaged_line_hides_nobody(tmp_path: Path) -> None:
    begin = withdraw(tmp_path)
    lines = lines_of(tmp_path)
    lines[begin + 1] = b'{"hash":"?","record":{"id":"?"},"record_id":"Z","recursion_depth":0}'
    log_of(tmp_path).write_bytes(b"\n".join(lines) + b"\n")
    _, records = repair(tmp_path)
    assert is_on_hold(records["A"])
    assert is_on_hold(records["Z"])


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


def copied(project: Path, to: Path) -> None:
    (to / ".chronomemory").mkdir(parents=True)
    for path in (project / ".chronomemory").iterdir():
        if path.is_file() and path.name != "snapshot.json":
            (to / ".chronomemory" / path.name).write_bytes(path.read_bytes())


def test_a_lost_line_of_a_batch_of_blocks_leaves_a_mark(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store, Memory(store) as memory:
        blocks = [memory.remember(f"the kettle of house {number} is blue").block_id for number in range(3)]
        memory.connect(blocks[0], blocks[1], relation="similar")
        store.upsert({"id": "between"})
        begin = len(lines_of(tmp_path))
        memory.outcome(blocks, 0.9)
        memory.connect(blocks[0], blocks[1])
        memory.disconnect(blocks[0], blocks[1])
        memory.edit(blocks[2], "the teapot is green")
        store.upsert({"id": "later"})
        truth = {record.id: record for record in store.query(status="", faces=True)}
    for number in range(begin, len(lines_of(tmp_path)) - 1):
        project = tmp_path / f"copy-{number}"
        copied(tmp_path, project)
        destroy(project, number)
        told, records = repair(project)
        assert any("it is not known which record" in lost for lost in told["lost"])
        of_blocks = {name: record for name, record in truth.items() if name.startswith(("block:", "bedge:"))}
        stale = {name for name in of_blocks.keys() & records.keys() if records[name] != of_blocks[name]}
        unmarked = {name for name in stale if "@unsettled" not in records[name].data}
        is_alone = not any("broken-batch" in lost for lost in told["lost"])
        assert not unmarked or is_alone, (number, unmarked)


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
    stale = [
        name
        for name, record in records.items()
        if not record.label.startswith("NEW") and not is_on_hold(record)
    ]
    said = " ".join(told["lost"])
    assert "are lost here" in said
    if stale:
        assert f"of {len(stale)} of them nothing can be read" in said
        assert "it is not known which record" in said


def test_a_lone_event_of_which_nothing_is_left_says_so(twice: Path) -> None:
    destroy(twice, 5)
    told, _ = repair(twice)
    (lost,) = told["lost"]
    assert "event 6" in lost
    assert "it is not known which record it spoke of" in lost
    assert told["unsettled"] == []


def test_events_that_were_taken_out_are_counted(twice: Path) -> None:
    lines = lines_of(twice)
    del lines[4:7]
    log_of(twice).write_bytes(b"\n".join(lines) + b"\n")
    told, _ = repair(twice)
    (lost,) = told["lost"]
    assert "events 5 to 7 are lost here: lines were taken out" in lost


# What a later event settles.


def delete(store: ChronoStore) -> None:
    store.delete("X")


def write_anew(store: ChronoStore) -> None:
    store.upsert({"id": "X", "label": "three"})


@pytest.mark.parametrize(
    ("later", "status", "is_marked"), [(delete, "tombstone", True), (write_anew, "active", False)]
)
def test_only_a_whole_record_settles_a_lost_one(
    tmp_path: Path, later: Callable[[ChronoStore], None], status: str, is_marked: bool
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
    assert ("@unsettled" in records["X"].data) == is_marked
    assert told["unsettled"] == (["X"] if is_marked else [])
    if is_marked:
        assert records["X"].data["k"] == 1
        assert records["X"].data["@unsettled"]["status"] == "tombstone"


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


def test_what_a_whole_act_made_of_a_doubtful_record_is_doubtful(tmp_path: Path) -> None:
    """The act is there, but what it was applied to is not: so are all its records, and what comes of them."""
    with ChronoStore(tmp_path) as store, Memory(store) as memory:
        blocks = [memory.remember(f"the kettle of house {number} is blue").block_id for number in range(4)]
        memory.outcome(blocks[:2], 0.9)
        memory.outcome(blocks[1:3], 0.9)
    first, second, third, fourth = blocks
    (number,) = [
        number
        for number, line in enumerate(lines_of(tmp_path))
        if b'"op":"upsert"' in line and f'"record_id":"block:{first}"'.encode() in line
    ]
    destroy(tmp_path, number, keep=len(lines_of(tmp_path)[number]) - 60)
    told, records = repair(tmp_path)
    assert told["lost"]
    for name in (f"block:{second}", f"block:{third}", "bedge:" + ":".join(sorted((second, third)))):
        assert name in told["unsettled"], name
        assert "@unsettled" in records[name].data, name
    assert f"block:{fourth}" not in told["unsettled"]
    assert "@unsettled" not in records[f"block:{fourth}"].data
