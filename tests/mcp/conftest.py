"""What the tests of the server share: a served store, which is an open one, and whose it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from chronomemory import ChronoStore, Scope
from chronomemory.mcp.served_store import ServedStore


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedStore]:
    with ChronoStore(tmp_path) as store:
        yield ServedStore(store, Scope(user="ann"))
