"""Page files written to harm the reader are refused with a reason, and the other pages are still read."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from chronomemory import ChronoStore
from chronomemory.pages import NotAPage, PageNameError, Pages
from chronomemory.pages.text.frontmatter import read_meta

#: Each line stands for ten times the line before it.
BOMB = "---\na0: &a0 [{}]\n{}description: *a{}\n---\n# Lol\n"


def bomb(levels: int) -> str:
    lines = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, levels))
    return BOMB.format(", ".join(["lol"] * 10), lines, levels - 1)


GOOD = "---\ndescription: Tea\ntags: [drinks, 2026]\n---\n# Tea\n\nGreen at 70.\n"


def log_size(project: Path) -> int:
    return (project / ".chronomemory" / "events.wal").stat().st_size


@pytest.mark.parametrize("levels", [5, 6, 9])
def test_an_alias_bomb_in_a_page_file_is_reported_and_the_other_pages_are_synced(
    pages: Pages, tmp_path: Path, levels: int
) -> None:
    before = log_size(tmp_path)
    (tmp_path / "memory" / "topic-a-bomb.md").write_text(bomb(levels))
    (tmp_path / "memory" / "topic-tea.md").write_text(GOOD)
    report = pages.sync()
    assert report.created == ("topic-tea",)
    (problem,) = report.problems
    assert problem.file == "topic-a-bomb.md" and "line 2" in problem.message
    assert "anchors (&) and aliases (*) are not read" in problem.message
    assert log_size(tmp_path) - before < 10_000


@pytest.mark.parametrize(
    ("yaml", "reason"),
    [
        ("a: &x 1", "anchors"),
        ("a: *x", "anchors"),
        (
            "a: !!python/object/apply:os.system [id]",
            "the tag 'tag:yaml.org,2002:python/object/apply:os.system'",
        ),
        ("a: !Color red", "the tag '!Color'"),
        ("a: !!set {x, y}", "the tag"),
        ("a: " + "[" * 60 + "]" * 60, "nested at most 50 deep"),
        ("a:\n" + "- x\n" * 3_000, "at most 2,000 keys and values"),
        ("a: " + "x" * 66_000, "longer than 65,536 characters"),
        ("description: [one, two]", "description must be text, got list"),
        ("description: {one: two}", "description must be text, got dict"),
        ("description: 0x" + "f" * 5_000, "description must be text, got a number"),
        ("compact_reason: [long]", "compact_reason must be text, got list"),
        ("tags: {one: two}", "tags must be text, or a list of texts, got dict"),
        ("tags: [[one]]", "tags must be text, or a list of texts, got list"),
        ("aliases: [{one: two}]", "aliases must be text, or a list of texts, got dict"),
        ("created: [2026-01-01]", "created must be a date, or text, got list"),
        ("updated: {a: 1}", "updated must be a date, or text, got dict"),
    ],
)
def test_a_frontmatter_is_refused_by_field_with_what_was_expected_and_given(yaml: str, reason: str) -> None:
    with pytest.raises(NotAPage) as caught:
        read_meta(f"---\n{yaml}\n---")
    assert reason in str(caught.value)
    assert caught.value.line is not None


def test_plain_values_in_a_frontmatter_are_read_as_text() -> None:
    meta = read_meta(
        "---\ndescription: 2026\ntags: [tea, 2026, 1.5, 2026-01-02,]\naliases: !!str one\ncreated: 5\n---"
    )
    assert (meta.description, meta.aliases, meta.created) == ("2026", ("one",), "")
    assert meta.tags == ("tea", "2026", "1.5", "2026-01-02")


@pytest.mark.parametrize(
    "sign", ["\x00", "\x1b", "\x85", "\u200e", "\u200f", "\u202e", "\u2028", "\u2066", "\u061c"]
)
def test_a_page_name_with_an_invisible_control_is_refused(pages: Pages, tmp_path: Path, sign: str) -> None:
    with pytest.raises(PageNameError):
        pages.create(f"topic-a{sign}b", "x")
    if sign != "\x00":
        (tmp_path / "memory" / f"topic-a{sign}b.md").write_text(GOOD)
        assert [problem.kind for problem in pages.sync().problems] == ["strange"]
    assert {page.name for page in pages.list()} == {"user-profile", "user-preferences"}


def test_two_unicode_forms_of_a_name_are_one_page(pages: Pages) -> None:
    pages.create("topic-cafe\u0301", "x")
    entry = pages.append("topic-caf\u00e9", "Open until nine.", ["place"])
    assert [found.id for found in pages.read("topic-cafe\u0301")] == [entry]
    assert pages.info("topic-cafe\u0301").name == "topic-caf\u00e9"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    ("store_mode", "folder", "file"), [(0o700, 0o700, 0o600), (0o755, 0o755, 0o644), (0o2770, 0o2770, 0o660)]
)
def test_page_files_have_the_permissions_of_the_store(
    tmp_path: Path, store_mode: int, folder: int, file: int
) -> None:
    (tmp_path / ".chronomemory").mkdir()
    (tmp_path / ".chronomemory").chmod(store_mode)
    before = os.umask(0o022)
    try:
        with Pages(tmp_path) as pages:
            pages.create("topic-tea", "Tea")
            pages.append("topic-tea", "Green at 70.", ["green"])
            pages.sync()
    finally:
        os.umask(before)
    assert mode(tmp_path / "memory") == folder
    assert {mode(path) for path in (tmp_path / "memory").iterdir()} == {file}


def test_page_files_of_a_new_store_are_private_or_of_its_group(tmp_path: Path) -> None:
    for shared, folder, file in ((False, 0o700, 0o600), (True, 0o2770, 0o660)):
        project = tmp_path / str(shared)
        project.mkdir()
        with ChronoStore(project, shared=shared) as store, Pages(store):
            assert mode(project / "memory") == folder
            assert {mode(path) for path in (project / "memory").iterdir()} == {file}


def test_a_page_file_that_exists_keeps_its_mode(pages: Pages, tmp_path: Path) -> None:
    pages.create("topic-tea", "Tea")
    (tmp_path / "memory" / "topic-tea.md").chmod(0o640)
    pages.append("topic-tea", "Green at 70.", ["green"])
    assert mode(tmp_path / "memory" / "topic-tea.md") == 0o640
