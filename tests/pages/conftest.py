"""What all tests of this face have: pages in a folder, with a clock of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from chronomemory.pages import Pages
from page_samples import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def pages(tmp_path: Path, clock: Clock) -> Iterator[Pages]:
    with Pages(tmp_path, clock=clock) as made:
        yield made
