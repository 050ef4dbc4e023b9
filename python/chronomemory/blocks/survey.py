"""What is in a memory, and what could be done next."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any

from chronomemory.blocks.ids import BLOCK
from chronomemory.blocks.life.embedding import lacking
from chronomemory.blocks.storage.blocks import block_dict, tags_of
from chronomemory.blocks.storage.sessions import get_active_session
from chronomemory.blocks.storage.tags import like
from chronomemory.blocks.types import BlockStatus
from chronomemory.blocks.unusable import unusable
from chronomemory.embedders import Embedder
from chronomemory.face.arguments import count, one_of, string
from chronomemory.face.batch import Connection
from chronomemory.face.results import Result, counted

__all__ = ["MemoryStatus", "listed", "survey"]


@dataclass(frozen=True, slots=True)
class MemoryStatus(Result):
    """What there is, how late it is, and what could be done next."""

    inbox: int
    active: int
    archived: int
    edges: int
    contradictions: int
    active_hours: float
    session: str | None
    embedding_model: str
    suggestion: str
    #: Active blocks that have no embedding of this model, or no codes of its tokens: words alone find them.
    not_embedded: int = 0
    #: Links that were seen in too few sessions to count.
    forming: int = 0
    #: Blocks of one's own that lie in a session, and are known there alone until they are kept.
    in_sessions: int = 0
    #: So many blocks in the inbox are worth a dream.
    inbox_threshold: int = 0
    #: What lies under an id of this face and no verb can use, each with the reason: left out of every answer.
    unusable: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """What there is."""
        apart = f" ({self.in_sessions:,} in sessions, known there alone)" if self.in_sessions else ""
        return (
            f"{self.active:,} active, {self.inbox:,} in the inbox, {self.archived:,} archived{apart}; "
            f"{counted(self.edges, 'link')}, {counted(self.contradictions, 'contradiction')}. "
            f"{self.suggestion}"
        )


def survey(
    conn: Connection, *, hours: float, embedder: Embedder, session_id: str | None, threshold: int
) -> MemoryStatus:
    """Count what is shown: links and contradictions of archived blocks are not.

    The session is the memory's own, however long it lasts, or else the one that others have open.
    """
    inbox, active, archived = (conn.count(BLOCK, status.value) for status in BlockStatus)
    if conn.scope.to_dict():
        inbox = conn.count(BLOCK, BlockStatus.INBOX.value, own=True)
    edges, contradictions, forming, in_sessions = conn.store.engine.blocks_counted()
    not_embedded = len(lacking(conn.store, embedder)) if active else 0
    if session_id is None and (others := get_active_session(conn)) is not None:
        session_id = str(others["id"])
    return MemoryStatus(
        inbox=inbox,
        active=active,
        archived=archived,
        edges=edges,
        contradictions=contradictions,
        active_hours=hours,
        session=session_id,
        embedding_model=embedder.model_name,
        suggestion=_suggestion(inbox, active, threshold, not_embedded),
        not_embedded=not_embedded,
        forming=forming,
        in_sessions=in_sessions,
        inbox_threshold=threshold,
        unusable=tuple(f"{name}: {field}: {reason}" for name, field, reason in unusable(conn.store)),
    )


def _suggestion(inbox: int, active: int, threshold: int, not_embedded: int) -> str:
    if not inbox and not active:
        return "Nothing is known yet: learn something."
    if inbox >= threshold or (inbox and not active):
        wait = "1 block waits" if inbox == 1 else f"{inbox} blocks wait"
        return f"{wait} in the inbox: dream, so that {'it' if inbox == 1 else 'they'} can be recalled."
    if not_embedded:
        return f"{counted(not_embedded, 'block')} found by words alone: reembed, so that meaning counts too."
    return "All is well."


def listed(
    conn: Connection,
    *,
    status: str | None,
    tag: str | None,
    tag_pattern: str | None,
    category: str | None,
    limit: int | None,
) -> list[dict[str, Any]]:
    """Return blocks as dicts with their tags, in the order in which they came."""
    if limit is not None:
        limit = count("limit", limit)
    if tag is not None:
        string("tag", tag)
    if tag_pattern is not None:
        string("tag_pattern", tag_pattern)
    wanted = (one_of("status", status, BlockStatus).value,) if status else ()
    every = category is None and tag is None and tag_pattern is None
    found = (
        record
        for record in conn.records(BLOCK, *wanted, limit=limit if every else None)
        if (category is None or record.data["category"] == category)
        and (tag is None or tag in tags_of(record))
        and (tag_pattern is None or any(like(tag_pattern, own) for own in tags_of(record)))
    )
    return [{**block_dict(record), "tags": list(tags_of(record))} for record in islice(found, limit)]
