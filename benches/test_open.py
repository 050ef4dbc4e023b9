"""Measures opening a store."""

from pathlib import Path

import pytest
from chronomemory import ChronoStore
from pytest_benchmark.fixture import BenchmarkFixture

from benches.conftest import STORED_RECORDS


@pytest.mark.parametrize("verify", ["full", "quick"])
def test_open(benchmark: BenchmarkFixture, project: Path, verify: str) -> None:
    store = ChronoStore(project, verify=verify)
    # Closing is not timed: each round begins with a store that was closed before.
    benchmark.pedantic(store.open, setup=store.close, rounds=10, warmup_rounds=1)
    assert store.record_count() == STORED_RECORDS
    store.close()
