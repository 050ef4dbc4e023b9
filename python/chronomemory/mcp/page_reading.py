"""Lists, reads and searches pages within a budget, after taking in edits made by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from chronomemory.errors import ChronoError
from chronomemory.mcp.reading import Answer, answered, heading
from chronomemory.mcp.rendering import Budget, Item, clipped, one_line, quoted
from chronomemory.mcp.served_store import ServedStore
from chronomemory.pages import Entry, FolderError, PageInfo, UnknownFolder, UnknownPage, schema
from chronomemory.pages.ids import entry_key, file_of
from chronomemory.pages.reading import PageReader
from chronomemory.pages.storage.home import Home, open_home
from chronomemory.pages.syncing import sync, write_index
from chronomemory.pages.writing import Settings
from chronomemory.scope import Scope

T = TypeVar("T")

_COUNTED = 100
_DESCRIPTION, _NOTE, _NOTES = 60, 40, 3
_MAKE = "Make the first with `chronomemory pages create`, or check the names that the server was started with"


@dataclass
class PageFolder:
    """The pages that a scope sees, and notes for the reader."""

    served: ServedStore
    home: Home | None
    is_own: bool = True
    notes: list[str] = field(default_factory=list)

    def need(self) -> Home:
        if self.home is None:
            raise UnknownFolder(self.notes[0].partition(";")[0], recovery=f"{_MAKE}.")
        return self.home

    def take_in(self, names: Sequence[str]) -> None:
        """Take in edits of some pages made by hand; failures become notes."""
        notes = [note for name in names if (note := self._behind(self.need(), name))]
        self.notes += notes[:_NOTES]
        if len(notes) > _NOTES:
            self.notes.append(f"the same holds for {len(notes) - _NOTES} more pages")

    def take_in_all(self) -> None:
        """The same for all pages whose files are not as they were when this server looked last."""
        home, seen = self.home, self.served.seen_files
        if home is None:
            return
        files = {name: home.folder.stamp(file) for name, file in home.files()[0].items()}
        changed = [name for name, stamp in files.items() if seen.get(name) != stamp]
        before = len(self.notes)
        self.take_in(changed)
        may_sync = home.is_free and self.is_own and not self.served.read_only
        # A user deleted these notes, or gave them other names.
        if gone := [page.name for page in home.look.pages() if may_sync and page.name not in files]:
            report = sync(home, Settings(), gone)
            self.notes += [quoted(clipped(str(one), _NOTE)[0]) for one in report.problems[:_NOTES]]
        if len(self.notes) == before:
            seen.update({name: files[name] for name in changed})

    def _behind(self, home: Home, name: str) -> str:
        try:
            if not home.is_edited(name):
                return ""
            if self.served.read_only or not self.is_own:
                return (
                    f"{file_of(name)} was edited by hand; this server may not take that in and shows what was"
                )
            with home.locked():
                home.catch_up(name)
                write_index(home)
        except ChronoError as error:
            reason = quoted(clipped(str(error), _NOTE)[0])
            return f"an edit by hand cannot be taken in, so this is what the page said before: {reason}"
        return ""


@contextmanager
def opened(served: ServedStore) -> Iterator[PageFolder]:
    """Open the pages that a scope sees: its own, or those that all share."""
    folder = _found(served)
    try:
        yield folder
    finally:
        if folder.home is not None:
            folder.home.handle.close()


def _found(served: ServedStore) -> PageFolder:
    notes = served.notes()
    for scope in dict.fromkeys((served.scope, Scope())):
        home = open_home(served.store, None, scope, None, {})
        try:
            home.check()
        except FolderError:
            home.handle.close()
            continue
        is_own = scope == served.scope
        return PageFolder(
            served, home, is_own, notes if is_own else [*notes, "these pages are shared by all"]
        )
    note = f"there are no pages for {served.scope}; {_MAKE[0].lower()}{_MAKE[1:]}"
    return PageFolder(served, None, notes=[note, *notes])


def list_pages(
    served: ServedStore, *, include_dormant: bool, include_archived: bool, offset: int, max_tokens: int
) -> Answer:
    with opened(served) as folder:
        folder.take_in_all()
        found: Sequence[PageInfo] = []
        if folder.home is not None:
            found = PageReader(folder.home).list(
                include_dormant=include_dormant, include_archived=include_archived
            )
        items, left_out, following = _fitting(folder, found[offset:], _page_item, max_tokens, offset)
        words = _words(f"{len(items)} of the pages, by name", left_out, following)
        counts = {"left_out": left_out, "next_offset": following}
        return answered(served, words, folder.notes, map(_line, items), pages=items, **counts)


def read_page(served: ServedStore, path: str, *, offset: int, max_tokens: int, **asked: Any) -> Answer:
    """Return the entries of a page in their order, as many as fit."""
    with opened(served) as folder:
        name = (home := folder.need()).name(path)
        folder.take_in([name])
        try:
            info = PageReader(home).info(name)
            found = PageReader(home).read(name, **asked)
        except UnknownPage as error:
            raise UnknownPage(str(error), recovery="Look the name up with list_pages.") from None
        page = _page_item(folder, info, _DESCRIPTION)
        budget = served.budget(max_tokens, folder.notes)
        budget.take({}, _line(page))
        items, left_out, following = _fitting(folder, found[offset:], _entry_item, max_tokens, offset, budget)
        words = _words(f"{len(items)} entries of a page, in their order", left_out, following)
        answer = _entries_answer(folder, items, left_out, words, _line(page))
        answer.structured["next_offset"] = following
        return answer


def search_entries(served: ServedStore, query: str, *, limit: int, max_tokens: int, **asked: Any) -> Answer:
    with opened(served) as folder:
        folder.take_in_all()
        home = folder.home
        found = [] if home is None else PageReader(home).search(query, limit=limit + _COUNTED, **asked)
        pairs = [(hit.entry, hit.score) for hit in found]
        return _best(folder, pairs, limit, max_tokens, "entries that match, best first")


def recent_entries(served: ServedStore, *, limit: int, max_tokens: int, **asked: Any) -> Answer:
    with opened(served) as folder:
        folder.take_in_all()
        home = folder.home
        found = [] if home is None else PageReader(home).recent(limit=limit + _COUNTED, **asked)
        pairs = [(entry, None) for entry in found]
        return _best(folder, pairs, limit, max_tokens, "entries, the latest first")


def tell_schema(served: ServedStore) -> Answer:
    """Return the guide for writing pages; it is ours, so it is not quoted."""
    text = schema()
    return Answer({**served.named(), "schema": text}, [*heading(served, "how pages are written"), text])


def _best(
    folder: PageFolder, found: Sequence[tuple[Entry, float | None]], limit: int, max_tokens: int, what: str
) -> Answer:
    def make(_: PageFolder, pair: tuple[Entry, float | None], tokens: int) -> Item:
        item = _entry_item(folder, pair[0], tokens)
        return item if pair[1] is None else {**item, "score": round(pair[1], 4)}

    if len(found) == limit + _COUNTED:
        folder.notes.append("more may be left out than were counted")
    items, _, _ = _fitting(folder, found[:limit], make, max_tokens, 0)
    left_out = len(found) - len(items)
    words = _words(f"{len(items)} of the {what}", left_out, 0)
    return _entries_answer(folder, items, left_out, words if found else "nothing found")


def _entries_answer(folder: PageFolder, items: list[Item], left_out: int, words: str, *lines: str) -> Answer:
    rows = [*lines, *map(_line, items)]
    return answered(folder.served, words, folder.notes, rows, entries=items, left_out=left_out)


def _words(what: str, left_out: int, following: int) -> str:
    return f"{what}, {left_out} left out" + (f", next_offset={following}" if following else "")


def _fitting(
    folder: PageFolder,
    things: Sequence[T],
    make: Callable[[PageFolder, T, int], Item],
    max_tokens: int,
    offset: int,
    budget: Budget | None = None,
) -> tuple[list[Item], int, int]:
    """Return the items that fit, the number left out, and the offset of the first of these."""
    room = folder.served.budget(max_tokens, folder.notes) if budget is None else budget
    items = room.fit_texts(things, partial(make, folder), _line, max_tokens)
    if things and not items:
        folder.notes.append("not one fits: ask again with a larger max_tokens")
    left_out = len(things) - len(items)
    return items, left_out, offset + len(items) if left_out else 0


def _page_item(_: PageFolder, page: PageInfo, tokens: int) -> Item:
    return {
        "page": page.name,
        "title": clipped(page.title, _DESCRIPTION)[0],
        "description": clipped(page.description, min(tokens, _DESCRIPTION))[0],
        "tags": list(page.tags),
        "status": page.status,
        "updated": page.updated,
        "entry_count": page.entry_count,
    }


def _entry_item(folder: PageFolder, entry: Entry, tokens: int) -> Item:
    home = folder.need()
    record = home.handle.store.engine.get(entry_key(home.digits, entry.page, entry.id))
    text, is_cut = clipped(entry.content, tokens)
    item: Item = {
        "id": entry.id,
        "page": entry.page,
        "time": entry.timestamp,
        "tags": list(entry.tags),
        "text": text,
        "source": "" if record is None else record.source_type,
        "status": "superseded" if entry.superseded else "active",
        "confidence": 0.0 if record is None else round(record.confidence, 4),
    }
    if entry.superseded_by:
        item["superseded_by"] = entry.superseded_by
    if entry.reason:
        item["reason"] = clipped(entry.reason, _DESCRIPTION)[0]
    return {**item, "cut": True} if is_cut else item


def _line(item: Item) -> str:
    facts = {name: value for name, value in item.items() if name not in ("text", "cut")}
    text = f" text={quoted(item['text'])}" if "text" in item else ""
    return f"- {one_line(facts)}{text}{' (cut: ask with a larger max_tokens)' if item.get('cut') else ''}"
