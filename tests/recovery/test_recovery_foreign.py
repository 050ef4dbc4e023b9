"""The state that another tool's compaction left is found again in a copy, if its snapshot is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from chronomemory import ChronoStore
from chronomemory.errors import LogCorrupted
from recovering import quiet
from test_recovery_base import foreign


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A store of another tool, compacted, of which a backup was made."""
    home = tmp_path / ".chronomemory"
    foreign(home, is_adopted=False)
    with ChronoStore(tmp_path) as store:
        store.backup()
    return home


def test_a_copy_of_another_beginning_proves_nothing(tmp_path: Path, home: Path) -> None:
    (home / "snapshot.json").unlink()
    (copy,) = (home / "backup").iterdir()
    log = copy / "events.wal"
    log.write_bytes(log.read_bytes().splitlines(keepends=True)[1])
    with quiet(), ChronoStore(tmp_path) as store, pytest.raises(LogCorrupted, match="base-missing"):
        store.upkeep.repair()


def test_a_copy_that_does_not_reach_the_log_proves_nothing(tmp_path: Path, home: Path) -> None:
    (home / "snapshot.json").unlink()
    (copy,) = (home / "backup").iterdir()
    state = json.loads((copy / "snapshot.json").read_text())
    (copy / "snapshot.json").write_text(json.dumps(state | {"seq": 7}))
    with quiet(), ChronoStore(tmp_path) as store, pytest.raises(LogCorrupted, match="base-missing"):
        store.upkeep.repair()
