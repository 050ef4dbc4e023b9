"""Measures writing records in batches."""

from collections.abc import Callable

import pytest
from chronomemory import ChronoStore
from pytest_benchmark.fixture import BenchmarkFixture

from benches.sample import BATCH, fields, records

RECORDS = 20_000


@pytest.mark.parametrize("shape", ["ChronoRecord", "dict"])
def test_upsert_many(benchmark: BenchmarkFixture, new_store: Callable[[], ChronoStore], shape: str) -> None:
    given = records(0, RECORDS) if shape == "ChronoRecord" else [fields(number) for number in range(RECORDS)]
    batches = [given[start : start + BATCH] for start in range(0, RECORDS, BATCH)]

    def write(store: ChronoStore) -> ChronoStore:
        for batch in batches:
            assert len(store.upsert_many(batch)) == BATCH
        return store

    store = benchmark.pedantic(write, setup=lambda: ((new_store(),), {}), rounds=7)
    assert store.record_count() == RECORDS
    assert store.chain_valid()
