"""The filters that all readers share, and their JSON for the engine, which checks the rest."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from numbers import Integral, Real
from typing import Any, TypedDict

from chronomemory._core import WHERE_KEYS
from chronomemory.errors import InvalidArgument
from chronomemory.face.arguments import number, string_or_none, strings
from chronomemory.face.moments import micros
from chronomemory.numpy_later import np

#: Conditions on fields, joined by ``and``, ``or`` and ``not``.
Where = Mapping[str, Any]


class Filter(TypedDict, total=False):
    """Which records are read; a record must meet all that is given.

    ``kind`` is one kind or several, of which an empty list matches none; ``status`` is ``"active"`` unless
    given, and None or "" means any; ``tags`` must all be there; ``since`` and ``until`` (both inclusive)
    compare the time that a record states, or else when it was written; ``where`` is a condition on any
    field: ``{"data.age": {"gte": 18}}``.

    >>> import tempfile
    >>> from chronomemory import ChronoStore
    >>> drinks: Filter = {"kind": "drink", "tags": ["hot"]}
    >>> with ChronoStore(tempfile.mkdtemp()) as store:
    ...     _ = store.upsert({"id": "TEA", "kind": "drink", "label": "green tea", "data": {"tags": ["hot"]}})
    ...     len(store.query(**drinks)), len(store.search("tea", **drinks))
    (1, 1)
    """

    kind: str | Iterable[str] | None
    status: str | None
    min_confidence: float
    tags: Iterable[str]
    since: datetime | None
    until: datetime | None
    where: Where | None


_NO_FILTER = {
    "kind": None,
    "status": "active",
    "min_confidence": 0.0,
    "since_us": None,
    "until_us": None,
    "condition": None,
}


#: No where that the engine takes goes so deep: of each level there is a list and an object.
_DEEPEST = 100
#: The longest integer that JSON carries here has 4,300 digits.
_MOST_BITS = 14_284


def filter_terms(method: str, given: Filter) -> dict[str, Any]:
    """Return a filter in the engine's terms; ``method`` names the caller in errors."""
    terms: dict[str, Any] = {**_NO_FILTER, "tags": []}
    # A query of a few records takes microseconds: only what is given is checked.
    for name, value in given.items():
        if name == "kind":
            one_kind = value is None or isinstance(value, str)
            terms["kind"] = string_or_none("kind", value) if one_kind else strings("kind", value)
        elif name == "where":
            terms["condition"] = where_json(given["where"])
        elif name == "status":
            terms["status"] = string_or_none("status", value)
        elif name == "min_confidence":
            terms["min_confidence"] = number("min_confidence", value)
        elif name == "tags":
            terms["tags"] = strings("tags", value)
        elif name in ("since", "until"):
            terms[f"{name}_us"] = None if value is None else micros(name, value)
        else:
            raise TypeError(f"{method}() got an unexpected keyword argument {name!r}")
    return terms


def where_json(given: Where | None) -> bytes | None:
    """Spell a where as JSON.

    >>> where_json({"data.age": {"gte": 18}})
    b'{"data.age":{"gte":18}}'
    """
    if given is None:
        return None
    return json.dumps(_plain(given, "where", 0), ensure_ascii=False, separators=(",", ":")).encode()


def _refused(path: str, reason: str) -> InvalidArgument:
    return InvalidArgument(f"{path}: {reason}", field="where", path=path)


def _plain(given: object, path: str, depth: int) -> object:
    if given is None or isinstance(given, bool):
        return given
    if isinstance(given, str):
        return _text(given, path)
    if isinstance(given, Integral):
        number = int(given)
        if number.bit_length() > _MOST_BITS:
            raise _refused(path, "an integer of more than 4,300 digits")
        return number
    if isinstance(given, Real):
        value = float(given)
        if not math.isfinite(value):
            raise _refused(path, f"{value} is no JSON number")
        return value
    if isinstance(given, datetime):
        if given.utcoffset() is None:
            raise _refused(path, f"{given} has no time zone; give it one, such as timezone.utc")
        try:
            return {"moment": given.astimezone(timezone.utc).isoformat()}
        except OverflowError:
            raise _refused(path, f"{given} is out of reach in UTC") from None
    if depth >= _DEEPEST:
        raise _refused(path, "more than 32 levels deep")
    if isinstance(given, Mapping):
        plain = {}
        for key, one in given.items():
            if not isinstance(key, str):
                raise _refused(path, f"keys are text, got {key!r}")
            name = _text(key, path)
            step = name if name in WHERE_KEYS else json.dumps(name, ensure_ascii=False)
            plain[name] = _plain(one, f"{path}.{step}", depth + 1)
        return plain
    if isinstance(given, list | tuple):
        return [_plain(one, f"{path}[{at}]", depth + 1) for at, one in enumerate(given)]
    if isinstance(given, np.bool_):
        return bool(given)
    raise _refused(path, f"a {type(given).__name__} is nothing that JSON can carry")


def _text(given: str, path: str) -> str:
    try:
        given.encode()
    except UnicodeEncodeError as error:
        raise _refused(path, f"the character at {error.start} is half of a surrogate pair") from None
    return str(given)
