"""Measures loading an NDJSON file."""

from collections.abc import Callable
from pathlib import Path

from chronomemory import ChronoRecord, ChronoStore
from pytest_benchmark.fixture import BenchmarkFixture

from benches.sample import fields, write_ndjson

RECORDS = 50_000


def test_ingest(benchmark: BenchmarkFixture, new_store: Callable[[], ChronoStore], tmp_path: Path) -> None:
    source = tmp_path / "records.ndjson"
    write_ndjson(source, RECORDS)

    def load(store: ChronoStore) -> ChronoStore:
        assert store.ingest(source).records == RECORDS
        return store

    store = benchmark.pedantic(load, setup=lambda: ((new_store(),), {}), rounds=5)
    assert store.record_count() == RECORDS
    assert store.get(f"REC-{RECORDS - 1:07}") == ChronoRecord(**fields(RECORDS - 1))
