"""Measures proving a log."""

from pathlib import Path

from chronomemory import ChronoStore
from pytest_benchmark.fixture import BenchmarkFixture

from benches.conftest import STORED_RECORDS
from benches.sample import BATCH


def test_verify(benchmark: BenchmarkFixture, project: Path) -> None:
    report = benchmark.pedantic(ChronoStore(project).verify, rounds=10, warmup_rounds=1)
    assert report.valid
    # Each batch has one event more: its begin.
    assert report.events == report.fast_lines == STORED_RECORDS + STORED_RECORDS // BATCH
