"""Is the past, and what a search finds, true while another process compacts the log away?"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from chronomemory import ChronoRecord, ChronoStore, HistoryUnavailable

WRITER = """
import sys
from chronomemory import ChronoRecord, ChronoStore
with ChronoStore(sys.argv[1], lock_timeout=60) as store:
    for number in range(450):
        store.upsert(ChronoRecord(id=f"R{number % 9}", label=f"word{number % 4} v{number}"))
        if number % 15 == 14:
            store.compact(keep_history=sys.argv[2] == "keep")
"""


@contextmanager
def writer(root: Path, keep: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(root), keep], stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("keep", ["keep", "drop"])
def test_what_a_compaction_takes_away_is_no_damage(tmp_path: Path, keep: str) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert(ChronoRecord(id="R1", label="word1 v0"))
        with writer(tmp_path, keep) as other:
            while other.poll() is None:
                store.history("R1")
                store.replay()
                for word in ("word0", "word1", "word2", "word3"):
                    hits = store.search(word, context=False, limit=9)
                    assert all(word in hit.record.label.split() for hit in hits)
                try:
                    store.as_of(store.wal_seq()).get("R1")
                    store.changed_since(store.wal_seq())
                except HistoryUnavailable:
                    # It was dropped in between: that is what was asked for.
                    assert keep == "drop"
            assert other.returncode == 0, other.stderr and other.stderr.read()
        assert store.verify().valid
