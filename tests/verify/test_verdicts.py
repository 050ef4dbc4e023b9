"""Every verdict is true: beside others, of what cannot be read or was forged, of a wrong clock."""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chronomemory import ChronoStore
from containers import forge
from onlookers import FOLDER, fill, note_of, said_by_nobody
from verdicts import VERIFIER, verify_log

#: A smaller text index is not kept on disk.
INDEXED_RECORDS = 20_000
WITHOUT_ZSTD = """
import sys
sys.modules["compression.zstd"] = sys.modules["backports.zstd"] = None
sys.path.insert(0, sys.argv.pop(1))
import verify_log
sys.exit(verify_log.main())
"""


def with_past(project: Path, compactions: int = 3) -> bytes:
    """Compact several times; return the note that somebody made before the first."""
    fill(project)
    note = note_of(project).read_bytes()
    with ChronoStore(project) as store:
        for number in range(compactions):
            store.upsert({"id": f"later-{number}"})
            store.compact()
    return note


def second(project: Path, *, zstd: bool = True) -> subprocess.CompletedProcess[str]:
    code = [] if zstd else ["-c", WITHOUT_ZSTD, str(VERIFIER.parent)]
    line = [sys.executable, *(code or [str(VERIFIER)]), str(project)]
    return subprocess.run(line, capture_output=True, text=True, check=False)


class TestBesideOthers:
    @staticmethod
    def moves(project: Path) -> Callable[..., None]:
        """Replace all embeddings and compact: the rows move to another file."""

        def move(*_: object) -> None:
            with ChronoStore(project) as store:
                store.vectors.attach_many(
                    ["R-0", "R-1"], np.random.default_rng().random((2, 8), dtype=np.float32), model="m"
                )
                store.compact()

        return move

    def test_rows_that_move_during_a_look_are_no_damage(self, tmp_path: Path) -> None:
        with_past(tmp_path)
        move = self.moves(tmp_path)
        move()
        report = ChronoStore(tmp_path).verify(progress=move)
        assert report.valid, report.damage[0]
        assert report.remembered == "kept"

    def test_nor_are_they_for_the_second_verifier(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with_past(tmp_path)
        move = self.moves(tmp_path)
        move()
        judge = verify_log.ROWS.judge

        def beside(*given: Any) -> Any:
            move()  # still said in the log that is being looked at
            move()
            return judge(*given)

        monkeypatch.setattr(verify_log.ROWS, "judge", beside)
        found = verify_log.verify_folder(tmp_path)
        assert found["valid"], found["damage"][0]

    def test_a_write_under_way_is_no_interrupted_one(self, tmp_path: Path, log: Path) -> None:
        fill(tmp_path)
        with log.open("ab") as stream:
            stream.write(b'{"hash":"half a li')
        with (log.parent / "lock").open("r+b") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                ChronoStore(tmp_path).open().close()
            assert ChronoStore(tmp_path).verify().tail is None
        with pytest.warns(RuntimeWarning, match="uncommitted bytes"):
            ChronoStore(tmp_path).open().close()
        tail = ChronoStore(tmp_path).verify().tail
        assert tail is not None
        assert tail.length == 18


class TestWhatCannotBeRead:
    def test_a_damaged_archive_keeps_nobody_from_opening(self, tmp_path: Path) -> None:
        note = with_past(tmp_path)
        archive = sorted((tmp_path / FOLDER / "archive").iterdir())[-1]
        content = bytearray(archive.read_bytes())
        content[len(content) // 2] ^= 0xFF
        archive.write_bytes(content)
        note_of(tmp_path).write_bytes(note)
        with pytest.warns(RuntimeWarning, match=archive.name), ChronoStore(tmp_path) as store:
            assert store.get("R-1") is not None
            report = store.verify()
            assert [found.path for found in report.damage] == [f"archive/{archive.name}"]
            assert report.remembered == "unknown"
            assert archive.name in report.remembered_reason
            store.upkeep.accept_head()
            assert store.verify().remembered == "kept"
            store.upkeep.repair()
            assert store.verify().valid

    def test_archives_that_lead_in_a_circle_end_somewhere(self, tmp_path: Path) -> None:
        note = with_past(tmp_path, compactions=2)
        first, last = sorted((tmp_path / FOLDER / "archive").iterdir(), key=lambda path: path.stat().st_mtime)
        shutil.copy(last, first)
        note_of(tmp_path).write_bytes(note)
        with pytest.warns(RuntimeWarning, match="circle"):
            ChronoStore(tmp_path).open().close()

    def test_an_archive_that_may_not_be_read_is_named(self, shared: Path) -> None:
        with_past(shared)
        archive = sorted((shared / FOLDER / "archive").iterdir())[-1]
        archive.chmod(0)
        notes = said_by_nobody(lambda: ChronoStore(shared, head_file=shared / "none").verify().notes)
        assert f"archive/{archive.name} cannot be read" in notes
        base = sorted((shared / FOLDER / "base").iterdir(), key=lambda path: path.stat().st_mtime)[-1]
        base.chmod(0)
        assert base.name in said_by_nobody(lambda: ChronoStore(shared, head_file=shared / "none").verify())

    def test_the_second_verifier_says_what_it_could_not_look_into(self, shared: Path) -> None:
        with_past(shared)
        assert second(shared).returncode == 0
        done = second(shared, zstd=False)
        assert done.returncode == 2
        assert "cannot tell: archive/" in done.stdout
        assert "chain ok" not in done.stdout
        (shared / FOLDER / "archive").chmod(0)
        told = said_by_nobody(lambda: verify_log.verify_folder(shared)["cannot_tell"])
        assert "archive/" in told
        (shared / FOLDER / "archive").chmod(0o755)
        base = next((shared / FOLDER / "base").iterdir())
        base.chmod(0)
        assert base.name in said_by_nobody(lambda: verify_log.verify_folder(shared)["cannot_tell"])

    def test_and_what_it_found_counts_more(self, tmp_path: Path) -> None:
        with_past(tmp_path)
        log = tmp_path / FOLDER / "events.wal"
        log.write_bytes(log.read_bytes().replace(b'"previous_head"', b'"previous_heat"'))
        assert second(tmp_path, zstd=False).returncode == 1

    def test_a_lone_log_does_not_tell_what_it_starts_from(self, tmp_path: Path) -> None:
        with_past(tmp_path)
        lone = tmp_path / "lone.wal"
        shutil.copy(tmp_path / FOLDER / "events.wal", lone)
        assert second(lone).returncode == 2

    def test_without_the_files_beside_it_it_cannot_tell(self, tmp_path: Path) -> None:
        with_past(tmp_path)
        alone = tmp_path / "alone"
        alone.mkdir()
        shutil.copy(VERIFIER, alone)
        done = subprocess.run(
            [sys.executable, str(alone / VERIFIER.name), str(tmp_path)], capture_output=True, check=False
        )
        assert done.returncode == 2


class TestForgedIndexes:
    def test_a_record_hidden_from_search_is_told(self, tmp_path: Path) -> None:
        with ChronoStore(tmp_path, durability="off") as store:
            store.upsert_many(
                [{"id": f"R-{number}", "label": f"stone {number}"} for number in range(INDEXED_RECORDS)]
            )
            store.upsert({"id": "N", "label": "needle"})
            store.upsert({"id": "X", "label": "will change"})
            assert [hit.id for hit in store.search("needle")] == ["N"]
        path = next((tmp_path / FOLDER / "index" / "text").glob("*.text"))
        with ChronoStore(tmp_path) as store:
            store.upsert({"id": "X", "label": "changed"})
            store.delete("R-7")
            assert store.verify().rung == "remembered"
            store.compact()
        honest = path.read_bytes()
        assert ChronoStore(tmp_path).verify().altered_indexes == ()
        forge(path, b"needl", b"noodl")
        with ChronoStore(tmp_path) as store:
            store.upkeep.set_search_fields(text={"label": 1})
            assert store.verify().altered_indexes == (), "nobody reads it any more"
        path.write_bytes(honest)

    def test_and_repair_is_the_way_out(self, tmp_path: Path) -> None:
        with ChronoStore(tmp_path, durability="off") as store:
            store.upsert_many(
                [{"id": f"R-{number}", "label": f"stone {number}"} for number in range(INDEXED_RECORDS)]
            )
            store.upsert({"id": "N", "label": "needle"})
            assert [hit.id for hit in store.search("needle")] == ["N"]
        path = next((tmp_path / FOLDER / "index" / "text").glob("*.text"))
        forge(path, b"needl", b"noodl")
        store = ChronoStore(tmp_path)
        with store:
            assert store.search("needle") == []
        report = store.verify()
        assert report.valid
        assert report.rung == "index altered"
        assert [(found.path, found.kind) for found in report.altered_indexes] == [
            (f"index/text/{path.name}", "index-altered")
        ]
        assert report.altered_indexes[0].reason == "a document is not what its record says", "no id, no word"
        line = [sys.executable, "-m", "chronomemory", "verify", "--project", str(tmp_path)]
        assert subprocess.run(line, capture_output=True, check=False).returncode == 1
        store.upkeep.repair()
        assert store.verify().rung == "remembered"
        with store:
            assert [hit.id for hit in store.search("needle")] == ["N"]

    def test_the_second_verifier_says_that_it_does_not_compare(self, tmp_path: Path) -> None:
        with_past(tmp_path)
        with ChronoStore(tmp_path) as store:
            store.history("R-1")
        done = second(tmp_path)
        assert done.returncode == 0
        assert "index not compared" in done.stdout


class TestClocks:
    AHEAD = "2999-01-01T00:00:00.000000Z"

    def ahead(self, project: Path) -> None:
        """A store whose third event was written by a clock that was wrong."""
        fill(project, count=2)
        log = project / FOLDER / "events.wal"
        last = json.loads(log.read_bytes().splitlines()[-1])
        event = {**last, "prev_hash": last["hash"], "seq": 3, "ts": self.AHEAD, "record_id": "F"}
        event["record"] = {**last["record"], "id": "F"}
        del event["hash"]
        payload = json.dumps(event, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        digest = hashlib.sha256(payload.encode()).hexdigest()
        with log.open("ab") as stream:
            stream.write(f'{{"hash":"{digest}",{payload[1:]}\n'.encode())

    def test_a_time_to_come_is_noted_and_explained(self, tmp_path: Path) -> None:
        self.ahead(tmp_path)
        now = datetime.now(timezone.utc)
        with ChronoStore(tmp_path) as store:
            for number in range(4):
                store.upsert({"id": f"after-{number}", "label": "tea"})
            notes = [note for note in store.verify().notes if "clock" in note]
            assert len(notes) == 1
            assert notes[0].startswith("5 events carry a time later")
            assert "the first is seq 3, 2999-01-01" in notes[0]
            with pytest.warns(RuntimeWarning, match="ahead of this machine's clock"):
                assert store.as_of(now).record_count() == 2
            with pytest.warns(RuntimeWarning, match="since: .*2999"):
                store.search("tea", since=now - timedelta(days=1))
            with pytest.warns(RuntimeWarning, match="until: .*2999"):
                store.search("tea", until=now)
            store.compact()
            assert any("clock" in note for note in store.verify().notes)

    def test_a_clock_that_was_always_right_is_nobodys_business(self, tmp_path: Path) -> None:
        fill(tmp_path)
        with warnings.catch_warnings(), ChronoStore(tmp_path) as store:
            warnings.simplefilter("error")
            assert store.as_of(datetime.now(timezone.utc)).record_count() == 5
            store.search("x", since=datetime.now(timezone.utc) - timedelta(days=1))
            assert store.verify().notes == ()

    def test_heads_are_noted_all_the_same(self, tmp_path: Path) -> None:
        self.ahead(tmp_path)
        with ChronoStore(tmp_path, durability="full") as store:
            for number in range(3):
                store.upsert({"id": f"after-{number}"})
                time.sleep(1.05)
            store.upsert({"id": "last"})
            assert json.loads(note_of(tmp_path).read_text())["seq"] == store.wal_seq()


WITHOUT_HANDLES = """
import os, resource, sys
from chronomemory import ChronoStore
with ChronoStore(sys.argv[1]) as store:
    assert store.verify().valid
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for room in range(12):
        resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + room, hard))
        try:
            assert store.verify().valid, room
            print("valid")
        except OSError as fault:
            assert "Too many open files" in str(fault), fault
            print("refused")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert store.verify().valid
"""


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="nothing lists the open files here")
def test_who_can_open_no_more_files_says_nothing_of_an_archive(tmp_path: Path) -> None:
    with_past(tmp_path, 4)
    line = [sys.executable, "-c", WITHOUT_HANDLES, str(tmp_path)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == {"valid", "refused"}
