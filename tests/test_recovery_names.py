"""Is nothing made up of what is left, where the line that made a record, or the name in one, is lost?"""

from __future__ import annotations

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


@pytest.fixture(scope="module")
def patched(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A private block, and a patch of it that does not say whose it is."""
    project = tmp_path_factory.mktemp("patched") / "whole"
    with ChronoStore(project) as store:
        store.upsert({"id": "shared", "label": "for all"})
        with Memory(store, user="ann") as memory:
            block = memory.learn("Ann was at the doctor's", tags=["seen"]).block_id
            memory.learn("Ann was at the doctor's", tags=[SECRET])
            memory.consolidate()
    return project, f"block:{block}"


@pytest.mark.parametrize("how", ["taken out", "overwritten"])
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
        told = store.repair()
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
        told = store.repair()
        found = store.everyone().get(block)
    assert (found is None and any(block in lost for lost in told["lost"])) or found == truth


# A withdrawal whose name is damaged.


@pytest.mark.parametrize("how", ["forget", "supersede"])
@pytest.mark.parametrize("letters", [2, 5])
def test_a_withdrawal_with_a_damaged_name_brings_nothing_back_unmarked(
    tmp_path: Path, how: str, letters: int
) -> None:
    with Memory(tmp_path) as memory:
        block = memory.remember("Give the patient 90 mg").block_id
        other = memory.remember("Tea is in the kitchen").block_id
        if how == "forget":
            memory.forget(block)
        else:
            memory.learn("Give the patient 10 mg", supersedes=block)
            memory.consolidate()
        memory.remember("The cellar is dry")
    at, line = line_with(tmp_path, block, '"status":"archived"')
    name = f'"record_id":"block:{block}'.encode()
    assert name in line
    struck = name[: -len(block)] + b"z" * letters + block[letters:].encode()
    strike(tmp_path, at, line.replace(name, struck))
    with quiet(), ChronoStore(tmp_path) as store:
        told = store.repair()
        assert f"block:{block}" in told["unsettled"]
        assert "@unsettled" in store.get(f"block:{block}").data
        assert how == "supersede" or "@unsettled" not in store.get(f"block:{other}").data
        assert any("its name may be damaged" in lost for lost in told["lost"]), told["lost"]


def test_a_lost_patch_of_a_lost_record_puts_no_other_on_hold(tmp_path: Path) -> None:
    """Both lines name it, so the name is no riddle, however alike others are called."""
    with ChronoStore(tmp_path) as store:
        for number in (1, 2, 3):
            store.engine.upsert({"id": f"node:{number}", "kind": "node"}, "graph")
        store.engine.patch("node:2", {"label": "deux"}, "graph")
        store.upsert({"id": "last"})
    for op in ("upsert", "patch"):
        at, line = line_with(tmp_path, '"node:2"', f'"op":"{op}"')
        strike(tmp_path, at, line.replace(b'"hash":"', b'"hush":"').replace(b'"ts":"', b'"tz":"'))
    with quiet(), ChronoStore(tmp_path) as store:
        told = store.repair()
        assert told["unsettled"] == []
        assert not [name for name in ("node:1", "node:3") if "@unsettled" in store.get(name).data]
