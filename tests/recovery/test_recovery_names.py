"""Nothing is made up where the line that made a record, or the name in one, is lost."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest
from chronomemory import ChronoStore
from chronomemory.blocks import Memory
from recovering import quiet

SECRET = "hiv-positive"


def log_of(project: Path) -> Path:
    return project / ".chronomemory" / "events.wal"


def strike(project: Path, number: int, line: bytes | None) -> None:
    """Put another line in the place of one, or take it out."""
    lines = log_of(project).read_bytes().split(b"\n")
    lines[number : number + 1] = [] if line is None else [line]
    log_of(project).write_bytes(b"\n".join(lines))


def line_with(project: Path, *words: str) -> tuple[int, bytes]:
    """The last line that holds all of these words."""
    lines = enumerate(log_of(project).read_bytes().split(b"\n"))
    return [(at, line) for at, line in lines if all(word.encode() in line for word in words)][-1]


# A record whose making is lost.


@pytest.fixture
def patched(tmp_path: Path) -> tuple[Path, str]:
    """A private block, and a patch of it that does not say whose it is."""
    project = tmp_path / "whole"
    with ChronoStore(project) as store:
        store.upsert({"id": "shared", "label": "for all"})
        with Memory(store, user="ann") as memory:
            block = memory.learn("Ann was at the doctor's", tags=["seen"]).block_id
            memory.learn("Ann was at the doctor's", tags=[SECRET])
            memory.consolidate()
    return project, f"block:{block}"


@pytest.mark.parametrize("how", ["taken out", "overwritten"])
@pytest.mark.damaged_before_opening
def test_what_was_changed_in_a_record_that_is_lost_makes_none(
    tmp_path: Path, patched: tuple[Path, str], how: str
) -> None:
    whole, block = patched
    project = tmp_path / "struck"
    shutil.copytree(whole, project)
    at, line = line_with(project, block, "doctor", '"op":"upsert"')
    strike(project, at, None if how == "taken out" else b"x" * len(line))

    def is_seen(store: ChronoStore) -> list[str]:
        doors = {"bob": store.scoped(user="bob"), "shared": store, "everyone": store.everyone()}
        return [
            name
            for name, door in doors.items()
            if door.get(block) is not None
            or block in {record.id for record in door.query(status="", faces=True)}
            or door.search(SECRET)
            or any(SECRET in str(event.record) for event in door.history(block))
        ]

    with quiet(), ChronoStore(project) as store:
        assert is_seen(store) == []
        told = store.upkeep.repair()
        assert is_seen(store) == []
        assert any(block in lost and "made it is lost" in lost for lost in told["lost"]), told["lost"]
        assert store.verify().valid and store.get("shared").label == "for all"
        store.erase(scope={"user": "ann"}, reason="asked for", history="drop")
    assert not [
        path for path in project.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()
    ]


def test_a_record_that_is_written_whole_again_counts(tmp_path: Path, patched: tuple[Path, str]) -> None:
    whole, block = patched
    project = tmp_path / "struck"
    shutil.copytree(whole, project)
    at, line = line_with(project, block, "doctor", '"op":"upsert"')
    with ChronoStore(project) as store, Memory(store, user="ann") as memory:
        memory.forget(block.removeprefix("block:"))
        memory.learn("Ann was at the doctor's", tags=["again"])
        truth = store.everyone().get(block)
    strike(project, at, b"x" * len(line))
    with quiet(), ChronoStore(project) as store:
        told = store.upkeep.repair()
        found = store.everyone().get(block)
    assert (found is None and any(block in lost for lost in told["lost"])) or found == truth


def test_that_a_record_which_is_lost_was_deleted_is_told_to_nobody_else(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "shared"})
        bob = store.scoped(user="bob")
        bob.upsert({"id": "bobs", "label": "Bob was at the doctor's"})
        bob.delete("bobs")
        store.upsert({"id": "last"})
    strike(tmp_path, line_with(tmp_path, "doctor", '"op":"upsert"')[0], None)
    with quiet(), ChronoStore(tmp_path) as store:
        for _ in range(2):
            assert store.history("bobs") == store.scoped(user="ann").history("bobs") == []
            store.upkeep.repair()


# A withdrawal whose name is damaged.


def test_a_lost_patch_of_a_lost_record_puts_no_other_on_hold(tmp_path: Path) -> None:
    """Both lines name it, so the name is no riddle, however alike others are called."""
    with ChronoStore(tmp_path) as store:
        for number in (1, 2, 3):
            store.engine.upsert({"id": f"node:{number}", "kind": "node"}, "graph")
        store.engine.write([("patch", ("node:2", {"label": "deux"}))], "graph")
        store.upsert({"id": "last"})
    for op in ("upsert", "patch"):
        at, line = line_with(tmp_path, '"node:2"', f'"op":"{op}"')
        strike(tmp_path, at, line.replace(b'"hash":"', b'"hush":"').replace(b'"ts":"', b'"tz":"'))
    with quiet(), ChronoStore(tmp_path) as store:
        told = store.upkeep.repair()
        assert told["unsettled"] == []
        assert not [name for name in ("node:1", "node:3") if "@unsettled" in store.get(name).data]


# Events that are lost beside a damaged line, in a log that another tool began.


@pytest.mark.parametrize("foreign", [0, 1, 2, 5])
def test_what_is_lost_between_two_lines_of_ours_is_counted_whoever_began_the_log(
    tmp_path: Path, foreign: int
) -> None:
    before, log = "", b""
    for number in range(foreign):
        record = {"id": f"theirs {number}", "kind": "fact", "status": "active", "label": "x", "data": {}}
        event = {"op": "upsert", "prev_hash": before, "record": record, "record_id": record["id"]}
        event |= {"recursion_depth": 0, "seq": number + 1, "ts": "2024-01-01T00:00:00Z"}
        before = hashlib.sha256(json.dumps(event, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
        log += json.dumps({**event, "hash": before}).encode() + b"\n"
    if foreign:
        log_of(tmp_path).parent.mkdir()
        log_of(tmp_path).write_bytes(log)
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "DOSE", "label": "90 mg"})
        store.upsert({"id": "first"})
        lost = store.delete("DOSE")
        store.upsert({"id": "altered"})
        store.upsert({"id": "last"})
    at, line = line_with(tmp_path, '"altered"')
    place = line.index(b'"prev_hash":"') + 20
    strike(tmp_path, at, line[:place] + b"zq" + line[place + 2 :])
    strike(tmp_path, line_with(tmp_path, '"op":"delete"')[0], None)
    with quiet(), ChronoStore(tmp_path) as store:
        told = store.upkeep.repair()
    said = f"events {lost.seq}–{lost.seq + 1} lost"
    assert any(said in one for one in told["lost"]), told["lost"]


# A clock that lost an event.


def test_what_happened_to_a_block_whose_making_is_lost_is_told_to_nobody_else(tmp_path: Path) -> None:
    with Memory(tmp_path, user="bob") as memory:
        block = memory.remember("Bob is ill").block_id
        memory.frame("attention", "ill")
        memory.outcome([block], 0.9)
    at, line = line_with(tmp_path, f'"block:{block}"', '"op":"upsert"', "Bob is ill")
    strike(tmp_path, at, line.replace(b'"id":"block:', b'"id":"blqqq:'))
    with quiet(), ChronoStore(tmp_path) as store:
        for _ in range(2):
            assert store.history(f"block:{block}") == store.scoped(user="ann").history(f"block:{block}") == []
            store.upkeep.repair()


# Names that swallowed what stood behind them, and a beginning that ends in an embedding.


def test_a_line_that_stands_twice_counts_once(tmp_path: Path) -> None:
    with Memory(tmp_path) as memory:
        block = memory.remember("Tea is in the kitchen").block_id
        memory.outcome([block], 0.9)
        memory.remember("The cellar is dry")
    with ChronoStore(tmp_path) as store:
        truth = store.get(f"block:{block}")
    at, line = line_with(tmp_path, '"op":"act"', "outcome/")
    strike(tmp_path, at, line.replace(b'"act:blocks"', b'"act:bloc5q"') + b"\n" + line)
    with quiet(), ChronoStore(tmp_path) as store:
        told = store.upkeep.repair()
        found = store.get(f"block:{block}")
    found.data.pop("@unsettled", None)
    assert found == truth, told
