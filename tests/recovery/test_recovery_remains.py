"""Every record is marked that what is left of a damaged line still spells."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoRecord, ChronoStore, DepGraph
from chronomemory.blocks import Memory
from recovering import quiet, rehashed


def log_of(project: Path) -> Path:
    return project / ".chronomemory" / "events.wal"


def repair(project: Path) -> tuple[dict[str, Any], dict[str, ChronoRecord]]:
    with quiet(), ChronoStore(project) as store:
        told = store.upkeep.repair()
        return told, {record.id: record for record in store.query(status="", faces=True)}


def struck(project: Path, to: Path, start: int, length: int, filling: bytes = b"\0") -> Path:
    """A copy of a store with a stretch of its log overwritten."""
    shutil.copytree(project, to)
    data = bytearray(log_of(to).read_bytes())
    data[start : start + length] = filling * len(data[start : start + length])
    log_of(to).write_bytes(data)
    return to


def stale(truth: dict[str, ChronoRecord], records: dict[str, ChronoRecord]) -> set[str]:
    """The records that are other than they were, and do not say so."""
    known = truth.keys() & records.keys()
    return {name for name in known if records[name] != truth[name] and "@unsettled" not in records[name].data}


# A batch whose newlines are lost.


@pytest.mark.parametrize(("count", "is_last"), [(1, True), (2, False)])
def test_a_lost_newline_brings_no_withdrawn_belief_back(tmp_path: Path, count: int, is_last: bool) -> None:
    project = tmp_path / "whole"
    names = [f"belief {number}" for number in range(count)]
    with ChronoStore(project) as store:
        for name in names:
            store.upsert({"id": name, "data": {"note": "x" * 150}})
        graph = DepGraph(store)
        for name, ground in zip(names[1:], names, strict=False):
            graph.add_edge(name, ground, "depends_on")
        begin = len(log_of(project).read_bytes())
        store.invalidate(names[0], "it was false")
        end = len(log_of(project).read_bytes())
        if not is_last:
            store.upsert({"id": "later"})
        truth = {record.id: record for record in store.query(status="") if record.id in names}
    data = log_of(project).read_bytes()
    newlines = [at for at in range(begin, end - 1) if data[at : at + 1] == b"\n"]
    for number, newline in enumerate(newlines):
        before = 300 if number % 2 else 20
        told, records = repair(struck(project, tmp_path / f"struck-{number}", newline - before, before + 300))
        assert stale(truth, records) == set(), (number, told["lost"])
        assert told["lost"]


def test_what_names_one_event_for_certain_may_be_what_is_left_of_two(tmp_path: Path) -> None:
    project = tmp_path / "whole"
    with ChronoStore(project) as store:
        store.upsert({"id": "tea"})
        store.invalidate("tea", "it was false")
    lines = log_of(project).read_bytes().splitlines(keepends=True)
    # Of the belief nothing is left that names it, and the report behind it is named twice, and alike.
    start = sum(map(len, lines[:2])) + lines[2].index(b'"record":')
    end = sum(map(len, lines[:3])) + lines[3].index(b'"reason"')
    told, records = repair(struck(project, tmp_path / "struck", start, end - start))
    assert records["tea"].status == "unsettled"
    assert told["unsettled"] == ["tea"]


def test_a_belief_is_marked_that_stood_in_one_line_with_what_is_said_of_embeddings(tmp_path: Path) -> None:
    project = tmp_path / "whole"
    with ChronoStore(project) as store:
        store.upsert({"id": "tea", "label": "green"})
        store.upsert({"id": "milk"})
        store.upsert({"id": "tea", "label": "black"})
        store.vectors.attach("milk", [0.5, 0.25], model="dice")
        store.upsert({"id": "later"})
    lines = log_of(project).read_bytes().splitlines(keepends=True)
    place = sum(map(len, lines[:3]))
    told, records = repair(struck(project, tmp_path / "struck", place - 20, 60))
    assert "@unsettled" in records["tea"].data
    assert "@unsettled" not in records["milk"].data
    assert told["unsettled"] == ["tea"]


# Acts: the blocks, the links between them, and the clock.


@pytest.fixture
def told_blocks(tmp_path: Path) -> tuple[Path, int, dict[str, ChronoRecord], list[str]]:
    """A store of blocks; where its last act begins, what it holds, and the blocks that the act names."""
    project = tmp_path / "whole"
    with ChronoStore(project) as store, Memory(store) as memory:
        blocks = [memory.remember(f"the kettle of house {number} is blue").block_id for number in range(4)]
        memory.outcome(blocks, 0.9)
        place = len(log_of(project).read_bytes())
        memory.outcome(blocks[:3], 0.8)
        store.upsert({"id": "later"})
        truth = {record.id: record for record in store.query(status="", faces=True)}
    return project, place, truth, blocks[:3]


def spelled(blocks: list[str]) -> set[str]:
    """What the last act of that store changed."""
    links = {f"bedge:{one}:{other}" for one in blocks for other in blocks if one < other}
    return links | {f"block:{block}" for block in blocks}


@pytest.mark.parametrize(
    ("word", "filling"), [(b'"record_id":"act', b"\0"), (b"act:blocks", b"#"), (b'"op":"act"', b"\0")]
)
def test_an_act_whose_name_is_damaged_is_spelled_again_or_marks_blocks_and_links(
    tmp_path: Path,
    told_blocks: tuple[Path, int, dict[str, ChronoRecord], list[str]],
    word: bytes,
    filling: bytes,
) -> None:
    project, place, truth, blocks = told_blocks
    data = log_of(project).read_bytes()
    at, moment = data.index(word, place), data.index(b'"ts":"', place) + len(b'"ts":"')
    told, records = repair(struck(project, tmp_path / "struck", at, len(word), filling))
    assert told["lost"] == [] and stale(truth, records) == set()
    assert {name: record.data for name, record in records.items()} == {
        name: record.data for name, record in truth.items()
    }
    # With its moment something is lost that nothing else tells.
    both = struck(project, tmp_path / "both", at, len(word), filling)
    damaged = log_of(both).read_bytes()
    log_of(both).write_bytes(damaged[:moment] + b"####" + damaged[moment + 4 :])
    told, records = repair(both)
    assert stale(truth, records) == set(), told["lost"]
    assert spelled(blocks) <= set(told["unsettled"])


def test_an_act_whose_kind_is_damaged_marks_blocks_and_links(
    tmp_path: Path, told_blocks: tuple[Path, int, dict[str, ChronoRecord], list[str]]
) -> None:
    project, place, truth, blocks = told_blocks
    word = b'"act":"outcome'
    at = log_of(project).read_bytes().index(word, place)
    told, records = repair(struck(project, tmp_path / "struck", at, len(word), b"#"))
    assert stale(truth, records) == set(), told["lost"]
    assert spelled(blocks) <= set(told["unsettled"])


def test_an_act_whose_list_is_damaged_marks_what_its_blocks_are_linked_to(
    tmp_path: Path, told_blocks: tuple[Path, int, dict[str, ChronoRecord], list[str]]
) -> None:
    project, place, truth, blocks = told_blocks
    for block, filling in zip(blocks, (b"\0", b"#"), strict=False):
        at = log_of(project).read_bytes().index(block.encode(), place)
        told, records = repair(struck(project, tmp_path / filling.hex(), at + 2, 8, filling))
        assert stale(truth, records) == set(), told["lost"]
        (lost,) = told["lost"]
        assert "its name may be damaged too" in lost or "it is not known which other records" in lost


def let_time_pass(project: Path) -> None:
    """Write a log anew in which each act has let half an hour pass."""
    head, lines = "", []
    for line in log_of(project).read_bytes().splitlines():
        event = json.loads(line)
        passed = {"passed": 0.5} if event["op"] == "act" else {}
        lines.append(rehashed(line, prev_hash=head, record=event["record"] | passed))
        head = json.loads(lines[-1])["hash"]
    log_of(project).write_bytes(b"".join(lines))
    (project / ".chronomemory" / "synced").unlink()


@pytest.mark.parametrize("word", [b'"passed":0.5', b'"ids":['])
def test_an_act_that_let_time_pass_marks_the_clock(
    tmp_path: Path, told_blocks: tuple[Path, int, dict[str, ChronoRecord], list[str]], word: bytes
) -> None:
    project, *_ = told_blocks
    let_time_pass(project)
    with quiet(), ChronoStore(project) as store:
        store.upsert({"id": "even later"})
        truth = {record.id: record for record in store.query(status="", faces=True)}
    at = log_of(project).read_bytes().rindex(word)
    told, records = repair(struck(project, tmp_path / "struck", at, len(word)))
    assert stale(truth, records) == set(), told["lost"]
    assert "config:total_active_hours" in told["unsettled"]
    assert "config:total_active_hours" in told["lost"][0]
