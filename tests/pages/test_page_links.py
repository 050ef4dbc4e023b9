"""Notes of other tools are read with all they hold, and links are found from both ends."""

from __future__ import annotations

import shutil
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from chronomemory.pages import Pages
from chronomemory.pages.storage.changes import put_page
from chronomemory.pages.text.links import call_of, links_in
from page_samples import SEED
from vaults import contents

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


@pytest.fixture
def notes(tmp_path: Path, vault: Path) -> Iterator[Pages]:
    with Pages(tmp_path, vault) as made:
        yield made


def test_a_note_keeps_all_it_holds(notes: Pages, vault: Path) -> None:
    assert [page.name for page in notes.list()] == ["My Garden", "Tools/Spade", "person-alice"]
    entries = notes.read("My Garden")
    assert (
        "\n\n".join(entry.content for entry in entries) == NOTE.partition("---\n# ")[2].join(["# ", ""])[:-1]
    )
    assert {(entry.tags, entry.timestamp[:10]) for entry in entries} == {
        (("garden", "home/out"), "2025-03-04")
    }
    record = notes.store.get(f"entry:{notes._home.digits}:My Garden:#my-garden")
    assert record is not None and record.evidence == ["edited by hand"]
    assert [hit.entry.page for hit in notes.search("roses")] == ["My Garden"]
    assert [entry.id for entry in notes.read("person-alice")][:2] == ["#user-profile", "20260420-1402-a1b23c"]
    before = contents(vault)
    shutil.rmtree(vault)
    notes.rebuild()
    assert contents(vault).items() <= before.items() and len(contents(vault)) == 3


def test_links_are_found_from_both_ends(notes: Pages) -> None:
    garden = notes.links("My Garden")
    assert [(link.target, link.page) for link in garden.links] == [
        ("Tools/Spade", "Tools/Spade"),
        ("person-alice#Phone", "person-alice"),
    ]
    assert [(link.page, link.target) for link in garden.backlinks] == [
        ("Tools/Spade", "../My%20Garden.md"),
        ("Tools/Spade", "My Garden"),
    ]
    assert [link.page for link in notes.links("person-alice").backlinks] == ["My Garden"]
    notes.create("Other", "")
    notes.append("Other", "See [[nobody]], <https://example.org/x> and [[Old Name]].", ["a"])
    found = {link.target: (link.kind, link.page) for link in notes.links("Other").links}
    assert found == {
        "nobody": ("wiki", None),
        "https://example.org/x": ("address", None),
        "Old Name": ("wiki", "My Garden"),
    }
    assert len(notes.links("My Garden").backlinks) == 3


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


def test_a_link_means_the_note_that_is_called_exactly_so(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    texts = {"!!!": "odd", "Note": "real", "C++": "cpp", "C": "c", "Idx": "[[Note]] [[C++]] [[C]]"}
    for name, text in texts.items():
        (tmp_path / "notes" / f"{name}.md").write_text(text)
    with Pages(tmp_path, "notes") as notes:
        assert [link.page for link in notes.links("Idx").links] == ["Note", "C++", "C"]
        assert [link.page for link in notes.links("C").backlinks] == ["Idx"]
        assert notes.links("!!!").backlinks == ()


def test_ways_lead_from_the_folder_of_their_note(tmp_path: Path) -> None:
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
    with Pages(tmp_path, "notes") as notes:
        assert [(link.label, link.page) for link in notes.links("a/b/here").links] == [
            ("up", "a/note"),
            ("top", "note"),
            ("side", "a/b/note"),
            ("down", "a/b/c/note"),
            ("", "note"),
            ("up", "a/note"),
            ("past", "note"),
            ("root", "a/note"),
        ]
        for name, targets in {
            "a/note": ["../note", "../note.md", "/a/note.md"],
            "a/b/note": ["note.md"],
            "a/b/c/note": ["c/note.md"],
            "note": ["../../../../note.md", "../../note.md", "note"],
        }.items():
            assert [link.target for link in notes.links(name).backlinks] == targets, name
        # What is appended to a note leads from there too.
        notes.append("a/b/here", "And [again](../note.md).", ["more"])
        assert len(notes.links("a/note").backlinks) == 4
        assert notes.rebuild_index().corrected == 0


def test_pages_that_were_imported_once_are_found_by_their_note(pages: Pages) -> None:
    """Earlier versions copied notes into pages, and kept where each came from."""
    pages.create("topic-tools-spade", "A spade")
    home = pages._home
    page = home.look.page("topic-tools-spade")
    assert page is not None
    page = replace(page, source=("Tools/Spade.md", "0" * 32))
    home.handle.run(lambda conn: put_page(conn, home.digits, page))
    pages.append("user-profile", "See [[Tools/Spade]] and [[spade]].")
    assert [link.page for link in pages.links("user-profile").links] == ["topic-tools-spade"] * 2
    assert len(pages.links("topic-tools-spade").backlinks) == 2
    assert pages.rebuild_index().corrected == 0


def test_a_way_on_a_page_of_ours_leads_to_a_page(pages: Pages) -> None:
    pages.append("user-profile", "See [it](../user-preferences.md) and [[../user-preferences]].", ["a"])
    assert [link.page for link in pages.links("user-profile").links] == ["user-preferences"] * 2
    assert len(pages.links("user-preferences").backlinks) == 2


def test_a_link_that_is_repeated_takes_no_memory_again() -> None:
    text = "[[a]] [b](c.md) " * 60_000
    tracemalloc.start()
    links = links_in(text)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [link.target for link in links] == ["a", "c.md"]
    assert peak < 1_000_000
