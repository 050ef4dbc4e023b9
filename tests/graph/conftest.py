"""What all tests of this face have: the same suite runs over a graph in memory and one in a folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from chronomemory.graph import Workspace
from workbench import Bench, Clock, in_folder, in_memory


@pytest.fixture(params=["memory", "folder"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    made = in_memory() if request.param == "memory" else in_folder(tmp_path / "workspace")
    yield made
    if made.workspace is not None:
        made.workspace.close()


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.create(tmp_path / "workspace", clock=Clock()) as made:
        yield made
