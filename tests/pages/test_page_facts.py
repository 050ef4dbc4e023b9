"""Is a rewrite rejected exactly when it loses facts, and is what it lost named?"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from chronomemory.pages import Pages, merge_superseded
from chronomemory.pages.text.facts import Losses, losses
from chronomemory.pages.text.page import read_page
from desk import SEED

HEADING = "## [2026-01-01T10:00:00] {id: a} #tags"


def lost(before: str, after: str) -> Losses:
    return losses(read_page(f"{HEADING}\n{before}\n"), read_page(f"{HEADING}\n{after}\n"))


@pytest.mark.parametrize(
    ("words", "kept", "rejected"), [(19, 18, False), (19, 17, True), (39, 37, False), (39, 36, True)]
)
def test_the_edge_of_ninety_five_percent(words: int, kept: int, rejected: bool) -> None:
    """With the tag there are 20 or 40 words: 19 of 20 and 38 of 40 are 95 % to the last digit."""
    spelled = ["word" + "".join(chr(97 + int(digit)) for digit in f"{number:02}") for number in range(words)]
    told = lost(" ".join(spelled), " ".join(spelled[:kept]))
    assert told.words_in_all == words + 1
    assert told.are_too_many is rejected
    assert len(told.words) == words - kept


@pytest.mark.parametrize(
    ("before", "after", "what", "missing"),
    [
        ("It costs 12.50 now", "It costs 12 now", "numbers", ("12.50",)),
        ("Born 1987", "Born then", "numbers", ("1987",)),
        ("住在上海 now", "住在 now", "cjk", ("住在上海",)),
        ("서울에 산다 now", "now", "cjk", ("서울에", "산다")),
        ("see https://example.org/a now", "see now", "links", ("https://example.org/a",)),
        ("see [[person-alice|Al]] now", "see person-alice now", "links", ("person-alice",)),
        ("see [x](topic-a.md) now", "see x now topic-a.md", "links", ("topic-a.md",)),
    ],
)
def test_what_must_survive_is_named(before: str, after: str, what: str, missing: tuple[str, ...]) -> None:
    told = lost(before, after)
    assert getattr(told, what) == missing
    assert told.are_too_many


def test_short_words_and_the_order_do_not_matter() -> None:
    told = lost("The Cat sat ON the Large table", "large TABLE, a cat")
    assert not told.are_too_many


def test_ids_must_survive_alive_with_their_moments() -> None:
    page = read_page(SEED)
    for change in (
        lambda text: text.replace("20260420-1402-a1b23c", "20260420-1402-a1b23d"),
        lambda text: text.replace("[2026-04-20T14:02:11]", "[2026-04-20T14:02:12]"),
        lambda text: text.replace(
            "User goes by Kming. Based in Shanghai.", "~~User goes by Kming. Based in Shanghai.~~"
        ),
    ):
        assert losses(page, read_page(change(SEED))).ids == ("20260420-1402-a1b23c",)
    gone = SEED.replace("20260420-1630-3f0e99", "x")
    assert losses(page, read_page(gone)).ids == ("20260420-1630-3f0e99",)


def test_the_rewrite_without_a_model_loses_nothing_and_stays_as_it_is() -> None:
    text = merge_superseded(SEED)
    page = read_page(text)
    assert [entry.entry_id for entry in page.entries] == ["20260420-1402-a1b23c", "20260421-0915-c4f1a5"]
    note = page.entries[1].content
    assert "20260420-1630-3f0e99" in note and "Old Corp" in note
    told = losses(read_page(SEED), page)
    assert (told.words, told.are_too_many) == ((), False)
    assert merge_superseded(text) == text


@pytest.mark.parametrize(
    "rewrite",
    [
        lambda text: "",
        lambda text: None,
        lambda text: text.replace("Lisbon", ""),
        lambda text: "---\n" + text.split("---\n")[2],
        lambda text: text.replace("1987", "").replace("Lisbon", "Lisbon Lisbon"),
        lambda text: text + "\ud800",
    ],
)
def test_a_rejected_rewrite_touches_nothing_and_the_flag_stays(
    pages: Pages, rewrite: Callable[[str], str]
) -> None:
    pages.append("user-profile", "The user was born in Lisbon in 1987.", ["home"])
    pages.flag_compact("user-profile", "too long: a test")
    before = (pages.folder / "user-profile.md").read_bytes()
    told = pages.compact("user-profile", rewrite)
    assert not told.accepted and told.summary
    assert (pages.folder / "user-profile.md").read_bytes() == before
    assert pages.info("user-profile").needs_compact
    assert pages.info("user-profile").compact_reason == "too long: a test"


def test_an_error_of_the_rewrite_is_the_callers_and_touches_nothing(pages: Pages) -> None:
    before = (pages.folder / "user-profile.md").read_bytes()
    with pytest.raises(ZeroDivisionError):
        pages.compact("user-profile", lambda text: str(1 / 0))
    assert (pages.folder / "user-profile.md").read_bytes() == before


def test_flagged_pages_are_compacted_and_unknown_keys_stay(pages: Pages) -> None:
    path = pages.folder / "user-profile.md"
    path.write_text(path.read_text().replace("status: active", "mine: 'kept' # by me\nstatus: active"))
    old = pages.append("user-profile", "The user lives in Paris.", ["home"])
    new = pages.supersede("user-profile", old, "The user lives in Lisbon.", "moved on 2026-03-01")
    pages.flag_compact("user-profile", "")
    (told,) = pages.compact_flagged()
    assert told.accepted and told.tokens_after < told.tokens_before
    (entry,) = pages.read("user-profile", include_superseded=True)
    assert entry.id == new
    assert old in entry.content and "Paris" in entry.content and "moved on 2026-03-01" in entry.content
    assert "mine: 'kept' # by me" in path.read_text()
    assert not pages.info("user-profile").needs_compact
    assert pages.compact_flagged() == []
    assert any(event.record and "Paris" in str(event.record) for event in pages.store.replay())


def test_a_page_that_changes_while_it_is_rewritten_is_left(pages: Pages) -> None:
    pages.append("user-profile", "The user lives in Paris.", ["home"])

    def rewrite(text: str) -> str:
        pages.append("user-profile", "Somebody else writes.", ["other"])
        return text

    told = pages.compact("user-profile", rewrite)
    assert (told.accepted, told.reason) == (False, "the page was changed while it was rewritten")
    assert len(pages.read("user-profile")) == 2
