"""Encoding and parsing of the JSON files of a workspace."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from chronomemory._core import canonical_json, indented_json, parse_json
from chronomemory.graph.errors import ModelError
from chronomemory.graph.models import Model

#: The schema of the workspace itself, of what is exported, and of each kind of file and line.
WORKSPACE = "chronomemory.workspace/1"
ENVELOPE = "chronomemory.graph/1"
SCHEMAS = {
    "profiles": "chronomemory.profile/1",
    "nodes": "chronomemory.node/1",
    "edges": "chronomemory.edge/1",
    "paths": "chronomemory.path/1",
    "activation_plans": "chronomemory.activation-plan/1",
    "events": "chronomemory.event/1",
    "audit": "chronomemory.audit/1",
}

#: How the name of a file ends that shows one thing.
PAGE = ".json"
#: What stands in a file name as it is. Capitals do not: some file systems know one case only.
_PLAIN = re.compile(rb"[^a-z0-9_-]")
#: A longer name is cut and gets the digest of its id.
_LONGEST_NAME = 180
_CUT_NAME = 100
#: Careless readers take these for the end of a line.
_LINE_ENDS = (("\x85", "\\u0085"), ("\u2028", "\\u2028"), ("\u2029", "\\u2029"))


def file_name(item_id: str, suffix: str = PAGE) -> str:
    """Return a file name that no other id has, on any file system.

    >>> file_name("a/b"), file_name("Ann"), file_name("..")
    ('a%2Fb.json', '%41nn.json', '%2E%2E.json')
    """
    spelled = item_id.encode()
    name = _PLAIN.sub(lambda found: b"%%%02X" % found[0][0], spelled).decode()
    if len(name) > _LONGEST_NAME:
        name = f"{name[:_CUT_NAME]}~{hashlib.sha256(spelled).hexdigest()}"
    return f"{name}{suffix}"


def page_of(value: Mapping[str, Any]) -> bytes:
    """Spell a value as a file of its own: sorted keys, two spaces, a newline at the end."""
    return indented_json(dict(value)) + b"\n"


def line_of(value: Mapping[str, Any]) -> bytes:
    """Spell a value as one line: sorted keys, no spaces, nothing in it that ends a line elsewhere."""
    spelled = canonical_json(dict(value))
    if not spelled.isascii():
        text = spelled.decode()
        for raw, escaped in _LINE_ENDS:
            text = text.replace(raw, escaped)
        spelled = text.encode()
    return spelled + b"\n"


def tagged(schema: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields with the schema that says how they are to be read."""
    return {"schema": schema, **fields}


One = TypeVar("One", bound=Model)
#: Maximum number of bad lines that are reported one by one.
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
