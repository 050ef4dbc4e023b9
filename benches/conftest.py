"""The stores that the benches look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest
from chronomemory import ChronoStore

from benches.sample import build_store

#: How many records the store has that is only read.
STORED_RECORDS = 50_000


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose store is full and closed."""
    folder = tmp_path_factory.mktemp("project")
    build_store(folder, STORED_RECORDS)
    return folder


@pytest.fixture
def full_store(project: Path) -> Iterator[ChronoStore]:
    """The full store, open."""
    with ChronoStore(project) as store:
        yield store


@pytest.fixture
def new_store(tmp_path: Path) -> Iterator[Callable[[], ChronoStore]]:
    """A maker of new, empty, open stores; they are closed when the bench ends."""
    stores = []

    def make() -> ChronoStore:
        stores.append(ChronoStore(mkdtemp(dir=tmp_path)).open())
        return stores[-1]

    yield make
    for store in stores:
        store.close()
