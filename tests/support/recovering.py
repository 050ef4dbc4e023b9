"""What the tests of recovery share: a look at a damaged store that warns nobody, and lines that lie."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from chronomemory import ChronoStore, _core


@contextmanager
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def labels(project: Path) -> dict[str, str]:
    with quiet(), ChronoStore(project) as store:
        return {record.id: record.label for record in store.query(status="")}


def only(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


def rehashed(line: bytes, **changes: Any) -> bytes:
    """A line that says something else, with a hash of its own."""
    event = json.loads(line) | changes
    event["hash"] = _core.event_hash(event)
    return _core.canonical_json(event) + b"\n"


def chained(lines: list[bytes]) -> bytes:
    """Lines as one log: each follows from the one before, whatever it said of that."""
    before, log = "", b""
    for line in lines:
        log += rehashed(line, prev_hash=before)
        before = json.loads(log.splitlines()[-1])["hash"]
    return log
