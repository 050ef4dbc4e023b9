"""A store that was saved is still saved when an erasure has taken its copies away."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from chronomemory import ChronoStore
from chronomemory._core import Upkeep
from test_erase import holding

SECRET = "Elm Street 17"
COPIES = Path(".chronomemory") / "backup"


@pytest.fixture
def store(tmp_path: Path) -> ChronoStore:
    store = ChronoStore(tmp_path / "here", head_file=tmp_path / "head")
    store.upsert({"id": "mia", "label": SECRET})
    store.upsert({"id": "tea", "label": "Tea at four"})
    return store


def copies(store: ChronoStore) -> list[str]:
    return sorted(str(path) for path in (store.project_root / COPIES).glob("*"))


def test_one_new_copy_takes_the_place_of_those_that_went(store: ChronoStore) -> None:
    with store:
        store.backup()
        store.backup()
        told = store.erase(ids=["mia"], reason="asked for")
        assert len(told.backups) == 2
        assert copies(store) == [told.new_backup] and told.backup_fault is None
        assert holding(store.project_root, SECRET) == []
        saved = ChronoStore(Path(str(told.new_backup)))
        assert saved.verify().valid
        store.delete("tea")
        store.upkeep.restore(Path(str(told.new_backup)))
        assert [record.id for record in store.query()] == ["tea"]


def test_none_is_made_unasked(store: ChronoStore) -> None:
    with store:
        # Nobody had made a copy.
        assert store.erase(ids=["mia"], reason="asked for").new_backup is None
        store.upsert({"id": "mia", "label": SECRET})
        store.backup()
        # A look writes nothing, nor does an erasure that finds nothing.
        assert store.erase(ids=["mia"], reason="asked for", dry_run=True).new_backup is None
        assert store.erase(ids=["nobody"], reason="asked for").new_backup is None
        assert len(copies(store)) == 1
        told = store.erase(ids=["mia"], reason="asked for", backup=False)
        assert (len(told.backups), told.new_backup, told.backup_fault) == (1, None, None)
        assert copies(store) == []


def test_what_is_swept_leaves_a_copy_too(store: ChronoStore) -> None:
    over = (datetime.now(timezone.utc) - timedelta(days=1)).isoformat()
    with store:
        store.scoped(user="mia").upsert({"id": "note", "label": SECRET, "data": {"expires_at": over}})
        store.backup()
        told = store.scoped(user="mia").sweep(erase=True).erased
        assert told is not None and copies(store) == [told.new_backup]
        store.scoped(user="mia").upsert({"id": "note", "label": SECRET, "data": {"expires_at": over}})
        store.backup()
        told = store.everyone().sweep(erase=True, backup=False).erased
        assert told is not None and told.new_backup is None and len(copies(store)) == 1


def test_a_copy_that_somebody_else_takes_away_is_made_again(
    store: ChronoStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store, ChronoStore(store.project_root, head_file=store._head_file()) as other:
        make, number = Upkeep.backup, 0

        def backup(upkeep: Upkeep, progress: object = None) -> str:
            nonlocal number
            folder = make(upkeep, None)
            if number == 0:
                number += 1
                other.erase(ids=["mia"], reason="asked for", backup=False)
            return folder

        monkeypatch.setattr(Upkeep, "backup", backup)
        saved = store.backup()
        assert saved.is_dir() and number == 1
        assert ChronoStore(saved).verify().valid and holding(saved, SECRET) == []


def test_the_name_of_a_copy_that_went_is_not_given_again(store: ChronoStore) -> None:
    with store:
        # Several, since a second may end between two of them.
        for number in range(5):
            store.upsert({"id": "mia", "label": f"{SECRET}, {number}"})
            kept = store.backup()
            told = store.erase(ids=["mia"], reason="asked for", backup=number % 2 == 0)
            assert str(told.new_backup) != str(kept) and not kept.exists()
            assert str(store.backup()) != str(kept) and not kept.exists()
