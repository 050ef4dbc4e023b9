"""Is what a caller asks with of the kind that a question takes?

Hints tell a type checker; these tell everyone else, by the name of the field, before anything is looked
at or written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from math import isnan
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from chronomemory.errors import InvalidRecord

__all__ = [
    "LAST_SEQ",
    "Floats",
    "count",
    "flag",
    "floats",
    "function",
    "number",
    "refuse",
    "string",
    "string_or_none",
    "strings",
]

Floats = npt.NDArray[np.float32]
_Function = TypeVar("_Function", bound=Callable[..., Any])

#: The greatest whole number that the engine counts to.
LAST_SEQ = 2**63 - 1
#: What an array of numbers may be made of.
_NUMBERS = "fiu"


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
    if isinstance(given, bool) or not isinstance(given, Integral):
        raise refuse(f"a {type(given).__name__} is not a whole number", field)
    if int(given) > LAST_SEQ:
        # Not shown: Python spells no number of more than 4,300 digits.
        raise refuse("it is too large", field)
    if int(given) < 0:
        raise refuse("it is below zero", field)
    return int(given)


def flag(field: str, given: object) -> bool:
    """Take yes or no."""
    if not isinstance(given, bool | np.bool_):
        raise refuse(f"a {type(given).__name__} is neither True nor False", field)
    return bool(given)


def function(field: str, given: _Function) -> _Function:
    """Take what can be called."""
    if not callable(given):
        raise refuse(f"a {type(given).__name__} is not a function", field)
    return given


def floats(field: str, given: object, dimensions: tuple[int, ...]) -> Floats:
    """Take numbers as an array that the engine can read where it lies; none may become infinite by that."""
    array = _array(field, given)
    if array.dtype.kind not in _NUMBERS:
        raise refuse(f"an array of {array.dtype} holds no numbers", field)
    if array.ndim not in dimensions:
        raise refuse(f"{array.ndim} dimensions are not {' or '.join(map(str, dimensions))}", field)
    with np.errstate(over="ignore"):
        rows: Floats = np.require(array, np.float32, ["C_CONTIGUOUS", "ALIGNED"])
    if rows is not array and not np.array_equal(np.isfinite(array), np.isfinite(rows)):
        raise refuse("a number is too large for float32", field)
    return rows


def _array(field: str, given: object) -> npt.NDArray[Any]:
    _refuse_masked(field, given)
    try:
        array = np.asarray(given)
        if array.dtype == object and array.ndim > 0:
            # As NumPy reads a list of the same: whole numbers, or the rows that a table keeps in a column.
            _refuse_masked(field, listed := array.tolist())
            array = np.asarray(listed)
        if array.dtype != object:
            return array
        for one in array.flat:
            # NumPy would cast these too, but None to "not a number" and a text to what it spells.
            if isinstance(one, bool) or not isinstance(one, Real | Decimal):
                raise refuse(f"a {type(one).__name__} is not a number", field)
        return array.astype(np.float64)
    except InvalidRecord:
        raise
    except (OverflowError, ValueError) as error:
        raise refuse(f"not an array of numbers: {error}", field) from error


def _refuse_masked(field: str, given: object) -> None:
    """Masks are lost in an array of another kind, and what they hide would pass for numbers."""
    for one in given if isinstance(given, list | tuple) else (given,):
        if isinstance(one, np.ma.MaskedArray) and np.ma.is_masked(one):
            raise refuse("some of the numbers are masked", field)
