"""What the tests of the server share: a desk, which is an open store, and whose it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from chronomemory import ChronoStore, Scope
from chronomemory.mcp.desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with ChronoStore(tmp_path) as store:
        yield Desk(store, Scope(user="ann"))
