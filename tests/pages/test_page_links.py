"""Notes of other tools are taken in with all they hold, and links are found from both ends."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from chronomemory.pages import FolderError, Pages
from chronomemory.pages.text.links import call_of, links_in
from page_samples import SEED, files

NOTE = """---
aliases: [Old Name]
tags:
  - garden
  - home/out
cssclass: wide   # Obsidian's own
created: 2025-03-04
---
# My Garden

Roses, see [[Tools/Spade|the spade]] and [[person-alice#Phone]]. #plants

## [2026-01-01 10:00] not an entry
~~never~~ <!-- hidden -->
"""


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    root = tmp_path / "vault"
    (root / "Tools").mkdir(parents=True)
    (root / ".obsidian").mkdir()
    (root / ".obsidian" / "x.md").write_text("settings")
    (root / "My Garden.md").write_text(NOTE)
    (root / "Tools" / "Spade.md").write_text(
        "A spade. Back to [[My Garden]], or [there](../My%20Garden.md).\n"
    )
    (root / "person-alice.md").write_text(SEED)
    (root / "picture.png").write_bytes(b"\x89PNG")
    return root


def test_a_vault_becomes_pages(pages: Pages, vault: Path) -> None:
    told = pages.import_(vault)
    assert told.pages == {
        "My Garden.md": "topic-my-garden",
        "Tools/Spade.md": "topic-tools-spade",
        "person-alice.md": "person-alice",
    }
    assert told.problems == ()
    text = (pages.folder / "topic-my-garden.md").read_text()
    assert "cssclass: wide   # Obsidian's own\n" in text and "  - home/out\n" in text
    assert "[[Tools/Spade|the spade]]" in text
    (entry,) = pages.read("topic-my-garden")
    assert entry.content == NOTE.partition("---\n# ")[2].join(["# ", ""]).rstrip("\n")
    assert entry.tags == ("garden", "home/out", "plants") and entry.timestamp.startswith("2025-03-04")
    assert (pages.folder / "person-alice.md").read_text() == SEED
    record = pages.store.get(f"entry:{pages._home.digits}:topic-my-garden:{entry.id}")
    assert record is not None and record.evidence == ["imported from My Garden.md"]
    assert [hit.entry.page for hit in pages.search("roses")] == ["topic-my-garden"]
    before = files(pages.folder)
    shutil.rmtree(pages.folder)
    pages.rebuild()
    assert {name: before[name] for name in before if name != "index.md"}.items() <= files(
        pages.folder
    ).items()


def test_a_second_import_takes_nothing_twice(pages: Pages, vault: Path) -> None:
    pages.import_(vault)
    shown = files(pages.folder)
    told = pages.import_(vault)
    assert (told.pages, len(told.unchanged)) == ({}, 3)
    (vault / "My Garden.md").write_text("changed")
    (problem,) = pages.import_(vault).problems
    assert problem.file == "My Garden.md" and "changed" in problem.message
    assert files(pages.folder) == shown


def test_what_cannot_be_taken_in_is_named_and_the_rest_comes(
    pages: Pages, vault: Path, tmp_path: Path
) -> None:
    (vault / "broken.md").write_text("---\na: [\n---\n")
    (vault / "latin.md").write_bytes(b"\xe9t\xe9")
    (tmp_path / "secret.md").write_text("secret")
    (vault / "link.md").symlink_to(tmp_path / "secret.md")
    (vault / "empty.md").write_text("")
    (vault / "Tools" / "out").symlink_to(tmp_path, target_is_directory=True)
    told = pages.import_(vault)
    assert sorted(problem.file for problem in told.problems) == ["broken.md", "latin.md", "link.md"]
    assert len(told.pages) == 4 and pages.search("secret") == []
    assert pages.read(told.pages["empty.md"]) == []


def test_names_that_are_taken_get_a_number(pages: Pages, tmp_path: Path) -> None:
    root = tmp_path / "notes"
    (root / "a").mkdir(parents=True)
    for way in ("a b.md", "a-b.md", "a/b.md", "user-profile.md", "漢字.md", "!!!.md"):
        (root / way).write_text(f"note {way}")
    names = set(pages.import_(root).pages.values())
    assert names == {"topic-a-b", "topic-a-b-2", "topic-a-b-3", "user-profile-2", "topic-漢字", "topic-note"}


def test_no_folder_and_the_own_folder_are_refused(pages: Pages, tmp_path: Path) -> None:
    for wrong in (tmp_path / "nowhere", pages.folder):
        with pytest.raises(FolderError):
            pages.import_(wrong)


def test_links_are_found_from_both_ends(pages: Pages, vault: Path) -> None:
    pages.import_(vault)
    garden = pages.links("topic-my-garden")
    assert [(link.target, link.page) for link in garden.links] == [
        ("Tools/Spade", "topic-tools-spade"),
        ("person-alice#Phone", "person-alice"),
    ]
    assert [(link.page, link.target) for link in garden.backlinks] == [
        ("topic-tools-spade", "../My%20Garden.md"),
        ("topic-tools-spade", "My Garden"),
    ]
    assert [link.page for link in pages.links("person-alice").backlinks] == ["topic-my-garden"]
    pages.append("user-profile", "See [[nobody]], <https://example.org/x> and [[Old Name]].", ["a"])
    found = {link.target: (link.kind, link.page) for link in pages.links("user-profile").links}
    assert found == {
        "nobody": ("wiki", None),
        "https://example.org/x": ("address", None),
        "Old Name": ("wiki", "topic-my-garden"),
    }
    assert len(pages.links("topic-my-garden").backlinks) == 3


def test_links_above_the_entries_count(pages: Pages) -> None:
    (pages.folder / "topic-a.md").write_text("# A\n\nSee [[topic-b]].\n")
    pages.create("topic-b", "B")
    pages.sync()
    (link,) = pages.links("topic-b").backlinks
    assert (link.page, link.entry) == ("topic-a", None)


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        ("[[a]] [[a]] [[b|c]]", ["a", "b"]),
        ("![[image.png]]", ["image.png"]),
        ("[x](<a b.md>) [y](z.md 'title')", ["a b.md", "z.md"]),
        ("[x](a(b).md)", ["a(b).md"]),
        ("mailto:x@y.z and http://x.y/(z).", ["http://x.y/(z"]),
        ("[[]] [x]() [[a\nb]]", []),
    ],
)
def test_links_in_a_text(text: str, targets: list[str]) -> None:
    assert [link.target for link in links_in(text)] == targets


def test_spellings_of_one_name_are_equal() -> None:
    assert call_of("Topic-A.MD") == call_of("./topic-a#x") == call_of("topic-a^y") == "topic-a"
    assert call_of("mailto:a@b") is None and call_of("#heading") is None


def test_a_link_means_the_note_that_is_called_exactly_so(pages: Pages, tmp_path: Path) -> None:
    vault = tmp_path / "notes"
    vault.mkdir()
    for name, text in {
        "!!!": "odd",
        "Note": "real",
        "C++": "cpp",
        "C": "c",
        "Idx": "[[Note]] [[C++]] [[C]]",
    }.items():
        (vault / f"{name}.md").write_text(text)
    made = pages.import_(vault).pages
    assert [link.page for link in pages.links("topic-idx").links] == [
        made["Note.md"],
        made["C++.md"],
        made["C.md"],
    ]
    assert [link.page for link in pages.links(made["C.md"]).backlinks] != []
    assert pages.links(made["!!!.md"]).backlinks == ()


def test_a_byte_order_mark_is_no_text(pages: Pages, tmp_path: Path) -> None:
    vault = tmp_path / "notes"
    vault.mkdir()
    (vault / "bom.md").write_bytes("\ufeff# Marked\n\nText.\n".encode())
    name = pages.import_(vault).pages["bom.md"]
    assert pages.info(name).title == "Marked"
    assert pages.read(name)[0].content == "# Marked\n\nText."


def test_notes_under_other_endings_are_told(pages: Pages, tmp_path: Path) -> None:
    vault = tmp_path / "notes"
    vault.mkdir()
    for name in ("UP.MD", "long.markdown", "picture.png", "fine.md"):
        (vault / name).write_text("words")
    told = pages.import_(vault)
    assert list(told.pages) == ["fine.md"]
    assert [(one.kind, one.file) for one in told.problems] == [
        ("strange", "UP.MD"),
        ("strange", "long.markdown"),
    ]


def test_ways_lead_from_the_folder_of_their_note(pages: Pages, tmp_path: Path) -> None:
    vault = tmp_path / "notes"
    for way, text in {
        "a/b/here.md": "[up](../note.md) [top](../../note.md) [side](note.md) [down](c/note.md) [[note]]"
        " [[../note|up]] [past](../../../../note.md) [root](/a/note.md)",
        "note.md": "top",
        "a/note.md": "up",
        "a/b/note.md": "side",
        "a/b/c/note.md": "down",
    }.items():
        (vault / way).parent.mkdir(parents=True, exist_ok=True)
        (vault / way).write_text(text)
    made = pages.import_(vault).pages
    here = made["a/b/here.md"]
    assert [(link.label, link.page) for link in pages.links(here).links] == [
        ("up", made["a/note.md"]),
        ("top", made["note.md"]),
        ("side", made["a/b/note.md"]),
        ("down", made["a/b/c/note.md"]),
        ("", made["note.md"]),
        ("up", made["a/note.md"]),
        ("past", made["note.md"]),
        ("root", made["a/note.md"]),
    ]
    for way, targets in {
        "a/note.md": ["../note", "../note.md", "/a/note.md"],
        "a/b/note.md": ["note.md"],
        "a/b/c/note.md": ["c/note.md"],
        "note.md": ["../../../../note.md", "../../note.md", "note"],
    }.items():
        assert [link.target for link in pages.links(made[way]).backlinks] == targets, way
    # What is appended to the page of a note, or edited on it, leads from there too.
    pages.append(here, "And [again](../note.md).", ["more"])
    assert len(pages.links(made["a/note.md"]).backlinks) == 4
    assert pages.rebuild_index().corrected == 0


def test_a_way_on_a_page_of_ours_leads_to_a_page(pages: Pages) -> None:
    pages.append("user-profile", "See [it](../user-preferences.md) and [[../user-preferences]].", ["a"])
    assert [link.page for link in pages.links("user-profile").links] == ["user-preferences"] * 2
    assert len(pages.links("user-preferences").backlinks) == 2
