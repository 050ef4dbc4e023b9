"""Turns what a caller says of the records that it wants into JSON for the engine.

The engine takes a ``where`` as JSON and refuses what it cannot mean. Here it becomes JSON: moments are
spelled, and what JSON cannot carry is refused with its place, in the words of the engine.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import datetime, timezone
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from chronomemory.errors import InvalidArgument

if TYPE_CHECKING:
    import numpy as np
else:
    from chronomemory import numpy_later as np

__all__ = ["Where", "where_json"]

#: What a caller gives: fields with what they must be, joined by ``and``, ``or`` and ``not``.
Where = Mapping[str, Any]

#: Keys that are no names of fields: these stand in a path as they are.
_BARE = frozenset(
    ("and", "or", "not", "path", "moment", "eq", "ne", "in", "gt", "gte", "lt", "lte", "starts", "like")
) | {"any", "all", "under", "type", "exists", "text"}
#: No where that the engine takes goes so deep: of each level there is a list and an object.
_DEEPEST = 100
#: The longest integer that JSON carries here has 4,300 digits.
_MOST_BITS = 14_284


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
        return {"moment": _moment(given, path)}
    if depth >= _DEEPEST:
        raise _refused(path, "more than 32 levels deep")
    if isinstance(given, Mapping):
        return {_key(key, path): _plain(one, _inside(path, key), depth + 1) for key, one in given.items()}
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


def _key(given: object, path: str) -> str:
    if not isinstance(given, str):
        raise _refused(path, f"keys are text, got {given!r}")
    return _text(given, path)


def _inside(path: str, key: object) -> str:
    return f"{path}.{key}" if key in _BARE else f"{path}.{json.dumps(key, ensure_ascii=False, default=repr)}"


def _moment(given: datetime, path: str) -> str:
    if given.utcoffset() is None:
        raise _refused(path, f"{given} has no time zone; give it one, such as timezone.utc")
    try:
        return given.astimezone(timezone.utc).isoformat()
    except OverflowError:
        raise _refused(path, f"{given} is out of reach in UTC") from None
