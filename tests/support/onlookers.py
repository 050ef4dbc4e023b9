"""Who looks at a store, and what they remember: what tests of verdicts and heads share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from chronomemory import ChronoStore
from chronomemory.layout import head_file

FOLDER = ".chronomemory"
NOBODY = 65_534


def note_of(project: Path) -> Path:
    return head_file(project) or Path()


def fill(project: Path, first: int = 0, count: int = 5) -> None:
    with ChronoStore(project) as store:
        for number in range(first, first + count):
            store.upsert({"id": f"R-{number}"})


def cut_last_line(log: Path) -> None:
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:-1]))
    (log.parent / "synced").unlink()


def said_by_nobody(work: Callable[[], object]) -> str:
    """What somebody finds who may read everything and write nothing of the store's."""
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    reading, writing = os.pipe()
    if not (pid := os.fork()):
        try:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os.write(writing, str(work()).encode())
        except BaseException as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(pid, 0)
    with os.fdopen(reading) as pipe:
        return pipe.read()
