"""Whichever line of a log is damaged, no embedding goes to another record or is lost by repair."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from chronomemory import ChronoStore, LogCorrupted
from chronomemory.errors import UnknownSpace
from verdicts import verify_log

FOLDER = ".chronomemory"
RECORDS = 24
pytestmark = pytest.mark.filterwarnings("ignore:.*(damage in|embeddings are missing|was seen in another log)")

#: Spaces that were born, dropped, used again and moved; the compaction dies when the rows have moved.
STORY = """
import os, sys
import numpy as np
from chronomemory import ChronoStore

def vector(record, version):
    return np.array([record + 1, version, record * version + 3, 1], dtype=np.float32)

def attach(store, space, records, version):
    rows = np.stack([vector(record, version) for record in records])
    store.vectors.attach_many([f"R{record}" for record in records], rows, space=space, model="m")

with ChronoStore(sys.argv[1]) as store:
    store.upsert_many([{"id": f"R{n}"} for n in range(24)])
    store.vectors.attach("R0", vector(0, 1), space="a", model="m")
    attach(store, "a", range(12), 2)
    store.vectors.detach("R5", space="a")
    attach(store, "b", range(8), 1)
    store.vectors.drop("b", force=True)
    attach(store, "b", range(4), 2)
    attach(store, "b", range(4, 16), 3)
    attach(store, "a", range(6), 4)
    attach(store, "a", range(10, 20), 5)
    store.vectors.detach("R9", space="a")
    pid = os.fork()
    if pid == 0:
        with ChronoStore(sys.argv[1]) as other:
            other.compact(progress=lambda *_: os._exit(0))
        os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0
with ChronoStore(sys.argv[1]) as store:
    assert {space.name: space.generation for space in store.vectors.spaces()}["a"] == 1
    attach(store, "a", range(18, 24), 6)
    store.vectors.detach("R2", space="a")
    attach(store, "a", range(3), 7)
    store.vectors.detach("R20", space="a")
"""


def vector(record: int, version: int) -> npt.NDArray[np.float32]:
    return np.array([record + 1, version, record * version + 3, 1], dtype=np.float32)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = tmp_path_factory.mktemp("story")
    done = subprocess.run([sys.executable, "-c", STORY, str(project)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return project


def lines_of(project: Path) -> list[bytes]:
    return (project / FOLDER / "events.wal").read_bytes().splitlines(keepends=True)


def held(store: ChronoStore, space: str) -> dict[int, int]:
    """Which version of its own embeddings each record has; anything else is not its own."""
    found = {}
    for record in range(RECORDS):
        try:
            row = store.vectors.get(f"R{record}", space=space)
        except (LogCorrupted, UnknownSpace):
            continue
        if row is not None:
            version = int(row[1])
            assert np.array_equal(row, vector(record, version)), f"R{record} has {row}"
            found[record] = version
    return found


def findings(damage: list[dict[str, object]]) -> set[tuple[object, object, object]]:
    return {(one["path"], one["kind"], one["offset"]) for one in damage}


def test_the_story_is_as_told(story: Path, tmp_path: Path) -> None:
    shutil.copytree(story, tmp_path / "copy")
    with ChronoStore(tmp_path / "copy") as store:
        assert store.verify().valid
        versions = held(store, "a")
        assert versions == {
            **dict.fromkeys(range(6, 9), 2),
            **dict.fromkeys((3, 4, 5), 4),
            **dict.fromkeys(range(10, 18), 5),
            **dict.fromkeys((18, 19, 21, 22, 23), 6),
            **dict.fromkeys(range(3), 7),
        }
        assert held(store, "b") == {**dict.fromkeys(range(4), 2), **dict.fromkeys(range(4, 16), 3)}


@pytest.mark.damaged_before_opening
def test_no_damaged_line_gives_a_record_what_is_not_its_own(story: Path, tmp_path: Path) -> None:
    lines = lines_of(story)
    speaking = [number for number, line in enumerate(lines) if b'"record_id":"vector:' in line]
    assert len(speaking) > 15
    with ChronoStore(story) as store:
        truth = {space: held(store, space) for space in "ab"}
    # Behind a damaged last line nothing is written before a repair.
    for number in (number for number in speaking if number + 1 < len(lines)):
        project = tmp_path / str(number)
        shutil.copytree(story, project)
        damaged = lines[number][:60] + bytes([lines[number][60] ^ 1]) + lines[number][61:]
        (project / FOLDER / "events.wal").write_bytes(
            b"".join([*lines[:number], damaged, *lines[number + 1 :]])
        )
        with ChronoStore(project) as store:
            before = {space: held(store, space) for space in "ab"}
            theirs = verify_log.verify_folder(project / FOLDER)["damage"]
            ours = {(one.path, one.kind, one.offset) for one in store.verify().damage}
            assert ours == findings(theirs), number
            with pytest.raises(LogCorrupted):
                store.compact()
            for space in "ab":
                store.vectors.attach("R23", vector(23, 9), space=space, model="m")
        with ChronoStore(project) as store:
            for space in "ab":
                assert held(store, space) == before[space] | {23: 9}, number
            store.upkeep.repair()
            assert store.verify().valid, number
            repaired = {space: held(store, space) for space in "ab"}
            # The line is found again by its hash: what it said counts, and what was written since.
            assert repaired == {space: truth[space] | {23: 9} for space in "ab"}, number
            store.compact()
        with ChronoStore(project) as store:
            assert store.verify().valid, number
            assert {space: held(store, space) for space in "ab"} == repaired, number
        shutil.rmtree(project)
