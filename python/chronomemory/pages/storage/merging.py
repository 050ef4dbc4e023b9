"""Merges a page that was edited by hand from an older text with what was written since.

An editor that has a page open does not see what is appended meanwhile, and writes the page without it. The
time and the number of entries in its frontmatter, which we write, tell how old the text is that a person has
seen: each entry knows what they were when it came. Those that came later were not deleted, and what was
struck later is not alive again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from chronomemory.pages.storage.records import EntryState, PageState
from chronomemory.pages.text.frontmatter import Mark, edit, mark_after, mark_of
from chronomemory.pages.text.headings import local_text
from chronomemory.pages.text.page import PageText, Stretch

__all__ = ["merged"]


def merged(
    page: PageState, entries: Sequence[EntryState], edited: PageText, now: datetime
) -> tuple[PageText, tuple[str, ...]]:
    """Return an edited page with what was written since, and the ids of that; none if there is nothing."""
    there = {entry.entry_id for entry in edited.entries}
    base, latest = mark_of(edited.head, edited.meta), mark_of(page.head, page.meta)
    unseen = [
        entry.stretch
        for number, entry in enumerate(entries)
        if entry.stretch.entry.entry_id not in there and _came_later(entry, number, base, latest)
    ]
    if not unseen:
        return edited, ()
    later = {stretch.entry.entry_id for stretch in unseen}
    struck = {
        entry.stretch.entry.entry_id: entry.stretch
        for entry in entries
        if entry.stretch.entry.superseded_by in later
    }
    kept = [_struck(stretch, struck.get(stretch.entry.entry_id)) for stretch in edited.stretches]
    added = tuple(Stretch.of(stretch.entry, edited.eol) for stretch in unseen)
    count = len(kept) + len(added)
    # Younger than all that is on it, so that who deletes an entry from now on has seen it.
    updated = local_text(mark_after(latest, now, count))
    head, _ = edit(edited.head, {"entry_count": count, "updated": updated}, plain=False, eol=edited.eol)
    meta = replace(edited.meta, updated=updated)
    whole = replace(edited, head=head, meta=meta, stretches=(*kept, *added), tail=edited.tail or edited.eol)
    return whole, tuple(stretch.entry.entry_id for stretch in unseen)


def _came_later(entry: EntryState, number: int, base: Mark | None, latest: Mark | None) -> bool:
    """Say whether an entry came after the text that an editor had open."""
    if (
        entry.came is None
    ):  # it is as old as the page, or from before entries were marked: then they were counted
        return base is not None and latest is not None and base[1] <= number < latest[1]
    if base is None:  # a text from before there was a frontmatter
        return True
    if latest is not None and base[0] > latest[0]:  # an editor that writes its own time: the count is left
        return base[1] < entry.came[1]
    return base < entry.came


def _struck(edited: Stretch, ours: Stretch | None) -> Stretch:
    """Return an entry as it was struck meanwhile, unless the person changed what it says."""
    if ours is None or edited.entry.superseded or edited.entry.content != ours.entry.content:
        return edited
    return ours
