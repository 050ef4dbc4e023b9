"""A rewrite is rejected exactly when it loses facts, and what it lost is named."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from chronomemory.pages import Pages, merge_superseded
from chronomemory.pages.compaction import Losses, losses
from chronomemory.pages.text.page import read_page
from page_samples import SEED

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


@pytest.mark.parametrize(
    ("before", "after", "missing"),
    [
        ("It is -5 degrees", "It is 5 degrees", ("-5",)),
        ("It is 5 degrees", "It is -5 degrees", ("5",)),
        ("A loss of \u22123.2", "A loss of 3.2", ("-3.2",)),
        ("Growth was 5 % then", "Growth was 5 then", ("5%",)),
        ("Growth was 5% then", "Growth was 5 then", ("5%",)),
        ("It weighs .5 kilos", "It weighs 5 kilos", (".5",)),
        ("It weighs 0,5 kilos", "It weighs 5 kilos", ("0,5",)),
        ("About 1e-5 grams", "About 1e5 grams", ("1e-5",)),
        ("See x=-5 there", "See x=5 there", ("-5",)),
    ],
)
def test_a_number_is_lost_with_its_sign_its_decimals_or_its_percent(
    before: str, after: str, missing: tuple[str, ...]
) -> None:
    told = lost(before, after)
    assert told.numbers == missing
    assert told.are_too_many


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("From 3-5 to 2026-04-20", "2026-04-20: from 3 to 5"),
        ("It is \u22125 here, 5 % less", "It is -5 here, 5% less"),
        ("- 5 items, **-7**", "5 items and -7"),
    ],
)
def test_a_number_in_another_spelling_is_the_same(before: str, after: str) -> None:
    assert lost(before, after).numbers == ()


#: What a rewrite may do with a sentence so that it stands on the page and does not hold any more.
HIDDEN = [
    "<!-- {} -->",
    "See below. <!-- {}",
    "~~{}~~",
    "Not this: ~~{}~~",
    "<del>{}</del>",
    "%%{}%%",
    '<a title="{}">x</a>',
    "\n\n[//]: # ({})",
]


@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize(
    ("said", "what", "missing"),
    [
        ("Berlin Hamburg Bremen", "words", ("berlin", "hamburg", "bremen")),
        ("1987", "numbers", ("1987",)),
        ("\u4f4f\u5728\u4e0a\u6d77", "cjk", ("\u4f4f\u5728\u4e0a\u6d77",)),
        ("https://example.org/a", "links", ("https://example.org/a",)),
        ("#garden", "tags", ("garden",)),
    ],
)
def test_what_is_hidden_or_crossed_out_is_lost(
    hidden: str, said: str, what: str, missing: tuple[str, ...]
) -> None:
    told = lost(f"It holds: {said} .", f"It holds: . {hidden.format(said)}")
    assert set(missing) <= set(getattr(told, what))
    assert told.are_too_many


def test_what_is_shown_by_an_escape_or_as_code_is_kept() -> None:
    for kept in ("\\<!-- Berlin 1987 \\-->", "`<!-- Berlin 1987 -->`", "\\~\\~Berlin 1987\\~\\~"):
        assert not lost("Berlin in 1987", kept).are_too_many, kept


def test_what_did_not_hold_may_stand_anywhere_but_not_vanish() -> None:
    for kept in ("<!-- Berlin 1987 -->", "~~Berlin 1987~~", "Berlin 1987"):
        assert not lost("Yes. <!-- Berlin 1987 -->", f"Yes. {kept}").are_too_many
    assert lost("Yes. <!-- Berlin 1987 -->", "Yes.").numbers == ("1987",)


STRUCK = "## [2026-01-02T10:00:00] {id: b} #old\n~~The user lived in Berlin.~~ #superseded-by:a"


def test_a_living_text_is_not_kept_by_a_struck_entry() -> None:
    before = f"{HEADING}\nThe user moved to Lisbon in 1987.\n\n{STRUCK}\n"
    after = before.replace("moved to Lisbon in 1987", "moved").replace("Berlin", "Berlin, Lisbon 1987")
    told = losses(read_page(before), read_page(after))
    assert (told.numbers, told.words) == (("1987",), ("lisbon", "1987"))
    assert told.are_too_many


def test_tags_must_survive_where_they_stand() -> None:
    before = read_page(f"{HEADING} #home\nThe user likes #tea/green.\n\n{STRUCK}\n")
    for change, missing in (
        (("#tags #home", "#tags"), ("home",)),
        (("#tea/green", "tea green"), ("tea/green",)),
        (("#old", "#older"), ("old",)),
    ):
        told = losses(before, read_page(before.text.replace(*change)))
        assert told.tags == missing and told.are_too_many
    # A tag of one entry is not kept by another.
    moved = before.text.replace("#tags #home", "#tags").replace("#old", "#old #home")
    assert losses(before, read_page(moved)).tags == ("home",)
    merged = merge_superseded(before.text)
    assert "{id: b}" not in merged and not losses(before, read_page(merged)).are_too_many
    assert losses(before, read_page(merged.replace("#old", "old"))).tags == ("old",)


def test_what_was_superseded_does_not_come_back_to_life() -> None:
    before = read_page(f"{HEADING}\nThe user lives in Lisbon.\n\n{STRUCK}\n")
    alive = before.text.replace("~~", "").replace(" #superseded-by:a", "")
    assert losses(before, read_page(alive)).ids == ("b",)
    unmarked = before.text.replace(" #superseded-by:a", "")
    assert losses(before, read_page(unmarked)).ids == ("b",)
    # A note that names it is one that is shown.
    note = f"{HEADING}\nThe user lives in Lisbon. "
    assert losses(before, read_page(f"{note}Earlier: b (#old): The user lived in Berlin.\n")).ids == ()
    assert losses(before, read_page(f"{note}<!-- b (#old): The user lived in Berlin. -->\n")).ids == ("b",)


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


@pytest.mark.parametrize("piece", ["<del>", "` ", "~~a", "%%a", "<!--", "<a ", "[a]: b\n", "1e", "-", "#a "])
def test_the_work_grows_with_a_page_and_no_faster(piece: str) -> None:
    """This would take minutes if it did."""
    assert not lost(piece * 20_000, piece * 20_000).are_too_many
