"""Refused arguments name the argument, what it must be, and what was given."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np
import pytest
from chronomemory import InvalidArgument
from chronomemory.face import arguments


class Colour(str, Enum):
    RED = "red"
    BLUE = "blue"


REFUSED: list[tuple[str, Callable[[], Any]]] = [
    ("k must be at least 0, got -1", lambda: arguments.count("k", -1)),
    ("k must be at least 1, got 0", lambda: arguments.count("k", np.int64(0), 1)),
    ("k must be at most 5, got 6", lambda: arguments.count("k", 6, 0, 5)),
    ("k must be at most 9223372036854775807, got 9223372036854775808", lambda: arguments.count("k", 2**63)),
    (
        "k must be at most 9223372036854775807, got a number that is too long to show",
        lambda: arguments.count("k", 10**5000),
    ),
    ("k must be a whole number, got 1.5", lambda: arguments.count("k", 1.5)),
    ("k must be a whole number, got True", lambda: arguments.count("k", True)),
    ("k must be a whole number, got None", lambda: arguments.count("k", None)),
    ("k must be a whole number, got list", lambda: arguments.count("k", [1] * 1000)),
    ("x must be a number, got 'one'", lambda: arguments.number("x", "one")),
    ("x must be a number, got nan", lambda: arguments.number("x", np.float32("nan"))),
    ("x must fit a float, got a number that is too long to show", lambda: arguments.number("x", 10**400)),
    ("x must be a finite number, got inf", lambda: arguments.finite("x", float("inf"))),
    ("x must be a finite number, got '1'", lambda: arguments.finite("x", "1")),
    ("x must be at least 0, got -0.5", lambda: arguments.finite("x", -0.5, least=0.0)),
    ("x must be from 0 to 1, got 1.5", lambda: arguments.within("x", 1.5)),
    ("on must be True or False, got 1", lambda: arguments.flag("on", 1)),
    ("f must be a function, got 'f'", lambda: arguments.function("f", "f")),  # type: ignore[type-var]
    ("name must be a string, got 3", lambda: arguments.string("name", 3)),
    ("name must be a string, got b'x'", lambda: arguments.string("name", b"x")),
    ("name must not be empty, got ''", lambda: arguments.string("name", "", empty=False)),
    ("name: the character at 1 is half of a surrogate pair", lambda: arguments.string("name", "a\ud800")),
    ("tags must be a list of strings, got 'tag'", lambda: arguments.string_list("tags", "tag")),
    ("tags must be a list of strings, got 3", lambda: arguments.strings("tags", 3)),
    ("tags must be a string, got None", lambda: arguments.strings("tags", ["a", None])),
    ("tags must not be empty, got ''", lambda: arguments.unique_strings("tags", ["a", ""], empty=False)),
    ("colour must be one of red, blue, got 'green'", lambda: arguments.one_of("colour", "green", Colour)),
    ("colour must be one of red, blue, got list", lambda: arguments.one_of("colour", ["red"], Colour)),
]


@pytest.mark.parametrize(("message", "ask"), REFUSED, ids=[message for message, _ in REFUSED])
def test_the_message_is_plain(message: str, ask: Callable[[], Any]) -> None:
    with pytest.raises(InvalidArgument) as refused:
        ask()
    assert str(refused.value) == message
    assert refused.value.field == message.split()[0].rstrip(":")
    assert refused.value.recovery


def test_a_long_value_is_cut() -> None:
    assert len(str(arguments.must("name", "be short", "x" * 1_000_000))) < 100


def test_what_is_right_comes_back_as_plain_python() -> None:
    assert arguments.count("k", np.int32(3)) == 3
    assert type(arguments.count("k", np.int32(3))) is int
    assert arguments.count("k", 2**70, most=None) == 2**70
    assert arguments.number("x", float("inf")) == float("inf")
    assert type(arguments.finite("x", np.float32(0.5))) is float
    assert arguments.within("x", 1) == 1.0
    assert arguments.flag("on", np.bool_(True)) is True
    assert arguments.strings("kind", "fact") == ["fact"]
    assert arguments.unique_strings("ids", ("b", "a", "b")) == ["b", "a"]
    assert arguments.one_of("colour", "red", Colour) is Colour.RED
