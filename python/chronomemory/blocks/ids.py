"""What blocks and all around them are called in the log.

Every id of this face begins with one of its prefixes, and the kind of a record is its prefix.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from chronomemory.blocks.types import Edge
from chronomemory.face.arguments import string
from chronomemory.scope import SHARED, Scope

FACE = "blocks"

BLOCK = "block"
EDGE = "bedge"
CONTRADICTION = "contradiction"
FRAME = "frame"
SESSION = "session"
CONFIG = "config"

_HASH_DIGITS, _SCOPED_DIGITS = 16, 32
_SCOPED_NAME = re.compile("[0-9a-f]{16}:")


def content_hash(content: str, scope: Scope = SHARED, *, exact: bool = False) -> str:
    """Return the id of a content in a scope; white space around it and, unless ``exact``, case are ignored.

    >>> content_hash("  Water is wet\\n") == content_hash("water is WET")
    True
    >>> content_hash("Water is wet", Scope(user="ann")) == content_hash("Water is wet", Scope(user="bob"))
    False
    """
    stripped = content.strip()
    text = (f"exact\n{stripped}" if exact else stripped.lower()).encode("utf-8")
    if scope == SHARED:
        return hashlib.sha256(text).hexdigest()[:_HASH_DIGITS]
    return hashlib.sha256(scope.spelled + b"\n" + text).hexdigest()[:_SCOPED_DIGITS]


def block_key(block_id: str) -> str:
    """Return the record id of a block."""
    return f"{BLOCK}:{block_id}"


def given_id(block_id: str) -> str:
    """Return the id of a block that a caller gave, with or without the prefix that other faces show.

    >>> given_id("block:3f2a"), given_id("3f2a")
    ('3f2a', '3f2a')
    """
    return string("block_id", block_id).removeprefix(f"{BLOCK}:")


def any_key(given: str) -> str:
    """Return the record id that a caller gave; an id without a face is that of a block.

    >>> any_key("3f2a"), any_key("episode:7")
    ('block:3f2a', 'episode:7')
    """
    return given if ":" in string("block_id", given) else block_key(given)


def edge_key(from_id: str, to_id: str) -> str:
    """Return the record id of a link."""
    return _pair_key(EDGE, from_id, to_id)


def contradiction_key(block_a_id: str, block_b_id: str) -> str:
    """Return the record id of a contradiction."""
    return _pair_key(CONTRADICTION, block_a_id, block_b_id)


def frame_key(name: str, scope: Scope = SHARED) -> str:
    """Return the record id of a frame of a scope."""
    return _scoped_key(FRAME, name, scope)


def session_key(session_id: str) -> str:
    """Return the record id of a session."""
    return f"{SESSION}:{session_id}"


def config_key(key: str, scope: Scope = SHARED) -> str:
    """Return the record id of a setting of a scope."""
    return _scoped_key(CONFIG, key, scope)


def called(record_id: str, data: Mapping[str, Any]) -> str:
    """Return what a frame or a setting is called in its scope."""
    name, scope = plain_id(record_id), Scope.carried_by(data)
    return name.removeprefix(f"{scope.digits}:") if scope else name


def looks_scoped(name: str) -> bool:
    """Say whether a name looks like one of a scope: nobody else may take it."""
    return _SCOPED_NAME.match(name) is not None


def _scoped_key(kind: str, name: str, scope: Scope) -> str:
    return f"{kind}:{scope.digits}:{name}" if scope != SHARED else f"{kind}:{name}"


def plain_id(record_id: str) -> str:
    """Return an id without the prefix of its kind."""
    return record_id.partition(":")[2]


def _pair_key(kind: str, one: str, other: str) -> str:
    first, second = (part.replace("%", "%25").replace(":", "%3A") for part in Edge(one, other))
    return f"{kind}:{first}:{second}"
