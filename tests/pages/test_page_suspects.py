"""A line that looks like the heading of an entry and is none is told, and nothing is lost with it."""

from __future__ import annotations

import pytest
from chronomemory.pages import Pages
from chronomemory.pages.text.entries import suspects_in
from chronomemory.pages.text.page import read_page

RIGHT = "## [2026-05-01 10:00] {id: mine} #note"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("### [2026-05-01 10:00] {id: mine} #note", "3 number signs"),
        ("# [2026-05-01 10:00] {id: mine} #note", "1 number signs"),
        ("[2026-05-01 10:00] {id: mine} #note", "0 number signs"),
        ("##[2026-05-01 10:00] {id: mine}", "no blank behind the number signs"),
        (" ## [2026-05-01 10:00] {id: mine}", "does not begin its line"),
        ("> ## [2026-05-01 10:00] {id: mine}", "does not begin its line"),
        ("## [2026-13-01 10:00] {id: mine}", "[2026-13-01 10:00] is no moment"),
        ("## [2026-05-01] {id: mine}", "[2026-05-01] is no moment"),
        ("## 2026-05-01 10:00 {id: mine}", "2026-05-01 10:00 is no moment"),
        ("## (2026-05-01 10:00) {id: mine}", "is no moment"),
        ("## {id: mine} #note", "has no moment"),
        ("## [2026-05-01 10:00] #note", "has no id"),
        ("## [2026-05-01 10:00] {id: m_ne}", "{id: m_ne} is no id"),
        ("## [2026-05-01 10:00] {id mine}", "{id mine} is no id"),
        ("## [2026-05-01 10:00] {ID: mine}", "{ID: mine} is no id"),
        ("## [2026-05-01 10:00] {id: mine", "{id: mine is no id"),
        ("## [2026-05-01 10:00]{id: mine}", "is not spelled as"),
        ("## [2026-05-01 10:00] #note {id: mine}", "is not spelled as"),
    ],
)
@pytest.mark.parametrize("eol", ["\n", "\r\n"])
def test_a_mistyped_heading_is_told_with_its_line_and_why(line: str, reason: str, eol: str) -> None:
    text = eol.join([RIGHT.replace("mine", "first"), "Tea.", "", line, "Cake.", ""])
    assert len(read_page(text).entries) == 1
    (told,) = suspects_in(text)
    assert told.startswith("line 4 looks like the heading of an entry, but ")
    assert reason in told and told.endswith("it is text of first")


@pytest.mark.parametrize(
    "line",
    [
        RIGHT,
        "## Tea",
        "## [1.2.0] - 2026-05-01",
        "## 2026-05-01",
        "\\## [2026-05-01 10:00] {id: x",
        "Call f({id: 3}).",
        "At [2026-05-01] we met.",
        "```\n### [2026-05-01 10:00] {id: x}\n```",
    ],
)
def test_other_lines_are_not(line: str) -> None:
    assert suspects_in(f"{line}\n") == []


def test_sync_tells_of_a_mistyped_heading_once_and_keeps_its_text(pages: Pages) -> None:
    first = pages.append("user-profile", "The user likes tea.", ["drinks"])
    page = pages.folder / "user-profile.md"
    edited = page.read_text() + "\n### [2026-05-01 10:00] {id: mine} #note\nAnd cake.\n"
    page.write_text(edited)
    told = pages.sync()
    (problem,) = told.problems
    number = edited.split("\n").index("### [2026-05-01 10:00] {id: mine} #note") + 1
    assert (problem.kind, problem.file) == ("heading", "user-profile.md")
    assert f"line {number} looks like" in problem.message and first in problem.message
    assert (told.edited, told.changed) == (("user-profile",), 1)
    assert pages.read("user-profile")[0].content.endswith("{id: mine} #note\nAnd cake.")
    assert page.read_text() == edited
    assert pages.sync().problems == ()
    # It stood there before: another edit is not told of it again.
    page.write_text(edited.replace("tea", "coffee"))
    assert pages.sync().problems == ()


def test_a_reader_and_an_append_that_take_an_edit_in_warn_of_it(pages: Pages) -> None:
    page = pages.folder / "user-profile.md"
    for verb in (
        lambda: pages.read("user-profile"),
        lambda: pages.append("user-profile", "The user likes tea.", ["drinks"]),
    ):
        page.write_text(
            f"{page.read_text()}\n##[2026-05-01 10:0{len(page.read_text()) % 10}] {{id: a}}\nText\n"
        )
        with pytest.warns(RuntimeWarning, match="no blank behind the number signs"):
            verb()


def test_rebuild_index_tells_of_it(pages: Pages) -> None:
    (pages.folder / "topic-tea.md").write_text(f"# Tea\n\n{RIGHT}\nGreen.\n\n#{RIGHT}\nBlack.\n")
    assert [problem.kind for problem in pages.rebuild_index().problems] == ["heading"]


def test_a_content_that_quotes_headings_is_never_told_of(pages: Pages) -> None:
    pages.append("user-profile", "### [2026-05-01 10:00] {id: x}\n##[2026-05-01] {id: y}", ["quotes"])
    page = pages.folder / "user-profile.md"
    page.write_text(page.read_text() + "\nMore.\n")
    assert pages.sync().problems == ()
