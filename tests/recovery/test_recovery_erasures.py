"""A repair keeps what a damaged log tells of an erasure, so nothing erased comes back in silence."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from chronomemory import ChronoStore
from recovering import quiet

Lines = list[bytes]


def altered(line: bytes) -> bytes:
    return line[:300] + bytes([line[300] ^ 1]) + line[301:]


def erased(root: Path, *later: str, is_copied: bool = False) -> tuple[Path, Path]:
    """A store just after an erasure, and a copy of it from before, outside."""
    project, copy = root / "here", root / "copy"
    with ChronoStore(project) as store:
        store.upsert({"id": "mia", "label": "SECRET"})
        store.upsert({"id": "tea", "label": "Tea at four"})
        shutil.copytree(store.backup(), copy)
        # The copy in the folder goes; a new one would tell a repair all that it has to find out.
        store.erase(ids=["mia"], reason="ticket 17", backup=is_copied)
        for name in later:
            store.upsert({"id": name, "label": "later"})
    return project, copy


def damage(project: Path, change: Callable[[Lines], Lines], *, is_synced: bool) -> None:
    log = project / ".chronomemory" / "events.wal"
    log.write_bytes(b"".join(change(log.read_bytes().splitlines(keepends=True))))
    if not is_synced:
        (project / ".chronomemory" / "synced").unlink()


def is_upheld(project: Path, copy: Path) -> None:
    """Nothing of what was erased comes back with an older copy."""
    with quiet(), ChronoStore(project) as store:
        report = store.verify()
        assert report.valid, report.damage
        assert any("erased at event" in note for note in report.notes)
        assert store.get("mia") is None
        store.upkeep.restore(copy)
        assert store.get("mia") is None
        assert store.get("tea") is not None


@pytest.mark.parametrize("is_synced", [True, False])
@pytest.mark.parametrize("is_copied", [True, False])
def test_an_erase_event_without_its_newline_is_not_dropped(
    tmp_path: Path, is_copied: bool, is_synced: bool
) -> None:
    project, copy = erased(tmp_path, is_copied=is_copied)
    damage(project, lambda lines: [altered(lines[0]), lines[1][:-1]], is_synced=is_synced)
    with quiet(), ChronoStore(project) as store:
        told = store.upkeep.repair()
        # No line of the log can be read: a copy that holds all of it is taken as it is.
        assert told["healed"] == (0 if is_copied and is_synced else 2)
        assert (told["lost"], told["history_kept"]) == ([], True)
    is_upheld(project, copy)


def test_half_of_an_erasure_is_named_and_leaves_a_valid_store(tmp_path: Path) -> None:
    project, _ = erased(tmp_path)
    damage(project, lambda lines: [altered(lines[0])], is_synced=False)
    with quiet(), ChronoStore(project) as store:
        told = store.upkeep.repair()
        assert any("erase-unbound" in lost for lost in told["lost"])
        report = store.verify()
        assert report.valid, report.damage
        assert store.get("mia") is None
        assert store.get("tea") is not None


def lose_a_value_and_the_last_newline(project: Path, *, is_synced: bool) -> None:
    with ChronoStore(project) as store:
        for n in range(4):
            store.upsert({"id": f"R-{n}", "label": "a value"})

    def change(lines: Lines) -> Lines:
        return [lines[0], lines[1].replace(b"a value", b"another"), lines[2], lines[3][:-1]]

    damage(project, change, is_synced=is_synced)


@pytest.mark.parametrize("is_synced", [True, False])
def test_a_last_event_without_its_newline_counts_in_a_damaged_log(tmp_path: Path, is_synced: bool) -> None:
    lose_a_value_and_the_last_newline(tmp_path, is_synced=is_synced)
    with quiet(), ChronoStore(tmp_path) as store:
        told = store.upkeep.repair()
        assert len(told["lost"]) == 1
        assert store.get("R-3") is not None


def test_the_next_writer_moves_a_tail_aside_as_ever(tmp_path: Path) -> None:
    lose_a_value_and_the_last_newline(tmp_path, is_synced=False)
    with quiet(), ChronoStore(tmp_path) as store:
        store.backup()
        store.upsert({"id": "new", "label": "behind it"})
        assert store.get("new") is not None
    assert list((tmp_path / ".chronomemory" / "quarantine").glob("*-tail-at-*"))
    log = (tmp_path / ".chronomemory" / "events.wal").read_bytes()
    assert len(log.splitlines()) == 4
