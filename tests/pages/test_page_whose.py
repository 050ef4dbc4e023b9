"""Whose a folder of pages is, when a page sleeps, and who awaits."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest
from chronomemory import ChronoStore
from chronomemory.pages import (
    PREFIXES,
    AsyncPages,
    FolderError,
    Pages,
    UnknownFolder,
    schema,
)
from chronomemory.scope import Scope
from page_samples import Clock, files


class TestStates:
    def test_a_page_sleeps_after_a_while_and_wakes_when_written(self, pages: Pages, clock: Clock) -> None:
        pages.append("user-profile", "x", ["a"])
        clock.now += timedelta(days=29)
        assert pages.sync().dormant == ()
        clock.now += timedelta(days=2)
        assert pages.sync().dormant == ("user-preferences", "user-profile")
        assert "status: dormant" in (pages.folder / "user-profile.md").read_text()
        assert "## Dormant\n\n- [User Preferences]" in (pages.folder / "index.md").read_text()
        pages.append("user-profile", "y", ["a"])
        assert pages.info("user-profile").status == "active"
        pages.set_status("user-profile", "archived")
        pages.append("user-profile", "z", ["a"])
        assert pages.info("user-profile").status == "archived", "only a person takes that back"

    def test_a_page_that_is_new_here_does_not_sleep_at_once(self, pages: Pages, clock: Clock) -> None:
        (pages.folder / "topic-old.md").write_text("---\nupdated: 2021-05-05\n---\nAn old note.\n")
        novel = "---\nstatus: in-progress\nupdated: 2021-05-05\n---\nMy novel.\n"
        (pages.folder / "topic-novel.md").write_text(novel)
        assert pages.sync().dormant == ()
        clock.now += timedelta(days=31)
        assert "topic-old" in pages.sync().dormant
        text = (pages.folder / "topic-novel.md").read_text()
        assert "status: in-progress\n" in text, "a person's own word stays"
        pages.append("topic-novel", "A chapter.", ["novel"])
        assert "status: in-progress\n" in (pages.folder / "topic-novel.md").read_text()


class TestWhose:
    def test_a_folder_belongs_to_the_names_it_was_made_with(self, tmp_path: Path) -> None:
        with Pages(tmp_path, user="ann") as ann:
            ann.append("user-profile", "Ann lives in Lisbon.", ["home"])
        for names in ({}, {"user": "bob"}, {"user": "ann", "session": "s"}, {"agent": "ann"}):
            with pytest.raises(FolderError, match="other names"):
                Pages(tmp_path, **names)
        with Pages(tmp_path, "bobs", user="bob") as bob:
            assert bob.search("Lisbon") == [] and bob.recent() == []
            bob.append("user-profile", "Bob lives in Porto.", ["home"])
        with Pages(tmp_path, user="ann") as ann:
            assert [hit.entry.content for hit in ann.search("lives")] == ["Ann lives in Lisbon."]

    def test_two_folders_of_one_project_do_not_meet(self, tmp_path: Path) -> None:
        with ChronoStore(tmp_path) as store:
            one, other = Pages(store), Pages(store, tmp_path / "other")
            one.append("user-profile", "One says tea.", ["a"])
            other.append("user-profile", "The other says tea.", ["a"])
            assert [hit.entry.content for hit in one.search("tea")] == ["One says tea."]
            assert [entry.content for entry in other.recent()] == ["The other says tea."]
            assert other.clean().entries == 1
            assert len(one.read("user-profile")) == 1

    def test_a_folder_moves_with_its_project(self, tmp_path: Path) -> None:
        with Pages(tmp_path / "here") as pages:
            pages.append("user-profile", "x", ["a"])
        (tmp_path / "here").rename(tmp_path / "there")
        with Pages(tmp_path / "there", must_exist=True) as pages:
            assert len(pages.read("user-profile")) == 1
            assert pages.sync().summary == "pages and log agree"

    def test_a_folder_that_is_renamed_stays_whose_it_was(self, tmp_path: Path) -> None:
        with Pages(tmp_path, user="ann") as ann:
            first = ann.append("user-profile", "Ann lives in Lisbon.", ["home"])
        (tmp_path / "memory").rename(tmp_path / "notes")
        before = files(tmp_path / "notes")
        for names in ({}, {"user": "bob"}, {"agent": "ann"}):
            for must_exist in (True, False):
                with pytest.raises(FolderError, match="other names"):
                    Pages(tmp_path, "notes", must_exist=must_exist, **names)
        assert files(tmp_path / "notes") == before
        with Pages(tmp_path, "others", user="bob") as bob:
            assert bob.search("Lisbon") == []
        with Pages(tmp_path, "notes", user="ann", must_exist=True) as ann:
            assert ann.sync().created == ("user-preferences", "user-profile")
            assert [entry.id for entry in ann.read("user-profile")] == [first]
            record = ann._home.handle.store.engine.get(f"entry:{ann._home.digits}:user-profile:{first}")
            assert record is not None and record.scope == Scope(user="ann")

    def test_what_all_share_is_not_taken_by_one_where_it_is_moved(self, tmp_path: Path) -> None:
        Pages(tmp_path).close()
        (tmp_path / "memory").rename(tmp_path / "notes")
        with pytest.raises(FolderError, match="other names"):
            Pages(tmp_path, "notes", user="ann")
        with Pages(tmp_path, "notes", must_exist=True) as pages:
            assert len(pages.sync().created) == 2

    def test_no_folder_is_made_where_one_must_be(self, tmp_path: Path) -> None:
        with pytest.raises(UnknownFolder):
            Pages(tmp_path, must_exist=True)
        assert not (tmp_path / "memory").exists()

    def test_a_folder_is_seen_from_the_project(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        with Pages("../project", "notes") as pages:
            assert pages.folder == tmp_path / "project" / "notes"
        with Pages("../project", tmp_path / "outside") as pages:
            assert pages.folder == tmp_path / "outside"

    @pytest.mark.parametrize("folder", [".", ".chronomemory", ".chronomemory/pages"])
    def test_the_folder_of_a_store_is_refused(self, tmp_path: Path, folder: str) -> None:
        with pytest.raises(FolderError):
            Pages(tmp_path, tmp_path / folder)


def test_the_awaited_twin_does_the_same(tmp_path: Path) -> None:
    async def work() -> list[str]:
        async with AsyncPages(Pages(tmp_path)) as pages:
            await asyncio.gather(*(pages.append("user-profile", f"fact {n}", ["a"]) for n in range(5)))
            return [entry.content for entry in await pages.read("user-profile")]

    assert sorted(asyncio.run(work())) == [f"fact {n}" for n in range(5)]


def test_the_schema_names_every_prefix() -> None:
    assert all(f"`{prefix}-`" in schema() for prefix in PREFIXES)


class TestAFolderThatIsALink:
    def test_it_is_refused(self, tmp_path: Path) -> None:
        outside, project = tmp_path / "outside", tmp_path / "project"
        outside.mkdir()
        project.mkdir()
        (project / "memory").symlink_to(outside, target_is_directory=True)
        with pytest.raises(FolderError, match="is a link"):
            Pages(project)
        assert list(outside.iterdir()) == []

    def test_it_is_refused_where_it_takes_the_place_of_one(self, tmp_path: Path) -> None:
        outside = tmp_path / "outside"
        outside.mkdir()
        pages = Pages(tmp_path)
        pages.append("user-profile", "x", ["a"])
        pages.folder.rename(tmp_path / "moved")
        pages.folder.symlink_to(outside, target_is_directory=True)
        for write in (
            lambda: pages.append("user-profile", "y", ["a"]),
            lambda: pages.create("topic-new", "New"),
            pages.sync,
            pages.rebuild,
            pages.rebuild_index,
            pages.clean,
            pages.close,
        ):
            with pytest.raises(FolderError, match="is a link"):
                write()
        assert list(outside.iterdir()) == []
        pages.close()

    def test_the_way_to_it_may_lead_through_one(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "real", target_is_directory=True)
        with Pages(tmp_path / "link") as pages:
            pages.append("user-profile", "x", ["a"])
        with Pages(tmp_path / "real") as pages:
            assert [entry.content for entry in pages.read("user-profile")] == ["x"]
