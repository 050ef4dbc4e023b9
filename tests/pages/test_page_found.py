"""All that a note says is found: its tags, wherever they stand, and what stands above its entries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from chronomemory.pages import Pages
from chronomemory.pages.text.links import hashtags_in
from page_samples import SEED


@pytest.fixture
def notes(tmp_path: Path) -> Iterator[Pages]:
    with Pages(tmp_path, "vault", layout="free") as made:
        yield made


def tagged_pages(pages: Pages, tag: str) -> list[str]:
    """The pages with a tag, asked in each way there is."""
    by_search = sorted({hit.entry.page for hit in pages.search("garden", tags=[tag])})
    by_tag = sorted({entry.page for entry in pages.tagged(tag)})
    assert by_search == by_tag == [name for name in by_tag if pages.read(name, tags=[tag])]
    return by_tag


@pytest.mark.parametrize(
    "front",
    [
        "tags: [one, two, three, four, five/six]",
        "tags:\n  - one\n  - two\n  - '#three'\n  - four\n  - five/six",
        "tags: one, two, three four five/six",
        'tags: "#one #two #three #four #five/six"',
        "tag: one two three four five/six",
    ],
)
def test_every_tag_of_a_frontmatter_is_found(notes: Pages, front: str) -> None:
    (notes.folder / "note.md").write_text(f"---\n{front}\n---\nA garden.\n")
    notes.sync()
    for tag in ("one", "two", "three", "four", "five/six", "five"):
        assert tagged_pages(notes, tag) == ["note"], tag
    assert [hit.entry.page for hit in notes.search("six")] == ["note"]


def test_every_tag_in_a_text_is_found(notes: Pages) -> None:
    said = "A garden #a #b #c, (#d) and #e/f/g. #日本 #हिन्दी\n#begin"
    said += " `#code` [[note#part]] #42 x#y\n```\n#fenced\n```"
    (notes.folder / "note.md").write_text(f"{said}\n")
    notes.sync()
    for tag in ("a", "b", "c", "d", "e/f/g", "e/f", "e", "日本", "हिन्दी", "begin"):
        assert tagged_pages(notes, tag) == ["note"], tag
    for none in ("code", "part", "42", "y", "fenced"):
        assert tagged_pages(notes, none) == [], none
    (entry,) = notes.read("note")
    assert entry.tags == () and entry.content == said


def test_tags_in_a_text_that_is_appended_or_edited_are_found_and_go_with_it(pages: Pages) -> None:
    pages.append("user-profile", "The garden is #green/dark.", ["home"])
    assert tagged_pages(pages, "green") == ["user-profile"]
    assert pages.read("user-profile")[0].tags == ("home",)
    page = pages.folder / "user-profile.md"
    page.write_text(page.read_text().replace("#green/dark", "#yellow"))
    pages.sync()
    assert (tagged_pages(pages, "green"), tagged_pages(pages, "yellow")) == ([], ["user-profile"])
    assert pages.rebuild_index().corrected == 0
    assert pages.read("user-profile")[0].tags == ("home",)


def test_what_stands_above_the_entries_is_found(pages: Pages) -> None:
    (pages.folder / "person-kming.md").write_text(
        SEED.replace("# User Profile\n", "# User Profile\n\nKeeps bees in the garden. #honey\n")
    )
    pages.sync()
    (hit,) = pages.search("bees")
    assert (hit.entry.id, hit.entry.page) == ("", "person-kming")
    assert hit.entry.content == "Keeps bees in the garden. #honey"
    assert hit.entry.timestamp.startswith("2026-04-20")
    for asked in (
        {"tags": ["honey"]},
        {"tags": ["identity"]},
        {"path": "person-*"},
        {"prefix": "person"},
        {"since": "2026-04-20"},
        {"status": "active"},
        {"include_superseded": True},
    ):
        assert pages.search("bees", **asked) == [hit], asked  # type: ignore[arg-type]
    assert pages.search("bees", until="2026-04-19") == []
    # It is no entry: nothing else tells of it.
    assert "" not in [entry.id for entry in (*pages.read("person-kming"), *pages.recent(limit=99))]
    assert pages.tagged("honey") == []
    assert pages.info("person-kming").entry_count == 3


def test_it_follows_the_page(pages: Pages) -> None:
    page = pages.folder / "topic-tea.md"
    pages.create("topic-tea", "Tea")
    assert pages.search("oolong") == []
    page.write_text(page.read_text() + "\nAbove all: oolong.\n")
    pages.sync()
    assert [hit.entry.content for hit in pages.search("oolong")] == ["Above all: oolong."]
    pages.append("topic-tea", "An entry.", ["tea"])
    assert len(pages.search("oolong")) == 1
    records = [event for event in pages.store.replay() if event.record_id.endswith("topic-tea:")]
    assert len(records) == 1, "it is written when it changes"
    page.write_text(page.read_text().replace("\nAbove all: oolong.\n", ""))
    pages.sync()
    assert pages.search("oolong") == []
    page.write_text(page.read_text().replace("# Topic Tea\n", "# Topic Tea\n\nGyokuro.\n"))
    pages.sync()
    assert len(pages.search("gyokuro")) == 1
    pages.clean()
    assert pages.search("gyokuro") == []


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("#tea, #tea #Tea", ["tea", "Tea"]),
        ("# Title\n##No #", []),
        ("[x](#anchor) <a href='#b'> https://x.y/#c &#39;", []),
        ("[#label](x.md) *#bold* “#quoted”", ["label", "bold", "quoted"]),
        ("#1a #1 #2026-04", ["1a", "2026-04"]),
        ("\\#no #a-b_c/ #d-", ["a-b_c", "d"]),
    ],
)
def test_tags_in_a_text(text: str, tags: list[str]) -> None:
    assert hashtags_in(text) == tags
