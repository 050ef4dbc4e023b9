"""Measures getting one record by its id."""

from random import Random

from chronomemory import ChronoRecord, ChronoStore
from pytest_benchmark.fixture import BenchmarkFixture

from benches.conftest import STORED_RECORDS
from benches.sample import fields

GETS = 1_000


def test_get(benchmark: BenchmarkFixture, full_store: ChronoStore) -> None:
    numbers = Random(7).sample(range(STORED_RECORDS), GETS)
    ids = [f"REC-{number:07}" for number in numbers]

    found = benchmark(lambda: [full_store.get(record_id) for record_id in ids])
    assert found == [ChronoRecord(**fields(number)) for number in numbers]
