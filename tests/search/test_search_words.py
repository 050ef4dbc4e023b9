"""The words of a text are those that Unicode's tables give, and nobody has to type an accent."""

from __future__ import annotations

import unicodedata

import plain_words
import pytest
from chronomemory import ChronoRecord, ChronoStore
from chronomemory._core import question_words, text_words
from hypothesis import example, given, settings
from hypothesis import strategies as st
from shares import share

#: Scripts, pictures and signs of which Python's tables and the engine's are equally old.
LETTERS = st.characters(
    codec="utf-8", exclude_categories=("Cs", "Cn", "Co"), max_codepoint=0x1F9FF, exclude_characters="\x00"
)
TYPED = [
    ("Đặng Thị Hồng", "dang hong"),
    ("ISPARTA'da ısrar", "israr isparta"),
    ("Łódź i Øresund", "lodz oresund"),
    ("die Straße, GROẞ", "STRASSE gross"),
    ("Ærø og Þórshöfn", "aero thorshofn"),
    ("ὈΔΥΣΣΕΎΣ", "οδυσσευς"),
    ("مُحَمَّد", "محمد"),
    ("שָׁלוֹם", "שלום"),
    ("co\u00adoperate", "cooperate"),
    ("well done 👍🏽", "👍"),
    ("happy birthday🎂🎉", "🎉"),
    ("I ❤️ tea", "❤"),
    ("mission 👩‍🚀", "🚀"),
    ("made in 🇩🇪", "🇩🇪"),
    ("ﬁne Ⅷ", "fine viii"),
]


@settings(max_examples=share(150, 5000), deadline=None)
@given(st.text(LETTERS, max_size=40))
@example("Rust言語2 が\u3099 नमस्ते ไทย 한국 x\u200dy a\u200bb ─── ⠿ \ufffd 20°C ½ ǅ ŉ ẞ İ ı")
def test_the_engine_and_unicode_agree(text: str) -> None:
    assert text_words(text) == plain_words.text_words(text)
    assert question_words(text) == plain_words.question_words(text)


def test_every_letter_alone_and_among_others() -> None:
    wrong = []
    for code in range(0x80, 0x1FA00):
        c = chr(code)
        if unicodedata.category(c) in ("Cs", "Cn", "Co"):
            continue
        text = f"x{c}y {c}"
        if text_words(text) != plain_words.text_words(text):
            wrong.append((hex(code), unicodedata.name(c, ""), text_words(text), plain_words.text_words(text)))
    assert wrong == []


@pytest.mark.parametrize(("written", "typed"), TYPED)
def test_what_is_typed_finds_what_was_written(store: ChronoStore, written: str, typed: str) -> None:
    store.upsert(ChronoRecord(id="R", label=written))
    store.upsert(ChronoRecord(id="S", label="something else"))
    for question in (typed, written):
        (hit,) = store.search(question, explain=True)
        assert hit.id == "R"
        assert hit.why is not None and set(hit.why["words"]) >= set(plain_words.question_words(typed))


def test_pictures_that_are_not_there_find_nothing(store: ChronoStore) -> None:
    store.upsert(ChronoRecord(id="R", label="well done 👍"))
    assert store.search("👎") == []
    assert store.search("─────") == []
