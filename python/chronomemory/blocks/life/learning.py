"""How something comes into the memory, changes, and leaves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from chronomemory.blocks.engine import Blocks
from chronomemory.blocks.errors import IntegrityError
from chronomemory.blocks.ids import FACE, block_key, content_hash, plain_id
from chronomemory.blocks.life.circumstances import CIRCUMSTANCES
from chronomemory.blocks.storage.blocks import known_block, new_block, tags_of, update_block_status
from chronomemory.blocks.storage.config import hours_for
from chronomemory.blocks.storage.contradictions import new_contradiction, open_contradictions
from chronomemory.blocks.storage.edges import SAID, new_edge, scope_of_pair, shown_edges
from chronomemory.blocks.storage.forming import drop_forming
from chronomemory.blocks.types import ArchiveReason, BlockStatus, DecayTier, Edge, ForgetResult, LearnResult
from chronomemory.errors import InvalidRecord
from chronomemory.face.arguments import contents, must, string, string_list
from chronomemory.face.batch import Connection
from chronomemory.record import ChronoRecord
from chronomemory.scope import Scope

__all__ = ["EDITED", "drafted", "edit", "forget", "inherit", "learn", "return_to_inbox", "supersede"]

CREATED, DUPLICATE, REACTIVATED = "created", "duplicate_rejected", "reactivated"
EDITED = "edited"

#: What a block that was put away and is learned again does not keep.
_PAST = (
    "archive_reason",
    "superseded_by",
    "supersedes",
    "evidence",
    "reinforcement_count",
    "self_alignment",
    "summary",
)
#: What a block in other words keeps.
_STANDING = ("decay_lambda", "evidence", "learned_at", "reinforcement_count", *CIRCUMSTANCES)


@contents
def drafted(
    content: str,
    tags: Sequence[str] | None,
    category: str,
    source: str,
    *,
    hours: float,
    session_id: str | None,
    scope: Scope,
    said: Mapping[str, str] | None = None,
) -> ChronoRecord:
    """Return the inbox block of something new, with the circumstances in which it was said."""
    if not isinstance(content, str) or not content.strip():
        raise must("content", "be a text with something in it", content)
    string("content", content)
    tags = [] if tags is None else string_list("tags", tags)
    record = new_block(
        content_hash(content, scope),
        content,
        category,
        source,
        decay_lambda=DecayTier.of(tags, category).value,
        last_reinforced_at=hours,
        tags=tags,
        session_id=session_id,
        scope=scope,
    )
    record.data.update(said or {})
    return record


def learn(blocks: Blocks, record: ChronoRecord) -> LearnResult:
    """Put a block into the inbox: one event. The same content again is refused, unless it was archived.

    Tags that are new come to the block that says it already.
    """
    block_id = plain_id(record.id)
    if blocks.store.engine.insert(record, FACE) is not None:
        return LearnResult(block_id, CREATED)
    known = blocks.store.engine.block_record(record.id)
    if known is None:  # something is there that is no block
        return blocks.run(lambda conn: _in_place(conn, record))
    if known.status == BlockStatus.ARCHIVED:
        return blocks.run(lambda conn: return_to_inbox(conn, record))
    if not record.data.get("tags", {}).keys() <= known.data.get("tags", {}).keys():
        return blocks.run(lambda conn: _tagged(conn, record))
    return LearnResult(block_id, DUPLICATE)


def _tagged(conn: Connection, record: ChronoRecord) -> LearnResult:
    """Give the tags of a block to the one that says the same."""
    known = known_block(conn, plain_id(record.id))
    if known.status == BlockStatus.ARCHIVED:
        return return_to_inbox(conn, record)
    inherit(conn, known, tags_of(record))
    return LearnResult(plain_id(record.id), DUPLICATE)


def inherit(conn: Connection, survivor: ChronoRecord, tags: Sequence[str]) -> None:
    """Give a block the tags of one that says the same: a guarantee outlives the words it came in."""
    has = survivor.data.get("tags", {})
    new = {tag: True for tag in tags if tag not in has}
    if new:
        tier = DecayTier.of([*has, *new], survivor.data["category"]).value
        fading = min(survivor.data.get("decay_lambda", tier), tier)
        conn.patch(survivor.id, {"data": {"tags": new, "decay_lambda": fading}})


def _in_place(conn: Connection, record: ChronoRecord) -> LearnResult:
    """Put a block where there is none."""
    block_id = plain_id(record.id)
    if conn.record(record.id) is not None:
        return LearnResult(block_id, DUPLICATE)
    conn.put(record)
    return LearnResult(block_id, CREATED)


def return_to_inbox(conn: Connection, record: ChronoRecord) -> LearnResult:
    """Bring an archived block back under its id, as new: without its old tags, links and standing."""
    block_id = plain_id(record.id)
    known = known_block(conn, block_id)
    if known.status != BlockStatus.ARCHIVED:
        return LearnResult(block_id, DUPLICATE)
    new = record.data
    data: dict[str, Any] = {name: new[name] for name in ("content", "category", "source", "decay_lambda")}
    data["last_reinforced_at"] = max(new["last_reinforced_at"], known.data.get("last_reinforced_at", 0.0))
    data |= dict.fromkeys(_PAST) | {name: new.get(name) for name in CIRCUMSTANCES}
    data["tags"] = dict.fromkeys(known.data.get("tags", {})) | new.get("tags", {})
    data["learned_at"] = new["learned_at"]
    conn.patch(record.id, {"status": BlockStatus.INBOX.value, "confidence": record.confidence, "data": data})
    drop_forming(conn, block_id)
    # It is shown again from here on, and so are its links: now they can be taken away.
    for link in shown_edges(conn, [block_id]) + open_contradictions(conn, [block_id]):
        conn.delete(link.id)
    return LearnResult(block_id, REACTIVATED)


def supersede(conn: Connection, record: ChronoRecord, old_id: str) -> LearnResult:
    """Put a block into the inbox that takes the place of another, which is put away."""
    new_id = plain_id(record.id)
    if new_id == old_id:
        raise InvalidRecord(
            f"supersedes: {old_id!r} says just that", field="supersedes", recovery="Say what is other now."
        )
    if known_block(conn, old_id).status == BlockStatus.ARCHIVED:
        raise IntegrityError(f"the block {old_id!r} is archived", recovery="Learn the new content alone.")
    known = conn.record(record.id)
    if known is not None and known.status == BlockStatus.ARCHIVED:
        learned = return_to_inbox(conn, record)
    else:
        learned = _in_place(conn, record)
    conn.patch(record.id, {"data": {"supersedes": old_id}})
    archive(conn, old_id, "superseded", superseded_by=new_id)
    return learned


def archive(conn: Connection, block_id: str, reason: str, *, superseded_by: str | None = None) -> None:
    """Put a block away, and say what took its place."""
    update_block_status(conn, block_id, BlockStatus.ARCHIVED.value, archive_reason=reason)
    if superseded_by is not None:
        conn.patch(block_key(block_id), {"data": {"superseded_by": superseded_by}})


def forget(conn: Connection, block_id: str) -> ForgetResult:
    """Put a block away because someone asked for it; the log still knows it."""
    archive(conn, block_id, ArchiveReason.FORGOTTEN.value)
    return ForgetResult(block_id)


def edit(
    conn: Connection, block_id: str, content: str, *, hours: float, session_id: str | None
) -> LearnResult:
    """Say a block in other words: a new block takes its place, with its tags, links and standing."""
    old = known_block(conn, block_id)
    if old.status == BlockStatus.ARCHIVED:
        raise IntegrityError(f"the block {block_id!r} is archived", recovery="Learn the new content instead.")
    tags = tags_of(old)
    scope = old.scope or Scope()
    record = drafted(
        content,
        tags,
        old.data["category"],
        old.data["source"],
        hours=hours_for(conn, old, hours),
        session_id=session_id,
        scope=scope,
    )
    new_id = plain_id(record.id)
    if new_id == block_id:
        conn.patch(old.id, {"data": {"content": content}})
        return LearnResult(block_id, EDITED)
    links, contradictions = shown_edges(conn, [block_id]), open_contradictions(conn, [block_id])
    known = conn.record(record.id)
    if known is None:
        conn.put(record)
    elif known.status == BlockStatus.ARCHIVED:
        return_to_inbox(conn, record)
    else:
        raise IntegrityError(
            f"a block says that already: {new_id!r}", recovery="Forget one of the two, or connect them."
        )
    standing = {name: old.data[name] for name in _STANDING if name in old.data}
    conn.patch(record.id, {"confidence": old.confidence, "data": {**standing, "supersedes": block_id}})
    for link in links:
        pair = Edge.canonical(new_id, _other_end(link, block_id, ("from_id", "to_id")))
        whose = scope_of_pair(conn, *pair)
        moved = new_edge(
            *pair, link.data["weight"], scope=whose, last_active_hours=hours_for(conn, link, hours)
        )
        moved.data["reinforcement_count"] = link.data.get("reinforcement_count", 0)
        moved.data |= {name: link.data[name] for name in (*SAID, "made_by") if name in link.data}
        conn.put(moved)
    for contradiction in contradictions:
        pair = Edge.canonical(new_id, _other_end(contradiction, block_id, ("block_a_id", "block_b_id")))
        whose = scope_of_pair(conn, *pair)
        conn.put(new_contradiction(*pair, contradiction.data["score"], scope=whose))
    archive(conn, block_id, "superseded", superseded_by=new_id)
    return LearnResult(new_id, EDITED)


def _other_end(pair: ChronoRecord, block_id: str, names: tuple[str, str]) -> str:
    one, other = (str(pair.data[name]) for name in names)
    return other if one == block_id else one
