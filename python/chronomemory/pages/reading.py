"""The read operations of pages: list, read, recent, search, chains, links and a drawing."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable
from datetime import date, datetime
from itertools import islice
from typing import Any

from chronomemory.drawing import Dot, Line, graph_page
from chronomemory.face.arguments import count, flag, must, string, string_list, word
from chronomemory.pages.errors import UnknownEntry, UnknownPage
from chronomemory.pages.ids import ENTRY, PAGE, PREAMBLE, PREFIXES, page_key, prefix_of
from chronomemory.pages.storage.home import Home
from chronomemory.pages.storage.look import Look
from chronomemory.pages.storage.records import SUPERSEDED, PageState, entry_of, info_of
from chronomemory.pages.text.entries import check_tags, moment_of, wall_time
from chronomemory.pages.text.frontmatter import STATES, frontmatter_end
from chronomemory.pages.text.links import LinkText, calls_of, links_in
from chronomemory.pages.types import Entry, Link, Links, PageHit, PageInfo
from chronomemory.record import ChronoRecord
from chronomemory.search import Hit
from chronomemory.search import search as search_records

#: So many hits are asked for at first, beyond those that are wanted, where some may fall away.
_SPARE = 20
_WIDER = 8
#: The engine chooses by a score of half the digits: one that is less by this is less there too.
_SURELY_LESS = 1 - 1e-5
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)

_Day = str | date | datetime
_Entries = list[Entry]
_Hits = list[PageHit]
_Infos = list[PageInfo]


class PageReader:
    """The read operations on a folder of pages."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def _take_in(self, name: str) -> None:
        """Take in edits of a page made by hand, before it is read; nothing here."""

    def list(
        self,
        *,
        include_dormant: bool = False,
        include_archived: bool = False,
        prefixes: Iterable[str] | None = None,
    ) -> _Infos:
        """Return the pages, by their names."""
        hidden = set()
        if not flag("include_dormant", include_dormant):
            hidden.add("dormant")
        if not flag("include_archived", include_archived):
            hidden.add("archived")
        wanted = _prefixes(prefixes)
        return [
            info_of(page)
            for page in self._home.look.pages()
            if page.meta.state not in hidden and prefix_of(page.name) in wanted
        ]

    def info(self, path: str) -> PageInfo:
        """Return a page, without its entries."""
        return info_of(self._known(path))

    def text(self, path: str) -> str:
        """Return the whole text of a page."""
        return self._home.look.text(self._known(path))

    def _known(self, path: str) -> PageState:
        name = self._home.name(path)
        self._take_in(name)
        return known_page(self._home.look, name)

    def read(
        self,
        path: str,
        *,
        since: _Day | None = None,
        until: _Day | None = None,
        tags: Iterable[str] | None = None,
        tail_n: int | None = None,
        include_superseded: bool = False,
    ) -> _Entries:
        """Return the entries of a page that match, the last ``tail_n``; a day as a bound means all of it."""
        name = self._known(path).name
        first, last = _bound("since", since, ends=False), _bound("until", until, ends=True)
        wanted = set() if tags is None else set(check_tags(tags, "tags", least=0, most=None))
        records = self._home.look.entry_records(
            name, superseded=flag("include_superseded", include_superseded)
        )
        found = [
            record
            for record in records
            if (first or "") <= record.data["at"] <= (last or "~") and wanted <= set(record.data["tags"])
        ]
        if tail_n is not None:
            found = found[max(0, len(found) - count("tail_n", tail_n)) :]
        return [entry_of(record) for record in found]

    def chain(self, path: str, entry_id: str) -> _Entries:
        """Return an entry with its predecessors and successors, the oldest first."""
        name = self._home.name(path)
        known_page(self._home.look, name)
        entries = {record.data["id"]: entry_of(record) for record in self._home.look.entry_records(name)}
        start = entries.get(string("entry_id", entry_id))
        if start is None:
            raise UnknownEntry(f"{name} has no entry {entry_id!r}")
        before: dict[str, list[str]] = {}
        for entry in entries.values():
            if entry.superseded_by is not None:
                before.setdefault(entry.superseded_by, []).append(entry.id)
        linked, open_ends = {start.id}, [start.id]
        while open_ends:
            here = entries[open_ends.pop()]
            beside = [
                *before.get(here.id, []),
                *([here.superseded_by] if here.superseded_by in entries else []),
            ]
            for other in beside:
                if other is not None and other not in linked:
                    linked.add(other)
                    open_ends.append(other)
        return [entry for entry in entries.values() if entry.id in linked]

    def recent(
        self, *, since: _Day | None = None, limit: int = 20, prefixes: Iterable[str] | None = None
    ) -> _Entries:
        """Return the latest entries of all pages, or of those with some prefixes, the latest first."""
        first = _bound("since", since, ends=False)
        wanted = count("limit", limit)
        walks = self._home.look.recent(wanted, _prefixes(prefixes))
        merged = heapq.merge(*walks, key=lambda record: (record.data["at"], record.data["id"]), reverse=True)
        found = []
        for record in islice(merged, wanted):
            if first is not None and record.data["at"] < first:
                break
            found.append(entry_of(record))
        return found

    def tagged(self, tag: str, *, limit: int = 20) -> _Entries:
        """Return the latest entries of all pages that have a tag."""
        (wanted,) = check_tags([tag], "tag", least=1, most=1)
        most = count("limit", limit)
        return [entry_of(record) for record in islice(self._home.look.tagged(wanted, most), most)]

    def search(
        self,
        query: str,
        *,
        path: str | None = None,
        prefix: str | None = None,
        tags: Iterable[str] | None = None,
        since: _Day | None = None,
        until: _Day | None = None,
        status: str | None = None,
        include_superseded: bool = False,
        limit: int = 10,
    ) -> _Hits:
        """Return the best entries for a text; ``path`` may contain ``*`` and ``?``."""
        text = string("query", query)
        wanted = count("limit", limit)
        where: dict[str, Any] = {"data.folder": self._home.digits}
        if path is not None:
            where["data.page"] = _pattern(self._home.digits, string("path", path))
        if prefix is not None:
            where["data.prefix"] = _prefixes([prefix])[0]
        first, last = _bound("since", since, ends=False), _bound("until", until, ends=True)
        times = {name: bound for name, bound in (("gte", first), ("lte", last)) if bound is not None}
        if times:
            where["data.at"] = times
        any_status = flag("include_superseded", include_superseded)
        if any_status:
            where["status"] = {"in": ["active", SUPERSEDED]}
        state = None if status is None else word("status", status, STATES)
        marked = [] if tags is None else list(check_tags(tags, "tags", least=0, most=None))
        if not wanted:
            return []
        asked = wanted + _SPARE
        while True:
            hits = search_records(
                self._home.handle.store,
                text,
                kind=(ENTRY, PREAMBLE),
                status=None if any_status else "active",
                tags=marked,
                where=where,
                limit=asked,
                context=False,
            )
            fitting = _of_state(
                self._home.look, [hit for hit in hits if self._home.look.fits(hit.record)], state
            )
            # Hits with the same score are sorted below, so all that score like the last one must be there.
            if len(hits) < asked or (
                len(fitting) >= wanted and hits[-1].score < fitting[wanted - 1].score * _SURELY_LESS
            ):
                break
            asked *= _WIDER
        fitting.sort(key=lambda hit: hit.record.data["id"])
        fitting.sort(key=lambda hit: hit.record.data["at"], reverse=True)
        fitting.sort(key=lambda hit: hit.score, reverse=True)
        return [PageHit(entry_of(hit.record), hit.score) for hit in fitting[:wanted]]

    def links(self, path: str) -> Links:
        """Return the links of a page, and the links to it."""
        look, page = self._home.look, self._known(path)
        out = links_from(look, page)
        backlinks: dict[tuple[str, str | None, str], Link] = {}
        record = self._home.handle.store.engine.get(page_key(look.folder, page.name))
        for call in [] if record is None else record.data["calls"]:
            for other in look.mentioning(call):
                for back in _leading_here(look, other, page.name):
                    backlinks[back.page or "", back.entry, back.target] = back
        ordered = sorted(backlinks.items(), key=lambda one: (one[0][0], one[0][1] or "", one[0][2]))
        return Links(page.name, tuple(out), tuple(link for _, link in ordered))

    def picture(self) -> str:
        """Return an HTML page that draws all pages and the links between them."""
        dots, lines = [], []
        for page in self._home.look.pages():
            info = info_of(page)
            facts = {"description": info.description, "tags": " ".join(info.tags), "updated": info.updated}
            kind = prefix_of(page.name) or page.name.rpartition("/")[0] or "note"
            dots.append(
                Dot(page.name, kind, info.title, tuple((key, text) for key, text in facts.items() if text))
            )
            targets = {link.page for link in links_from(self._home.look, page) if link.page}
            lines += [Line(page.name, target) for target in sorted(targets)]
        return graph_page(
            dots, lines, title=f"Pages in {self._home.folder.root.name}", dot_noun="page", line_noun="link"
        )


def known_page(look: Look, name: str) -> PageState:
    """Return what the log says of a page that must be there."""
    page = look.page(name)
    if page is None:
        raise UnknownPage(f"there is no page {name!r}")
    return page


def _of_state(look: Look, hits: Iterable[Hit], state: str | None) -> list[Hit]:
    if state is None:
        return list(hits)
    states: dict[str, str | None] = {}
    found = []
    for hit in hits:
        name = hit.record.data["page"].split(":", 2)[2]
        if name not in states:
            page = look.page(name)
            states[name] = None if page is None else page.meta.state
        if states[name] == state:
            found.append(hit)
    return found


def _pattern(folder: str, glob: str) -> str | dict[str, str]:
    name = glob.removesuffix(".md")
    if not set(name) & set("*?"):
        return page_key(folder, name)
    escaped = re.sub(r"([%_\\])", r"\\\1", name)
    return {"like": page_key(folder, escaped.replace("*", "%").replace("?", "_"))}


def links_from(look: Look, page: PageState) -> list[Link]:
    records = look.entry_records(page.name, superseded=False)
    texts = [(None, page.head[frontmatter_end(page.head) :])]
    texts += [(record.data["id"], record.data["content"]) for record in records]
    return [
        Link(link.kind, link.target, link.label, _page_called(look, link, page.within), entry_id)
        for entry_id, text in texts
        for link in links_in(text)
    ]


def _page_called(look: Look, link: LinkText, within: str) -> str | None:
    return next((names[0] for call in calls_of(link, within) if (names := look.called(call))), None)


def _leading_here(look: Look, other: ChronoRecord, name: str) -> list[Link]:
    """Return the links of another record that lead to a page; ``page`` is whose they are."""
    is_page = other.kind == PAGE
    text = other.data["head"] if is_page else other.data["content"]
    source = other.data["name"] if is_page else other.data["page"].split(":", 2)[2]
    page = look.page(source)
    within = "" if page is None else page.within
    return [
        Link(link.kind, link.target, link.label, source, None if is_page else other.data["id"])
        for link in links_in(text)
        if _page_called(look, link, within) == name
    ]


def _prefixes(given: Iterable[str] | None) -> list[str]:
    if given is None:
        return [*PREFIXES, ""]  # the last for notes without one
    wanted = [one.removesuffix("-") for one in string_list("prefixes", given)]
    return [word("prefix", one, PREFIXES) for one in wanted]


def _bound(field: str, given: str | date | datetime | None, *, ends: bool) -> str | None:
    """Take a moment or a day, and return it as entries are ordered; a day means all of it."""
    if given is None:
        return None
    if isinstance(given, str):
        if _DAY.fullmatch(given):
            try:
                given = date.fromisoformat(given)
            except ValueError:
                raise must(field, "be a day of the calendar", given) from None
        else:
            moment = moment_of(given)
            if moment is None:
                raise must(field, "be a day or a moment in ISO 8601", given)
            given = moment
    if isinstance(given, datetime):
        return wall_time(given)
    if isinstance(given, date):
        return f"{given.isoformat()}T{'23:59:59' if ends else '00:00:00'}"
    raise must(field, "be a day or a moment", given)
