"""A store stays small however often it is compacted, and what is pruned says so."""

from __future__ import annotations

import json
import pickle
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from chronomemory import ChronoStore
from chronomemory.cli.transfer import bring_records
from chronomemory.errors import ChronoError, HistoryUnavailable
from chronomemory.upkeep import weight_of
from verdicts import verify_log

LATER = datetime(2100, 1, 1, tzinfo=timezone.utc)


def nights(root: Path, number: int, records: int = 200) -> ChronoStore:
    """A store that was compacted again and again, with one change between."""
    store = ChronoStore(root)
    for n in range(records):
        store.upsert({"id": f"R-{n}", "label": f"{n * 7919} and {n**5} of {n**3}"})
    for night in range(number):
        store.upsert({"id": "R-1", "label": f"night {night}"})
        store.compact()
    return store


def test_nightly_compactions_keep_the_folder_small(tmp_path: Path) -> None:
    with nights(tmp_path, 40) as store:
        folder = tmp_path / ".chronomemory"
        state = (folder / "snapshot.json").stat().st_size
        bases = sum(path.stat().st_size for path in (folder / "base").iterdir())
        assert bases + state < 3 * state
        assert len(list((folder / "base").glob("*.json"))) == 1
        assert [store.as_of(200 + 2 * night).get("R-1").label for night in (1, 17, 38)] == [
            f"night {night}" for night in (0, 16, 37)
        ]
        assert len(store.history("R-1")) == 41
        assert store.verify().valid
    second = verify_log.verify_folder(tmp_path)
    assert second["valid"] and not [note for note in second["notes"] if "unavailable" in note]


def test_a_compaction_says_what_the_folder_weighs(tmp_path: Path) -> None:
    with nights(tmp_path, 1) as store:
        store.upsert({"id": "A"})
        before = weight_of(tmp_path / ".chronomemory")
        told = store.compact()
        assert told == 2 and isinstance(told, int)
        assert before == told.bytes_before > 0
        copied = pickle.loads(pickle.dumps(told))
        assert (copied, copied.bytes_before, copied.bytes_after) == (
            told,
            told.bytes_before,
            told.bytes_after,
        )
        assert told.bytes_after == weight_of(tmp_path / ".chronomemory")


def test_what_is_pruned_is_gone_and_said_so(tmp_path: Path) -> None:
    with nights(tmp_path, 5) as store:
        store.scoped(user="ann").upsert({"id": "ann's"})
        seen = store.upkeep.prune(before=LATER, reason="after 90 days", dry_run=True)
        assert (seen.seq, len(seen.archives)) == (None, 5)
        told = store.upkeep.prune(older_than=timedelta(days=90), reason="after 90 days", now=lambda: LATER)
        assert told.archives == seen.archives and told.bytes_after < told.bytes_before
        assert list((tmp_path / ".chronomemory" / "archive").iterdir()) == []
        with pytest.raises(HistoryUnavailable):
            store.as_of(50)
        assert store.get("R-1").label == "night 4" and store.history("R-1") == []
        notes = store.verify().notes
        said = f'pruned at event {told.seq}: "after 90 days": 5 archives, up to event {told.last_seq}'
        assert said in notes and not [note for note in notes if "unavailable" in note]
        for handle in (store.scoped(user="ann"), store.shared()):
            assert handle.get(f"pruned:{told.seq}") is None and not handle.query(kind="pruned", status="")
            assert not handle.search("after 90 days")
        assert store.everyone().get(f"pruned:{told.seq}").data == {"archives": 5, "last_seq": told.last_seq}
        # It stays said, whatever becomes of the log.
        store.upsert({"id": "A"})
        store.compact(keep_history=False)
        assert said in store.verify().notes
        assert store.upkeep.prune(before=LATER, reason="again").seq is None
    second = verify_log.verify_folder(tmp_path)
    assert second["valid"]


def test_backups_are_kept_by_their_number(tmp_path: Path) -> None:
    with nights(tmp_path, 1) as store:
        copies = [store.backup() for _ in range(3)]
        told = store.upkeep.prune(keep_backups=1, reason="")
        assert [copy.exists() for copy in copies] == [False, False, True]
        assert told.backups == tuple(f"backup/{copy.name}" for copy in copies[:2])
        assert told.seq is None


def test_the_newest_copy_stays_whatever_the_clock_said(tmp_path: Path) -> None:
    with nights(tmp_path, 1) as store:
        early = store.backup()
        # As if the clock had been ahead when it was made.
        ahead = early.with_name("20990101T000000")
        early.rename(ahead)
        store.upsert({"id": "later"})
        newest = store.backup()
        told = store.upkeep.prune(keep_backups=1, reason="")
        assert newest.exists() and not ahead.exists()
        assert told.backups == (f"backup/{ahead.name}",)
        assert store.backup().name > newest.name


def test_what_is_meant_has_to_be_said(tmp_path: Path) -> None:
    with nights(tmp_path, 1) as store:
        for given in ({}, {"before": LATER, "older_than": timedelta(1)}, {"keep_backups": -1}):
            with pytest.raises(ChronoError):
                store.upkeep.prune(reason="none", **given)  # type: ignore[arg-type]
        with pytest.raises(ChronoError):
            store.upkeep.prune(before=LATER, reason="x" * 201)


def test_what_another_log_says_of_its_past_is_not_imported(tmp_path: Path) -> None:
    lines = tmp_path / "export.ndjson"
    with nights(tmp_path / "theirs", 3) as theirs:
        theirs.upsert({"id": "S", "label": "secret"})
        theirs.upkeep.prune(before=LATER, reason="old")
        theirs.erase(ids=["S"], reason="asked for")
        rows = [record.to_dict() for record in theirs.everyone().query(status="", faces=True)]
    assert {row["kind"] for row in rows} >= {"pruned", "erasure"}
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with ChronoStore(tmp_path / "ours") as ours:
        ours.upsert({"id": "OWN", "label": "1"})
        ours.compact()
        copy = ours.backup()
        bring_records(ours, lines, lambda *_: None)
        assert ours.get("R-7") is not None
        assert not ours.everyone().query(kind="pruned", status="", faces=True)
        notes = ours.verify().notes
        assert not [note for note in notes if "erased" in note or "pruned" in note]
        ours.upkeep.restore(copy)


def test_an_archive_that_goes_between_two_compactions_is_noticed(tmp_path: Path) -> None:
    """What a process saw of archives before does not make up for one that is not there any more."""
    with ChronoStore(tmp_path, head_file=tmp_path / "head") as store:
        for number in range(6):
            store.upsert({"id": "R", "label": f"night {number}"})
            store.compact()
        archives = (tmp_path / ".chronomemory" / "archive").iterdir()
        sorted(archives, key=lambda path: int(path.name.split("-")[0]))[3].unlink()
        seqs = {}
        for number in range(6, 9):
            store.upsert({"id": "R", "label": f"night {number}"})
            seqs[store.wal_seq()] = f"night {number}"
            store.compact()
        # The first base behind the hole stays: nothing adds up to it any more.
        for seq, label in seqs.items():
            record = store.as_of(seq).get("R")
            assert record is not None and record.label == label
        assert any("is not there" in note for note in store.verify().notes)
