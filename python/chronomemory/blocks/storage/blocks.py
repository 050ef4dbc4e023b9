"""Reads and changes blocks and their tags."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from chronomemory.blocks.engine import SPACES
from chronomemory.blocks.errors import IntegrityError, UnknownBlock
from chronomemory.blocks.ids import BLOCK, block_key, plain_id
from chronomemory.blocks.storage.forming import drop_forming
from chronomemory.blocks.types import ArchiveReason, BlockStatus, DecayTier
from chronomemory.errors import InvalidRecord
from chronomemory.face.arguments import (
    contents,
    count,
    finite,
    one_of,
    string,
    unique_strings,
    within,
)
from chronomemory.face.batch import Connection
from chronomemory.face.moments import now
from chronomemory.face.spaces import embedding_of, has_embedding
from chronomemory.numpy_later import npt
from chronomemory.record import ChronoRecord
from chronomemory.scope import Scope, carrying
from chronomemory.types import HasEngine

DEFAULT_CONFIDENCE = 0.50
DEFAULT_LAMBDA = 0.01


@contents
def new_block(
    block_id: str,
    content: str,
    category: str,
    source: str,
    *,
    status: str = "inbox",
    confidence: float = DEFAULT_CONFIDENCE,
    decay_lambda: float = DEFAULT_LAMBDA,
    last_reinforced_at: float = 0.0,
    tags: Iterable[str] = (),
    session_id: str | None = None,
    scope: Scope | None = None,
) -> ChronoRecord:
    """Return the record of a block that was never used; without a scope it is whoever's writes it."""
    string("block_id", block_id, empty=False)
    data: dict[str, Any] = {
        "content": string("content", content),
        "category": string("category", category),
        "source": string("source", source),
        "created_at": now(),
        "decay_lambda": finite("decay_lambda", decay_lambda, least=0.0),
        "last_reinforced_at": finite("last_reinforced_at", last_reinforced_at),
    }
    data["learned_at"] = data["last_reinforced_at"]
    names = dict.fromkeys(unique_strings("tags", tags, empty=False), True)
    if names:
        data["tags"] = names
    if session_id is not None:
        data["last_session_id"] = session_id
    return ChronoRecord(
        id=block_key(block_id),
        kind=BLOCK,
        status=one_of("status", status, BlockStatus).value,
        confidence=within("confidence", confidence),
        data=data if scope is None else carrying(scope, data),
    )


def insert_block(
    conn: Connection,
    *,
    block_id: str,
    content: str,
    category: str,
    source: str,
    status: str = "inbox",
    confidence: float = DEFAULT_CONFIDENCE,
    decay_lambda: float = DEFAULT_LAMBDA,
    last_reinforced_at: float = 0.0,
) -> None:
    """Insert a new block; IntegrityError if the id is taken, whatever the status."""
    record = new_block(
        block_id,
        content,
        category,
        source,
        status=status,
        confidence=confidence,
        decay_lambda=decay_lambda,
        last_reinforced_at=last_reinforced_at,
    )
    if conn.record(record.id) is not None:
        raise IntegrityError(f"there is a block {block_id!r} already", recovery="Update it instead.")
    conn.put(record)


def block_dict(record: ChronoRecord, conn: Connection | None = None) -> dict[str, Any]:
    """Return a block with every column of the table; the embedding only with a connection to read it."""
    data = record.data
    block: dict[str, Any] = {
        "id": plain_id(record.id),
        "content": data["content"],
        "category": data["category"],
        "source": data["source"],
        "created_at": data["created_at"],
        "status": record.status,
        "archive_reason": data.get("archive_reason"),
        "confidence": record.confidence,
        "reinforcement_count": data.get("reinforcement_count", 0),
        "decay_lambda": data.get("decay_lambda", DEFAULT_LAMBDA),
        "last_reinforced_at": data.get("last_reinforced_at", 0.0),
        "self_alignment": data.get("self_alignment"),
        "embedding_model": data.get("embedding_model"),
        "token_count": data.get("token_count"),
        "last_session_id": data.get("last_session_id"),
    }
    if conn is not None:
        block["embedding"] = embedding_of(conn, record)
    return block


def tags_of(record: ChronoRecord) -> tuple[str, ...]:
    """Return the tags of a block's record in alphabetical order; an archived block shows none."""
    return () if record.status == BlockStatus.ARCHIVED else tuple(sorted(record.data.get("tags", ())))


def learned_at(record: ChronoRecord) -> float:
    """Return the active hour in which a block was learned; older stores know when it was last used."""
    return float(record.data.get("learned_at", record.data.get("last_reinforced_at", 0.0)))


def time_of(data: Mapping[str, Any], created_at: datetime | None) -> datetime | None:
    """Return when something happened, was stated again, or was learned."""
    stated = data.get("time", data.get("restated_at", data.get("created_at")))
    try:
        moment = datetime.fromisoformat(stated) if isinstance(stated, str) else created_at
    except ValueError:
        return created_at
    return moment if moment is None or moment.tzinfo is not None else moment.replace(tzinfo=timezone.utc)


def known_block(conn: Connection, block_id: str) -> ChronoRecord:
    """Return the record of a block that must be there."""
    record = conn.record(block_key(string("block_id", block_id)))
    if record is None:
        raise UnknownBlock(f"there is no block {block_id!r}", id=block_id)
    return record


def blocks_among(store: HasEngine, records: Iterable[ChronoRecord]) -> list[ChronoRecord]:
    """Return the blocks among records of their kind.

    A plain record may be of any kind, and what no verb of the face can use is none of its blocks.
    """
    named = (record for record in records if record.id.startswith(block_key("")))
    return [record for record in named if store.engine.blocks.get(record.id) is not None]


def own_of(conn: Connection, block_ids: Sequence[str]) -> list[str]:
    """Return those of some blocks that may be changed here."""
    if not conn.scope.to_dict():
        return list(block_ids)
    are_own = conn.store.engine.are_own([block_key(block_id) for block_id in block_ids])
    return [block_id for block_id, is_own in zip(block_ids, are_own, strict=True) if is_own]


def by_scope(own_scopes: Mapping[str, int | None]) -> list[list[str]]:
    """Return those of some blocks that may be changed, of one scope together: who sees one sees the others.

    Given is the number of each one's scope, None if it may not be changed.
    """
    together: dict[int, list[str]] = {}
    for block_id, scope in own_scopes.items():
        if scope is not None:
            together.setdefault(scope, []).append(block_id)
    return list(together.values())


def get_block(conn: Connection, block_id: str) -> dict[str, Any] | None:
    """Return a block with all its columns, or None."""
    record = conn.record(block_key(block_id))
    return None if record is None else block_dict(record, conn)


def block_exists(conn: Connection, block_id: str) -> bool:
    """Say whether there is a block with this id, whatever its status."""
    return conn.record(block_key(block_id)) is not None


def get_active_blocks(
    conn: Connection, *, min_last_reinforced_at: float | None = None
) -> list[dict[str, Any]]:
    """Return the active blocks, without their embeddings; the cut-off is strict."""
    return [block_dict(record) for record in _active(conn, min_last_reinforced_at)]


def get_active_blocks_with_embeddings(
    conn: Connection, *, min_last_reinforced_at: float | None = None
) -> list[dict[str, Any]]:
    """Return the active blocks that have an embedding, with it."""
    found = _active(conn, min_last_reinforced_at)
    return [block_dict(record, conn) for record in found if has_embedding(record)]


def _active(conn: Connection, cut_off: float | None) -> list[ChronoRecord]:
    found = conn.records(BLOCK, "active")
    if cut_off is None:
        return found
    finite("min_last_reinforced_at", cut_off)
    return [record for record in found if record.data.get("last_reinforced_at", 0.0) > cut_off]


def get_inbox_blocks(conn: Connection) -> list[dict[str, Any]]:
    """Return the blocks that wait for consolidation, oldest first."""
    return [block_dict(record, conn) for record in conn.records(BLOCK, "inbox", own=True)]


def get_inbox_count(conn: Connection) -> int:
    """Return how many blocks wait for consolidation."""
    return conn.count(BLOCK, "inbox", own=True)


def update_block_status(
    conn: Connection, block_id: str, status: str, *, archive_reason: str | None = None
) -> None:
    """Move a block to another status; only an archived one has a reason."""
    known_block(conn, block_id)
    reason = None
    with contents:
        status = one_of("status", status, BlockStatus).value
        if archive_reason is not None:
            reason = one_of("archive_reason", archive_reason, ArchiveReason).value
    if reason is not None and status != "archived":
        raise InvalidRecord("archive_reason: only an archived block has one", field="archive_reason")
    conn.patch(block_key(block_id), {"status": status, "data": {"archive_reason": reason}})
    if status == BlockStatus.ARCHIVED.value:
        drop_forming(conn, block_id)


def update_block_scoring(
    conn: Connection,
    block_id: str,
    *,
    confidence: float | None = None,
    self_alignment: float | None = None,
    decay_lambda: float | None = None,
    embedding: npt.ArrayLike | None = None,
    embedding_model: str | None = None,
    token_count: int | None = None,
) -> None:
    """Change what a block is scored by; what is None stays as it is."""
    known = known_block(conn, block_id)
    patch: dict[str, Any] = {}
    data: dict[str, Any] = {}
    if confidence is not None:
        patch["confidence"] = confidence
    with contents:
        for name, value, least in (
            ("self_alignment", self_alignment, float("-inf")),
            ("decay_lambda", decay_lambda, 0.0),
        ):
            if value is not None:
                data[name] = finite(name, value, least=least)
        if embedding_model is not None:
            data["embedding_model"] = string("embedding_model", embedding_model)
        if token_count is not None:
            data["token_count"] = count("token_count", token_count, most=None)
    if data:
        patch["data"] = data
    if patch:
        conn.patch(block_key(block_id), patch)
    if embedding is not None:
        model = embedding_model if embedding_model is not None else known.data.get("embedding_model")
        SPACES.attach(conn, block_key(block_id), embedding, model)


def reinforce_blocks(conn: Connection, block_ids: list[str], current_active_hours: float) -> None:
    """Count one more use of each block, at this hour; hours never go back, unknown ids are passed over."""
    hours = finite("current_active_hours", current_active_hours)
    for block_id in unique_strings("ids", block_ids):
        record = conn.record(block_key(block_id))
        if record is not None:
            data = record.data
            last = max(hours, data.get("last_reinforced_at", 0.0))
            uses = data.get("reinforcement_count", 0) + 1
            conn.patch(record.id, {"data": {"reinforcement_count": uses, "last_reinforced_at": last}})


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
    if tier < before and conn.store.engine.blocks.get(block_key(block_id)) is not None:
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
    found = {block_id for block_id in conn.store.engine.blocks.tagged(pattern) if block_id not in pending}
    found |= {block_id for block_id, tags in pending.items() if any(like(pattern, tag) for tag in tags)}
    return sorted(found)


def remove_tags(conn: Connection, block_id: str, tags: list[str]) -> None:
    """Take tags from a block; those it does not have are passed over."""
    has = known_block(conn, block_id).data.get("tags", {})
    with contents:
        gone = {tag: None for tag in unique_strings("tags", tags) if tag in has}
    if gone:
        conn.patch(block_key(block_id), {"data": {"tags": gone}})
