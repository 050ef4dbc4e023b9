"""What was erased comes back only if somebody says so, and never in silence."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path

import pytest
from chronomemory import ChronoStore
from chronomemory.errors import LogCorrupted
from test_erase import holding, is_valid_for_both

SECRET = "Elm Street 17"


def label_of(store: ChronoStore, name: str) -> str | None:
    record = store.get(name)
    return None if record is None else record.label


def lived(root: Path) -> tuple[ChronoStore, Path]:
    """A store with a past, and a copy of it from before the erasure, outside."""
    store = ChronoStore(root / "here", head_file=root / "head")
    store.upsert({"id": "mia", "label": SECRET})
    store.upsert({"id": "tea", "label": "Tea at four"})
    store.compact()
    store.upsert({"id": "mia", "label": f"{SECRET}, first floor"})
    copy = root / "copy"
    shutil.copytree(store.backup(), copy)
    return store, copy


def test_a_copy_from_before_an_erasure_comes_back_without_it(tmp_path: Path) -> None:
    store, copy = lived(tmp_path)
    with store:
        told = store.erase(ids=["mia"], reason="asked for")
        store.upsert({"id": "tea", "label": "Tea at five"})
        store.upkeep.restore(copy)
        assert (store.get("mia"), label_of(store, "tea")) == (None, "Tea at four")
        assert holding(tmp_path / "here", SECRET) == []
        assert is_valid_for_both(store)
        (note,) = [note for note in store.verify().notes if note.startswith("upheld")]
        assert note.endswith(f'event {told.seq} of the log before it, "asked for": 2 lines')
        # What was set aside knows the erasure, and can be taken back.
        (aside,) = (tmp_path / "here" / ".chronomemory" / "quarantine").glob("*-before-restore")
        store.upkeep.restore(aside)
        assert (store.get("mia"), label_of(store, "tea")) == (None, "Tea at five")
        assert is_valid_for_both(store)


def test_a_copy_from_after_it_comes_back(tmp_path: Path) -> None:
    store, _ = lived(tmp_path)
    with store:
        store.erase(ids=["mia"], reason="asked for")
        copy = store.backup()
        store.upsert({"id": "tea", "label": "Tea at five"})
        store.upkeep.restore(copy)
        assert label_of(store, "tea") == "Tea at four"
        assert holding(tmp_path / "here", SECRET) == []
        assert not any("brought back" in note for note in store.verify().notes)


def test_what_is_brought_back_is_told_for_ever_and_can_be_erased_again(tmp_path: Path) -> None:
    store, copy = lived(tmp_path)
    with store:
        store.erase(ids=["mia"], reason="asked for")
        before = len((copy / "events.wal").read_bytes().splitlines())
        store.upkeep.restore(copy, bring_back=True)
        assert label_of(store, "mia") == f"{SECRET}, first floor"
        lines = (tmp_path / "here" / ".chronomemory" / "events.wal").read_bytes().splitlines()
        assert len(lines) == before + 1
        said = f"brought back at event {store.wal_seq()}: a copy without 1 erasures, of 2 lines"
        for _ in range(2):
            assert said in store.verify().notes
            assert is_valid_for_both(store)
            store.compact(keep_history=False)
        store.erase(ids=["mia"], reason="again")
        assert holding(tmp_path / "here", SECRET) == []
        assert said in store.verify().notes
        with pytest.raises(LogCorrupted, match="without what was erased since"):
            store.upkeep.restore(copy)


def test_an_erasure_is_told_after_its_log_is_gone(tmp_path: Path) -> None:
    store, _ = lived(tmp_path)
    with store:
        seq = store.erase(ids=["mia"], reason="asked for").seq
        for _ in range(2):
            assert [note for note in store.verify().notes if note.startswith(f"erased at event {seq}")]
            store.compact(keep_history=False)


def test_a_file_that_is_back_is_told_to_whoever_opens(tmp_path: Path) -> None:
    store, copy = lived(tmp_path)
    with store:
        store.erase(ids=["mia"], reason="asked for")
    archives = tmp_path / "here" / ".chronomemory" / "archive"
    (old,) = [path for path in (copy / "archive").iterdir() if not (archives / path.name).exists()]
    shutil.copy(old, archives)
    with pytest.warns(RuntimeWarning, match=f"what was erased is back: archive/{old.name}"):
        opened = ChronoStore(tmp_path / "here", head_file=tmp_path / "head").open()
    with opened:
        assert [item.path for item in opened.verify().returned] == [f"archive/{old.name}"]


def test_a_repair_brings_nothing_back_that_lies_around(tmp_path: Path) -> None:
    store, copy = lived(tmp_path)
    with store:
        store.erase(ids=["mia"], reason="asked for")
        store.upsert({"id": "tea", "label": "Tea at five"})
        store.upsert({"id": "tea", "label": "Tea at six"})
    folder = tmp_path / "here" / ".chronomemory"
    for path in [*(copy / "archive").iterdir(), *(copy / "base").iterdir()]:
        shutil.copy(path, folder / path.parent.name)
    shutil.copytree(copy, folder / "backup" / "20200101T000000")
    log = folder / "events.wal"
    log.write_bytes(log.read_bytes().replace(b"Tea at five", b"Tea at f\x00ve"))
    with pytest.warns(RuntimeWarning):
        damaged = ChronoStore(tmp_path / "here", head_file=tmp_path / "head").open()
    with damaged:
        damaged.upkeep.repair()
        assert damaged.get("mia") is None
        assert label_of(damaged, "tea") == "Tea at six"
        assert [note for note in damaged.verify().notes if note.startswith("erased at event")]


def test_a_scope_goes_from_what_was_set_aside_too(tmp_path: Path) -> None:
    """What a restore set aside, or a backup, may know records that the log does not know any more."""
    with ChronoStore(tmp_path, head_file=tmp_path / "head") as store:
        store.upsert({"id": "tea", "label": "Tea at four"})
        before = store.backup()
        mia = store.scoped(user="mia")
        mia.upsert({"id": "home", "label": SECRET})
        later = store.backup()
        store.upkeep.restore(before)
        assert mia.get("home") is None
        told = store.erase(scope={"user": "mia"}, reason="asked for")
        assert told.seq is not None and told.lines == 0
        assert told.backups == (f"backup/{later.name}",)
        assert len(told.quarantine) == 1
        assert holding(tmp_path, SECRET) == []
        assert before.exists()
        assert is_valid_for_both(store)
        assert store.erase(scope={"user": "mia"}, reason="asked for").seq is None


@pytest.mark.parametrize("history", ["redact", "drop"])
def test_what_was_set_aside_alone_is_reason_enough(tmp_path: Path, history: str) -> None:
    with ChronoStore(tmp_path, head_file=tmp_path / "head") as store:
        store.upsert({"id": "tea", "label": "Tea at four"})
        before = store.backup()
        store.scoped(user="mia").upsert({"id": "home", "label": SECRET})
        store.upkeep.restore(before)
        # Of somebody whom nothing knows nothing goes, whatever was set aside.
        nobody = store.erase(scope={"user": "bob"}, reason="asked for", history=history)
        assert nobody.seq is None and nobody.quarantine == ()
        assert holding(tmp_path, SECRET) != []
        told = store.erase(scope={"user": "mia"}, reason="asked for", history=history)
        assert told.seq is not None and len(told.quarantine) == 1
        assert holding(tmp_path, SECRET) == []
        assert is_valid_for_both(store)


def test_what_belongs_to_it_goes_from_what_was_set_aside_too(tmp_path: Path) -> None:
    with ChronoStore(tmp_path, head_file=tmp_path / "head") as store:
        store.upsert({"id": "tea", "label": "Tea at four"})
        store.upsert({"id": "mia", "label": "Mia"})
        store.compact()
        edge = {"id": "way", "kind": "edge", "label": SECRET, "data": {"from_id": "mia", "to_id": "tea"}}
        store.upsert(edge)
    log = tmp_path / ".chronomemory" / "events.wal"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:-1]))
    (log.parent / "quarantine").mkdir(exist_ok=True)
    (log.parent / "quarantine" / f"20260101T000000-tail-at-{log.stat().st_size}").write_bytes(lines[-1])
    (log.parent / "synced").unlink()
    (tmp_path / "head").unlink()
    with ChronoStore(tmp_path, head_file=tmp_path / "head") as store:
        store.upsert({"id": "cup"})
        assert len(holding(tmp_path, SECRET)) == 1
        told = store.erase(ids=["mia"], reason="asked for")
        assert len(told.quarantine) == 1
        assert holding(tmp_path, SECRET) == []


@pytest.mark.parametrize("how", ["cut", "cut, no hint", "overwritten"])
def test_a_log_that_lost_the_event_of_its_erasure_is_whole_after_a_repair(tmp_path: Path, how: str) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert_many([{"id": name, "label": name} for name in ("mia", "tea", "milk")])
        store.erase(ids=["mia"], reason="asked for")
    log = tmp_path / ".chronomemory" / "events.wal"
    first = log.read_bytes().split(b"\n")[0] + b"\n"
    log.write_bytes(first + (b"x" * 40 + b"\n" if how == "overwritten" else b""))
    if how == "cut, no hint":
        (tmp_path / ".chronomemory" / "synced").unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        with ChronoStore(tmp_path) as store:
            assert not store.verify().valid
            told = store.upkeep.repair()
            assert any("was erased, but copies from before it" in lost for lost in told["lost"]), told["lost"]
            report = store.verify()
            assert report.valid, report.damage
            assert (label_of(store, "mia"), label_of(store, "tea")) == (None, "tea")


def test_a_copy_from_before_an_erasure_keeps_what_named_the_erased_record(tmp_path: Path) -> None:
    with ChronoStore(tmp_path / "here", head_file=tmp_path / "head") as store:
        store.upsert({"id": "mia", "label": SECRET})
        store.upsert({"id": "early", "label": "named her before the copy", "evidence": ["mia"]})
        store.upsert({"id": "late", "label": "named her after the copy"})
        store.upsert({"id": "tea", "label": "Tea with a secret"})
        copy = shutil.copytree(store.backup(), tmp_path / "copy")
        store.upsert({"id": "late", "label": "named her after the copy", "evidence": ["mia"]})
        store.upsert({"id": "tea", "label": "Tea at four", "evidence": ["mia"]})
        # The past of one that was asked for must not come back, though it named her too.
        store.erase(ids=["mia", "tea"], again=["tea"], reason="asked for")
        store.upsert({"id": "new", "label": "came later"})
        store.upkeep.restore(copy)
        assert [label_of(store, name) for name in ("mia", "tea", "new")] == [None, None, None]
        for name in ("early", "late"):
            assert (label_of(store, name) or "").startswith("named her")
        for secret in (SECRET, "Tea with a secret"):
            assert holding(tmp_path / "here", secret) == []
        assert is_valid_for_both(store)
