"""A copy outside is whole, verified, private and known, and nothing of anybody else's is touched."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from chronomemory import ChronoStore
from chronomemory.errors import ChronoError, InvalidArgument, StoreReadOnly
from chronomemory.upkeep import weight_of
from verdicts import verify_log


def filled(root: Path) -> ChronoStore:
    """A store with a past, rows and a scope."""
    store = ChronoStore(root)
    store.upsert_many([{"id": f"R-{n}", "label": f"number {n}"} for n in range(20)])
    store.vectors.attach("R-1", np.arange(4, dtype=np.float32), model="digits")
    store.compact()
    store.scoped(user="ann").upsert({"id": "secret", "label": "nobody else says this"})
    return store


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    return tmp_path / "elsewhere" / "copies"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return tmp_path / "project"


def test_a_copy_stands_by_itself(project: Path, outside: Path) -> None:
    with filled(project) as store:
        before = weight_of(project / ".chronomemory")
        made = store.backup(to=outside)
        assert made.parent == outside and made.verified and made.removed == ()
        assert (made.seq, made.head) == (store.wal_seq(), store.health().head)
        assert made.bytes == weight_of(made) and made.bytes_before == before
        assert made.bytes_after == weight_of(project / ".chronomemory")
        events = store.replay()
    shutil.rmtree(project)
    second = verify_log.verify_folder(made)
    assert second["valid"] and not [note for note in second["notes"] if "unavailable" in note]
    with ChronoStore(made) as copy:
        assert copy.verify().valid and copy.replay() == events
        assert copy.get("R-7").label == "number 7" and len(copy.history("R-7")) == 1
        assert copy.vectors.nearest(np.arange(4, dtype=np.float32), k=1)[0].record_id == "R-1"
        with pytest.raises(StoreReadOnly):
            copy.upsert({"id": "new"})
    with ChronoStore(project.with_name("second")) as again:
        again.upkeep.restore(made)
        assert again.get("R-7").label == "number 7"
        again.upsert({"id": "new"})


def test_everything_in_it_is_private(project: Path, outside: Path) -> None:
    old = os.umask(0)
    try:
        with filled(project) as store:
            made = store.backup(to=outside)
    finally:
        os.umask(old)
    assert made.stat().st_mode & 0o777 == 0o700
    assert outside.stat().st_mode & 0o777 == 0o700
    for path in made.rglob("*"):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path


def test_it_lies_outside_and_behind_no_link(project: Path, outside: Path, tmp_path: Path) -> None:
    with filled(project) as store:
        inside = project / ".chronomemory"
        link = tmp_path / "link"
        link.symlink_to(inside)
        elsewhere = tmp_path / "away"
        elsewhere.mkdir()
        leading = tmp_path / "leading"
        leading.symlink_to(elsewhere)
        dangling = tmp_path / "dangling"
        dangling.symlink_to(tmp_path / "nowhere")
        a_file = tmp_path / "file"
        a_file.write_text("mine")
        for to in (inside, inside / "backup", link / "x", leading, dangling, a_file, a_file / "x"):
            with pytest.raises((ChronoError, OSError)):
                store.backup(to=to)
        assert a_file.read_text() == "mine" and list(elsewhere.iterdir()) == []
        assert not (inside / "backup").exists() and store.upkeep.backups() == []
        # A folder beside the store's own is outside, and links above are the user's own.
        assert store.backup(to=project / "copies").parent == project / "copies"
        assert store.backup(to=leading / "below").parent == elsewhere / "below"


def test_there_must_be_something_to_copy(project: Path, outside: Path) -> None:
    with ChronoStore(project) as store:
        with pytest.raises(ChronoError, match="nothing to copy"):
            store.backup(to=outside)
        assert not outside.exists() or list(outside.iterdir()) == []
        with pytest.raises(InvalidArgument):
            store.backup(to=outside, keep=0)


def test_a_damaged_store_makes_no_copy(project: Path, outside: Path) -> None:
    with filled(project) as store:
        made = store.backup(to=outside)
    archive = next((project / ".chronomemory" / "archive").iterdir())
    archive.write_bytes(archive.read_bytes()[:-3] + b"xyz")
    with ChronoStore(project) as store:
        with pytest.raises(ChronoError, match="does not verify"):
            store.backup(to=outside)
        assert [copy.path for copy in store.upkeep.backups()] == [made]
    assert list(outside.iterdir()) == [made]


def test_the_newest_stay_and_what_is_not_ours_too(project: Path, outside: Path, tmp_path: Path) -> None:
    with filled(project) as store, filled(tmp_path / "other") as other:
        others = other.backup(to=outside)
        (outside / "20200101T000000").mkdir()
        made = []
        for number in range(4):
            store.upsert({"id": f"more {number}"})
            made.append(store.backup(to=outside, keep=2))
        assert [copy.exists() for copy in made] == [False, False, True, True]
        assert made[-1].removed == (made[1],)
        assert others.exists() and (outside / "20200101T000000").exists()
        known = store.upkeep.backups()
        assert [copy.path for copy in known] == made[2:]
        assert all(copy.verified and copy.there and not copy.inside for copy in known)
        assert [copy.seq for copy in known] == [copy.seq for copy in made[2:]]
        # In the store's folder the number counts by itself.
        inside = [store.backup(keep=1) for _ in range(2)]
        assert inside[1].removed == (inside[0],) and not inside[0].exists()
        assert [copy.path for copy in store.upkeep.backups() if copy.inside] == [inside[1]]


def test_an_erasure_names_the_copies_that_hold_it(project: Path, outside: Path, tmp_path: Path) -> None:
    with filled(project) as store:
        before, moved = store.backup(to=outside), store.backup(to=outside)
        shutil.move(moved, tmp_path / "gone")
        dry = store.erase(ids=["secret"], reason="asked for", dry_run=True)
        assert dry.copies == (str(before),) and dry.missing_copies == (str(moved),)
        told = store.erase(ids=["secret"], reason="asked for")
        assert (told.copies, told.missing_copies) == (dry.copies, dry.missing_copies)
        assert before.exists(), "nobody touches it"
        after = store.backup(to=outside)
        again = store.erase(ids=["R-3"], reason="asked for", dry_run=True)
        assert set(again.copies) == {str(before), str(after)}
        # A copy from before an erasure comes back without what was erased.
        store.upkeep.restore(before)
        assert store.get("secret") is None and before.exists()
        store.upkeep.restore(after, bring_back=True)
        with pytest.raises(ChronoError, match="be gone"):
            store.upkeep.forget_backups(before)
        assert store.upkeep.forget_backups(moved) == 1 and store.upkeep.forget_backups(moved) == 0
        assert store.erase(ids=["R-3"], reason="asked for", dry_run=True).missing_copies == ()


def test_a_copy_that_was_brought_back_is_known(project: Path, outside: Path, tmp_path: Path) -> None:
    with filled(project) as store:
        made = store.backup(to=outside)
    with ChronoStore(tmp_path / "second") as second:
        second.upkeep.restore(made)
        assert [copy.path for copy in second.upkeep.backups()] == [made]
        assert second.erase(ids=["secret"], reason="asked for").copies == (str(made),)
        # It is not this store's to remove.
        second.backup(to=outside, keep=1)
        assert made.exists()


def test_a_note_that_cannot_be_read_is_said(project: Path, outside: Path) -> None:
    with filled(project) as store:
        store.backup(to=outside)
        (project / ".chronomemory" / "copies").write_text("[{]")
        for ask in (store.upkeep.backups, lambda: store.erase(ids=["secret"], reason="asked for")):
            with pytest.raises(ChronoError, match="where copies"):
                ask()
        assert store.scoped(user="ann").get("secret") is not None


def test_who_copied_the_project_has_made_none_of_its_copies(project: Path, outside: Path) -> None:
    with filled(project) as store:
        first, second = store.backup(to=outside), store.backup(to=outside)
    clone = project.with_name("clone")
    shutil.copytree(project, clone)
    with ChronoStore(clone) as store:
        made = store.backup(to=outside, keep=1)
        assert made.removed == () and first.exists() and second.exists()
        again = store.backup(to=outside, keep=1)
        assert again.removed == (made,) and first.exists() and second.exists()
    with ChronoStore(project) as store:
        third = store.backup(to=outside, keep=1)
        assert set(third.removed) == {first, second} and again.exists()


def test_a_copy_that_was_not_finished_is_named_by_an_erasure(project: Path, outside: Path) -> None:
    with filled(project) as store:
        made = store.backup(to=outside)
        # As one that was killed leaves it: under the name of a draft, its log not named yet.
        draft = made.with_name(made.name + ".tmp")
        made.rename(draft)
        (draft / "events.wal").rename(draft / "events.wal.tmp")
        (draft / "snapshot.json").unlink()
        told = store.erase(scope={"user": "ann"}, reason="asked for")
        assert [str(copy) for copy in told.copies] == [str(draft)]
