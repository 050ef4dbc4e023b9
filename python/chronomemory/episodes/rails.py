"""Says an expression of SQL as a where of this house, by two rails: where it is true, and where it is false.

SQL has three answers, a where has two. Of each expression two wheres are made; what neither lets through is
unknown. NOT changes from one rail to the other, so the size stays linear. SQLite's order of types is kept:
numbers, booleans among them as 0 and 1, come before all text. Arrays and objects are text there, as canonical
JSON, and a pattern is asked of numbers as they are printed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

Where: TypeAlias = dict[str, Any]
Value: TypeAlias = str | int | float | None

#: Holds for nothing.
NEVER: Where = {"or": []}

_TYPES = ["number", "string", "bool", "array", "object"]
#: What is text to SQLite.
_TEXTS = ["string", "array", "object"]
#: Only a text that begins so can be that of an array or an object.
_OPENING = ("[", "{")
_ORDER = {"<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "<>", "<>": "="}


@dataclass(frozen=True)
class Place:
    """A field of a record; ``spell`` says how a text of SQL stands in it."""

    path: tuple[str, ...]
    spell: Callable[[str], str] = str
    #: Whether anything may stand there, and not only text.
    is_free: bool = False

    def test(self, **operators: Any) -> Where:
        """Return a where that asks this field."""
        return {"path": list(self.path), **operators}


@dataclass(frozen=True)
class Compared:
    """A field and a value: ``= <> < <= > >=``."""

    place: Place
    op: str
    value: Value


@dataclass(frozen=True)
class Is:
    """One of several values."""

    place: Place
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Like:
    """A pattern, in which a backslash escapes."""

    place: Place
    pattern: str


@dataclass(frozen=True)
class Null:
    """Whether there is nothing."""

    place: Place


@dataclass(frozen=True)
class Not:
    """The opposite; unknown stays unknown."""

    of: Expression


@dataclass(frozen=True)
class Both:
    """All of these."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True)
class Either:
    """Any of these."""

    parts: tuple[Expression, ...]


Expression: TypeAlias = Compared | Is | Like | Null | Not | Both | Either


def where_true(node: Expression) -> Where:
    """Return the where that holds exactly where an expression is true.

    >>> where_true(Not(Null(Place(("data", "content")))))
    {'path': ['data', 'content'], 'type': ['number', 'string', 'bool', 'array', 'object']}
    """
    match node:
        case Not(of):
            return _where_false(of)
        case Both(parts):
            return {"and": [where_true(part) for part in parts]}
        case Either(parts):
            return {"or": [where_true(part) for part in parts]}
        case Null(place):
            return {"not": place.test(type=_TYPES)}
        case Is(place, values):
            return {"or": [_equal(place, value) for value in values]}
        case Like(place, pattern):
            return _like(place, pattern)
        case Compared(place, op, value):
            return _compared(place, op, value)


def _where_false(node: Expression) -> Where:
    match node:
        case Not(of):
            return where_true(of)
        case Both(parts):
            return {"or": [_where_false(part) for part in parts]}
        case Either(parts):
            return {"and": [_where_false(part) for part in parts]}
        case Null(place):
            return place.test(type=_TYPES)
        case Is(place, values):
            if None in values:
                return NEVER
            return {"and": [_compared(place, "<>", value) for value in values]}
        case Like(place, pattern):
            return {"and": [place.test(type=_TYPES), {"not": _like(place, pattern)}]}
        case Compared(place, op, value):
            return _compared(place, _OPPOSITE[op], value)


def _compared(place: Place, op: str, value: Value) -> Where:
    if value is None:
        return NEVER
    if op == "=":
        return _equal(place, value)
    if op == "<>":
        return {"and": [place.test(type=_TYPES), {"not": _equal(place, value)}]}
    if isinstance(value, str):
        own = _of_text(place, **{_ORDER[op]: place.spell(value)})
        return {"or": [own, place.test(type=["number", "bool"])]} if "<" in op else own
    holds: dict[str, Callable[[int], bool]] = {
        "<": lambda truth: truth < value,
        "<=": lambda truth: truth <= value,
        ">": lambda truth: truth > value,
        ">=": lambda truth: truth >= value,
    }
    ways = [place.test(**{_ORDER[op]: value})]
    if booleans := [truth for truth in (False, True) if holds[op](int(truth))]:
        ways.append(place.test(**{"in": booleans}))
    if ">" in op:
        ways.append(place.test(type=_TEXTS))
    return {"or": ways}


def _like(place: Place, pattern: str) -> Where:
    return place.test(text={"like": pattern}) if place.is_free else place.test(like=pattern)


def _of_text(place: Place, **operator: str) -> Where:
    """Return a where that asks what is text to SQLite."""
    return place.test(type=_TEXTS, text=operator) if place.is_free else place.test(**operator)


def _equal(place: Place, value: Value) -> Where:
    if value is None:
        return NEVER
    if isinstance(value, str):
        spelled = place.spell(value)
        # An index answers this one, so it stays as plain as it can be.
        return _of_text(place, eq=spelled) if spelled.startswith(_OPENING) else place.test(eq=spelled)
    if value in (0, 1):
        return place.test(**{"in": [value, bool(value)]})
    return place.test(eq=value)
