"""What can go wrong with a folder of pages, and nowhere else."""

from __future__ import annotations

from chronomemory.errors import ChronoError


class PageError(ChronoError):
    """The root of these."""

    usual_recovery = "Correct what the message names; nothing was written."


class PageNameError(PageError, ValueError):
    """No page can be called so."""

    usual_recovery = "Begin the name with one of the prefixes, such as topic-rust; .md may be left out."


class EntryError(PageError, ValueError):
    """A content, tag, title, description or reason that no page can hold; ``field`` names it."""

    field: str = ""


class PageExists(PageError, ValueError):
    """There is a page of this name already."""

    usual_recovery = "Append to it, or choose another name."


class _Missing(PageError, KeyError):
    # A KeyError would show its message as the repr of a key.
    __str__ = Exception.__str__


class UnknownPage(_Missing):
    """There is no page of this name."""

    usual_recovery = "Check the name: list() shows what there is; create() makes a page."


class UnknownEntry(_Missing):
    """The page has no entry with this id, or it was superseded already."""

    usual_recovery = "Read the page with include_superseded=True: it shows the ids and what replaced them."


class NotAPage(PageError, ValueError):
    """A text that cannot be read as a page; ``line`` is where, counted from 1."""

    usual_recovery = "Correct the file by hand, then sync."

    line: int | None = None


class PageConflict(PageError):
    """A page was edited by hand in a way that cannot be taken in, so nothing is written over it."""

    usual_recovery = "Correct the file by hand (or move it away), then sync."


class FolderError(PageError):
    """A folder that cannot be one of pages here, or one of other names."""

    usual_recovery = "Give the names that it was made with, or another folder."


class UnknownFolder(FolderError, LookupError):
    """There are no pages in a folder, or none of these names."""

    usual_recovery = "Make a page with create(), sync a folder of notes, or give the folder and its names."


class SettingsError(PageError, ValueError):
    """A ``config.toml`` that cannot be read, or a knob that cannot be set so."""

    usual_recovery = "Correct [writer] in .chronomemory/config.toml."
