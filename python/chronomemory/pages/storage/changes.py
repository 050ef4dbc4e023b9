"""The records that a new text of a page writes, and the merge of concurrent edits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from chronomemory.face.batch import Connection
from chronomemory.pages.ids import entry_key, page_key
from chronomemory.pages.layout import is_note_name
from chronomemory.pages.storage.records import (
    BY_US,
    NO_FILE,
    EntryState,
    Origin,
    PageState,
    digest_of,
    entry_record,
    fits,
    following,
    page_record,
    page_state,
    preamble_of,
    preamble_record,
)
from chronomemory.pages.text.entries import local_text
from chronomemory.pages.text.frontmatter import Mark, edit, is_plain, mark_after, mark_of
from chronomemory.pages.text.page import PageText, Stretch, is_section
from chronomemory.record import ChronoRecord


@dataclass(slots=True)
class PageChange:
    """The records that a new text of a page asks for."""

    page: PageState
    text: str
    origin: Origin
    added: list[ChronoRecord] = field(default_factory=list)
    changed: list[ChronoRecord] = field(default_factory=list)
    gone: list[ChronoRecord] = field(default_factory=list)
    #: The ids of entries that an edit by hand did not know, and that were put back on the page.
    kept: tuple[str, ...] = ()
    #: Which lines of an edit look like the heading of an entry and are none, and why.
    suspects: tuple[str, ...] = ()

    @property
    def corrections(self) -> int:
        return len(self.added) + len(self.changed) + len(self.gone)

    def put(self, conn: Connection, folder: str) -> None:
        # A section under a reworded heading is a new entry with the text of the old one.
        moved = {_body(record): record.id for record in self.added} | {"": ""}
        for record in self.gone:
            _remove(conn, record.id, self.origin, moved.get(_body(record), ""))
        for record in (*self.changed, *self.added):
            conn.put(record)
        put_page(conn, folder, self.page, self.origin)


def _body(record: ChronoRecord) -> str:
    content: str = record.data["content"]
    return content.partition("\n")[2] if is_section(record.data["id"]) else content


def remove_page(
    conn: Connection,
    folder: str,
    name: str,
    entries: Sequence[ChronoRecord],
    origin: Origin,
    *,
    renamed_to: str = "",
) -> None:
    """Delete a page with its entries; records of a renamed page refer to the new ones, for erasures."""
    for entry_id in ("", *(record.data["id"] for record in entries)):
        old = entry_key(folder, name, entry_id)
        if entry_id or conn.record(old) is not None:
            _remove(conn, old, origin, renamed_to and entry_key(folder, renamed_to, entry_id))
    _remove(conn, page_key(folder, name), origin, renamed_to and page_key(folder, renamed_to))


def _remove(conn: Connection, record_id: str, origin: Origin, renamed_to: str = "") -> None:
    """Delete a record; the event before says who deleted it."""
    if origin.evidence:
        patch: dict[str, Any] = {"source_type": origin.source_type, "evidence": list(origin.evidence)}
        if renamed_to:
            patch["data"] = {"renamed_to": renamed_to}
        conn.patch(record_id, patch)
    conn.delete(record_id)


def put_page(conn: Connection, folder: str, page: PageState, origin: Origin = BY_US) -> None:
    known = conn.record(page_key(folder, page.name))
    before = None if known is None or not fits(known, is_note_name) else page_state(known)
    _put_preamble(conn, folder, page, before, origin)
    new = page_record(folder, page, origin)
    if known is None:
        conn.put(new)
        return
    data = {name: value for name, value in new.data.items() if known.data.get(name) != value}
    data |= {name: None for name in known.data if name not in new.data and name != "@scope"}
    if not data:
        return
    patch = {
        name: getattr(new, name)
        for name in ("label", "source_type", "evidence")
        if getattr(new, name) != getattr(known, name)
    }
    conn.patch(new.id, {**patch, "data": data})


def _put_preamble(
    conn: Connection, folder: str, page: PageState, before: PageState | None, origin: Origin
) -> None:
    new = preamble_record(folder, page, origin)
    if new is None and (before is None or not preamble_of(before)):
        return
    known = conn.record(entry_key(folder, page.name, ""))
    if new is None:
        if known is not None:
            conn.delete(known.id)
    elif known is None or not _says_the_same(known, new):
        conn.put(new)


def change_to(
    folder: str,
    name: str,
    new: PageText,
    origin: Origin,
    *,
    page: PageState | None = None,
    entries: Sequence[EntryState] = (),
    on_disk: bool = False,
    shown: str | None = None,
    written: str | None = None,
) -> PageChange:
    """Return the change from the logged state of a page to a text; ``shown`` is the digest of its file."""
    mark = None if page is None else mark_of(new.head, new.meta)
    known = {entry.stretch.entry.entry_id: entry for entry in entries}
    orders = _orders([known.get(entry.entry_id) for entry in new.entries])
    text = new.text
    before = None if page is None else following(page, shown, text)
    earlier = (NO_FILE,) if before is None else before.earlier
    state = PageState(
        name=name,
        head=new.head,
        tail=new.tail,
        eol=new.eol,
        meta=new.meta,
        plain=page.plain if page is not None and page.head == new.head else is_plain(new.head),
        count=len(new.entries),
        letters=len(text),
        digest=digest_of(text.encode()),
        earlier=() if on_disk else earlier,
        next_order=max([*orders, -1, (page.next_order if page else 0) - 1]) + 1,
        written=("" if page is None else page.written) if written is None else written,
        source=None if page is None else page.source,
        title=new.title,
    )
    change = PageChange(state, text, origin)
    for stretch, order in zip(new.stretches, orders, strict=True):
        entry = known.get(stretch.entry.entry_id)
        came = mark if entry is None else entry.came
        record = entry_record(folder, name, stretch, order, new.eol, origin, came, within=state.within)
        if entry is None:
            change.added.append(record)
        elif not _says_the_same(entry.record, record):
            change.changed.append(record)
    kept = {entry.entry_id for entry in new.entries}
    change.gone = [entry.record for entry_id, entry in known.items() if entry_id not in kept]
    return change


def _orders(known: Sequence[EntryState | None]) -> list[int]:
    """Number entries: known ones keep their numbers if their order is the same and all new ones follow."""
    numbers = [entry.order for entry in known if entry is not None]
    behind = known[len(numbers) :]
    if numbers == sorted(set(numbers)) and not any(behind):
        start = numbers[-1] + 1 if numbers else 0
        return [*numbers, *range(start, start + len(behind))]
    return list(range(len(known)))


def _says_the_same(before: ChronoRecord, after: ChronoRecord) -> bool:
    data = {name: value for name, value in before.data.items() if name != "@scope"}
    return before.status == after.status and data == after.data


def merged(
    page: PageState, entries: Sequence[EntryState], edited: PageText, now: datetime
) -> tuple[PageText, tuple[str, ...]]:
    """Return an edited page with entries written since, and their ids."""
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
    kept = []
    for stretch in edited.stretches:
        entry, ours = stretch.entry, struck.get(stretch.entry.entry_id)
        if ours is not None and not entry.superseded and entry.content == ours.entry.content:
            stretch = ours  # as it was struck meanwhile
        kept.append(stretch)
    added = tuple(Stretch.of(stretch.entry, edited.eol) for stretch in unseen)
    count = len(kept) + len(added)
    # Younger than all that is on it, so that who deletes an entry from now on has seen it.
    updated = local_text(mark_after(latest, now, count))
    head, _ = edit(edited.head, {"entry_count": count, "updated": updated}, plain=False, eol=edited.eol)
    meta = replace(edited.meta, updated=updated)
    whole = replace(edited, head=head, meta=meta, stretches=(*kept, *added), tail=edited.tail or edited.eol)
    return whole, tuple(stretch.entry.entry_id for stretch in unseen)


def _came_later(entry: EntryState, number: int, base: Mark | None, latest: Mark | None) -> bool:
    """Return whether an entry is newer than the text that an editor had open."""
    if (
        entry.came is None
    ):  # it is as old as the page, or from before entries were marked: then they were counted
        return base is not None and latest is not None and base[1] <= number < latest[1]
    if base is None:  # a text from before there was a frontmatter
        return True
    if latest is not None and base[0] > latest[0]:  # an editor that writes its own time: the count is left
        return base[1] < entry.came[1]
    return base < entry.came
