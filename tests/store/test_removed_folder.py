"""A store whose folder was removed while it was open says so, and what to do."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from chronomemory import ChronoStore

REMOVED = (
    "the log or its folder was removed while this store was open: .* restore a backup, or open the project"
)


def written(project: Path) -> ChronoStore:
    """Return a store that expects more writes, and so keeps its lock for a moment."""
    store = ChronoStore(project).open()
    for number in range(5):
        store.upsert({"id": f"A-{number}"})
    return store


def test_closing_a_store_whose_folder_was_removed_says_so(tmp_path: Path) -> None:
    store = written(tmp_path)
    shutil.rmtree(tmp_path / ".chronomemory")
    with pytest.raises(OSError, match=REMOVED):
        store.close()
    store.close()
    with ChronoStore(tmp_path) as again:
        again.upsert({"id": "B"})
        assert list(again) == ["B"], "a new log begins"


def test_a_log_that_was_replaced_is_still_called_so(tmp_path: Path) -> None:
    store = written(tmp_path)
    log = tmp_path / ".chronomemory" / "events.wal"
    shutil.copy(log, log.with_name("copy"))
    log.with_name("copy").replace(log)
    with pytest.raises(OSError, match="the log was replaced while this store wrote"):
        store.close()
