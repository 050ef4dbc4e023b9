"""Lists, reads and searches pages within a budget, after taking in edits made by hand.

Shared pages are read by every scope and changed by none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from chronomemory._core import canonical_json
from chronomemory.errors import ChronoError
from chronomemory.face.files import Stamp
from chronomemory.mcp.reading import Answer, Question, heading, search
from chronomemory.mcp.rendering import Budget, clipped, one_line, quoted, tokens_of
from chronomemory.mcp.served_store import ServedStore
from chronomemory.pages import Entry, FolderError, PageInfo, UnknownFolder, UnknownPage, schema
from chronomemory.pages.ids import entry_key, file_of
from chronomemory.pages.reading import PageReader
from chronomemory.pages.settings import Settings
from chronomemory.pages.storage.home import Home, open_home
from chronomemory.pages.syncing import sync, write_index
from chronomemory.scope import Scope

T = TypeVar("T")
Item = dict[str, Any]

#: So many more entries are counted, so that an answer can say how many it left out.
_COUNTED = 100
#: No single entry takes more than this share of an answer; what it takes to say that one was cut.
_SHARE, _CUT_TOKENS = 0.5, 14
#: How long the description of a page may be in a list, and a note, in tokens; how many notes there are.
_DESCRIPTION, _NOTE, _NOTES = 60, 40, 3
_MAKE = "Make the first with `chronomemory pages create`, or check the names that the server was started with"


@dataclass
class PageFolder:
    """The pages that a scope sees, and notes for the reader."""

    served: ServedStore
    #: None if there are none.
    home: Home | None
    #: Whether the pages are of the very names that ask.
    is_own: bool = True
    notes: list[str] = field(default_factory=list)

    def need(self) -> Home:
        """Return the home of the pages, which must be there."""
        if self.home is None:
            raise UnknownFolder(self.notes[0].partition(";")[0], recovery=f"{_MAKE}.")
        return self.home

    def note_memories(self) -> None:
        """Say how memories are listed that are on no page, if there are any."""
        if self.served.door.engine.count(kind="block"):
            self.notes.append("memories that are on no page: search_memories with an empty query lists them")

    def take_in(self, names: Sequence[str]) -> None:
        """Take in edits of some pages made by hand; failures become notes."""
        notes = [note for name in names if (note := self._behind(self.need(), name))]
        self.notes += notes[:_NOTES]
        if len(notes) > _NOTES:
            self.notes.append(f"so it is with {len(notes) - _NOTES} more pages")

    def take_in_all(self) -> None:
        """The same for all pages whose files are not as they were when this server looked last."""
        home, seen = self.home, self.served.seen_files
        if home is None:
            return
        files = {name: home.folder.stamp(file) for name, file in home.files()[0].items()}
        changed = [name for name, stamp in files.items() if seen.get(name) != stamp]
        before = len(self.notes)
        self.take_in(changed)
        if home.is_free and self.is_own and not self.served.read_only:
            self._let_go(home, files)
        if len(self.notes) == before:
            seen.update({name: files[name] for name in changed})

    def _let_go(self, home: Home, files: Mapping[str, Stamp]) -> None:
        """Let go of notes that a user deleted, or gave another name."""
        if gone := [page.name for page in home.look.pages() if page.name not in files]:
            report = sync(home, Settings(), gone)
            self.notes += [quoted(clipped(str(one), _NOTE)[0]) for one in report.problems[:_NOTES]]

    def _behind(self, home: Home, name: str) -> str:
        try:
            if not home.is_edited(name):
                return ""
            if self.served.read_only or not self.is_own:
                return (
                    f"{file_of(name)} was edited by hand, which this server may not take in: told is what was"
                )
            with home.locked():
                home.catch_up(name)
                write_index(home)
        except ChronoError as error:
            reason = quoted(clipped(str(error), _NOTE)[0])
            return f"what was edited by hand cannot be taken in, told is what was said before: {reason}"
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
    place = quoted(str(home.folder.root).encode("utf-8", "backslashreplace").decode())
    return PageFolder(
        served,
        None,
        notes=[f"there are no pages for {served.scope} in {place}; {_MAKE[0].lower()}{_MAKE[1:]}", *notes],
    )


def list_pages(
    served: ServedStore, *, include_dormant: bool, include_archived: bool, offset: int, max_tokens: int
) -> Answer:
    """Return the pages by their names, as many as fit."""
    with opened(served) as folder:
        folder.take_in_all()
        if folder.home is None:
            return _newest(folder, {"pages": [], "next_offset": 0}, max_tokens)
        folder.note_memories()
        found = PageReader(folder.home).list(
            include_dormant=include_dormant, include_archived=include_archived
        )
        items, left_out, following = _fitting(folder, found[offset:], _page_item, max_tokens, offset)
        structured = {
            **served.named(),
            "pages": items,
            "left_out": left_out,
            "next_offset": following,
            "notes": folder.notes,
        }
        words = _words(f"{len(items)} of the pages, by name", left_out, following)
        return Answer(structured, [*heading(served, words, folder.notes), *map(_line, items)])


def read_page(served: ServedStore, path: str, *, offset: int, max_tokens: int, **asked: Any) -> Answer:
    """Return the entries of a page in their order, as many as fit."""
    with opened(served) as folder:
        name = (home := folder.need()).name(path)
        folder.take_in([name])
        try:
            info = PageReader(home).info(name)
            found = PageReader(home).read(name, **asked)
        except UnknownPage as error:
            raise UnknownPage(str(error), recovery="Look the name up with list_memories.") from None
        page = _page_item(folder, info, _DESCRIPTION)
        budget = served.budget(max_tokens, folder.notes)
        budget.take({}, _line(page))
        items, left_out, following = _fitting(folder, found[offset:], _entry_item, max_tokens, offset, budget)
        words = _words(f"{len(items)} entries of a page, in their order", left_out, following)
        answer = _entries_answer(folder, items, left_out, words, _line(page))
        answer.structured["next_offset"] = following
        return answer


def search_entries(served: ServedStore, query: str, *, limit: int, max_tokens: int, **asked: Any) -> Answer:
    """Return the entries that fit a text best, as many as fit."""
    with opened(served) as folder:
        folder.take_in_all()
        found = (
            []
            if folder.home is None
            else PageReader(folder.home).search(query, limit=limit + _COUNTED, **asked)
        )
        pairs = [(hit.entry, hit.score) for hit in found]
        return _best(folder, pairs, limit, max_tokens, "entries that match, best first")


def recent_entries(served: ServedStore, *, limit: int, max_tokens: int, **asked: Any) -> Answer:
    """Return the latest entries of all pages, as many as fit."""
    with opened(served) as folder:
        folder.take_in_all()
        if folder.home is None:
            return _newest(folder, {"entries": []}, max_tokens, limit=limit, since=asked["since"] or "")
        folder.note_memories()
        found = PageReader(folder.home).recent(limit=limit + _COUNTED, **asked)
        return _best(
            folder, [(entry, None) for entry in found], limit, max_tokens, "entries, the latest first"
        )


def tell_schema(served: ServedStore) -> Answer:
    """Return the guide for writing pages; it is ours, so it is not quoted."""
    text = schema()
    return Answer({**served.named(), "schema": text}, [*heading(served, "how pages are written"), text])


def _newest(folder: PageFolder, empty: Item, max_tokens: int, *, limit: int = 100, since: str = "") -> Answer:
    """Return the newest memories, for a scope that has no pages to list."""
    with suppress(ValueError):  # a local time, as pages have them
        since = since if len(since) < 11 else datetime.fromisoformat(since).astimezone().isoformat()
    note, left = folder.notes[0], max_tokens - 2 * tokens_of(folder.notes[0])
    answer = search(folder.served, Question(query="", limit=limit, since=since, max_tokens=left))
    first, *lines = answer.lines
    notes = [note, *answer.structured["notes"]]
    return Answer({**empty, **answer.structured, "notes": notes}, [first, f"note: {note}", *lines])


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
    structured = {**folder.served.named(), "entries": items, "left_out": left_out, "notes": folder.notes}
    return Answer(structured, [*heading(folder.served, words, folder.notes), *lines, *map(_line, items)])


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
    """Return the first things, as many as there is room for, how many there are more, and where to go on."""
    room = folder.served.budget(max_tokens, folder.notes) if budget is None else budget
    items: list[Item] = []
    for thing in things:
        most = int(max_tokens * _SHARE / 2)
        if not items:
            bare = make(folder, thing, 1)
            most = min(most, (room.left - tokens_of(canonical_json(bare), _line(bare))) // 2 - _CUT_TOKENS)
        item = make(folder, thing, max(most, 1))
        if not room.take(item, _line(item)):
            break
        items.append(item)
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
    """Return a page or an entry as one line: its fields, then its quoted text."""
    facts = {name: value for name, value in item.items() if name not in ("text", "cut")}
    text = f" text={quoted(item['text'])}" if "text" in item else ""
    return f"- {one_line(facts)}{text}{' (cut: ask with a larger max_tokens)' if item.get('cut') else ''}"
