"""Who misses a head, and that it stays missed until somebody says that all is well."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from chronomemory import ChronoStore
from chronomemory.errors import LogCorrupted
from onlookers import FOLDER, cut_last_line, fill, note_of, said_by_nobody


class TestWhoRemembers:
    def test_a_reader_who_may_not_write_misses_a_cut_end(self, shared: Path) -> None:
        fill(shared)
        notes = shared / "notes"
        notes.mkdir()
        notes.chmod(0o777)
        own = notes / "head.json"

        def look() -> str:
            warnings.simplefilter("ignore")
            with ChronoStore(shared, head_file=own) as store:
                return store.verify().remembered

        assert said_by_nobody(look) == "kept"
        fill(shared, 10)
        assert said_by_nobody(look) == "kept"
        assert json.loads(own.read_text())["seq"] == 10
        cut_last_line(shared / FOLDER / "events.wal")
        assert said_by_nobody(look) == "lost"

    def test_one_who_only_verifies_misses_it_too(self, shared: Path) -> None:
        fill(shared)
        notes = shared / "notes"
        notes.mkdir()
        notes.chmod(0o777)

        def look() -> str:
            return ChronoStore(shared, head_file=notes / "head.json").verify().remembered

        assert said_by_nobody(look) == "unseen"
        assert said_by_nobody(look) == "kept"
        cut_last_line(shared / FOLDER / "events.wal")
        assert said_by_nobody(look) == "lost"

    def test_one_who_has_to_wait_for_the_lock_remembers_too(self, tmp_path: Path, log: Path) -> None:
        fill(tmp_path)
        own = tmp_path / "own.json"
        with ChronoStore(tmp_path, exclusive=True) as busy:
            busy.upsert({"id": "X"})
            busy.sync()
            ChronoStore(tmp_path, head_file=own).open().close()
        assert json.loads(own.read_text())["seq"] == 6

    def test_who_cannot_note_is_told_why(self, shared: Path) -> None:
        fill(shared)
        own = shared / "notes" / "head.json"

        def look() -> object:
            with ChronoStore(shared, head_file=own) as store:
                return store.verify().lines(), ChronoStore(shared, head_file=own).verify().lines()

        told = said_by_nobody(look)
        assert told.count("unseen: the head could not be remembered") == 2
        assert "ermission denied" in told

    def test_a_damaged_note_is_told_and_kept(self, tmp_path: Path) -> None:
        fill(tmp_path)
        for content in ("{", "", "{}", '{"seq":1}'):
            note_of(tmp_path).write_text(content)
            with pytest.warns(RuntimeWarning, match="note about the last head"):
                fill(tmp_path, 10, 1)
            report = ChronoStore(tmp_path).verify()
            assert report.remembered == "unreadable"
            assert report.rungs["remembered"] == "cannot tell"
            assert str(note_of(tmp_path)) in report.remembered_reason
            assert note_of(tmp_path).read_text() == content
        line = [sys.executable, "-m", "chronomemory", "verify", "--project", str(tmp_path)]
        assert subprocess.run(line, capture_output=True, check=False).returncode == 3
        ChronoStore(tmp_path).upkeep.accept_head()
        assert ChronoStore(tmp_path).verify().rung == "remembered"

    def test_a_note_is_not_replaced_by_a_log_that_was_cut_and_grew_again(
        self, tmp_path: Path, log: Path
    ) -> None:
        with ChronoStore(tmp_path) as slow:
            slow.upsert({"id": "A"})
            slow.sync()
            whole = log.read_bytes()
            fill(tmp_path)
            log.write_bytes(whole)
            (log.parent / "synced").unlink()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                slow.upsert_many([{"id": f"new-{number}"} for number in range(40)])
        assert ChronoStore(tmp_path).verify().remembered == "lost"


class TestLaundering:
    """What was missed stays missed until somebody says that all is well."""

    def test_by_a_backup_of_the_cut_log(self, tmp_path: Path, log: Path) -> None:
        fill(tmp_path)
        cut_last_line(log)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with ChronoStore(tmp_path) as store:
                store.upkeep.restore(store.backup())
                assert store.verify().remembered == "lost"
            fill(tmp_path, 10)
            assert ChronoStore(tmp_path).verify().remembered == "lost"
            ChronoStore(tmp_path).upkeep.accept_head()
        assert ChronoStore(tmp_path).verify().rung == "remembered"

    def test_a_backup_that_has_the_head_ends_it(self, tmp_path: Path, log: Path) -> None:
        fill(tmp_path)
        with ChronoStore(tmp_path) as store:
            saved = store.backup()
        cut_last_line(log)
        with pytest.warns(RuntimeWarning, match="seen here"), ChronoStore(tmp_path) as store:
            store.upkeep.restore(saved)
            assert store.verify().rung == "remembered"
        assert ChronoStore(tmp_path).verify().rung == "remembered"

    @pytest.mark.parametrize("keep_history", [True, False])
    def test_by_compaction(self, tmp_path: Path, log: Path, keep_history: bool) -> None:
        fill(tmp_path)
        cut_last_line(log)
        for number in range(2):
            with pytest.warns(RuntimeWarning, match="event 5 was seen here"), ChronoStore(tmp_path) as store:
                store.upsert({"id": f"more-{number}"})
                with pytest.raises(LogCorrupted, match="event 5 was seen here"):
                    store.compact(keep_history=keep_history)
            assert ChronoStore(tmp_path).verify().remembered == "lost"

    def test_by_repair(self, tmp_path: Path, log: Path) -> None:
        fill(tmp_path)
        cut_last_line(log)
        log.write_bytes(log.read_bytes().replace(b"R-2", b"R-9", 1))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with ChronoStore(tmp_path) as store:
                store.upkeep.repair()
            report = ChronoStore(tmp_path).verify()
            assert report.valid
            assert report.remembered == "lost"
            assert "event 5 was seen here" in report.remembered_reason
            ChronoStore(tmp_path).upkeep.accept_head()
        assert ChronoStore(tmp_path).verify().rung == "remembered"

    def test_a_restore_that_was_meant_is_no_loss_to_whoever_knew_of_it(self, tmp_path: Path) -> None:
        fill(tmp_path)
        with ChronoStore(tmp_path) as store:
            saved = store.backup()
            store.upsert({"id": "later"})
            store.sync()
            store.upkeep.restore(saved)
            assert store.verify().rung == "remembered"
