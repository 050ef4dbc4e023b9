"""Texts of others are shown so that they steer nothing, and end where a word does."""

from __future__ import annotations

import pytest
from chronomemory.drawing.page import clean, distinct, excerpt, label_lines
from pictures import HOSTILE


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_clean_text_can_be_written_and_turns_nothing(text: str) -> None:
    made = clean(text)
    made.encode("utf-8")
    assert not set(made) & set("\x00\x01\x1b\x7f\x85\r\u2028\u2029\u202e\u2067\ufffe\ud800")
    assert len(made) == len(text)


def test_marks_of_direction_and_joined_signs_stay() -> None:
    text = "שלום\u200f, 👩\u200d🚀\n\tnext"
    assert clean(text) == text


def test_an_excerpt_ends_behind_a_word_and_says_what_is_missing() -> None:
    assert excerpt("short") == "short"
    assert excerpt("alpha beta gamma", 12) == "alpha beta … (6 more characters)"
    assert excerpt("alpha beta gamma", 10) == "alpha beta … (6 more characters)"
    long = excerpt("x" * 10_000)
    assert long.startswith("x" * 4_000 + " …")
    assert long.endswith("(6,000 more characters)")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("Ice", ["Ice"]),
        ("The customer of Friday", ["The customer of", "Friday"]),
        (
            "one two three four five six seven eight nine ten eleven twelve thirteen",
            ["one two three four", "five six seven eight", "nine ten eleven…"],
        ),
        ("block:2026-11-16/payment-service", ["block:2026-11-16/", "payment-service"]),
        ("Donaudampfschifffahrtsgesell", ["Donaudampfschifffahrtsgesell"]),
        ("x" * 10_000, ["x" * 19 + "…"]),
        ("記憶は一本の鎖であり誰も書き換えられない", ["記憶は一本の鎖であり", "誰も書き換えられない"]),
    ],
)  # fmt: skip
def test_labels_are_wrapped_and_never_cut_within_a_word(text: str, lines: list[str]) -> None:
    assert label_lines(text) == lines


def test_every_word_of_a_label_is_a_word_of_its_text() -> None:
    text = "certificates of the payment service ran out on Friday evening, before anybody had renewed them"
    words = " ".join(label_lines(text)).removesuffix("…").split()
    assert text.split()[: len(words)] == words
    assert all(len(line) <= 21 for line in label_lines(text))


def test_two_names_never_become_one() -> None:
    names = distinct(["a\x00", "a␀", "a\ufffd", "a\ud800", "b"])
    assert len(set(names.values())) == 5
    assert names["a␀"] == "a␀"
    assert names["b"] == "b"
