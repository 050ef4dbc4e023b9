"""Memory that cannot be had is an error, and no end of the process.

Each child of these tests may have a little more memory than it uses, does one thing, and says how it went. It
must never end by a signal, and the store must be whole and hold what was acknowledged.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from chronomemory import ChronoStore
from chronomemory.errors import OutOfMemory
from scarce import KNOWN, VERBS, record

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the limit is one of Linux")

#: How many mebibytes beyond what it uses a child may have: far too few, and enough for a part of the work.
ROOMS = (3, 27)
#: Enough for everything.
PLENTY = 4_000
#: These need much at once.
LARGE = {"open", "query", "export", "search", "many"}
#: These change the store.
WRITING = {"compact", "upsert", "few", "many"}


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = tmp_path_factory.mktemp("large")
    with ChronoStore(project, durability="off") as store:
        for start in range(0, KNOWN, 25_000):
            store.upsert_many([record(number) for number in range(start, start + 25_000)])
    return project


def _said(verb: str, project: Path, room: int) -> str:
    command = [
        sys.executable,
        str(Path(__file__).parents[1] / "support" / "scarce.py"),
        verb,
        str(project),
        str(room),
    ]
    child = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if child.returncode == 127 and "memory for thread-local data: ABORT" in child.stderr:
        return "refused"  # by the C library, where a thread begins: nobody can be told by then
    assert child.returncode == 0, f"{verb} with {room} MiB: {child.returncode}\n{child.stderr}"
    return child.stdout.strip()


@pytest.mark.parametrize("verb", VERBS)
def test_scarce_memory_is_an_error(large: Path, tmp_path: Path, verb: str) -> None:
    told = {}
    for room in ROOMS:
        project = large
        if verb in WRITING:
            project = tmp_path / str(room)
            shutil.copytree(large, project)
        told[room] = _said(verb, project, room)
        if project != large:
            shutil.rmtree(project)
    assert set(told.values()) <= {"done", "refused"}
    assert verb not in LARGE or told[ROOMS[0]] == "refused"


@pytest.mark.parametrize("verb", ["open", "query", "search", "many"])
def test_enough_memory_is_enough(large: Path, tmp_path: Path, verb: str) -> None:
    project = tmp_path / "store"
    shutil.copytree(large, project)
    assert _said(verb, project, PLENTY) == "done"


def test_the_error_is_of_both_families() -> None:
    assert issubclass(OutOfMemory, MemoryError)
