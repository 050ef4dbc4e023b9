"""The shapes of what is told about pages, as output schemas."""

from __future__ import annotations

from typing import Any

from typing_extensions import NotRequired, TypedDict

from chronomemory.mcp.shapes import Named

__all__ = ["EntriesTold", "FileTold", "PageRead", "PagesTold", "RecentTold", "SchemaTold"]


class PageTold(TypedDict):
    """A page, without its entries."""

    page: str
    title: str
    description: str
    tags: list[str]
    status: str
    updated: str
    entry_count: int


class EntryTold(TypedDict):
    """One entry of a page."""

    id: str
    page: str
    time: str
    tags: list[str]
    text: str
    source: str
    status: str
    confidence: float
    superseded_by: NotRequired[str]
    reason: NotRequired[str]
    score: NotRequired[float]
    cut: NotRequired[bool]


class PagesTold(Named):
    """Pages, by their names."""

    pages: list[PageTold]
    #: Memories as ``search_memories`` shows them, if there are no pages.
    memories: NotRequired[list[dict[str, Any]]]
    next_cursor: NotRequired[str]
    left_out: int
    next_offset: int
    notes: list[str]


class EntriesTold(Named):
    """Entries of pages."""

    entries: list[EntryTold]
    left_out: int
    notes: list[str]


class RecentTold(EntriesTold):
    """The latest entries, or memories if there are no pages."""

    memories: NotRequired[list[dict[str, Any]]]
    next_cursor: NotRequired[str]


class PageRead(EntriesTold):
    """Entries of one page."""

    next_offset: int


class FileTold(Named):
    """What a file says, or what was done to it."""

    result: str
    left_out: int
    notes: list[str]
    repeated: NotRequired[bool]


class SchemaTold(Named):
    """How pages are written."""

    schema: str
