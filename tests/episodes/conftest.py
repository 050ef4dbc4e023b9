"""What all tests of this face have: episodes and facts in one project."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from chronomemory import ChronoStore
from chronomemory.episodes import Episodes, Facts
from conversing import START


@pytest.fixture
def episodes(store: ChronoStore) -> Iterator[Episodes]:
    with Episodes(store, clock=lambda: START) as opened:
        yield opened


@pytest.fixture
def facts(store: ChronoStore) -> Iterator[Facts]:
    with Facts(store) as opened:
        yield opened
