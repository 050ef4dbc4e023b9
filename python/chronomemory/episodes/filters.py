"""Reads a ``when_filter``, the WHERE of an SQL statement, as a where for the engine.

Only comparisons of columns with values, ``AND OR NOT IN LIKE BETWEEN IS NULL``, parentheses and fields of
``metadata`` are accepted. SQL has three answers, a where has two: of each expression one where says where it
is true, one where it is false. Types are ordered as in SQLite.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, NamedTuple, TypeAlias

from chronomemory.episodes.errors import ConsolidationRuleError
from chronomemory.episodes.ids import episode_key
from chronomemory.episodes.memory import utc_text
from chronomemory.errors import InvalidArgument
from chronomemory.face.moments import parse_instant

try:
    from sqlglot import exp, parse_one
    from sqlglot.dialects.sqlite import SQLite
    from sqlglot.errors import SqlglotError
except ImportError as error:  # pragma: no cover (the tests have it)
    raise ImportError("a when_filter needs sqlglot: pip install 'chronomemory-rs[episodes]'") from error

Where: TypeAlias = dict[str, Any]
Value: TypeAlias = str | int | float | None

NEVER: Where = {"or": []}

_TYPES = ["number", "string", "bool", "array", "object"]
_TEXTS = ["string", "array", "object"]
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
        return {"path": list(self.path), **operators}


class Rails(NamedTuple):
    """Where an expression is true, and where it is false; it is unknown where neither holds.

    >>> _negated(_null(Place(("data", "content")))).true
    {'path': ['data', 'content'], 'type': ['number', 'string', 'bool', 'array', 'object']}
    """

    true: Where
    false: Where


def _negated(one: Rails) -> Rails:
    return Rails(one.false, one.true)


def _both(parts: Sequence[Rails]) -> Rails:
    return Rails({"and": [part.true for part in parts]}, {"or": [part.false for part in parts]})


def _null(place: Place) -> Rails:
    return Rails({"not": place.test(type=_TYPES)}, place.test(type=_TYPES))


def _like(place: Place, pattern: str) -> Rails:
    holds = place.test(text={"like": pattern}) if place.is_free else place.test(like=pattern)
    return Rails(holds, {"and": [place.test(type=_TYPES), {"not": holds}]})


def _comparison(place: Place, op: str, value: Value) -> Rails:
    return Rails(_compared(place, op, value), _compared(place, _OPPOSITE[op], value))


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


def _of_text(place: Place, **operator: str) -> Where:
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


#: More than this is no filter written by hand.
_MOST_LETTERS, _MOST_TOKENS, _DEEPEST = 65_536, 4_096, 24
_SHOWN_LETTERS = 80
#: SQLite keeps larger numbers as something else.
_LEAST_INTEGER, _MOST_INTEGER = -(2**63), 2**63 - 1

_SCOPE = ("data", "@scope")
_METADATA = ("data", "metadata")
_DATE = re.compile(r"\d{4}(-\d\d(-\d\d)?)?")
_OPERATORS: dict[type[Any], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_PAIR = frozenset({"this", "expression"})
#: What each kind of node may hold: whatever else a parser finds to say of it would be lost.
_HELD: dict[type[Any], frozenset[str]] = {
    **dict.fromkeys((*_OPERATORS, exp.And, exp.Or, exp.Is, exp.Escape), _PAIR),
    **dict.fromkeys((exp.Paren, exp.Not), frozenset({"this"})),
    exp.In: frozenset({"this", "expressions"}),
    exp.Between: frozenset({"this", "low", "high"}),
    exp.Like: _PAIR | {"negate"},
}
_TURNED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NO_VALUE = object()
#: Names, plain or between quotes: of anything else the parser and SQLite make different things.
_PATH = re.compile(r"""\$(\.(\w+|"[^"\\]*"))+""")


def where_of(rule_id: str, text: str, columns: Collection[str] = ()) -> dict[str, Any]:
    """Return a filter as a where; ``columns`` are those that were added to the episodes.

    >>> where_of("r", "user = 'ann'")
    {'path': ['data', '@scope', 'user'], 'eq': 'ann'}
    """
    return _Reader(rule_id, columns).read(text).true


class _Reader:
    """Takes a fragment apart."""

    def __init__(self, rule_id: str, columns: Collection[str]) -> None:
        self._rule_id = rule_id
        self._places = {
            "id": Place(("id",), episode_key),
            "user": Place((*_SCOPE, "user")),
            "session": Place((*_SCOPE, "session")),
            "agent": Place((*_SCOPE, "agent")),
            "source_node": Place(("data", "source_node")),
            "content": Place(("data", "content")),
            "scope_key": Place(("data", "scope_key")),
            "timestamp": Place(("data", "time"), self._moment),
        }
        self._added = frozenset(columns)

    def read(self, text: str) -> Rails:
        if len(text) > _MOST_LETTERS:
            raise self._refused(f"more than {_MOST_LETTERS:,} characters")
        try:
            self._check_tokens(text)
            return self._expression(parse_one(text, into=exp.Condition, dialect=_dialect()), 0)
        except SqlglotError:
            shown = text if len(text) <= _SHOWN_LETTERS else f"{text[: _SHOWN_LETTERS - 1]}…"
            raise self._refused(f"this is no condition of SQL: {shown!r}") from None
        except RecursionError:
            raise self._refused("nested too deeply") from None

    def _refused(self, violation: str) -> ConsolidationRuleError:
        return ConsolidationRuleError(rule_id=self._rule_id, violation=f"when_filter: {violation}")

    def _check_tokens(self, text: str) -> None:
        """Refuse what an expression does not show: comments are no part of it, and a ; ends it."""
        if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
            raise self._refused("a character that no text can have")
        tokens = SQLite().tokenize(text)
        if len(tokens) > _MOST_TOKENS:
            raise self._refused(f"more than {_MOST_TOKENS:,} words")
        behind = 0
        for at, token in enumerate(tokens):
            if token.text.lower() == "json_extract":
                path = "".join(each.text for each in tokens[at + 4 : at + 5])
                if not _PATH.fullmatch(path):  # the parser would read it otherwise than SQLite does
                    shown = path[:_SHOWN_LETTERS]
                    raise self._refused(f'the path {shown!r} is not taken; write $.name, or $."a name"')
            if text[behind : token.start].strip() or token.comments:
                raise self._refused("comments are not taken")
            if token.text in (";", "->", "->>", "::", "#>", "#>>"):
                raise self._refused(f"{token.text} is not taken")
            behind = token.end + 1
        if text[behind:].strip():
            raise self._refused("comments are not taken")

    def _expression(self, node: Any, depth: int) -> Rails:
        if depth > _DEEPEST:
            raise self._refused(f"nested more than {_DEEPEST} deep")
        kind = type(node)
        self._check_held(node)
        if kind is exp.Paren:
            return self._expression(node.this, depth)
        if kind is exp.Not:
            return _negated(self._expression(node.this, depth))
        if kind in (exp.And, exp.Or):
            parts = [self._expression(part, depth + 1) for part in _joined(node, kind)]
            if kind is exp.And:
                return _both(parts)
            return Rails({"or": [part.true for part in parts]}, {"and": [part.false for part in parts]})
        if kind in _OPERATORS:
            return self._comparison(node, _OPERATORS[kind])
        if kind is exp.In:
            listed = node.args.get("expressions") or []
            if not listed:
                raise self._refused("IN takes a list of values")
            place = self._place(node.this)
            values = [self._operand(place, one) for one in listed]
            others: Where = {"and": [_compared(place, "<>", value) for value in values]}
            found: Where = {"or": [_equal(place, value) for value in values]}
            return Rails(found, NEVER if None in values else others)
        if kind is exp.Between:
            place, low, high = self._place(node.this), node.args["low"], node.args["high"]
            return _both([self._compared(place, ">=", low), self._compared(place, "<=", high)])
        if kind is exp.Is and type(node.expression) is exp.Null:
            is_whole = type(node.this) is exp.Column and _names(node.this) == ["metadata"]
            return _null(Place(_METADATA) if is_whole else self._place(node.this))
        if kind is exp.Like:
            return self._like(node, None)
        if kind is exp.Escape and type(node.this) is exp.Like:
            self._check_held(node.this)
            return self._like(node.this, self._text(node.expression, "ESCAPE"))
        raise self._refused(f"{_spelled(node)} is not taken")

    def _check_held(self, node: Any) -> None:
        held = {name for name, part in node.args.items() if part}
        if not held <= _HELD.get(type(node), frozenset()):
            raise self._refused(f"{_spelled(node)} is not taken")

    def _comparison(self, node: Any, op: str) -> Rails:
        left, right = node.this, node.expression
        if self._value(left) is not _NO_VALUE:
            left, right, op = right, left, _TURNED[op]
        return self._compared(self._place(left), op, right)

    def _compared(self, place: Place, op: str, node: Any) -> Rails:
        return _comparison(place, op, self._operand(place, node))

    def _like(self, node: Any, escape: str | None) -> Rails:
        place = self._place(node.this)
        if escape is not None and len(escape) != 1:
            raise self._refused("ESCAPE takes one character")
        pattern = self._pattern(self._text(node.expression, "LIKE"), escape)
        prefix = episode_key("") if place.path == ("id",) else ""
        like = _like(place, prefix + pattern)
        # Some versions of the parser say NOT LIKE as one.
        return _negated(like) if node.args.get("negate") else like

    def _pattern(self, given: str, escape: str | None) -> str:
        """Say a pattern with the backslash as what escapes; in SQL without ESCAPE it is a letter."""
        made, letters = [], iter(given)
        for letter in letters:
            if letter == escape:
                letter = next(letters, "")
                if not letter:
                    raise self._refused("LIKE: nothing follows what escapes")
                made.append(f"\\{letter}" if letter in "%_\\" else letter)
            else:
                made.append("\\\\" if letter == "\\" else letter)
        return "".join(made)

    def _place(self, node: Any) -> Place:
        path = None
        if type(node) is exp.Column:
            path = _names(node)
        elif type(node) is exp.Dot:
            path = _dotted(node)
        elif type(node) in (exp.JSONExtract, exp.JSONExtractScalar):
            path = _extracted(node)
        elif type(node) is exp.Paren:
            return self._place(node.this)
        if path is None:
            raise self._refused(f"a column was expected, not {_spelled(node)}")
        column = path[0].lower()
        if len(path) == 1 and column in self._places:
            return self._places[column]
        if len(path) == 1 and path[0] in self._added:
            return Place((*_METADATA, path[0]), is_free=True)
        if column == "metadata" and len(path) > 1:
            return Place((*_METADATA, *path[1:]), is_free=True)
        if column == "metadata":
            raise self._refused("metadata as a whole can only be asked with IS NULL; name a field of it")
        raise self._refused(f"no such column: {'.'.join(path)}")

    def _moment(self, text: str) -> str:
        if _DATE.fullmatch(text):
            return text
        try:
            moment: datetime = parse_instant("timestamp", text)
            return utc_text(moment.astimezone(timezone.utc))
        except (InvalidArgument, OverflowError):
            raise self._refused(
                f"timestamp: a date or a moment with its time zone was expected, got {text!r}"
            ) from None

    def _operand(self, place: Place, node: Any) -> Value:
        value = self._value(node)
        if value is _NO_VALUE:
            raise self._refused(f"a value was expected, not {_spelled(node)}")
        if not place.is_free and value is not None and not isinstance(value, str):
            raise self._refused(f"a column of text is compared with text, not with {_spelled(node)}")
        if isinstance(value, str):
            place.spell(value)
        return value  # type: ignore[return-value]

    def _value(self, node: Any) -> object:
        kind = type(node)
        if kind is exp.Paren:
            return self._value(node.this)
        if kind is exp.Null:
            return None
        if kind is exp.Boolean:
            return int(node.this)
        if kind is exp.Neg and type(node.this) is exp.Literal and not node.this.is_string:
            return self._number(f"-{node.this.this}")
        if kind is exp.Literal:
            return node.this if node.is_string else self._number(node.this)
        return _NO_VALUE

    def _number(self, text: str) -> int | float:
        try:
            number = int(text) if re.fullmatch(r"-?\d+", text) else float(text)
        except ValueError:
            raise self._refused(f"no number: {text[:40]}") from None
        if isinstance(number, int) and not _LEAST_INTEGER <= number <= _MOST_INTEGER:
            raise self._refused(f"a number beyond 64 bits: {text[:40]}")
        if not math.isfinite(number):
            raise self._refused(f"a number beyond all floats: {text[:40]}")
        return number

    def _text(self, node: Any, of: str) -> str:
        if type(node) is not exp.Literal or not node.is_string:
            raise self._refused(f"{of} takes a text")
        text: str = node.this
        return text


def _dialect() -> SQLite:
    """Return the dialect that is read, with a parser that does not write about paths of JSON to a log."""
    dialect = SQLite()
    dialect.STRICT_JSON_PATH_SYNTAX = False
    return dialect


def _joined(node: Any, kind: type[Any]) -> list[Any]:
    """Return what an AND or OR joins: ``a AND b AND c`` is one of three, however it was parsed."""
    parts, waiting = [], [node]
    while waiting:
        one = waiting.pop()
        if type(one) is kind:
            waiting += [one.expression, one.this]
        elif type(one) is exp.Paren and type(one.this) is kind:
            waiting.append(one.this)
        else:
            parts.append(one)
    return parts


def _names(column: Any) -> list[str] | None:
    parts = [column.args.get(level) for level in ("catalog", "db", "table", "this")]
    named = [part for part in parts if part is not None]
    return [part.this for part in named] if all(type(part) is exp.Identifier for part in named) else None


def _dotted(node: Any) -> list[str] | None:
    left = _dotted(node.this) if type(node.this) is exp.Dot else _names(node.this)
    is_name = type(node.expression) is exp.Identifier
    return None if left is None or not is_name else [*left, node.expression.this]


def _extracted(node: Any) -> list[str] | None:
    """Return the names that ``json_extract(metadata, '$.x')`` means; None for any other path."""
    path = node.expression
    if type(node.this) is not exp.Column or _names(node.this) != ["metadata"]:
        return None
    if type(path) is not exp.JSONPath or node.args.get("expressions"):
        return None
    root, *keys = path.expressions
    plain = type(root) is exp.JSONPathRoot and keys and all(type(key) is exp.JSONPathKey for key in keys)
    names = [key.this for key in keys] if plain else []
    return ["metadata", *names] if names and all(isinstance(name, str) for name in names) else None


def _spelled(node: Any) -> str:
    """Return what the parser calls something: to say it in SQL again would fail for what SQLite has not."""
    kind = type(node).__name__
    is_function = isinstance(node, exp.Func) and not isinstance(node, exp.Binary)
    return f"the function {kind.upper()}" if is_function else f"a node of kind {kind}"
