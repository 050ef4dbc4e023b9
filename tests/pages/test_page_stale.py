"""Is anything that was acknowledged lost to an editor that saves an older text, or half of one?"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from chronomemory.pages import PageConflict, Pages
from desk import Clock

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
