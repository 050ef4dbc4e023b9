"""What do the tests of recovery share? A look at a damaged store that warns nobody."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chronomemory import ChronoStore


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
