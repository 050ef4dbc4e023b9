"""Reads lines of JSON, whatever they hold: each is an item, or says what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from chronomemory._core import parse_json
from chronomemory.graph.errors import ModelError
from chronomemory.graph.models import Model

__all__ = ["Line", "read_lines", "read_object"]

One = TypeVar("One", bound=Model)
#: So many lines that cannot be read are told one by one.
_MOST_BAD = 1_000


@dataclass(frozen=True, slots=True)
class Line(Generic[One]):
    """One line: the item on it, or a code and a reason why there is none."""

    number: int
    content: bytes
    item: One | None = None
    code: str = ""
    reason: str = ""
    #: The id that a line has which is no item.
    id: str | None = None


def read_object(content: bytes) -> dict[str, object] | str:
    """Return the object that bytes spell, or why they spell none."""
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"it is not UTF-8 at byte {error.start}"
    try:
        value = parse_json(content)
    except (ValueError, RecursionError) as error:
        return f"it is not JSON: {error}"
    return value if isinstance(value, dict) else f"it is no object but {type(value).__name__}"


def read_lines(content: bytes, cls: type[One], schema: str) -> Iterator[Line[One]]:
    """Yield every line that is not blank; of those that are no items only the first, and a count."""
    parts, bad = content.split(b"\n"), 0
    for number, part in enumerate(parts, 1):
        if not part.strip():
            continue
        line = _read(number, part, cls, schema, torn=number == len(parts))
        bad += line.item is None
        if line.item is not None or bad <= _MOST_BAD:
            yield line
    if bad > _MOST_BAD:
        reason = f"{bad - _MOST_BAD:,} more lines cannot be read"
        yield Line(len(parts), b"", code="malformed-line", reason=reason)


def _read(number: int, part: bytes, cls: type[One], schema: str, *, torn: bool) -> Line[One]:
    fields = read_object(part)
    if isinstance(fields, str):
        reason = "the last line was not finished" if torn else fields
        return Line(number, part, code="malformed-line", reason=reason)
    given = fields.get("id")
    item_id = given if isinstance(given, str) and given else None
    if fields.get("schema", schema) != schema:
        reason = f"the schema {fields['schema']!r} is not known"
        return Line(number, part, code="unknown-schema", reason=reason, id=item_id)
    if item_id is None:
        return Line(number, part, code="malformed-line", reason="there is no id")
    try:
        item = cls.from_dict({name: value for name, value in fields.items() if name != "schema"})
    except ModelError as error:
        return Line(number, part, code="malformed-line", reason=str(error), id=item_id)
    return Line(number, part, item)
