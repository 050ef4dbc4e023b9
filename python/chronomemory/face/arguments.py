"""Validates the arguments of public calls; each function takes a name and a value, and returns the value."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from enum import Enum
from functools import wraps
from numbers import Integral, Real
from pathlib import Path
from types import FunctionType, TracebackType
from typing import Any, TypeGuard, TypeVar, cast

from chronomemory.errors import InvalidArgument, InvalidRecord
from chronomemory.numpy_later import Floats, np, npt

_Function = TypeVar("_Function", bound=Callable[..., Any])
_One = TypeVar("_One")
_Choice = TypeVar("_Choice", bound=Enum)
_Base = TypeVar("_Base", bound=type)

#: Characters that no name may have: controls, line separators, and marks that reverse the direction of text.
HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
LAST_SEQ = 2**63 - 1
_NUMBERS = "fiu"
_SHOWN_LETTERS = 60


def public_names(base: _Base) -> _Base:
    """Name the methods of a base class in errors as callers do, without the name of the base class.

    >>> @public_names
    ... class Internal:
    ...     def recall(self): ...
    >>> Internal().recall(5)
    Traceback (most recent call last):
    TypeError: recall() takes 1 positional argument but 2 were given
    """
    for name, method in vars(base).items():
        if isinstance(method, FunctionType) and not name.startswith("_"):
            method.__qualname__ = name
    return base


def refuse(reason: str, field: str) -> InvalidArgument:
    """Say which field is refused, and why."""
    return InvalidArgument(f"{field}: {reason}", field=field)


def must(field: str, need: str, given: object) -> InvalidArgument:
    """Say what a field must be or have, and what was given.

    >>> print(must("k", "be at least 0", -1))
    k must be at least 0, got -1
    """
    return InvalidArgument(f"{field} must {need}, got {_shown(given)}", field=field)


class _Contents:
    """Says of what is refused within that it was to become part of a record."""

    def __call__(self, function: _Function) -> _Function:
        # Every record that is made passes here: ``try`` costs nothing while nothing is refused.
        @wraps(function)
        def within_contents(*given: Any, **named: Any) -> Any:
            try:
                return function(*given, **named)
            except InvalidArgument as error:
                self.__exit__(type(error), error, None)
                raise

        return cast("_Function", within_contents)

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is InvalidArgument and isinstance(error, InvalidArgument):
            raise InvalidRecord(str(error), field=error.field, path=error.path) from error.__cause__


#: ``with contents:`` around the check of a value, or ``@contents`` on what makes a record of its arguments.
contents = _Contents()


def _shown(given: object) -> str:
    """Return a value if it can be shown in a line, else what kind of thing it is."""
    if isinstance(given, Integral) and abs(int(given)) > 10**_SHOWN_LETTERS:
        return "a number that is too long to show"  # Python spells none of more than 4,300 digits
    if given is None or isinstance(given, str | bytes | Real):
        spelled = repr(given.item() if isinstance(given, np.generic) else given)
        return spelled if len(spelled) <= _SHOWN_LETTERS else spelled[: _SHOWN_LETTERS - 1] + "…"
    return type(given).__name__


def string(field: str, given: object, *, empty: bool = True) -> str:
    """Take a string that UTF-8 can carry; with ``empty=False`` there must be something in it."""
    if not isinstance(given, str):
        raise must(field, "be a string", given)
    try:
        given.encode()
    except UnicodeEncodeError as error:
        raise refuse(f"the character at {error.start} is half of a surrogate pair", field) from None
    if not empty and not given:
        raise must(field, "not be empty", given)
    return given


def log_reason(field: str, given: object, *, empty: bool = False) -> str:
    """Take a reason that stays in the log: one line, and empty only with ``empty``."""
    reason = string(field, given)
    if hidden := HIDDEN.search(reason):
        raise refuse(f"the character U+{ord(hidden[0]):04X} at {hidden.start()} cannot be seen", field)
    if not reason.strip() and (reason or not empty):
        raise must(field, "say why: it stays in the log", reason)
    return reason


def string_or_none(field: str, given: object) -> str | None:
    return None if given is None else string(field, given)


def strings(field: str, given: object) -> list[str]:
    """Take strings, of which one alone stands for itself."""
    if isinstance(given, str):
        return [string(field, given)]
    if not isinstance(given, Iterable):
        raise must(field, "be a list of strings", given)
    many = list(given)
    try:
        # All at once: a million ids would take a sixth of a second one by one.
        "".join(many).encode()
    except (TypeError, UnicodeEncodeError):
        return [string(field, one) for one in many]
    return many


def string_list(field: str, given: object, *, empty: bool = True) -> list[str]:
    """Take several strings; a lone one is refused, since it would be taken apart into its letters."""
    if type(given) is list:
        return [string(field, one, empty=empty) for one in given]
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise must(field, "be a list of strings", given)
    return [string(field, one, empty=empty) for one in given]


def unique_strings(field: str, given: object, *, empty: bool = True) -> list[str]:
    return list(dict.fromkeys(string_list(field, given, empty=empty)))


def one_of(field: str, given: object, choices: type[_Choice]) -> _Choice:
    try:
        return choices(given)
    except ValueError:
        known = ", ".join(str(choice.value) for choice in choices)
        raise must(field, f"be one of {known}", given) from None


def word(field: str, given: str, known: tuple[str, ...]) -> str:
    if given not in known:
        raise must(field, f"be one of {', '.join(known)}", given)
    return given


def _is_number(given: object) -> TypeGuard[float]:
    return type(given) in (float, int) or (isinstance(given, Real) and not isinstance(given, bool))


def number(field: str, given: object) -> float:
    """Take a number, an infinite one too; not a number is none."""
    if not _is_number(given):
        raise must(field, "be a number", given)
    try:
        value = float(given)
    except OverflowError as error:
        raise must(field, "fit a float", given) from error
    if math.isnan(value):
        raise must(field, "be a number", given)
    return value


def finite(field: str, given: object, *, least: float = -math.inf) -> float:
    """Take a number that JSON can carry."""
    try:
        # Most are floats, and every record that is made passes here.
        value = given if type(given) is float else float(given) if _is_number(given) else math.nan
    except OverflowError:  # a whole number beyond all floats
        value = math.inf
    if not math.isfinite(value):
        raise must(field, "be a finite number", given)
    if value < least:
        raise must(field, f"be at least {least:g}", given)
    return value


def within(field: str, given: object, least: float = 0.0, most: float = 1.0) -> float:
    value = finite(field, given)
    if not least <= value <= most:
        raise must(field, f"be from {least:g} to {most:g}", given)
    return value


def count(field: str, given: object, least: int = 0, most: int | None = LAST_SEQ) -> int:
    if type(given) is not int and (isinstance(given, bool) or not isinstance(given, Integral)):
        raise must(field, "be a whole number", given)
    value = int(given)
    if value < least:
        raise must(field, f"be at least {least}", value)
    if most is not None and value > most:
        raise must(field, f"be at most {most}", value)
    return value


def flag(field: str, given: object) -> bool:
    if not isinstance(given, bool) and not isinstance(given, np.bool_):
        raise must(field, "be True or False", given)
    return bool(given)


def function(field: str, given: _Function) -> _Function:
    if not callable(given):
        raise must(field, "be a function", given)
    return given


def function_or_none(field: str, given: _Function | None) -> _Function | None:
    return None if given is None else function(field, given)


def many(field: str, given: Iterable[_One]) -> Iterable[_One]:
    """Take what can be gone through, as it is: it may be larger than the memory."""
    if not isinstance(given, Iterable) and not hasattr(given, "__getitem__"):
        raise must(field, "be a list", given)
    return given


def path(field: str, given: str | os.PathLike[str]) -> Path:
    try:
        return Path(given)
    except TypeError:
        raise must(field, "be a path", given) from None


def absolute(field: str, given: str | os.PathLike[str]) -> Path:
    """Take a place on the disk, seen from here; a link on the way is not followed."""
    return Path(os.path.normpath(path(field, given).absolute()))


def floats(field: str, given: object, dimensions: tuple[int, ...]) -> Floats:
    """Take numbers as an array that the engine can read where it lies; none may become infinite by that."""
    if type(given) is np.ndarray and given.dtype == np.float32 and given.ndim in dimensions:
        flags = given.flags
        if flags.c_contiguous and flags.aligned:
            return given
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
    except InvalidArgument:
        raise
    except (OverflowError, ValueError) as error:
        raise refuse(f"not an array of numbers: {error}", field) from error


def _refuse_masked(field: str, given: object) -> None:
    """Masks are lost in an array of another kind, and what they hide would pass for numbers."""
    for one in given if isinstance(given, list | tuple) else (given,):
        if isinstance(one, np.ma.MaskedArray) and np.ma.is_masked(one):
            raise refuse("some of the numbers are masked", field)
