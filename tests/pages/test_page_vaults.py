"""A folder of Markdown notes is kept in place: read as it is, searched, linked, and edited minimally."""

from __future__ import annotations

import os
import shutil
import stat
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from chronomemory.face.batch import Connection
from chronomemory.pages import (
    FolderError,
    PageConflict,
    PageExists,
    PageNameError,
    Pages,
    UnknownEntry,
    UnknownPage,
)
from chronomemory.store import ChronoStore
from page_samples import Clock
from vaults import NOTES, contents, make_vault


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    return make_vault(tmp_path / "My Vault")


@pytest.fixture
def notes(tmp_path: Path, vault: Path) -> Iterator[Pages]:
    with Pages(tmp_path / "project", vault) as pages:
        yield pages


def found(pages: Pages, query: str) -> set[str]:
    return {hit.entry.page for hit in pages.search(query)}


class TestOpening:
    def test_a_vault_is_read_in_place_and_stays_byte_for_byte(self, vault: Path, tmp_path: Path) -> None:
        before = contents(vault)
        with Pages(tmp_path / "project", vault) as pages:
            assert pages.layout == "free" and pages.first_sync is not None
            assert pages.first_sync.problems == ()
            assert {f"{page.name}.md" for page in pages.list()} == set(NOTES)
            pages.sync()
            pages.search("tea")
            pages.read("Plan")
            pages.links("Home")
            pages.recent(limit=100)
            pages.picture()
            assert pages.rebuild_index().corrected == 0
            assert pages.rebuild().written == ()
        assert contents(vault) == before

    def test_a_vault_of_obsidian_is_the_folder_of_its_own_project(self, vault: Path) -> None:
        before = contents(vault)
        with Pages(vault) as pages:
            assert (pages.folder, pages.layout) == (vault, "free")
            assert found(pages, "oolong") == {"Projects/Tea House/Menu"}
        assert contents(vault) == before
        with Pages(vault, must_exist=True) as pages:
            assert found(pages, "oolong") == {"Projects/Tea House/Menu"}

    def test_other_notes_are_their_own_folder_if_the_layout_says_so(self, tmp_path: Path) -> None:
        (tmp_path / "Note.md").write_text("Tea.")
        with Pages(tmp_path, layout="free") as pages:
            assert [page.name for page in pages.list()] == ["Note"]
        with Pages(tmp_path) as pages:
            assert pages.folder == tmp_path and pages.layout == "free"

    def test_a_project_with_a_readme_keeps_its_pages_in_memory(self, tmp_path: Path) -> None:
        (tmp_path / "README.md").write_text("A program.")
        with Pages(tmp_path) as pages:
            assert (pages.folder, pages.layout) == (tmp_path / "memory", "prefixed")

    def test_new_folders_and_folders_of_pages_are_prefixed(self, tmp_path: Path) -> None:
        with Pages(tmp_path, "new") as pages:
            assert pages.layout == "prefixed"
        shutil.copytree(tmp_path / "new", tmp_path / "copy")
        (tmp_path / "copy" / "strange.md").write_text("x")
        with Pages(tmp_path, "copy") as pages:
            assert pages.layout == "prefixed"
        (tmp_path / "pages").mkdir()
        (tmp_path / "pages" / "topic-tea.md").write_text("Tea.")
        with Pages(tmp_path, "pages") as pages:
            assert pages.layout == "prefixed"

    def test_the_layout_is_decided_once(self, tmp_path: Path) -> None:
        (tmp_path / "project").mkdir()
        with Pages(tmp_path / "project", layout="prefixed") as pages:
            (pages.folder / "Note.md").write_text("x")
        with Pages(tmp_path / "project") as pages:
            assert pages.layout == "prefixed"
            assert [problem.kind for problem in pages.sync().problems] == ["strange"]
        with pytest.raises(FolderError, match="layout 'prefixed'"):
            Pages(tmp_path / "project", layout="free", folder="memory")
        with pytest.raises(ValueError, match="layout"):
            Pages(tmp_path / "project", layout="other")

    def test_a_folder_without_notes_can_be_free(self, tmp_path: Path) -> None:
        with Pages(tmp_path, "notes", layout="free") as pages:
            assert list(pages.folder.iterdir()) == []
            pages.create("Tea/Green", "About tea")
            assert [page.name for page in pages.list()] == ["Tea/Green"]

    def test_a_vault_belongs_to_the_names_that_opened_it(self, tmp_path: Path, vault: Path) -> None:
        with Pages(tmp_path / "project", vault, user="ann") as pages:
            assert found(pages, "oolong")
        with pytest.raises(FolderError, match="other names"):
            Pages(tmp_path / "project", vault, user="bob")


class TestReading:
    def test_text_is_found_and_hidden_folders_are_not(self, notes: Pages) -> None:
        assert found(notes, "oolong") == {"Projects/Tea House/Menu"}
        assert found(notes, "templates") == {'C++ & "quotes" (draft) 100%'}
        assert found(notes, "standup") == {"10:30 stand-up"}
        assert found(notes, "ocean thinks") == {"Books/Solaris"}
        assert found(notes, "pagoda") == set()
        assert {hit.entry.page for hit in notes.search("plan", path="Projects/*")} >= {
            "Projects/Archive/Plan"
        }

    def test_sections_are_entries(self, notes: Pages) -> None:
        plan = notes.read("Projects/Tea House/Plan")
        assert [entry.id for entry in plan] == ["", "#when", "#who", "#when-2"]
        assert plan[1].content == "## When\n\nMarch. #deadline"
        menu = notes.read("Menu.md")
        assert [entry.id for entry in menu] == ["#menu", "#prices"]
        assert "# not a heading" in menu[1].content and menu[1].content.endswith("Sencha is 5 EUR.")
        assert notes.read("empty") == notes.read("blank") == []
        assert [entry.content for entry in notes.read("windows")] == [
            "# Windows\n\nLines end in two bytes.",
            "## Second\nMore.",
        ]
        assert notes.read("bom")[0].content == "# Marked\n\nByte order mark."
        assert [(e.id, e.superseded) for e in notes.read("with entries", include_superseded=True)] == [
            ("", False),
            ("old-1", False),
            ("old-2", True),
            ("old-3", False),
        ]

    def test_tags_of_frontmatter_and_text(self, notes: Pages) -> None:
        assert {entry.page for entry in notes.tagged("work")} == {"Projects/Tea House/Plan"}
        assert {entry.page for entry in notes.tagged("deadline")} == {"Projects/Tea House/Plan"}
        assert {entry.page for entry in notes.tagged("author")} == {"Reading list"}
        assert {entry.page for entry in notes.tagged("tea")} == {"People/Alice"}
        assert {entry.page for entry in notes.tagged("お茶")} == {"漢字/日記"}

    def test_dates_come_from_the_frontmatter_or_the_file(self, vault: Path, tmp_path: Path) -> None:
        os.utime(vault / "People" / "Alice.md", (1_700_000_000, 1_700_000_000))
        with Pages(tmp_path / "project", vault) as notes:
            plan = notes.info("Projects/Tea House/Plan")
            assert plan.created.startswith("2026-01-05") and plan.updated.startswith("2026-02-07")
            assert {entry.timestamp[:10] for entry in notes.read("Projects/Tea House/Plan")} == {"2026-01-05"}
            assert notes.read("2026-03-01")[0].timestamp == "2026-03-01T07:30:00"
            assert notes.read("Bob Stone")[0].timestamp[:10] == "2025-12-24"
            assert notes.read("Alice")[0].timestamp[:8] == "2023-11-"
            assert notes.info("Alice").updated[:8] == "2023-11-"
            since = notes.search("sencha", since="2023-11-01", until="2023-11-30")
            assert {hit.entry.page for hit in since} == {"People/Alice"}

    def test_a_section_keeps_its_moment_while_another_is_edited(self, vault: Path, tmp_path: Path) -> None:
        file = vault / "Projects" / "Tea House" / "Menu.md"
        os.utime(file, (1_700_000_000, 1_700_000_000))
        with Pages(tmp_path / "project", vault) as notes:
            file.write_bytes(file.read_bytes().replace(b"4 EUR", b"6 EUR"))
            os.utime(file, (1_750_000_000, 1_750_000_000))
            assert (notes.sync().changed, notes.rebuild_index().corrected) == (1, 0)
            assert [entry.timestamp[:4] for entry in notes.read("Menu")] == ["2023", "2025"]

    def test_a_note_is_read_by_path_file_title_and_alias(self, notes: Pages) -> None:
        for name in ("Projects/Tea House/Plan.md", "./Projects/Tea House/Plan", "tea house/plan"):
            assert notes.info(name).name == "Projects/Tea House/Plan"
        for name in ("The great plan", "masterplan", "Big Idea"):
            assert notes.info(name).name == "Projects/Tea House/Plan"
        assert notes.info("Dune").name == "Books/Dune"
        assert notes.info("The great plan").title == "The great plan"
        with pytest.raises(UnknownPage):
            notes.read("Nothing")
        for wrong in ("../secret", "/etc/passwd", ".obsidian/app", "a//b", "a\x00b", "\u202eabc", ""):
            with pytest.raises(PageNameError):
                notes.read(wrong)

    def test_links_lead_where_obsidian_leads(self, notes: Pages) -> None:
        def leads(name: str) -> dict[str, str | None]:
            return {link.target: link.page for link in notes.links(name).links}

        assert leads("Home") == {
            "Projects/Tea House/Plan": "Projects/Tea House/Plan",
            "Reading list": "Reading list",
            "cover.png": None,
        }
        assert leads("Projects/Tea House/Plan") == {
            "Menu#Prices": "Projects/Tea House/Menu",
            "../Budget": "Projects/Budget",
            "../Budget.md": "Projects/Budget",
            "Alice": "People/Alice",
            "People/Bob Stone": "People/Bob Stone",
        }
        # Two notes are called Plan, both as deep: the first by name.
        assert leads("Projects/Budget") == {"Plan": "Projects/Archive/Plan"}
        # The index of the vault is nearer than that of a folder.
        assert notes.info("index").name == "index"
        backlinks = {link.page for link in notes.links("Alice").backlinks}
        assert backlinks == {"Daily/2026-03-01", "People/index", "Projects/Tea House/Plan"}
        assert {link.page for link in notes.links("Dune").backlinks} == {"Books/Solaris", "Reading list"}

    def test_the_shortest_path_wins(self, notes: Pages, vault: Path) -> None:
        (vault / "Plan.md").write_text("At the top.")
        notes.sync()
        assert {link.page for link in notes.links("Projects/Budget").links} == {"Plan"}
        assert notes.info("plan").name == "Plan"

    def test_a_picture_shows_notes_and_links(self, notes: Pages) -> None:
        page = notes.picture()
        assert "Bob Stone" in page and "漢字" in page

    def test_names_that_a_mac_wrote_are_read(self, vault: Path, tmp_path: Path) -> None:
        name = unicodedata.normalize("NFD", "Früchte")
        (vault / f"{name}.md").write_text("Äpfel.")
        with Pages(tmp_path / "project", vault) as notes:
            assert notes.first_sync is not None and notes.first_sync.problems == ()
            notes.append("Früchte", "Birnen.")
            assert "Birnen." in (vault / f"{name}.md").read_text()
            before = notes.text("Früchte")
            (vault / "Früchte.md").write_text("A twin.")
            report = notes.sync()
            (problem,) = report.problems
            assert problem.file == f"{name}.md" and report.deleted == 0 and report.forgotten == ()
            with pytest.warns(RuntimeWarning, match="two files"):
                assert notes.text("Früchte") == before
            with pytest.raises(PageConflict, match="two forms of Unicode"):
                notes.append("Früchte", "Kirschen.")
            assert (vault / "Früchte.md").read_text() == "A twin."
            (vault / "Früchte.md").unlink()
            assert notes.sync().problems == ()
            assert notes.text("Früchte") == before


class TestWriting:
    def test_an_append_inserts_its_entry_and_nothing_else(self, notes: Pages, vault: Path) -> None:
        for way, before in NOTES.items():
            notes.append(way, "Said by an agent.\n# Not a section", ["agent"])
            after = (vault / way).read_bytes()
            size = len(after) - len(before)
            at = next(at for at in range(len(before) + 1) if after[:at] + after[at + size :] == before)
            new = after[at : at + size]
            assert b"Said by an agent." in new, way
            assert before[at:].strip() == b"", way
            eol = b"\r\n" if b"\r\n" in before else b"\n"
            assert new.count(b"\n") == new.count(eol), way
            assert notes.read(way)[-1].content == "Said by an agent.\n# Not a section"
        assert notes.sync().summary == "pages and log agree"

    def test_a_supersede_changes_its_entry_and_nothing_else(self, notes: Pages, vault: Path) -> None:
        before = (vault / "mixed" / "with entries.md").read_text()
        new = notes.supersede("with entries", "old-1", "First entry, corrected.", "was wrong")
        after = (vault / "mixed" / "with entries.md").read_text()
        kept = before.split("## [2026-01-02")[1].rstrip("\n")
        assert kept in after and before.split("## [2026-01-01")[0] in after
        assert [entry.id for entry in notes.chain("with entries", "old-1")] == ["old-1", new]
        with pytest.raises(UnknownEntry, match="section"):
            notes.supersede("Plan", "", "Mine", "no")

    def test_a_note_is_made_where_its_path_says(self, notes: Pages, vault: Path) -> None:
        assert notes.create("New folder/Ünder/A note", "What it is", ["a"], title="Title") == (
            "New folder/Ünder/A note"
        )
        text = (vault / "New folder" / "Ünder" / "A note.md").read_text()
        assert text.startswith("---\ndescription: What it is\ntags: [a]\ncreated: ")
        assert text.endswith("---\n\n# Title\n") and text.count("\n") == 7
        with pytest.raises(PageExists):
            notes.create("New folder/Ünder/A note", "again")
        with pytest.raises(PageNameError):
            notes.create("../out", "no")
        assert notes.sync().summary == "pages and log agree"

    def test_a_status_is_one_line_in_the_frontmatter(self, notes: Pages, vault: Path) -> None:
        notes.set_status("Projects/Tea House/Plan", "archived")
        before = NOTES["Projects/Tea House/Plan.md"]
        after = (vault / "Projects" / "Tea House" / "Plan.md").read_bytes()
        assert after == before.replace(b"\n---\nOpens", b"\nstatus: archived\n---\nOpens")
        notes.flag_compact("Projects/Tea House/Plan", "long")
        assert notes.compact("Projects/Tea House/Plan").accepted
        assert (vault / "Projects" / "Tea House" / "Plan.md").read_bytes() == after

    def test_an_old_note_does_not_fall_asleep(self, vault: Path, tmp_path: Path) -> None:
        clock = Clock()
        with Pages(tmp_path / "project", vault, clock=clock) as notes:
            before = contents(vault)
            clock.now = clock.now.replace(year=2030)
            assert notes.sync().dormant == () and contents(vault) == before

    def test_a_folder_that_cannot_be_written_changes_nothing(
        self, notes: Pages, vault: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seq, before = notes.store.wal_seq(), contents(vault)

        def refuse(*_: object, **__: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(notes._home.folder, "write_all", refuse)
        with pytest.raises(PageConflict, match="No space left"):
            notes.append("Home", "More.")
        assert (notes.store.wal_seq(), contents(vault)) == (seq, before)

    def test_a_log_that_cannot_be_written_leaves_the_file_as_it_was(
        self, notes: Pages, vault: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = contents(vault)

        def failing(*_: object, **__: object) -> None:
            raise OSError(28, "the log is full")

        monkeypatch.setattr(Connection, "commit", failing)
        for verb in (lambda: notes.append("Home", "More."), lambda: notes.create("Brand new", "x")):
            with pytest.raises(OSError, match="the log is full"):
                verb()
        assert contents(vault) == before


class TestEditing:
    def test_edits_by_hand_change_the_answers(self, notes: Pages, vault: Path) -> None:
        (vault / "Books" / "Dune.md").write_text("Whales swim.")
        assert [entry.content for entry in notes.read("Dune")] == ["Whales swim."]
        (vault / "Books" / "Dune.md").write_text("Eagles fly.")
        (vault / "Books" / "Emma.md").write_text("Highbury. [[Dune]]")
        report = notes.sync()
        assert (report.edited, report.created, report.problems) == (("Books/Dune",), ("Books/Emma",), ())
        assert found(notes, "spice") == found(notes, "whales") == set()
        assert found(notes, "eagles") == {"Books/Dune"} and found(notes, "highbury") == {"Books/Emma"}
        assert "Books/Emma" in {link.page for link in notes.links("Dune").backlinks}
        (vault / "Books" / "Dune.md").write_text("")
        assert notes.sync().deleted == 1 and notes.read("Dune") == []

    def test_an_earlier_text_that_is_put_back_is_an_edit(self, notes: Pages, vault: Path) -> None:
        before = (vault / "Home.md").read_bytes()
        notes.append("Home", "An agent was here.")
        (vault / "Home.md").write_bytes(before)
        assert notes.sync().deleted == 1
        assert (vault / "Home.md").read_bytes() == before
        assert "Home" not in found(notes, "agent was here")

    def test_renamed_moved_and_deleted_files_are_followed(self, notes: Pages, vault: Path) -> None:
        (vault / "Books" / "Dune.md").rename(vault / "Books" / "Arrakis.md")
        (vault / "Projects" / "Tea House").rename(vault / "Tea")
        (vault / "README.md").unlink()
        report = notes.sync()
        assert report.problems == ()
        assert set(report.forgotten) == {
            "Books/Dune",
            "Projects/Tea House/Menu",
            "Projects/Tea House/Plan",
            "README",
        }
        assert found(notes, "spice") == {"Books/Arrakis"} and found(notes, "oolong") == {"Tea/Menu"}
        with pytest.raises(UnknownPage):
            notes.read("README")
        with pytest.raises(UnknownPage):
            notes.append("README", "Gone.")
        assert not (vault / "README.md").exists()
        assert notes.sync().summary == "pages and log agree"

    def test_a_deleted_note_can_be_made_again(self, notes: Pages, vault: Path) -> None:
        (vault / "Home.md").unlink()
        notes.create("Home", "Anew")
        assert notes.read("Home") == [] and notes.sync().summary == "pages and log agree"
        (vault / "Home.md").unlink()
        assert notes.sync().forgotten == ("Home",)
        assert not (vault / "Home.md").exists()

    def test_two_vaults_in_one_store_are_kept_apart(self, tmp_path: Path, vault: Path) -> None:
        other = tmp_path / "Other"
        other.mkdir()
        (other / "Home.md").write_text("Another home: zebra. [[Dune]]")
        with (
            ChronoStore(tmp_path / "project") as store,
            Pages(store, vault) as one,
            Pages(store, other) as two,
        ):
            assert found(one, "zebra") == set() and found(two, "oolong") == set()
            assert [page.name for page in two.list()] == ["Home"]
            assert two.links("Home").links[0].page is None
            assert {link.page for link in one.links("Dune").backlinks} == {"Books/Solaris", "Reading list"}
            two.append("Home", "More zebra.")
            (other / "Home.md").unlink()
            two.sync(forget_missing=True)
            assert one.sync().summary == "pages and log agree" and len(one.list()) == len(NOTES)

    def test_watching_follows_files_in_folders(self, notes: Pages, vault: Path) -> None:
        reports: list[str] = []
        stop = threading.Event()
        thread = threading.Thread(target=notes.watch, args=(lambda one: reports.append(one.summary), stop))
        thread.start()
        try:
            _wait(lambda: len(reports) == 1)
            time.sleep(0.5)
            (vault / ".obsidian" / "workspace.json").write_text("{}")
            (vault / "Projects" / "Tea House").rename(vault / "Tea")
            _wait(lambda: found(notes, "oolong") == {"Tea/Menu"})
        finally:
            stop.set()
            thread.join()
        assert any("forgotten" in summary for summary in reports)

    def test_cleaning_takes_notes_out_of_the_store_and_leaves_the_files(
        self, notes: Pages, vault: Path
    ) -> None:
        before = contents(vault)
        assert notes.clean().pages == len(NOTES)
        assert notes.list() == [] and contents(vault) == before

    def test_a_lost_vault_is_written_anew(self, notes: Pages, vault: Path) -> None:
        before = {way: content for way, content in contents(vault).items() if way in NOTES}
        shutil.rmtree(vault)
        assert len(notes.rebuild().written) == len(NOTES)
        assert contents(vault) == before


class TestBadInput:
    def test_a_file_and_a_link_are_no_folder(self, tmp_path: Path, vault: Path) -> None:
        for wrong, why in ((vault / "Home.md", "not a folder"), (tmp_path / "link", "is a link")):
            if why == "is a link":
                wrong.symlink_to(vault, target_is_directory=True)
            with pytest.raises(FolderError, match=why):
                Pages(tmp_path / "project", wrong)

    def test_a_vault_that_vanished_loses_nothing(self, notes: Pages, vault: Path, tmp_path: Path) -> None:
        away = tmp_path / "away"
        vault.rename(away)
        for verb in (notes.sync, lambda: notes.append("Home", "x"), lambda: notes.create("New", "x")):
            with pytest.raises(FolderError, match="not there"):
                verb()
        assert not vault.exists() and found(notes, "oolong") and notes.read("Dune")
        vault.mkdir()  # such as a disk that is not mounted
        (problem,) = notes.sync().problems
        assert problem.kind == "missing" and len(notes.list()) == len(NOTES)
        vault.rmdir()
        away.rename(vault)
        assert notes.sync().summary == "pages and log agree"

    def test_links_out_of_the_vault_are_not_followed(self, notes: Pages, vault: Path, tmp_path: Path) -> None:
        outside = tmp_path / "outside"
        outside.mkdir()
        (outside / "secret.md").write_text("the password is pangolin")
        (vault / "secret.md").symlink_to(outside / "secret.md")
        (vault / "linked").symlink_to(outside, target_is_directory=True)
        problems = {problem.file: problem.message for problem in notes.sync().problems}
        assert set(problems) == {"secret.md", "linked"} and "link" in problems["secret.md"]
        assert found(notes, "pangolin") == set()
        for name, error in (("secret", PageConflict), ("linked/secret", UnknownPage)):
            with pytest.raises(error):
                notes.append(name, "x")
        with pytest.raises(PageConflict, match="nothing was written"):
            notes.create("linked/new", "x")
        assert [path.name for path in outside.iterdir()] == ["secret.md"]
        assert (outside / "secret.md").read_text() == "the password is pangolin"

    def test_files_that_cannot_be_read_are_named_and_keep_what_is_known(
        self, notes: Pages, vault: Path
    ) -> None:
        dune = vault / "Books" / "Dune.md"
        dune.unlink()
        os.mkfifo(dune)
        (vault / "Home.md").write_bytes(b"\xff\xfe")
        (vault / "README.md").write_bytes(b"x" * (9 << 20))
        (vault / "broken.md").write_text("---\na: [\n---\nx")
        (vault / "UPPER.MD").write_text("x")
        (vault / os.fsdecode(b"latin\xe9.md")).write_text("x")
        report = notes.sync()
        assert {problem.file for problem in report.problems} == {
            "Books/Dune.md",
            "Home.md",
            "README.md",
            "broken.md",
            "UPPER.MD",
            "latin\\udce9.md",
        }
        assert report.forgotten == () and report.deleted == 0
        assert found(notes, "spice") == {"Books/Dune"} and found(notes, "git") == {"README"}
        with pytest.raises(PageConflict, match="bytes"):
            notes.append("README", "x")

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_a_folder_that_may_not_be_read_keeps_its_notes(self, notes: Pages, vault: Path) -> None:
        (vault / "Books").chmod(0)
        try:
            report = notes.sync()
        finally:
            (vault / "Books").chmod(stat.S_IRWXU)
        assert [problem.file for problem in report.problems] == ["Books"] and report.forgotten == ()

    def test_a_bad_entry_is_refused_and_writes_nothing(self, notes: Pages, vault: Path) -> None:
        before = contents(vault)
        with pytest.raises(ValueError, match="tags"):
            notes.append("Home", "x", ["a b"])
        with pytest.raises(ValueError, match="content"):
            notes.append("Home", " ")
        assert contents(vault) == before


def _wait(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)
