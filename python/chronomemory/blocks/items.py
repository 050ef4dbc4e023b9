"""Memories as objects: one block with all that a program wants to know of it, and pages of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from chronomemory.blocks.engine import Blocks
from chronomemory.blocks.ids import BLOCK, block_key, plain_id
from chronomemory.blocks.storage.blocks import blocks_among, tags_of, time_of
from chronomemory.blocks.types import BlockStatus, shortened
from chronomemory.face.arguments import one_of, string
from chronomemory.face.results import Result
from chronomemory.filters import Where
from chronomemory.record import ChronoRecord
from chronomemory.scope import Answer, Scope
from chronomemory.selection import Page, query


@dataclass(frozen=True, slots=True)
class MemoryItem(Result):
    """A memory: its text, where it comes from, and what is known of it."""

    id: str
    content: str
    tags: tuple[str, ...]
    category: str
    status: str
    confidence: float
    #: How often it was shown or praised.
    reinforcement_count: int
    source: str
    speaker: str | None = None
    conversation: str | None = None
    #: When it happened or was said: the ``time`` that was given, or else when it was learned.
    time: datetime | None = field(default=None, compare=False)
    created_at: datetime | None = field(default=None, compare=False)
    updated_at: datetime | None = field(default=None, compare=False)
    expires_at: datetime | None = None
    #: Why it is archived, and the block that took its place.
    archive_reason: str | None = None
    superseded_by: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    scope: Scope | None = None

    def __getitem__(self, name: str) -> Any:
        """Return a field by its name, for code that expects rows as dicts."""
        if name not in self.__slots__:
            raise KeyError(name)
        return getattr(self, name)

    @property
    def summary(self) -> str:
        return f"{self.id} {shortened(self.content)}"


class MemoryPage(Answer[MemoryItem]):
    """Memories in order; ``cursor`` is where the next page begins, None at the end."""

    __slots__ = ("cursor",)

    def __init__(self, items: Iterable[MemoryItem], page: Page) -> None:
        super().__init__(items, scope=page.scope, known=page.known)
        self.cursor = page.cursor


def item_of(record: ChronoRecord) -> MemoryItem:
    """Return the memory that a record holds; a record of another face has its whole id."""
    data = record.data
    is_block = record.id.startswith(block_key(""))
    created_at, updated_at, _ = record.moments_and_version()
    expires_at = data.get("expires_at")
    return MemoryItem(
        id=plain_id(record.id) if is_block else record.id,
        content=str(data.get("content", record.label)),
        tags=tags_of(record) if is_block else (),
        category=str(data.get("category", record.kind)),
        status=record.status,
        confidence=record.confidence,
        reinforcement_count=data.get("reinforcement_count", 0),
        source=str(data.get("source", record.source_type)),
        speaker=data.get("speaker"),
        conversation=data.get("conversation"),
        time=time_of(data, created_at),
        created_at=created_at,
        updated_at=updated_at,
        expires_at=datetime.fromisoformat(expires_at) if isinstance(expires_at, str) else None,
        archive_reason=data.get("archive_reason"),
        superseded_by=data.get("superseded_by"),
        metadata=dict(data.get("metadata") or {}),
        scope=record.scope,
    )


def listed(
    blocks: Blocks,
    *,
    status: str | None,
    tag: str | None,
    tag_pattern: str | None,
    category: str | None,
    where: Where | None,
    after: str | None,
    **limits: Any,
) -> MemoryPage:
    """Return the memories that pass all conditions, newest first."""
    parts: list[Where] = []
    if category is not None:
        parts.append({"data.category": string("category", category)})
    if where is not None:
        parts.append(where)
    if tag is not None:
        parts.append({"tags": {"any": [string("tag", tag)]}})
    if tag_pattern is not None:
        tagged = blocks.store.engine.blocks.tagged(string("tag_pattern", tag_pattern))
        parts.append({"id": {"in": [block_key(block_id) for block_id in tagged]}})
    page = query(
        blocks.store,
        kind=BLOCK,
        status=None if status is None else one_of("status", status, BlockStatus).value,
        where={"and": parts} if parts else None,
        order_by="-created_at",
        after=after,
        **limits,
    )
    return MemoryPage([item_of(record) for record in blocks_among(blocks.store, page)], page)
