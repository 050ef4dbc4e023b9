"""What of a session outlives it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from chronomemory.blocks.declaration import READER
from chronomemory.blocks.engine import Blocks
from chronomemory.blocks.ids import BLOCK, block_key, content_hash, plain_id
from chronomemory.blocks.life.learning import archive, drafted, return_to_inbox
from chronomemory.blocks.storage.blocks import blocks_among, known_block, own_of, tags_of
from chronomemory.blocks.storage.config import hours_for
from chronomemory.blocks.storage.tags import add_tags
from chronomemory.blocks.types import BlockStatus
from chronomemory.errors import InvalidArgument, OutOfScope
from chronomemory.face.arguments import unique_strings
from chronomemory.face.batch import Connection
from chronomemory.face.results import Result, counted
from chronomemory.filters import Where
from chronomemory.record import ChronoRecord
from chronomemory.scope import Scope, carrying
from chronomemory.selection import query

__all__ = ["KeepResult", "chosen_to_keep", "keep"]

#: What a block takes along; what else it has is of its links and of the session.
_TAKEN = (
    "content",
    "category",
    "conversation",
    "source",
    "speaker",
    "time",
    "created_at",
    "decay_lambda",
    "embedding_model",
    "evidence",
    "reinforcement_count",
    "self_alignment",
    "summary",
    "tags",
    "token_count",
)


@dataclass(frozen=True, slots=True)
class KeepResult(Result):
    """Which blocks outlive their session: each by its old id, with the new one."""

    kept: dict[str, str]

    @property
    def summary(self) -> str:
        """How many there are."""
        return f"{counted(len(self.kept), 'block')} kept beyond the session."


def chosen_to_keep(blocks: Blocks, block_ids: Sequence[str] | None, where: Where | None) -> list[str]:
    """Return the ids of the blocks that are named, or of those of a session for which something holds."""
    if (block_ids is None) == (where is None):
        got = "neither" if where is None else "both"
        raise InvalidArgument(f"either block_ids or where must be given, got {got}", field="block_ids")
    if block_ids is not None:
        return list(unique_strings("block_ids", block_ids))
    named = query(blocks.store, kind=BLOCK, status=None, where=where, faces=True)
    found = blocks_among(blocks.store, named)
    waiting = (BlockStatus.INBOX.value, BlockStatus.ACTIVE.value)
    ids = [plain_id(record.id) for record in found if record.status in waiting and _session_of(record)]
    with blocks.connect() as conn:
        return own_of(conn, ids)


def keep(conn: Connection, block_ids: Sequence[str], *, hours: float) -> KeepResult:
    """Write blocks anew without the name of their session, and put the old ones away."""
    foreign = set(block_ids) - set(own_of(conn, block_ids))
    kept = {}
    for block_id in block_ids:
        old = known_block(conn, block_id)
        if block_id in foreign:
            raise OutOfScope(
                f"the block {block_id!r} is wider than {conn.scope}: it is not yours to keep",
                recovery="Name blocks of your own.",
            )
        if old.status != BlockStatus.ARCHIVED and _session_of(old):
            kept[block_id] = _kept(conn, old, hours)
    return KeepResult(kept)


def _session_of(record: ChronoRecord) -> str | None:
    """Return the session that a block ends with; one that has nothing but a session is kept nowhere."""
    scope = record.scope or Scope()
    return scope.session if scope.of_clock != scope else None


def _kept(conn: Connection, old: ChronoRecord, hours: float) -> str:
    """Write one block anew and return its id; one that says the same is there already, and takes its tags."""
    scope = (old.scope or Scope()).without("session")
    new_id = content_hash(old.data["content"], scope)
    known = conn.record(block_key(new_id))
    if known is not None and known.status != BlockStatus.ARCHIVED:
        add_tags(conn, new_id, list(tags_of(old)))
    else:
        _write(conn, old, new_id, scope, hours)
    archive(conn, plain_id(old.id), "superseded", superseded_by=new_id)
    return new_id


def _write(conn: Connection, old: ChronoRecord, new_id: str, scope: Scope, hours: float) -> None:
    data: dict[str, Any] = {name: old.data[name] for name in _TAKEN if name in old.data}
    hours = hours_for(conn, old, hours)
    data |= {"last_reinforced_at": hours, "learned_at": old.data.get("learned_at", hours)}
    new = replace(old, id=block_key(new_id), data=carrying(scope, data))
    if conn.record(new.id) is not None:
        tags, category, source = list(tags_of(old)), data["category"], data["source"]
        again = drafted(data["content"], tags, category, source, hours=hours, session_id=None, scope=scope)
        return_to_inbox(conn, again)
        conn.patch(new.id, {"status": old.status, "confidence": old.confidence, "data": data})
    else:
        conn.put(new)
    READER.hand_on(conn, old, new.id, old.data.get("embedding_model"))
