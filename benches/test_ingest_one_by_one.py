"""Measures writing records one by one."""

from collections.abc import Callable

import pytest
from chronomemory import ChronoStore
from pytest_benchmark.fixture import BenchmarkFixture

from benches.sample import fields, records

RECORDS = 10_000


@pytest.mark.parametrize("shape", ["ChronoRecord", "dict"])
def test_upsert(benchmark: BenchmarkFixture, new_store: Callable[[], ChronoStore], shape: str) -> None:
    given = records(0, RECORDS) if shape == "ChronoRecord" else [fields(number) for number in range(RECORDS)]

    def write(store: ChronoStore) -> ChronoStore:
        for record in given:
            store.upsert(record)
        return store

    store = benchmark.pedantic(write, setup=lambda: ((new_store(),), {}), rounds=7)
    assert store.record_count() == store.wal_seq() == RECORDS
    assert store.chain_valid()
