"""What blocks and all around them are called in the log.

Every id of this face begins with one of its prefixes, and the kind of a record is its prefix.
"""

from __future__ import annotations

import hashlib

from chronomemory.blocks.types import Edge

__all__ = [
    "BLOCK",
    "CONFIG",
    "CONTRADICTION",
    "EDGE",
    "FACE",
    "FRAME",
    "SESSION",
    "block_key",
    "config_key",
    "content_hash",
    "contradiction_key",
    "edge_key",
    "frame_key",
    "plain_id",
    "session_key",
]

FACE = "blocks"

BLOCK = "block"
EDGE = "bedge"
CONTRADICTION = "contradiction"
FRAME = "frame"
SESSION = "session"
CONFIG = "config"

_HASH_DIGITS = 16


def content_hash(content: str) -> str:
    """Return the id of a content: regardless of case and of white space around it.

    >>> content_hash("  Water is wet\\n") == content_hash("water is WET")
    True
    """
    return hashlib.sha256(content.strip().lower().encode("utf-8")).hexdigest()[:_HASH_DIGITS]


def block_key(block_id: str) -> str:
    """Return the record id of a block."""
    return f"{BLOCK}:{block_id}"


def edge_key(from_id: str, to_id: str) -> str:
    """Return the record id of a link."""
    return _pair_key(EDGE, from_id, to_id)


def contradiction_key(block_a_id: str, block_b_id: str) -> str:
    """Return the record id of a contradiction."""
    return _pair_key(CONTRADICTION, block_a_id, block_b_id)


def frame_key(name: str) -> str:
    """Return the record id of a frame."""
    return f"{FRAME}:{name}"


def session_key(session_id: str) -> str:
    """Return the record id of a session."""
    return f"{SESSION}:{session_id}"


def config_key(key: str) -> str:
    """Return the record id of a setting."""
    return f"{CONFIG}:{key}"


def plain_id(record_id: str) -> str:
    """Return an id without the prefix of its kind."""
    return record_id.partition(":")[2]


def _pair_key(kind: str, one: str, other: str) -> str:
    first, second = (part.replace("%", "%25").replace(":", "%3A") for part in Edge(one, other))
    return f"{kind}:{first}:{second}"
