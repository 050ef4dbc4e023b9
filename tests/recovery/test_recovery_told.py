"""A line is spelled again if what it lost is told elsewhere, and it is said where nobody can tell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoStore
from chronomemory.errors import ChronoError
from recovering import quiet


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / ".chronomemory"


def repaired(project: Path) -> dict[str, Any]:
    with quiet(), ChronoStore(project) as store:
        return store.upkeep.repair()


@pytest.mark.filterwarnings("ignore:.*synced is damaged:RuntimeWarning")
@pytest.mark.parametrize("other", ["synced", "lock", "care.lock"])
def test_a_log_that_was_swapped_with_a_small_file_is_never_written_over(
    tmp_path: Path, home: Path, other: str
) -> None:
    with ChronoStore(tmp_path) as store:
        for number in range(20):
            store.upsert({"id": f"R-{number}", "label": f"precious {number}"})
        store.compact(keep_history=False)
        store.upsert({"id": "R-0", "label": "precious again"})
    swap(home / "events.wal", home / other)
    with quiet(), ChronoStore(tmp_path) as store:
        assert not store.verify().valid
        for act in (store.upkeep.repair, lambda: store.upsert({"id": "NEW"})):
            with pytest.raises((ChronoError, OSError)):
                act()
    assert b"precious again" in (home / other).read_bytes()
    swap(home / "events.wal", home / other)
    with ChronoStore(tmp_path) as store:
        assert store.verify().valid and store.record_count() == 20


@pytest.mark.filterwarnings("ignore:.*synced is damaged:RuntimeWarning")
@pytest.mark.parametrize("other", ["archive", "snapshot.json", "synced"])
def test_a_base_is_found_wherever_it_lies(tmp_path: Path, home: Path, other: str) -> None:
    with ChronoStore(tmp_path) as store:
        for number in range(2):
            store.upsert({"id": f"R-{number}", "label": f"{number}"})
        store.compact(keep_history=other == "archive")
        store.upsert({"id": "R-0", "label": "new"})
        expected = [record.to_dict() for record in store.query()]
    (base,) = (home / "base").iterdir()
    swap(base, next((home / other).iterdir()) if other == "archive" else home / other)
    told = repaired(tmp_path)
    assert told["unproven"] == []
    with ChronoStore(tmp_path) as store:
        assert [record.to_dict() for record in store.query()] == expected


def swap(one: Path, other: Path) -> None:
    aside = one.with_name("aside")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)
