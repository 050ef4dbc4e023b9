"""The past, and what a search finds, is true while another process compacts the log away."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from chronomemory import ChronoRecord, ChronoStore
from chronomemory.errors import HistoryUnavailable

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


def test_a_compaction_is_not_disturbed_by_those_who_ask_for_the_past(tmp_path: Path) -> None:
    """Each makes the index of the archive that came last, and all at the same time."""
    is_done = threading.Event()

    def ask() -> int:
        asked = 0
        while not is_done.is_set():
            with ChronoStore(tmp_path, lock_timeout=60) as reader:
                reader.history("R1")
            asked += 1
        return asked

    with ChronoStore(tmp_path, lock_timeout=60) as store, ThreadPoolExecutor(3) as pool:
        store.upsert(ChronoRecord(id="R1", label="v0"))
        readers = [pool.submit(ask) for _ in range(3)]
        try:
            for number in range(1, 25):
                store.upsert(ChronoRecord(id="R1", label=f"v{number}"))
                store.compact()
        finally:
            is_done.set()
        assert all(reader.result() for reader in readers)
        assert len(store.history("R1")) == 25
        assert store.verify().valid
        store.compact()
    index = tmp_path / ".chronomemory" / "index"
    assert not list(index.glob("*.tmp"))
