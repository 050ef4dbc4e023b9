"""Maps a row of somebody else's table to the fields of a record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from chronomemory.face.arguments import must, refuse
from chronomemory.record import ChronoRecord

__all__ = ["Fields", "mapped"]

#: What a field of a record, or a place in its data, is made of: a key of the row, a path in it, or a function
#: of the row. ``"*"`` is all of the row that is not named otherwise.
Fields = Mapping[str, "str | Callable[[Mapping[str, Any]], Any]"]

_FIELDS = frozenset(ChronoRecord(id="x").to_dict())
_REST = "*"
_MISSING = object()


def mapped(fields: Fields) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return what makes a record of a row.

    >>> make = mapped({"id": "key", "data.price": "cost.net", "data.seen": lambda row: len(row)})
    >>> make({"key": "A", "cost": {"net": 3}})
    {'id': 'A', 'data': {'price': 3, 'seen': 2}}
    """
    if not isinstance(fields, Mapping):
        raise must("fields", "be a dict", fields)
    for target, source in fields.items():
        _check(target, source)
    whole = fields.get("data")
    inside = [target for target in fields if target.startswith("data.")]
    if whole is not None and whole != _REST and inside:
        raise refuse(f"data is given whole and by {inside[0]}; give one of the two", "fields")
    named = {source for source in fields.values() if isinstance(source, str)}

    def make(row: Mapping[str, Any]) -> dict[str, Any]:
        record: dict[str, Any] = {}
        if whole == _REST:
            record["data"] = {key: value for key, value in row.items() if key not in named}
        for target, source in fields.items():
            if source == _REST:
                continue
            value = source(row) if callable(source) else _found(row, source)
            if value is _MISSING:
                if target == "id":
                    raise refuse(f"the row has no {source!r}", "id")
                continue
            _put(record, target, value)
        return record

    return make


def _check(target: object, source: object) -> None:
    root, _, rest = target.partition(".") if isinstance(target, str) else ("", "", "")
    if root not in _FIELDS or (rest and root != "data") or target in ("data.", "recursion_depth"):
        raise must("fields", "name fields of a record, or places such as data.price", target)
    if source == _REST and target != "data":
        raise refuse('"*" is all the rest of a row: only data can be made of it', "fields")
    if not callable(source) and not (isinstance(source, str) and source):
        raise must("fields", f"say by a key or a function what {target} is made of", source)


def _found(row: Mapping[str, Any], source: str) -> Any:
    """Return what a row has under a key, or at the end of a path through it."""
    if source in row:
        return row[source]
    value: Any = row
    for step in source.split("."):
        if not isinstance(value, Mapping) or step not in value:
            return _MISSING
        value = value[step]
    return value


def _put(record: dict[str, Any], target: str, value: Any) -> None:
    *steps, last = target.split(".")
    inner = record
    for step in steps:
        inner = inner.setdefault(step, {})
        if not isinstance(inner, dict):
            raise refuse(f"{step} is both a value and what {target} stands in", "fields")
    inner[last] = value
