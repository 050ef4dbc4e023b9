"""The rewrite that needs no model: what was superseded becomes a note of what holds instead."""

from __future__ import annotations

from dataclasses import replace

from chronomemory.pages.text.entries import EntryText, spell_entry
from chronomemory.pages.text.escaping import escape
from chronomemory.pages.text.page import Stretch, read_page

__all__ = ["merge_superseded"]

#: What stands before what an entry said once.
NOTE = "Earlier"


def merge_superseded(text: str) -> str:
    """Return a page on which each superseded entry is a note of the living one that came in its place.

    The note names its id, its moment, its tags and the reason. One without a living successor stays.
    """
    page = read_page(text)
    by_id = {entry.entry_id: entry for entry in page.entries}
    ends: dict[str, EntryText | None] = {}
    notes: dict[str, list[str]] = {}
    merged = set()
    for entry in page.entries:
        living = _living(entry, by_id, ends) if entry.superseded else None
        if living is not None:
            notes.setdefault(living.entry_id, []).append(_note(entry))
            merged.add(entry.entry_id)
    kept = []
    for stretch in page.stretches:
        entry = stretch.entry
        if entry.entry_id in merged:
            continue
        if entry.entry_id in notes:
            stretch = _noted(stretch, notes[entry.entry_id], page.eol)
        kept.append(stretch)
    return replace(page, stretches=tuple(kept)).text


def _noted(stretch: Stretch, notes: list[str], eol: str) -> Stretch:
    """Return an entry with notes below it; what a person has spelled in their own way stays as it is."""
    entry = stretch.entry
    said = replace(entry, content="\n\n".join((entry.content.rstrip("\r\n"), *notes)))
    if stretch.raw == spell_entry(entry, eol):
        return Stretch.of(said, eol)
    below = escape("\n\n".join(notes)).replace("\n", eol)
    return Stretch(said, f"{stretch.raw.rstrip()}{eol}{eol}{below}")


def _living(
    entry: EntryText, by_id: dict[str, EntryText], ends: dict[str, EntryText | None]
) -> EntryText | None:
    """Follow a chain to its end; one that leads nowhere, or round and round, has none.

    ``ends`` has the ends of all entries that were passed before, so that no chain is followed twice.
    """
    passed: dict[str, None] = {}
    here: EntryText | None = entry
    while here is not None and here.superseded and here.entry_id not in ends:
        ends[here.entry_id] = None
        passed[here.entry_id] = None
        here = by_id.get(here.superseded_by or "")
    end = ends[here.entry_id] if here is not None and here.superseded else here
    ends.update(dict.fromkeys(passed, end))
    return end


def _note(entry: EntryText) -> str:
    about = [entry.timestamp, *(f"#{tag}" for tag in entry.tags)]
    if entry.reason:
        about.append(f"superseded: {' '.join(entry.reason.split())}")
    return f"{NOTE}: {entry.entry_id} ({', '.join(about)}): {entry.content}"
