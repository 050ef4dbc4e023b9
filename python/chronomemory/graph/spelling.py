"""The bytes of a workspace: how values are spelled in files, and what the files are called."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from chronomemory._core import canonical_json, indented_json

__all__ = ["ENVELOPE", "PAGE", "SCHEMAS", "WORKSPACE", "file_name", "line_of", "page_of", "tagged"]

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
#: A name that would be longer is cut, and told apart by the digest of its id.
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
