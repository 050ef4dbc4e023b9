"""The state that another tool's compaction left is found again in a copy, if its snapshot is lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from chronomemory import ChronoStore
from chronomemory.errors import LogCorrupted
from recovering import labels, quiet
from test_recovery_base import OLD, foreign

ALL = OLD | {"F": "theirs"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A store of another tool, compacted, of which a backup was made."""
    home = tmp_path / ".chronomemory"
    foreign(home, is_adopted=False)
    with ChronoStore(tmp_path) as store:
        store.backup()
    return home


def alter(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"records": [', b'"records"; [', 1))


@pytest.mark.parametrize("unproven", [False, True])
@pytest.mark.parametrize("lose", [Path.unlink, alter], ids=["lost", "altered"])
def test_a_copy_holds_what_the_log_starts_from(
    tmp_path: Path, home: Path, lose: Callable[[Path], None], unproven: bool
) -> None:
    lose(home / "snapshot.json")
    assert labels(tmp_path) == ALL
    with quiet(), ChronoStore(tmp_path) as store:
        report = store.verify()
        assert [damage.kind for damage in report.damage] == ["base-missing"]
        assert any("was read from backup/" in note for note in report.notes)
        told = store.upkeep.repair(unproven=unproven)
        assert (told["lost"], told["unsettled"], told["unproven"]) == ([], [], [])
        report = store.verify()
        assert report.valid, report.damage
    assert labels(tmp_path) == ALL
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "G", "label": "ours"})
        store.compact()
        assert store.verify().valid
    assert labels(tmp_path) == ALL | {"G": "ours"}


def test_a_copy_of_another_beginning_proves_nothing(tmp_path: Path, home: Path) -> None:
    (home / "snapshot.json").unlink()
    (copy,) = (home / "backup").iterdir()
    log = copy / "events.wal"
    log.write_bytes(log.read_bytes().splitlines(keepends=True)[1])
    with quiet(), ChronoStore(tmp_path) as store, pytest.raises(LogCorrupted, match="base-missing"):
        store.upkeep.repair()


def test_copies_that_contradict_each_other_prove_nothing(tmp_path: Path, home: Path) -> None:
    (copy,) = (home / "backup").iterdir()
    other = home / "backup" / "20200101T000000"
    other.mkdir()
    for path in copy.iterdir():
        if path.is_file():
            (other / path.name).write_bytes(path.read_bytes().replace(b"kept", b"FORGED"))
    (home / "snapshot.json").unlink()
    with quiet(), ChronoStore(tmp_path) as store:
        with pytest.raises(LogCorrupted, match="base-missing"):
            store.upkeep.repair()
        told = store.upkeep.repair(unproven=True)
        assert sorted(told["unproven"]) == sorted(OLD)
        assert any("snapshot.json" in lost for lost in told["lost"])
    assert labels(tmp_path) == ALL


def test_a_copy_that_does_not_reach_the_log_proves_nothing(tmp_path: Path, home: Path) -> None:
    (home / "snapshot.json").unlink()
    (copy,) = (home / "backup").iterdir()
    state = json.loads((copy / "snapshot.json").read_text())
    (copy / "snapshot.json").write_text(json.dumps(state | {"seq": 7}))
    with quiet(), ChronoStore(tmp_path) as store, pytest.raises(LogCorrupted, match="base-missing"):
        store.upkeep.repair()


@pytest.mark.parametrize("indent", [None, 1], ids=["one line", "many lines"])
def test_what_is_left_of_a_snapshot_is_marked_and_the_rest_named(tmp_path: Path, indent: int | None) -> None:
    home = tmp_path / ".chronomemory"
    foreign(home, is_adopted=False)
    snapshot = home / "snapshot.json"
    text = json.dumps(json.loads(snapshot.read_text()), indent=indent)
    at = text.index('"label"', text.index('"old 2"'))
    snapshot.write_text(text[:at] + text[at + 1 :])
    with quiet(), ChronoStore(tmp_path) as store:
        with pytest.raises(LogCorrupted, match="base-missing"):
            store.upkeep.repair()
        told = store.upkeep.repair(unproven=True)
        assert sorted(told["unproven"]) == sorted(OLD.keys() - {"old 2"})
        assert any('"old 2"' in lost for lost in told["lost"])
