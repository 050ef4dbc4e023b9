"""Markdown pages that a person can read and edit, over the chained log."""

from __future__ import annotations

from chronomemory.pages.compaction import merge_superseded as merge_superseded
from chronomemory.pages.errors import EntryError as EntryError
from chronomemory.pages.errors import FolderError as FolderError
from chronomemory.pages.errors import NotAPage as NotAPage
from chronomemory.pages.errors import PageConflict as PageConflict
from chronomemory.pages.errors import PageError as PageError
from chronomemory.pages.errors import PageExists as PageExists
from chronomemory.pages.errors import PageNameError as PageNameError
from chronomemory.pages.errors import SettingsError as SettingsError
from chronomemory.pages.errors import UnknownEntry as UnknownEntry
from chronomemory.pages.errors import UnknownFolder as UnknownFolder
from chronomemory.pages.errors import UnknownPage as UnknownPage
from chronomemory.pages.ids import PREFIXES as PREFIXES
from chronomemory.pages.pages import AsyncPages as AsyncPages
from chronomemory.pages.pages import Pages as Pages
from chronomemory.pages.pages import schema as schema
from chronomemory.pages.types import Cleaned as Cleaned
from chronomemory.pages.types import Compaction as Compaction
from chronomemory.pages.types import Entry as Entry
from chronomemory.pages.types import Indexed as Indexed
from chronomemory.pages.types import Link as Link
from chronomemory.pages.types import Links as Links
from chronomemory.pages.types import PageHit as PageHit
from chronomemory.pages.types import PageInfo as PageInfo
from chronomemory.pages.types import Problem as Problem
from chronomemory.pages.types import Rebuilt as Rebuilt
from chronomemory.pages.types import Synced as Synced
from chronomemory.pages.writing import Settings as Settings
