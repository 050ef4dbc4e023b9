"""Hand edits become events or a clear report, and nothing is overwritten that a person wrote."""

from __future__ import annotations

import shutil
import threading
import time
from datetime import timedelta
from pathlib import Path

import pytest
from chronomemory.pages import PageConflict, Pages, Synced
from page_samples import SEED, Clock, files


@pytest.fixture
def page(pages: Pages) -> Path:
    """A page with three entries."""
    pages.create("topic-tea", "Tea", ["drinks"])
    for word in ("green", "black", "white"):
        pages.append("topic-tea", f"There is {word} tea.", ["tea"])
    return pages.folder / "topic-tea.md"


def contents_of(pages: Pages, name: str = "topic-tea") -> list[str]:
    return [entry.content for entry in pages.read(name)]


class TestEdits:
    def test_an_added_a_changed_and_a_deleted_entry_become_events(self, pages: Pages, page: Path) -> None:
        first, second, _ = pages.read("topic-tea")
        text = page.read_text().replace("green tea", "GREEN tea")
        start, end = text.index(f"\n## [{second.timestamp}"), text.index("\n## [", text.index(second.id))
        edited = text[:start] + text[end:] + "\n## [2026-05-02 10:00] {id: mine} #hand\nAdded by hand.\n"
        page.write_text(edited)
        told = pages.sync()
        assert (told.edited, told.added, told.changed, told.deleted) == (("topic-tea",), 1, 1, 1)
        assert page.read_text() == edited
        assert contents_of(pages) == ["There is GREEN tea.", "There is white tea.", "Added by hand."]
        assert [hit.entry.id for hit in pages.search("GREEN hand")] != []
        record = pages.store.get(f"entry:{pages._home.digits}:topic-tea:{first.id}")
        assert record is not None
        assert (record.source_type, record.evidence) == ("observed", ["edited by hand"])
        gone = pages.store.get(f"entry:{pages._home.digits}:topic-tea:{second.id}")
        assert gone is not None and (gone.status, gone.evidence) == ("tombstone", ["edited by hand"])
        assert pages.sync().summary == "pages and log agree"

    def test_an_append_takes_an_edit_in_first(self, pages: Pages, page: Path) -> None:
        page.write_text(
            page.read_text().replace("green", "jade").replace("# Topic Tea", "# Tea\n\nMy own words.")
        )
        pages.append("topic-tea", "There is red tea.", ["tea"])
        assert contents_of(pages)[0] == "There is jade tea." and contents_of(pages)[-1] == "There is red tea."
        assert "# Tea\n\nMy own words.\n" in page.read_text()

    def test_a_reader_sees_an_edit(self, pages: Pages, page: Path) -> None:
        page.write_text(page.read_text().replace("green", "jade"))
        assert contents_of(pages)[0] == "There is jade tea."

    def test_entries_may_change_places_and_stand_before_others(self, pages: Pages, page: Path) -> None:
        head, *parts = page.read_text().rstrip("\n").split("\n\n## ")
        new = "[2026-05-02 10:00] {id: mine}\nIn between."
        edited = "\n\n## ".join([head, parts[2], new, parts[0], parts[1]]) + "\n"
        page.write_text(edited)
        pages.sync()
        words = [content.split()[-2] for content in contents_of(pages)]
        assert words == ["white", "In", "green", "black"]
        shutil.rmtree(pages.folder)
        pages.rebuild()
        assert page.read_text() == edited

    def test_a_frontmatter_may_be_edited_and_keeps_what_is_unknown(self, pages: Pages, page: Path) -> None:
        page.write_text(
            page.read_text()
            .replace("description: Tea", "# mine\ndescription: 'All about tea'  # yes\nweight: [1,\n  2]")
            .replace("status: active", "status: archived")
        )
        pages.append("topic-tea", "There is red tea.", ["tea"])
        text = page.read_text()
        assert "# mine\ndescription: 'All about tea'  # yes\nweight: [1,\n  2]\n" in text
        assert (pages.info("topic-tea").description, pages.info("topic-tea").status) == (
            "All about tea",
            "archived",
        )
        assert "entry_count: 4\n" in text

    def test_windows_line_ends_stay(self, pages: Pages, page: Path) -> None:
        page.write_bytes(page.read_bytes().replace(b"\n", b"\r\n"))
        assert pages.sync().edited == ("topic-tea",)
        assert contents_of(pages)[0] == "There is green tea."
        pages.append("topic-tea", "one\ntwo", ["tea"])
        assert page.read_bytes().count(b"\n") == page.read_bytes().count(b"\r\n")
        assert contents_of(pages)[-1] == "one\ntwo"

    def test_a_page_without_a_last_line_end_or_frontmatter_is_appended_to(self, pages: Pages) -> None:
        (pages.folder / "topic-mine.md").write_text("just words")
        pages.append("topic-mine", "An entry.", ["a"])
        text = (pages.folder / "topic-mine.md").read_text()
        assert (
            text.startswith("---\n") and "\n\njust words\n\n## [" in text and text.endswith("\nAn entry.\n")
        )
        assert pages.sync().summary == "pages and log agree"


class TestConflicts:
    @pytest.mark.parametrize(
        "broken",
        [
            b"---\ntags: [\n---\n\nmine\n",
            b"---\nmine: 1\n",
            b"\xff\xfe\x00",
            b"## [2026-01-01 10:00] {id: a}\n\n## [2026-01-01 10:00] {id: a}\n",
        ],
    )
    def test_what_cannot_be_read_is_reported_and_never_overwritten(
        self, pages: Pages, page: Path, broken: bytes
    ) -> None:
        page.write_bytes(broken)
        told = pages.sync()
        assert [(one.kind, one.file) for one in told.problems] == [("conflict", "topic-tea.md")]
        for write in (
            lambda: pages.append("topic-tea", "x", ["a"]),
            lambda: pages.flag_compact("topic-tea", "x"),
            lambda: pages.set_status("topic-tea", "dormant"),
            lambda: pages.compact("topic-tea"),
        ):
            with pytest.raises(PageConflict, match=r"topic-tea\.md"):
                write()
        assert [one.kind for one in pages.rebuild().problems] == ["conflict"]
        assert [one.kind for one in pages.rebuild_index().problems] == ["conflict"]
        with pytest.warns(RuntimeWarning, match="as it was before"):
            assert len(pages.read("topic-tea")) == 3
        assert pages.clean("all").left == ("topic-tea.md",)
        assert page.read_bytes() == broken

    def test_a_link_out_of_the_folder_is_neither_read_nor_written(
        self, pages: Pages, page: Path, tmp_path: Path
    ) -> None:
        outside = tmp_path / "outside.md"
        outside.write_text(SEED)
        page.unlink()
        page.symlink_to(outside)
        (pages.folder / "person-new.md").symlink_to(outside)
        told = pages.sync()
        assert [one.file for one in told.problems if one.kind == "conflict"] == [
            "person-new.md",
            "topic-tea.md",
        ]
        with pytest.raises(PageConflict):
            pages.append("topic-tea", "x", ["a"])
        pages.rebuild()
        pages.rebuild_index()
        pages.clean("all")
        assert pages.search("Kming") == []
        assert outside.read_text() == SEED and page.is_symlink()

    def test_what_is_no_page_is_left_alone(self, pages: Pages, page: Path) -> None:
        strange = {
            ".topic-tea.md.swp": "x",
            "topic-tea.md~": "x",
            "#topic-tea.md#": "x",
            ".#topic-tea.md": "x",
            "4913": "",
            "README.md": "mine",
            "notes.txt": "x",
            "topic-.md": "x",
        }
        for name, text in strange.items():
            (pages.folder / name).write_text(text)
        (pages.folder / "topic-folder.md").mkdir()
        told = pages.sync()
        assert [one.file for one in told.problems if one.kind == "strange"] == ["README.md", "topic-.md"]
        assert [one.file for one in told.problems if one.kind == "conflict"] == ["topic-folder.md"]
        pages.clean("all")
        left = files(pages.folder)
        assert {name: text.encode() for name, text in strange.items()}.items() <= left.items()

    def test_an_index_that_a_person_wrote_is_left_alone(self, pages: Pages, page: Path) -> None:
        (pages.folder / "index.md").write_text("mine")
        assert [one.file for one in pages.sync().problems] == ["index.md"]
        pages.rebuild()
        assert (pages.folder / "index.md").read_text() == "mine"


class TestMissing:
    def test_a_missing_page_is_reported_and_comes_back(self, pages: Pages, page: Path) -> None:
        before = page.read_bytes()
        page.unlink()
        assert [(one.kind, one.file) for one in pages.sync().problems] == [("missing", "topic-tea.md")]
        assert len(pages.read("topic-tea")) == 3
        assert pages.rebuild().written == ("topic-tea",)
        assert page.read_bytes() == before

    def test_it_is_let_go_only_if_told(self, pages: Pages, page: Path) -> None:
        page.unlink()
        assert pages.sync(forget_missing=True).forgotten == ("topic-tea",)
        assert pages.search("tea") == [] and "topic-tea" not in {one.name for one in pages.list()}
        assert pages.rebuild().written == ()
        pages.create("topic-tea", "Tea again")
        assert pages.read("topic-tea") == []

    def test_a_renamed_file_is_a_new_page_and_the_old_one_is_named(self, pages: Pages, page: Path) -> None:
        page.rename(pages.folder / "topic-chai.md")
        told = pages.sync()
        assert told.created == ("topic-chai",)
        (problem,) = told.problems
        assert (problem.kind, problem.file) == (
            "renamed",
            "topic-tea.md",
        ) and "topic-chai.md" in problem.message
        assert contents_of(pages, "topic-chai") == contents_of(pages)
        assert pages.sync(forget_missing=True).forgotten == ("topic-tea",)

    def test_an_append_to_a_missing_page_writes_all_of_it(self, pages: Pages, page: Path) -> None:
        page.unlink()
        pages.append("topic-tea", "There is red tea.", ["tea"])
        assert page.read_text().count("\n## [") == 4

    def test_an_append_where_the_folder_is_gone_makes_it(self, pages: Pages, page: Path) -> None:
        shutil.rmtree(pages.folder)
        pages.append("topic-tea", "There is red tea.", ["tea"])
        assert sorted(files(pages.folder)) == ["topic-tea.md"]


class TestAnEditorWithAnOlderText:
    def test_what_was_appended_meanwhile_stays(self, pages: Pages, page: Path) -> None:
        loaded = page.read_text()
        late = pages.append("topic-tea", "There is red tea.", ["tea"])
        page.write_text(loaded.replace("green", "jade"))
        told = pages.sync()
        assert (told.kept, told.deleted) == ((late,), 0)
        assert "kept 1 entry" in told.summary
        assert contents_of(pages) == [
            "There is jade tea.",
            *(f"There is {one} tea." for one in ("black", "white", "red")),
        ]
        assert page.read_text().count("\n## [") == 4 and "entry_count: 4\n" in page.read_text()
        assert pages.sync().summary == "pages and log agree"

    def test_what_was_superseded_meanwhile_stays_so(self, pages: Pages, page: Path) -> None:
        loaded = page.read_text()
        first = pages.read("topic-tea")[0].id
        new = pages.supersede("topic-tea", first, "There is blue tea.", "it turned blue")
        page.write_text(loaded.replace("white", "pale"))
        assert pages.sync().kept == (new,)
        assert [entry.id for entry in pages.chain("topic-tea", first)] == [first, new]
        assert contents_of(pages) == ["There is black tea.", "There is pale tea.", "There is blue tea."]

    def test_a_hand_made_entry_can_be_deleted_again(self, pages: Pages, page: Path) -> None:
        before = page.read_text()
        page.write_text(f"{before}\n## [2026-05-02 10:00] {{id: mine}}\nMine.\n")
        pages.sync()
        page.write_text(before)
        told = pages.sync()
        assert (told.deleted, told.kept, told.caught_up) == (1, (), ())
        assert "Mine." not in contents_of(pages)

    def test_a_file_that_is_saved_under_a_writer_is_taken_in(
        self, pages: Pages, page: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        home = pages._home
        show, loaded = home.show, page.read_text()

        def save_first(*args: object, **more: object) -> list[str]:
            page.write_text(loaded.replace("green", "jade"))
            return show(*args, **more)  # type: ignore[arg-type]

        monkeypatch.setattr(home, "show", save_first)
        pages.append("topic-tea", "There is red tea.", ["tea"])
        assert "jade" in page.read_text() and "red" in page.read_text()
        monkeypatch.undo()
        assert pages.sync().summary == "pages and log agree"
        assert {"There is jade tea.", "There is red tea."} <= set(contents_of(pages))


class TestRebuild:
    def test_a_lost_folder_comes_back_byte_for_byte(self, pages: Pages, page: Path) -> None:
        (pages.folder / "person-kming.md").write_text(SEED)
        (pages.folder / "topic-odd.md").write_bytes(
            b"x\r\n\r\n\r\n## [2026-01-01 10:00]  {id: a}   #x  words\r\n\r\n~~y~~\r\n"
        )
        pages.supersede("topic-tea", pages.read("topic-tea")[0].id, "There is jade tea.\n\n", "why -- not")
        pages.set_status("user-preferences", "archived")
        pages.sync()
        before = files(pages.folder)
        shutil.rmtree(pages.folder)
        steps: list[tuple[int, int]] = []
        told = pages.rebuild(progress=lambda done, total: steps.append((done, total)))
        assert (told.pages, len(told.written), told.problems) == (5, 5, ())
        assert steps == [(number, 5) for number in range(1, 6)]
        assert files(pages.folder) == before
        assert pages.rebuild().written == ()

    def test_what_was_edited_by_hand_is_left(self, pages: Pages, page: Path) -> None:
        page.write_text("mine")
        (problem,) = pages.rebuild().problems
        assert "sync takes it in" in problem.message
        assert page.read_text() == "mine"

    def test_the_live_index_is_the_rebuilt_one(self, pages: Pages, page: Path) -> None:
        (pages.folder / "person-kming.md").write_text(SEED)
        pages.supersede("topic-tea", pages.read("topic-tea")[0].id, "There is jade tea.", "why")
        pages.sync()

        def answers() -> list[object]:
            return [
                pages.search(word, include_superseded=True)
                for word in ("tea", "engineer", "jade", "identity")
            ]

        before, seq, shown = answers(), pages.store.wal_seq(), files(pages.folder)
        told = pages.rebuild_index()
        assert (told.pages, told.entries, told.corrected) == (4, 7, 0)
        assert (answers(), pages.store.wal_seq(), files(pages.folder)) == (before, seq, shown)

    def test_a_deleted_index_gives_the_same_results(self, tmp_path: Path) -> None:
        with Pages(tmp_path) as pages:
            for number in range(30):
                pages.append("user-profile", f"Tea number {number}.", ["tea"])
            before = pages.search("tea 7", limit=30)
        for place in (tmp_path / ".chronomemory").iterdir():
            if place.name.startswith(("search", "text", "index", "snapshot")):
                shutil.rmtree(place) if place.is_dir() else place.unlink()
        (tmp_path / "memory" / "index.md").unlink()
        with Pages(tmp_path) as pages:
            pages.rebuild_index()
            assert pages.search("tea 7", limit=30) == before
            assert (tmp_path / "memory" / "index.md").exists()

    def test_what_another_tool_spoiled_is_corrected(self, pages: Pages, page: Path) -> None:
        first = pages.read("topic-tea")[0]
        key = f"entry:{pages._home.digits}:topic-tea:{first.id}"
        pages.store.engine.write([("patch", (key, {"data": {"content": "spoiled", "tags": []}}))], "pages")
        assert contents_of(pages)[0] == "spoiled"
        assert pages.rebuild_index().corrected == 1
        assert pages.read("topic-tea")[0] == first

    def test_a_damaged_log_leaves_the_files(self, tmp_path: Path) -> None:
        with Pages(tmp_path) as pages:
            pages.append("user-profile", "Tea.", ["tea"])
            pages.store.sync()
            log = tmp_path / ".chronomemory" / "events.wal"
            data = bytearray(log.read_bytes())
            data[len(data) // 2] ^= 1
            log.write_bytes(data)
            with pytest.raises(Exception, match="damage"):
                pages.rebuild()


class TestClean:
    @pytest.mark.parametrize("what", ["memory", "all"])
    def test_nothing_comes_back_but_the_history_stays(self, pages: Pages, page: Path, what: str) -> None:
        (pages.folder / "topic-late.md").write_text("## [2026-01-01 10:00] {id: a}\nNot synced yet.\n")
        config = pages.store.project_root / ".chronomemory" / "config.toml"
        config.write_text("[writer]\n")
        told = pages.clean(what)
        assert (told.pages, told.entries) == (4, 4)
        assert list(files(pages.folder)) == ["index.md"]
        assert (pages.list(), pages.search("tea"), pages.recent()) == ([], [], [])
        assert pages.rebuild().written == () and pages.rebuild_index().entries == 0
        assert config.read_text() == "[writer]\n"
        history = str([event.record for event in pages.store.replay()])
        assert "green tea" in history and "Not synced yet." in history and f"cleaned: {what}" in history
        with pytest.raises(ValueError, match="what"):
            pages.clean("everything")

    def test_one_can_begin_anew(self, pages: Pages, page: Path) -> None:
        pages.clean()
        pages.create("topic-tea", "Tea")
        pages.append("topic-tea", "There is red tea.", ["tea"])
        assert contents_of(pages) == ["There is red tea."]
        shown = page.read_bytes()
        page.unlink()
        pages.rebuild()
        assert page.read_bytes() == shown


def test_a_watcher_takes_edits_in(pages: Pages, page: Path, clock: Clock) -> None:
    clock.step = timedelta(0)
    told: list[Synced] = []
    stop, begun, heard = threading.Event(), threading.Event(), threading.Event()

    def tell(one: Synced) -> None:
        told.append(one)
        begun.set()
        if one.edited:
            heard.set()

    thread = threading.Thread(target=pages.watch, args=(tell, stop))
    thread.start()
    try:
        assert begun.wait(30)
        deadline = time.monotonic() + 30
        while not heard.is_set() and time.monotonic() < deadline:
            page.write_text(page.read_text().replace("green", "jade") + " ")
            heard.wait(0.5)
    finally:
        stop.set()
        thread.join(30)
    assert not thread.is_alive()
    assert heard.is_set() and told[0].edited == ()
    assert contents_of(pages)[0] == "There is jade tea."
