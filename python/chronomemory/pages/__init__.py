"""Markdown pages that a person can read and edit, over the chained log."""

from __future__ import annotations

from chronomemory.pages.compaction import merge_superseded
from chronomemory.pages.errors import (
    EntryError,
    FolderError,
    NotAPage,
    PageConflict,
    PageError,
    PageExists,
    PageNameError,
    SettingsError,
    UnknownEntry,
    UnknownFolder,
    UnknownPage,
)
from chronomemory.pages.ids import PREFIXES
from chronomemory.pages.pages import AsyncPages, Pages, schema
from chronomemory.pages.types import (
    Cleaned,
    Compaction,
    Entry,
    Indexed,
    Link,
    Links,
    PageHit,
    PageInfo,
    Problem,
    Rebuilt,
    Synced,
)
from chronomemory.pages.writing import Settings

__all__ = [
    "PREFIXES",
    "AsyncPages",
    "Cleaned",
    "Compaction",
    "Entry",
    "EntryError",
    "FolderError",
    "Indexed",
    "Link",
    "Links",
    "NotAPage",
    "PageConflict",
    "PageError",
    "PageExists",
    "PageHit",
    "PageInfo",
    "PageNameError",
    "Pages",
    "Problem",
    "Rebuilt",
    "Settings",
    "SettingsError",
    "Synced",
    "UnknownEntry",
    "UnknownFolder",
    "UnknownPage",
    "merge_superseded",
    "schema",
]
