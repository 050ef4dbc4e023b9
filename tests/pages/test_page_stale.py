"""Nothing acknowledged is lost to an editor that saves an older text, or half of one."""

from __future__ import annotations

import os
import warnings
from datetime import timedelta
from pathlib import Path

import pytest
from chronomemory import ChronoStore
from chronomemory.face import files as swapping
from chronomemory.pages import PageConflict, Pages
from page_samples import Clock

HAND = "## [2026-01-02 10:00] {id: mine} #hand\nBy hand.\n"


@pytest.fixture
def page(pages: Pages) -> Path:
    """A page with one entry."""
    pages.create("topic-tea", "Tea", ["drinks"])
    pages.append("topic-tea", "one", ["tea"])
    return pages.folder / "topic-tea.md"


def contents_of(pages: Pages) -> list[str]:
    return [entry.content for entry in pages.read("topic-tea")]


class TestKeptById:
    def test_an_append_outlives_an_entry_by_hand_before_it(self, pages: Pages, page: Path) -> None:
        opened = page.read_text()
        pages.append("topic-tea", "two", ["tea"])
        pages.append("topic-tea", "three", ["tea"])
        text = page.read_text()
        last = text.rindex("## [")
        page.write_text(f"{text[:last]}{HAND}\n{text[last:]}")
        pages.sync()
        page.write_text(opened.replace("one", "one, edited"))
        assert pages.sync().deleted == 0
        assert contents_of(pages) == ["one, edited", "two", "By hand.", "three"]
        assert "three" in page.read_text()

    @pytest.mark.parametrize("step", [timedelta(), timedelta(minutes=1), timedelta(minutes=-1)])
    def test_whatever_the_clock_does(self, pages: Pages, page: Path, clock: Clock, step: timedelta) -> None:
        clock.step = step
        pages.append("topic-tea", "two", ["tea"])
        opened = page.read_text()
        # One is deleted by hand and one comes, so that there are as many as before.
        start = opened.index("\n## [")
        page.write_text(opened[:start] + opened[opened.index("\n## [", start + 1) :])
        pages.append("topic-tea", "three", ["tea"])
        page.write_text(opened.replace("two", "two, edited"))
        pages.sync()
        assert contents_of(pages) == ["one", "two, edited", "three"]

    def test_what_was_put_back_can_be_deleted(self, pages: Pages, page: Path, clock: Clock) -> None:
        clock.step = timedelta()
        opened = page.read_text()
        late = pages.append("topic-tea", "two", ["tea"])
        page.write_text(opened[: opened.index("\n## [")] + "\n")
        assert pages.sync().kept == (late,)
        assert contents_of(pages) == ["two"]
        text = page.read_text()
        page.write_text(text[: text.index("\n## [")] + "\n")
        assert pages.sync().deleted == 1
        assert contents_of(pages) == []

    def test_a_number_of_entries_that_a_person_corrects_is_no_older_text(
        self, pages: Pages, page: Path
    ) -> None:
        pages.append("topic-tea", "two", ["tea"])
        pages.append("topic-tea", "three", ["tea"])
        text = page.read_text().replace("entry_count: 3", "entry_count: 2")
        first = text.index("\n## [")
        second = text.index("\n## [", first + 1)
        page.write_text(text[:second] + text[text.index("\n## [", second + 1) :])
        told = pages.sync()
        assert (told.deleted, told.kept) == (1, ())
        assert contents_of(pages) == ["one", "three"]


class TestHalfSaved:
    @pytest.mark.parametrize("half", ["", "\n", "just words\n"])
    def test_an_empty_file_deletes_nothing(self, pages: Pages, page: Path, half: str) -> None:
        opened = page.read_text()
        late = pages.append("topic-tea", "two", ["tea"])
        page.write_text(half)
        assert [(one.kind, one.file) for one in pages.sync().problems] == [("conflict", "topic-tea.md")]
        with pytest.raises(PageConflict, match="not taken for a deletion"):
            pages.append("topic-tea", "three", ["tea"])
        assert page.read_text() == half
        with pytest.warns(RuntimeWarning, match="as it was before"):
            assert contents_of(pages) == ["one", "two"]
        page.write_text(opened.replace("one", "one, edited"))
        assert pages.sync().kept == (late,)
        assert contents_of(pages) == ["one, edited", "two"]


class TestSavedUnderAWriter:
    @pytest.mark.parametrize("by", ["rename", "write"])
    @pytest.mark.parametrize("is_older", [True, False])
    @pytest.mark.parametrize("can_swap", [True, False])
    def test_an_edit_in_the_last_moment_is_taken_in(
        self,
        pages: Pages,
        page: Path,
        monkeypatch: pytest.MonkeyPatch,
        by: str,
        is_older: bool,
        can_swap: bool,
    ) -> None:
        opened = page.read_text()
        pages.append("topic-tea", "two", ["tea"])
        edited = (opened if is_older else page.read_text()).replace("one", "one, edited")
        # Without a swap it is looked at behind this step, with one in it.
        module, step = (swapping, "_exchange") if can_swap else (os, "link")
        real = getattr(module, step)
        saves = [edited]

        def save_first(*given: object, **options: object) -> object:
            if saves:
                place = page if by == "write" else page.with_name(".saved")
                place.write_text(saves.pop())
                place.replace(page)
            return real(*given, **options)

        if not can_swap:
            monkeypatch.setattr(swapping, "_exchange", lambda *_: False)
        monkeypatch.setattr(module, step, save_first)
        pages.append("topic-tea", "three", ["tea"])
        assert saves == []
        assert contents_of(pages) == ["one, edited", "two", "three"]
        assert [word in page.read_text() for word in ("one, edited", "two", "three")] == [True] * 3
        assert pages.sync().summary == "pages and log agree"
        assert list(pages.folder.glob(f".*{swapping.PART}")) == []

    def test_a_file_that_is_emptied_in_the_last_moment_is_left_to_its_editor(
        self, pages: Pages, page: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        text, real = page.read_text(), swapping._exchange
        with page.open("r+") as editor:

            def empty_first(folder: int, one: str, other: str) -> bool:
                editor.truncate(0)
                return real(folder, one, other)

            monkeypatch.setattr(swapping, "_exchange", empty_first)
            with pytest.warns(RuntimeWarning, match="in the log"):
                pages.append("topic-tea", "two", ["tea"])
            monkeypatch.undo()
            editor.write(text.replace("one", "one, edited"))
        assert contents_of(pages) == ["one, edited", "two"]

    def test_a_write_over_an_older_save_is_in_the_file_at_once(self, pages: Pages, page: Path) -> None:
        first = pages.read("topic-tea")[0].id
        opened = page.read_text()
        pages.append("topic-tea", "two", ["tea"])
        page.write_text(opened.replace("# Topic Tea", "# Tea"))
        pages.append("topic-tea", "three", ["tea"])
        assert [word in page.read_text() for word in ("# Tea\n", "two", "three")] == [True] * 3
        page.write_text(opened.replace("# Topic Tea", "# All tea"))
        pages.supersede("topic-tea", first, "four", "it changed")
        assert [word in page.read_text() for word in ("# All tea\n", "~~one~~", "two", "three", "four")] == [
            True
        ] * 5
        assert pages.sync().summary == "pages and log agree"


class TestAStrikeThatIsTakenBack:
    def test_its_reason_is_no_content_and_stays_on_the_page(self, pages: Pages) -> None:
        old = pages.append("user-profile", "The user lives in Paris.", ["home"])
        new = pages.supersede("user-profile", old, "The user lives in Lisbon.", "moved in 2025")
        page = pages.folder / "user-profile.md"
        struck = page.read_text()
        unmarked = struck.replace(f" #superseded-by:{new}", "")
        page.write_text(unmarked.replace("~~", ""))
        assert pages.sync().changed == 1
        entry = next(entry for entry in pages.read("user-profile") if entry.id == old)
        assert (entry.content, entry.reason) == ("The user lives in Paris.", None)
        assert "<!-- reason: moved in 2025 -->" in page.read_text()
        text = page.read_text()
        page.unlink()
        pages.rebuild()
        assert page.read_text() == text
        # It can be superseded again, and a merge leaves what the person left.
        last = pages.supersede("user-profile", new, "The user lives in Porto.", "moved again")
        again = pages.supersede("user-profile", last, "The user lives in Faro.", "moved on")
        assert pages.compact("user-profile").accepted
        assert "<!-- reason: moved in 2025 -->" in page.read_text()
        pages.supersede("user-profile", old, "The user lived in Paris.", "long ago")
        assert pages.read("user-profile")[0].id == again
        assert page.read_text().count("<!-- reason: long ago -->") == 1

    def test_one_that_is_still_marked_is_superseded_with_its_reason(self, pages: Pages) -> None:
        old = pages.append("user-profile", "The user lives in Paris.", ["home"])
        new = pages.supersede("user-profile", old, "The user lives in Lisbon.", "moved")
        page = pages.folder / "user-profile.md"
        page.write_text(page.read_text().replace("~~", ""))
        pages.sync()
        first = pages.read("user-profile", include_superseded=True)[0]
        assert (first.content, first.superseded_by, first.reason) == (
            "The user lives in Paris.",
            new,
            "moved",
        )

    def test_a_content_that_looks_so_is_content(self, pages: Pages) -> None:
        said = "Words.\n<!-- reason: mine -->"
        pages.append("user-profile", said, ["a"])
        assert pages.read("user-profile")[0].content == said
        assert pages.rebuild_index().corrected == 0


@pytest.mark.parametrize("what", ["append", "supersede"])
def test_what_the_log_has_lost_of_a_page_comes_back_from_its_file(tmp_path: Path, what: str) -> None:
    with Pages(tmp_path) as pages:
        pages.create("topic-dose", "doses", ["t"])
        entry = pages.append("topic-dose", "Give 90 mg", ["t"])
        if what == "supersede":
            pages.supersede("topic-dose", entry, "Give 10 mg", reason="wrong")
        pages.append("user-profile", "x", ["t"])
        truth = [one.content for one in pages.read("topic-dose")]
        file = (pages.folder / "topic-dose.md").read_bytes()
    log = tmp_path / ".chronomemory" / "events.wal"
    lines = log.read_bytes().split(b"\n")
    word = b'"op":"upsert"' if what == "append" else b"superseded"
    at = [n for n, line in enumerate(lines) if f"topic-dose:{entry}".encode() in line and word in line][-1]
    lines[at] = b"x" * 40
    log.write_bytes(b"\n".join(lines))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        with ChronoStore(tmp_path) as store:
            store.upkeep.repair()
    with Pages(tmp_path) as pages:
        told = pages.sync()
        assert told.edited == ("topic-dose",)
        assert [one.content for one in pages.read("topic-dose")] == truth
        assert pages.text("topic-dose").encode() == file == (pages.folder / "topic-dose.md").read_bytes()
        assert pages.sync().edited == ()
