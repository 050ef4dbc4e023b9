"""A store touches nothing but its own files, also where somebody put a link or a stranger in there."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from chronomemory import ChronoRecord, ChronoStore, EsdbBridge
from chronomemory.cli import app
from chronomemory.errors import StoreLocked, StoreReadOnly
from chronomemory.layout import heads_folder
from typer.testing import CliRunner

Contents = Callable[[Path], "dict[str, bytes]"]
FOLDER = ".chronomemory"
SECRET = b"ssh-ed25519 AAAA somebody@somewhere\n" * 9


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Files of the user, which nothing may change."""
    folder = tmp_path / "home"
    (folder / "Documents").mkdir(parents=True)
    for name in ("authorized_keys", "Documents/thesis.tex", f"Documents/{'ab' * 32}.json", "Documents/x.tmp"):
        (folder / name).write_bytes(SECRET)
    return folder


def filled(project: Path) -> None:
    with ChronoStore(project) as store:
        store.upsert(ChronoRecord(id="A", label="apples"))
        store.compact()
        store.upsert(ChronoRecord(id="B"))


def link(project: Path, name: str, target: Path) -> Path:
    place = project / FOLDER / name
    if place.is_dir():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(target)
    return place


def refused(caught: pytest.ExceptionInfo[OSError], place: Path) -> bool:
    error = caught.value
    return (error.errno, error.filename) == (errno.ELOOP, str(place)) and "symbolic link" in str(error)


class TestLinks:
    @pytest.mark.parametrize("name", ["synced", "lock", "events.wal", "events.wal.tmp"])
    def test_a_first_write_follows_none(
        self, project: Path, outside: Path, name: str, contents: Contents
    ) -> None:
        before = contents(outside)
        place = link(project, name, outside / "authorized_keys")
        with pytest.raises(OSError, match="link") as caught, ChronoStore(project) as store:
            store.upsert(ChronoRecord(id="X"))
        assert refused(caught, place)
        assert contents(outside) == before and place.is_symlink()

    @pytest.mark.parametrize("name", ["base", "archive", "quarantine", "backup", "index", "vectors"])
    def test_no_folder_of_the_user_is_emptied(
        self, project: Path, outside: Path, name: str, contents: Contents
    ) -> None:
        before = contents(outside)
        with ChronoStore(project) as store:
            store.upsert(ChronoRecord(id="A"))
        place = link(project, name, outside / "Documents")
        with ChronoStore(project) as store:
            store.upsert(ChronoRecord(id="B"))
            try:
                store.compact()
            except OSError as error:
                assert name in ("base", "archive")
                assert (error.errno, error.filename) == (errno.ELOOP, str(place))
            assert {record.id for record in store.query()} == {"A", "B"}
        assert contents(outside) == before and place.is_symlink()

    @pytest.mark.parametrize("name", ["care.lock", "snapshot.json", "base/new.json.tmp"])
    def test_a_compaction_follows_none(
        self, project: Path, outside: Path, name: str, contents: Contents
    ) -> None:
        before = contents(outside)
        filled(project)
        place = link(project, name, outside / "authorized_keys")
        with ChronoStore(project) as store:
            with pytest.raises(OSError, match="link") as caught:
                store.compact()
            assert refused(caught, place)
            store.upsert(ChronoRecord(id="C"))
            assert store.record_count() == 3
        assert contents(outside) == before and place.is_symlink()

    def test_a_store_that_is_a_link_is_refused(
        self, project: Path, tmp_path: Path, contents: Contents
    ) -> None:
        filled(tmp_path / "elsewhere")
        before = contents(tmp_path / "elsewhere")
        place = project / FOLDER
        place.symlink_to(tmp_path / "elsewhere" / FOLDER)
        for act in (ChronoStore(project).open, ChronoStore(project).verify):
            with pytest.raises(OSError, match="link") as caught:
                act()
            assert refused(caught, place)
        answer = CliRunner().invoke(app, ["put", "X", "--project", str(project)])
        assert answer.exit_code == 1 and "symbolic link" in answer.output
        assert contents(tmp_path / "elsewhere") == before

    def test_a_link_to_nowhere_is_no_empty_project(self, project: Path, outside: Path) -> None:
        (project / FOLDER).symlink_to(outside / "nothing")
        with pytest.raises(OSError, match="link"):
            ChronoStore(project).upsert(ChronoRecord(id="X"))
        assert not (outside / "nothing").exists()
        (project / FOLDER).unlink()
        link(project, "events.wal", outside / "nothing")
        assert EsdbBridge(project).status().available is False

    def test_the_way_to_a_project_may_lead_through_links(self, project: Path, tmp_path: Path) -> None:
        (tmp_path / "way").symlink_to(project)
        filled(tmp_path / "way")
        with ChronoStore(tmp_path / "way") as store:
            saved = store.backup()
            store.upkeep.restore(saved)
            assert store.chain_valid() and store.record_count() == 2
        (tmp_path / "saved").symlink_to(saved)
        with ChronoStore(tmp_path / "saved") as copy:
            assert copy.record_count() == 2

    def test_a_link_in_a_backup_is_not_followed(self, project: Path, outside: Path) -> None:
        filled(project)
        with ChronoStore(project) as store:
            saved = store.backup()
            shutil.rmtree(saved / "archive")
            (saved / "archive").symlink_to(outside / "Documents")
            with pytest.raises(OSError, match="link"):
                store.upkeep.restore(saved)
            assert not list((project / FOLDER / "archive").glob("*.tex"))

    @pytest.mark.parametrize("name", ["index", "index/text", "index/text/lock"])
    def test_an_index_of_words_is_not_kept_behind_one(
        self, project: Path, outside: Path, name: str, contents: Contents
    ) -> None:
        place = link(project, name, outside / ("authorized_keys" if name.endswith("lock") else "Documents"))
        before = contents(outside)
        with ChronoStore(project) as store:
            # So many that an index would be kept.
            store.upsert_many([{"id": f"R{number}", "label": "an apple"} for number in range(20_500)])
            assert len(store.search("apple", limit=3)) == 3
        assert contents(outside) == before and place.is_symlink()


class TestHardLinks:
    @pytest.mark.filterwarnings("ignore:.*damage in events.wal")
    @pytest.mark.parametrize("name", ["synced", "lock", "care.lock", "events.wal", "events.wal.tmp"])
    def test_what_has_another_name_elsewhere_stays_as_it_is(
        self, project: Path, outside: Path, name: str, contents: Contents
    ) -> None:
        before = contents(outside)
        place = project / FOLDER / name
        place.parent.mkdir()
        os.link(outside / "authorized_keys", place)
        store = ChronoStore(project)
        try:
            store.upsert(ChronoRecord(id="X"))
            store.compact()
        except OSError as error:
            assert name in ("lock", "care.lock", "events.wal")
            assert (error.errno, error.filename) == (errno.EEXIST, str(place))
        store.close()
        assert contents(outside) == before

    def test_rows_that_have_another_name_elsewhere_are_written_here_only(
        self, project: Path, outside: Path, contents: Contents
    ) -> None:
        place = project / FOLDER / "vectors" / "default.0.f32"
        place.parent.mkdir(parents=True)
        os.link(outside / "authorized_keys", place)
        with ChronoStore(project) as store:
            store.upsert(ChronoRecord(id="A"))
            store.vectors.attach("A", [1.0, 2.0], model="m")
            copied = outside / "copy.f32"
            os.link(place, copied)
            kept = contents(outside)
            store.vectors.attach("A", [3.0, 4.0], model="m")
            assert store.verify().valid
            assert store.vectors.matrix()[1].tolist()[-1] == [3.0, 4.0]
        assert contents(outside) == kept and kept["authorized_keys"] == SECRET


class TestFoldersOfOthers:
    DUCKDB = bytes(range(256)) * 40

    @pytest.mark.parametrize("log", [b"", DUCKDB, b"not an event\n"], ids=["empty", "duckdb", "text"])
    def test_a_file_called_events_wal_makes_no_store(
        self, project: Path, log: bytes, contents: Contents
    ) -> None:
        for name in ("synced", "lock", "x.tmp", "snapshot.json", "archive/old.txt", "base/camp.json"):
            (project / name).parent.mkdir(exist_ok=True)
            (project / name).write_bytes(SECRET)
        (project / "events.wal").write_bytes(log)
        before = contents(project)
        with ChronoStore(project) as store:
            store.upsert(ChronoRecord(id="A"))
            store.compact()
            store.upsert(ChronoRecord(id="B"))
            store.compact(keep_history=False)
        after = contents(project)
        assert (project / FOLDER / "events.wal").exists()
        assert {name: after[name] for name in before} == before
        assert set(after) - set(before) == {name for name in after if name.startswith(FOLDER)}

    @pytest.mark.parametrize("moved", [False, True])
    def test_a_backup_is_read_and_never_written(
        self, project: Path, tmp_path: Path, moved: bool, contents: Contents
    ) -> None:
        filled(project)
        with ChronoStore(project) as store:
            store.vectors.attach("A", [1.0, 2.0], model="m")
            saved = store.backup()
        if moved:
            saved = saved.rename(tmp_path / "kept")
        before = contents(saved)
        with ChronoStore(saved) as copy:
            assert {record.id for record in copy.query()} == {"A", "B"}
            assert len(copy.history("A")) == 1 and len(copy.search("apples")) == 1
            assert copy.vectors.nearest([1.0, 2.0])[0].record_id == "A"
            assert copy.verify().valid
            for write in (
                lambda: copy.upsert(ChronoRecord(id="C")),
                lambda: copy.vectors.attach("B", [1.0, 2.0], model="m"),
                copy.compact,
                copy.backup,
                copy.upkeep.repair,
                lambda: copy.upkeep.restore(saved),
            ):
                with pytest.raises(StoreReadOnly, match="backup") as caught:
                    write()
                assert "restore" in caught.value.recovery
        with pytest.raises(StoreReadOnly), ChronoStore(saved, exclusive=True):
            pass
        assert contents(saved) == before
        assert not (saved / FOLDER).exists()

    def test_the_folder_of_a_store_may_be_named_itself(self, project: Path) -> None:
        filled(project)
        with ChronoStore(project / FOLDER) as store:
            store.upsert(ChronoRecord(id="C"))
        with ChronoStore(project) as store:
            assert store.record_count() == 3
        assert not (project / FOLDER / FOLDER).exists()

    def test_a_damaged_backup_is_still_taken_for_one(self, project: Path, tmp_path: Path) -> None:
        filled(project)
        with ChronoStore(project) as store:
            saved = store.backup().rename(tmp_path / "kept")
        (saved / "events.wal").write_bytes(b"#" + (saved / "events.wal").read_bytes()[1:])
        assert ChronoStore(saved).verify().valid is False


class TestStrangers:
    NAMES = (
        "x.tmp",
        "snapshot.json.mine.tmp",
        "base/notes.json",
        "base/x.json.tmp",
        "archive/2026.wal",
        "archive/mail.wal.zst",
        "archive/x.tmp",
        "vectors/x.tmp",
        "vectors/mine.f32",
        "index/mail.history",
        "index/text/x.tmp",
        "index/text/notes.text",
        "quarantine/x.tmp",
        "backup/x.tmp",
        "backup/20200101T000000-mine.tmp",
    )

    @pytest.mark.parametrize("kind", ["file", "folder", "link", "pipe"])
    def test_neither_refuse_nor_suffer(
        self, project: Path, outside: Path, kind: str, contents: Contents
    ) -> None:
        filled(project)
        with ChronoStore(project) as store:
            store.vectors.attach("A", [1.0, 2.0], model="m")
            first = store.backup()
        for name in self.NAMES:
            place = project / FOLDER / name
            place.parent.mkdir(parents=True, exist_ok=True)
            if kind == "file":
                place.write_bytes(SECRET)
            elif kind == "folder":
                place.mkdir()
                (place / "inside").write_bytes(SECRET)
            elif kind == "link":
                place.symlink_to(outside / "authorized_keys")
            else:
                os.mkfifo(place)
        before = {name: seen(project / FOLDER / name) for name in self.NAMES}
        kept = contents(outside)
        for keep_history in (True, False):
            with ChronoStore(project) as store:
                store.upsert(ChronoRecord(id="C", label=str(keep_history)))
                store.vectors.attach("A", [2.0, 1.0], model="m")
                assert len(store.search("apples")) == 1
                store.history("A")
                store.compact(keep_history=keep_history)
                second = store.backup()
                store.upkeep.restore(second)
                store.upkeep.repair()
                assert store.verify().valid
                assert {record.id for record in store.query()} == {"A", "B", "C"}
        with ChronoStore(project) as store:
            store.upkeep.restore(first)
            assert {record.id for record in store.query()} == {"A", "B"}
        assert {name: seen(project / FOLDER / name) for name in self.NAMES} == before
        assert contents(outside) == kept

    def test_what_somebody_put_into_an_unfinished_backup_stays(self, project: Path) -> None:
        filled(project)
        draft = project / FOLDER / "backup" / "20200101T000000.tmp"
        (draft / "base").mkdir(parents=True)
        for name in ("events.wal", "thesis.tex", f"base/{'ab' * 32}.json", "base/camp.json"):
            (draft / name).write_bytes(SECRET)
        with ChronoStore(project) as store:
            store.compact()
        left = {path.relative_to(draft).as_posix() for path in draft.rglob("*") if path.is_file()}
        assert left == {"thesis.tex", "base/camp.json"}


def seen(path: Path) -> tuple[int, object]:
    """What stands somewhere: its kind and permissions, and what it holds or leads to."""
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return mode, path.readlink()
    if stat.S_ISDIR(mode):
        return mode, sorted((inner.name, seen(inner)) for inner in path.iterdir())
    return mode, path.read_bytes() if stat.S_ISREG(mode) else None


class TestWhoMayRead:
    @pytest.fixture(params=[0o022, 0o002, 0o077], autouse=True)
    def umask(self, request: pytest.FixtureRequest) -> Iterator[int]:
        before = os.umask(request.param)
        yield request.param
        os.umask(before)

    @staticmethod
    def modes(folder: Path) -> tuple[set[int], set[int]]:
        """The permissions of all files, and of all folders."""
        found = [folder, *folder.rglob("*")]
        modes = [(path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in found]
        return {mode for is_dir, mode in modes if not is_dir}, {mode for is_dir, mode in modes if is_dir}

    @staticmethod
    def live(project: Path, **options: bool) -> None:
        with ChronoStore(project, **options) as store:  # type: ignore[arg-type]
            store.upsert_many([{"id": f"R{number}"} for number in range(60)])
            store.vectors.attach("R1", [1.0, 2.0], model="m")
            store.vectors.nearest([1.0, 2.0])
            store.compact()
            store.history("R1")
            store.upkeep.restore(store.backup())

    def test_only_the_owner_unless_told_otherwise(self, project: Path) -> None:
        self.live(project)
        assert self.modes(project / FOLDER) == ({0o600}, {0o700})
        notes = heads_folder()
        assert notes is not None
        assert self.modes(notes) == ({0o600}, {0o700})

    def test_the_group_if_the_store_is_shared(self, project: Path) -> None:
        self.live(project, shared=True)
        self.live(project)
        assert self.modes(project / FOLDER) == ({0o660}, {0o2770})

    def test_a_folder_that_somebody_opened_to_others_stays_open(self, project: Path, umask: int) -> None:
        self.live(project)
        for path in [project / FOLDER, *(project / FOLDER).rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
        before = set((project / FOLDER).rglob("*"))
        self.live(project)
        for path in set((project / FOLDER).rglob("*")) - before:
            assert stat.S_IMODE(path.stat().st_mode) == (0o755 if path.is_dir() else 0o644) & ~umask
        log = project / FOLDER / "events.wal"
        assert stat.S_IMODE(log.stat().st_mode) == 0o644 & ~umask


@pytest.mark.skipif(os.geteuid() != 0, reason="only the administrator can write for somebody else")
def test_what_the_administrator_writes_belongs_to_whom_the_store_belongs_to(project: Path) -> None:
    filled(project)
    for path in [project / FOLDER, *(project / FOLDER).rglob("*")]:
        os.chown(path, 65534, 65533)
    TestWhoMayRead.live(project)
    found = {path.stat() for path in (project / FOLDER).rglob("*")}
    assert {(there.st_uid, there.st_gid) for there in found} == {(65534, 65533)}


def test_whoever_waits_in_vain_is_told_to_leave_the_lock_file_alone(project: Path) -> None:
    with ChronoStore(project, exclusive=True) as holder:
        holder.upsert(ChronoRecord(id="A"))
        with ChronoStore(project, lock_timeout=0.05) as other, pytest.raises(StoreLocked) as caught:
            other.upsert(ChronoRecord(id="B"))
    assert "never remove the lock file" in caught.value.recovery
