"""What a graph and all around it is called in the log.

Every id of this face begins with one of its prefixes, and the kind of a record is its prefix. What keeps the
books of a workspace has an id of its own, which no audit record can have.
"""

from __future__ import annotations

import unicodedata

__all__ = [
    "AUDIT",
    "EDGE",
    "EVENT",
    "FACE",
    "META_ID",
    "NODE",
    "PATH",
    "PLAN",
    "PROFILE",
    "key_of",
    "plain_id",
    "spellings",
]

FACE = "graph"

PROFILE = "profile"
NODE = "node"
EDGE = "gedge"
PATH = "path"
PLAN = "plan"
EVENT = "event"
AUDIT = "audit"

#: The record that every batch of a workspace ends with.
META_ID = f"{AUDIT}:@workspace"


def key_of(kind: str, item_id: str) -> str:
    """Return the record id of something.

    >>> key_of(EDGE, "a-b"), plain_id(key_of(EDGE, "a:b"))
    ('gedge:a-b', 'a:b')
    """
    return f"{kind}:{item_id}"


def spellings(item_id: str) -> tuple[str, ...]:
    """Return an id as it is given and in NFC, the Unicode form of ids; earlier versions kept any form."""
    return (item_id,) if item_id.isascii() else (item_id, unicodedata.normalize("NFC", item_id))


def plain_id(record_id: str) -> str:
    """Return an id without the prefix of its kind."""
    return record_id.partition(":")[2]
