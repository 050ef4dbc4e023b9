"""Merges a page that was edited by hand from an older text with what was written since.

An editor that has a page open does not see what is appended meanwhile, and writes the page without it. The
number of entries in its frontmatter, which we write, tells how many a person has seen: those that came later
were not deleted, and what was struck later is not alive again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from chronomemory.pages.storage.records import EntryState, PageState
from chronomemory.pages.text.frontmatter import edit, read_values
from chronomemory.pages.text.page import PageText, Stretch

__all__ = ["merged"]


def merged(
    page: PageState, entries: Sequence[EntryState], edited: PageText
) -> tuple[PageText, tuple[str, ...]]:
    """Return an edited page with what was written since, and the ids of that; none if there is nothing."""
    seen, counted = _count(edited.head), _count(page.head)
    if seen is None or counted is None or seen >= counted:
        return edited, ()
    there = {entry.entry_id for entry in edited.entries}
    unseen = [entry.stretch for entry in entries[seen:counted] if entry.stretch.entry.entry_id not in there]
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
    told: dict[str, Any] = {"entry_count": len(kept) + len(added)}
    meta = edited.meta
    if page.meta.updated:
        told["updated"] = page.meta.updated
        meta = replace(meta, updated=page.meta.updated)
    head, _ = edit(edited.head, told, plain=False, eol=edited.eol)
    whole = replace(edited, head=head, meta=meta, stretches=(*kept, *added), tail=edited.tail or edited.eol)
    return whole, tuple(stretch.entry.entry_id for stretch in unseen)


def _count(head: str) -> int | None:
    value = read_values(head).get("entry_count")
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _struck(edited: Stretch, ours: Stretch | None) -> Stretch:
    """Return an entry as it was struck meanwhile, unless the person changed what it says."""
    if ours is None or edited.entry.superseded or edited.entry.content != ours.entry.content:
        return edited
    return ours
