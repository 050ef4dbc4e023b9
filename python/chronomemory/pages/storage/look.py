"""A look at the pages of a folder in the log, by the indexes that the engine keeps for them."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable, Iterator

from chronomemory.face.batch import Connection
from chronomemory.pages.ids import PREFIXES, SUFFIX, is_page_name, page_key
from chronomemory.pages.layout import is_note_name
from chronomemory.pages.storage.records import EntryState, PageState, entry_state, fits, page_state
from chronomemory.record import ChronoRecord
from chronomemory.types import HasEngine

_AT_ONCE = 500


class Look:
    """Reads the pages of one folder from the log."""

    def __init__(self, store: HasEngine, folder: str) -> None:
        self._store = store
        self.folder = folder
        self.is_free = False

    def fits(self, record: ChronoRecord) -> bool:
        return fits(record, is_note_name if self.is_free else is_page_name)

    def page(self, name: str, conn: Connection | None = None) -> PageState | None:
        key = page_key(self.folder, name)
        record = self._store.engine.get(key) if conn is None else conn.record(key)
        is_there = record is not None and record.status != "tombstone" and self.fits(record)
        return page_state(record) if record is not None and is_there else None

    def pages(self) -> list[PageState]:
        return [page_state(record) for record in self._found("pages.by_name", self.folder)]

    def in_state(self, state: str, before: str | None = None) -> list[PageState]:
        """Return the pages of a state, those that were not written for longest first, up to a moment."""
        found = []
        for record in self._walk("pages.by_state", [self.folder, state], "written"):
            if before is not None and record.data["written"] >= before:
                break
            found.append(page_state(record))
        return found

    def flagged(self) -> list[str]:
        return [record.data["name"] for record in self._found("pages.flagged", self.folder, True)]

    def called(self, call: str) -> list[str]:
        """Return the pages that a link may mean: by name, then by path, then by title or alias."""
        found = self._found("pages.by_call", self.folder, call)
        return [record.data["name"] for record in sorted(found, key=lambda record: _nearness(record, call))]

    def entries(self, page: PageState) -> list[EntryState]:
        return [entry_state(record, page.eol) for record in self.entry_records(page.name)]

    def entry_records(self, name: str, *, superseded: bool = True) -> list[ChronoRecord]:
        key = page_key(self.folder, name)
        found = self._found("pages.entries", key)
        if superseded:
            found += self._found("pages.struck", key)
            found.sort(key=lambda record: record.data["order"])
        return found

    def text(self, page: PageState) -> str:
        return "".join((page.head, *(entry.stretch.raw for entry in self.entries(page)), page.tail))

    def recent(self, limit: int, prefixes: Iterable[str] = PREFIXES) -> list[Iterator[ChronoRecord]]:
        """Return an iterator per prefix over its active entries, the latest first."""
        walks = [(self.folder, prefix) for prefix in prefixes]
        return [self._walk("pages.recent", list(key), "at", reverse=True, at_once=limit) for key in walks]

    def tagged(self, tag: str, limit: int) -> Iterator[ChronoRecord]:
        return self._walk("pages.by_tag", [self.folder, tag], "at", reverse=True, at_once=limit)

    def mentioning(self, call: str) -> Iterator[ChronoRecord]:
        """Yield the active entries, then the pages, with a link to this name."""
        yield from self._found("pages.mentioned", self.folder, call)
        yield from self._found("pages.mentioned_above", self.folder, call)

    def _found(self, index: str, *key: object) -> list[ChronoRecord]:
        return list(filter(self.fits, self._store.engine.find(index, list(key), limit=sys.maxsize)))

    def _walk(
        self, index: str, key: list[object], then: str, *, reverse: bool = False, at_once: int = _AT_ONCE
    ) -> Iterator[ChronoRecord]:
        after, size = None, max(1, min(at_once, _AT_ONCE))
        while True:
            found = self._store.engine.find(index, key, after=after, limit=size, reverse=reverse)
            yield from filter(self.fits, found)
            if len(found) < size:
                return
            after = (found[-1].data[then], found[-1].id)


def _nearness(record: ChronoRecord, call: str) -> tuple[int, int, str]:
    name = record.data["name"]
    way, *_ = record.data.get("source") or (name,)
    whole = unicodedata.normalize("NFC", way.removesuffix(SUFFIX)).casefold()
    likely = (name.casefold(), whole, whole.rpartition("/")[2])
    return likely.index(call) if call in likely else len(likely), name.count("/"), name
