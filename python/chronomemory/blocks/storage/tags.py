"""Reads and changes the tags of blocks."""

from __future__ import annotations

import re
from typing import Any

from chronomemory.blocks.ids import BLOCK, block_key, plain_id
from chronomemory.blocks.storage.blocks import known_block, tags_of
from chronomemory.blocks.types import DecayTier
from chronomemory.face.arguments import contents, string, unique_strings
from chronomemory.face.batch import Connection

__all__ = ["add_tags", "get_blocks_by_tag_pattern", "get_tags", "like", "remove_tags"]


def like(pattern: str, text: str) -> bool:
    """Say whether a text fits a LIKE pattern: ``%`` any text, ``_`` one character, ASCII case aside.

    >>> like("self/%", "SELF/goal"), like("a_", "abc")
    (True, False)
    """
    parts = ({"%": ".*", "_": "."}.get(letter, re.escape(letter)) for letter in pattern)
    return re.fullmatch("".join(parts), text, re.DOTALL | re.IGNORECASE | re.ASCII) is not None


def add_tags(conn: Connection, block_id: str, tags: list[str]) -> None:
    """Add tags to a block; those it has already are passed over.

    A block that is there fades no faster from now on than its tags ask for. One that this batch writes keeps
    the fading that it was given.
    """
    data = known_block(conn, block_id).data
    has = data.get("tags", {})
    with contents:
        new = {tag: True for tag in unique_strings("tags", tags, empty=False) if tag not in has}
    if not new:
        return
    patch: dict[str, Any] = {"tags": new}
    before, tier = (DecayTier.of(tags, data["category"]).value for tags in (list(has), [*has, *new]))
    # Tags that ask for nothing leave what outcomes have taught the block.
    if tier < before and conn.store.engine.block_record(block_key(block_id)) is not None:
        patch["decay_lambda"] = min(data.get("decay_lambda", tier), tier)
    conn.patch(block_key(block_id), {"data": patch})


def get_tags(conn: Connection, block_id: str) -> list[str]:
    """Return the tags of a block in alphabetical order; an archived or unknown block has none."""
    record = conn.record(block_key(block_id))
    return [] if record is None else list(tags_of(record))


def get_blocks_by_tag_pattern(conn: Connection, pattern: str) -> list[str]:
    """Return the ids of inbox and active blocks that have a tag like the pattern, sorted."""
    string("pattern", pattern)
    pending = {plain_id(record.id): tags_of(record) for record in conn.pending(BLOCK)}
    found = {block_id for block_id in conn.store.engine.blocks_tagged(pattern) if block_id not in pending}
    found |= {block_id for block_id, tags in pending.items() if any(like(pattern, tag) for tag in tags)}
    return sorted(found)


def remove_tags(conn: Connection, block_id: str, tags: list[str]) -> None:
    """Take tags from a block; those it does not have are passed over."""
    has = known_block(conn, block_id).data.get("tags", {})
    with contents:
        gone = {tag: None for tag in unique_strings("tags", tags) if tag in has}
    if gone:
        conn.patch(block_key(block_id), {"data": {"tags": gone}})
