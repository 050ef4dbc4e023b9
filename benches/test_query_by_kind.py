"""Measures finding the records of a kind."""

import pytest
from chronomemory import ChronoRecord, ChronoStore
from pytest_benchmark.fixture import BenchmarkFixture

from benches.conftest import STORED_RECORDS
from benches.sample import KIND, KIND_EVERY, fields


@pytest.mark.parametrize("limit", [10, None])
def test_query(benchmark: BenchmarkFixture, full_store: ChronoStore, limit: int | None) -> None:
    found = benchmark(lambda: full_store.query(kind=KIND, limit=limit))
    numbers = range(0, STORED_RECORDS, KIND_EVERY)[:limit]
    assert found == [ChronoRecord(**fields(number)) for number in numbers]
