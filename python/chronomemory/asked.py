"""Is what a caller asks with of the kind that a question takes?

Hints tell a type checker; these tell everyone else, by the name of the field, before anything is looked
at or written.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isnan
from numbers import Integral, Real

import numpy as np

from chronomemory.errors import InvalidRecord

__all__ = ["LAST_SEQ", "count", "flag", "number", "refuse", "string", "string_or_none", "strings"]

#: The greatest whole number that the engine counts to.
LAST_SEQ = 2**63 - 1


def refuse(reason: str, field: str) -> InvalidRecord:
    """Say which field is refused, and why."""
    return InvalidRecord(f"{field}: {reason}", field=field, recovery="Correct the value and write it again.")


def string(field: str, given: object) -> str:
    """Take a string that UTF-8 can carry."""
    if not isinstance(given, str):
        raise refuse(f"a {type(given).__name__} is not a string", field)
    try:
        given.encode()
    except UnicodeEncodeError as error:
        raise refuse(f"the character at {error.start} is half of a surrogate pair", field) from None
    return given


def string_or_none(field: str, given: object) -> str | None:
    """Take the same, or None."""
    return None if given is None else string(field, given)


def strings(field: str, given: object) -> list[str]:
    """Take strings, of which one alone stands for itself."""
    if isinstance(given, str):
        return [string(field, given)]
    if not isinstance(given, Iterable):
        raise refuse(f"a {type(given).__name__} is not a list of strings", field)
    many = list(given)
    try:
        # All at once: a million ids would take a sixth of a second one by one.
        "".join(many).encode()
    except (TypeError, UnicodeEncodeError):
        return [string(field, one) for one in many]
    return many


def number(field: str, given: object) -> float:
    """Take a number; not a number is none."""
    if isinstance(given, bool) or not isinstance(given, Real):
        raise refuse(f"a {type(given).__name__} is not a number", field)
    try:
        value = float(given)
    except OverflowError as error:
        raise refuse("it is too large", field) from error
    if isnan(value):
        raise refuse("it is not a number", field)
    return value


def count(field: str, given: object) -> int:
    """Take a whole number from zero on."""
    if isinstance(given, bool) or not isinstance(given, Integral) or not 0 <= int(given) <= LAST_SEQ:
        raise refuse(f"{str(given)[:40]} is no number of records", field)
    return int(given)


def flag(field: str, given: object) -> bool:
    """Take yes or no."""
    if not isinstance(given, bool | np.bool_):
        raise refuse(f"a {type(given).__name__} is neither True nor False", field)
    return bool(given)
