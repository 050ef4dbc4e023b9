"""Which values are let in? What a score or the log could not bear is refused at the door, by name."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from enum import Enum
from typing import TypeVar

from chronomemory.asked import refuse, string

__all__ = [
    "check_budget",
    "check_count",
    "check_finite",
    "check_list",
    "check_one_of",
    "check_tag",
    "check_text",
    "check_within",
    "one_by_one",
]

#: More than any model reads; the engine counts no further than this without losing ones.
_MOST_TOKENS = 2**53

E = TypeVar("E", bound=Enum)


def check_finite(name: str, value: float, *, least: float = -math.inf) -> float:
    """Return a number that the log may carry, or refuse it."""
    try:
        is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)  # those of NumPy too
        number = float(value) if is_number else math.nan
    except OverflowError:  # a whole number beyond all floats
        number = math.inf
    if not math.isfinite(number) or number < least:
        at_least = "" if least == -math.inf else f" of at least {least:g}"
        raise refuse(f"{value!r} is not a finite number{at_least}", name)
    return number


def check_within(name: str, value: float, least: float = 0.0, most: float = 1.0) -> float:
    """Return a number between two others, or refuse it."""
    number = check_finite(name, value)
    if not least <= number <= most:
        raise refuse(f"{value!r} is not within {least:g} and {most:g}", name)
    return number


def check_count(name: str, value: int, least: int, most: int | None = None) -> int:
    """Return a whole number that is not too small and not too large, or refuse it."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise refuse(f"{value!r} is not a whole number", name)
    value = int(value)
    if value < least or (most is not None and value > most):
        reach = f"at least {least}" if most is None else f"within {least} and {most:,}"
        raise refuse(f"{value} is not {reach}", name)
    return value


def check_budget(tokens: int) -> int:
    """Return how many tokens a frame may have, or refuse it."""
    return check_count("token_budget", tokens, 0, _MOST_TOKENS)


def check_text(name: str, value: str, *, empty: bool = True) -> str:
    """Return a text that can be written down, or refuse it."""
    text = string(name, value)
    if not empty and not text:
        raise refuse("it must not be empty", name)
    return text


def check_tag(tag: str) -> str:
    """Return a tag, or refuse what is none."""
    return check_text("tags", tag, empty=False)


def check_list(name: str, values: Iterable[str]) -> list[str]:
    """Return several texts; a lone one is refused, since it would be taken apart into its letters."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise refuse(f"a list is needed, not {values!r}", name)
    return [check_text(name, value) for value in values]


def one_by_one(ids: Iterable[str], name: str = "ids") -> list[str]:
    """Return ids each once, in order."""
    return list(dict.fromkeys(check_list(name, ids)))


def check_one_of(name: str, value: str, choices: type[E]) -> E:
    """Return what a word stands for, or refuse it and say which ones there are."""
    try:
        return choices(value)
    except ValueError:
        known = ", ".join(str(item.value) for item in choices)
        raise refuse(f"{value!r} is not one of {known}", name) from None
