"""The verbs that write pages, and the settings of a writer: ``[writer]`` in ``.chronomemory/config.toml``."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from chronomemory.face.arguments import string, word
from chronomemory.face.batch import Connection
from chronomemory.face.moments import instant
from chronomemory.layout import log_folder, read_config
from chronomemory.pages.errors import EntryError, PageExists, SettingsError, UnknownEntry
from chronomemory.pages.ids import draw_id, entry_key
from chronomemory.pages.reading import PageReader
from chronomemory.pages.storage.changes import change_to, put_page
from chronomemory.pages.storage.home import Home, Settled
from chronomemory.pages.storage.records import BY_US, EntryState, PageState, entry_record, following
from chronomemory.pages.text.entries import EntryText, check_tags, local_text, wall_time
from chronomemory.pages.text.frontmatter import (
    STATES,
    Meta,
    edit,
    mark_after,
    mark_of,
    new_frontmatter,
    utc_text,
)
from chronomemory.pages.text.page import PageText, Stretch, is_section, tokens_of

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover (the tests run where it is part of Python)
    import tomli as tomllib

CONFIG_FILE = "config.toml"
_SECTION = "writer"


@dataclass(frozen=True, slots=True)
class Settings:
    """When a page is long, and when it sleeps."""

    #: Above this an append suggests to compact the page, and above the other it flags it.
    soft_limit_tokens: int = 20_000
    hard_limit_tokens: int = 50_000
    auto_dormant_days: int = 30

    @classmethod
    def of_project(cls, project: Path) -> Settings:
        """Read the settings of a project; without a file or section they are the defaults."""
        place = log_folder(project) / CONFIG_FILE
        try:
            config = tomllib.loads(read_config(place))
        except (FileNotFoundError, NotADirectoryError):
            return cls()
        except (ValueError, OSError, RecursionError) as error:
            raise SettingsError(f"{place} cannot be read: {error}") from None
        section = config.get(_SECTION, {})
        if not isinstance(section, dict):
            raise SettingsError(f"{place}: [{_SECTION}] must be a section")
        values = {knob.name: section[knob.name] for knob in fields(cls) if knob.name in section}
        for name, value in values.items():
            if type(value) is not int or value < 1:
                raise SettingsError(f"{place}: {name} must be a whole number of at least 1, got {value!r}")
        return cls(**values)


_MOST_ENTRY_TAGS = 3


class PageWriter(PageReader):
    """The write operations on a folder of pages."""

    def __init__(self, home: Home, settings: Settings) -> None:
        super().__init__(home)
        self.settings = settings
        self._is_index_due = False

    def create(
        self, path: str, description: str, tags: Iterable[str] = (), *, title: str | None = None
    ) -> str:
        """Create a page without entries, and return its name; its tags are topics."""
        name = self._home.new_name(path)
        described = _line("description", description)
        topics = check_tags(tags, "tags", least=0, most=None)
        titled = _title(name) if title is None else _line("title", title, blank=False)
        with self._home.locked():
            known = self._home.look.page(name)
            if self._home.content(name) is not None or (known is not None and not self._home.is_free):
                raise PageExists(f"there is a page {name!r} already")
            now = local_text(_now(self._home))
            meta = Meta(description=described, tags=topics, created=now, updated=now)
            if self._home.is_free:
                # The name of a note is its title, and a user keeps no counters in it.
                values = {"description": described, "tags": topics, "created": now}
                front = new_frontmatter({key: value for key, value in values.items() if value})
                new = self._home.read(f"{front}\n" if title is None else f"{front}\n\n# {titled}\n")
                new = self._home.dated(name, None, new)
            else:
                front = new_frontmatter(
                    {
                        "description": described,
                        "tags": topics,
                        "status": meta.state,
                        "created": now,
                        "updated": now,
                        "entry_count": 0,
                        "needs_compact": False,
                    }
                )
                new = PageText(f"{front}\n\n# {titled}", meta, (), "\n", "\n")
            # A note that is known and has no file was deleted by hand: its entries go.
            gone = [] if known is None else self._home.look.entries(known)
            self._home.commit([change_to(self._home.digits, name, new, BY_US, page=known, entries=gone)])
        self._is_index_due = True
        return name

    def append(self, path: str, content: str, tags: Iterable[str] = ()) -> str:
        """Write an entry with up to three tags at the end of a page, and return its id."""
        name = self._home.name(path)
        entry_text = _content(content)
        marked = check_tags(tags, "tags", least=0, most=_MOST_ENTRY_TAGS)

        def work(conn: Connection, settled: Settled) -> tuple[tuple[str, PageState], str]:
            page, now = settled.page, _now(self._home)
            entry = EntryText(_free_id(self._home, conn, name, now), wall_time(now), marked, entry_text)
            stretch = Stretch.of(entry, page.eol)
            end = len(settled.text) - len(page.tail)
            body = settled.text[len(page.head) : end] + stretch.raw
            return self._added(conn, settled, stretch, body, now)

        return self._write(name, work)

    def supersede(
        self, path: str, old_id: str, new_content: str, reason: str, tags: Iterable[str] | None = None
    ) -> str:
        """Strike an entry, write its replacement, and return the id of that; tags default to the old ones."""
        name = self._home.name(path)
        entry_text = _content(new_content)
        why = string("reason", reason)
        marked = None if tags is None else check_tags(tags, "tags", least=0, most=_MOST_ENTRY_TAGS)

        def work(conn: Connection, settled: Settled) -> tuple[tuple[str, PageState], str]:
            page, now = settled.page, _now(self._home)
            entries = self._home.look.entries(page)
            old = _to_strike(entries, name, old_id)
            new_id = _free_id(self._home, conn, name, now)
            before = old.stretch.entry
            struck = Stretch.of(before.struck(new_id, why), page.eol)
            new = EntryText(new_id, wall_time(now), before.tags if marked is None else marked, entry_text)
            stretch = Stretch.of(new, page.eol)
            # What was read must stay so: the batch minds the entry that it strikes.
            conn.record(old.record.id)
            conn.put(
                entry_record(
                    self._home.digits, name, struck, old.order, page.eol, came=old.came, within=page.within
                )
            )
            raws = [struck.raw if entry is old else entry.stretch.raw for entry in entries]
            return self._added(conn, settled, stretch, "".join((*raws, stretch.raw)), now)

        return self._write(name, work)

    def _write(
        self, name: str, work: Callable[[Connection, Settled], tuple[tuple[str, PageState], str]]
    ) -> str:
        entry_id, page = self._home.change(name, work)
        self._is_index_due = True
        tokens = tokens_of(page.letters)
        if tokens > self.settings.soft_limit_tokens and not page.meta.needs_compact:
            warnings.warn(
                f"{page.name} has about {tokens:,} tokens, more than {self.settings.soft_limit_tokens:,}: "
                "flag_compact() asks for it to be compacted",
                RuntimeWarning,
                stacklevel=3,
            )
        return entry_id

    def _added(
        self, conn: Connection, settled: Settled, stretch: Stretch, body: str, now: datetime
    ) -> tuple[tuple[str, PageState], str]:
        """Write a new last entry and its page; return its id, the page and its text."""
        digits, order, came = self._home.digits, settled.page.next_order, settled.page.count + 1
        page, text = touched(self._home, settled, body, now, self.settings, count=came)
        mark = (page.meta.last_update, came)
        record = entry_record(digits, page.name, stretch, order, page.eol, came=mark, within=page.within)
        conn.put(record)
        put_page(conn, digits, replace(page, next_order=order + 1))
        return (stretch.entry.entry_id, page), text

    def flag_compact(self, path: str, reason: str) -> None:
        """Ask for a page to be compacted, and say why."""
        name = self._home.name(path)
        why = _line("reason", reason)
        changes = {"needs_compact": True, "compact_reason": why or None}
        _change_head(self._home, name, changes, needs_compact=True, compact_reason=why)
        self._is_index_due = True

    def set_status(self, path: str, status: str) -> None:
        """Mark a page as active, dormant or archived."""
        set_state(self._home, self._home.name(path), word("status", status, STATES))
        self._is_index_due = True


def set_state(home: Home, name: str, state: str) -> None:
    _change_head(home, name, {"status": state}, state=state)


def _change_head(home: Home, name: str, changes: dict[str, Any], **known: Any) -> None:
    def work(conn: Connection, settled: Settled) -> tuple[None, str]:
        page = with_head(settled, changes, **known)
        text = page.head + settled.text[len(settled.page.head) :]
        put_page(conn, home.digits, following(settled.page, settled.shown, text, **_of_head(page)))
        return None, text

    home.change(name, work)


def with_head(settled: Settled, changes: dict[str, Any], **known: Any) -> PageState:
    page = settled.page
    head, plain = edit(page.head, changes, plain=page.plain, eol=page.eol)
    return replace(page, head=head, plain=plain, meta=replace(page.meta, **known))


def _of_head(page: PageState) -> dict[str, Any]:
    return {"head": page.head, "plain": page.plain, "meta": page.meta}


def touched(
    home: Home, settled: Settled, body: str, now: datetime, settings: Settings, *, count: int
) -> tuple[PageState, str]:
    """Return a page with other entries, and its text; a write wakes a page and leaves a note's head alone."""
    page = settled.page
    if home.is_free:
        text = page.head + body + page.tail
        meta = replace(page.meta, updated=local_text(now))
        page = following(page, settled.shown, text, count=count, written=utc_text(now), meta=meta)
        return page, text
    updated = local_text(mark_after(mark_of(page.head, page.meta), now, count))
    known: dict[str, Any] = {"updated": updated}
    changes: dict[str, Any] = {"updated": updated, "entry_count": count}
    if page.meta.state == "dormant":
        changes["status"] = known["state"] = "active"
    tail = page.tail or page.eol
    letters = len(page.head) + len(body) + len(tail)
    if tokens_of(letters) > settings.hard_limit_tokens and not page.meta.needs_compact:
        why = f"longer than {settings.hard_limit_tokens:,} tokens"
        changes |= {"needs_compact": True, "compact_reason": why}
        known |= {"needs_compact": True, "compact_reason": why}
    page = with_head(settled, changes, **known)
    text = page.head + body + tail
    return following(
        settled.page, settled.shown, text, tail=tail, count=count, written=utc_text(now), **_of_head(page)
    ), text


def _to_strike(entries: list[EntryState], name: str, old_id: str) -> EntryState:
    wanted = string("old_id", old_id)
    for entry in entries:
        if entry.stretch.entry.entry_id == wanted and is_section(wanted):
            raise UnknownEntry(
                f"{wanted!r} is a section of the note {name}, and only entries with an id can be superseded",
                recovery="Edit the file: sync takes it in.",
            )
        if entry.stretch.entry.entry_id == wanted:
            if entry.stretch.entry.superseded:
                by = entry.stretch.entry.superseded_by
                successor = f" by {by}" if by else ""
                raise UnknownEntry(f"the entry {wanted!r} of {name} was superseded already{successor}")
            return entry
    raise UnknownEntry(f"{name} has no entry {wanted!r}")


def _free_id(home: Home, conn: Connection, name: str, now: datetime) -> str:
    while True:
        drawn = draw_id(now.astimezone())
        if home.handle.store.engine.get(entry_key(home.digits, name, drawn)) is None:
            return drawn


def _now(home: Home) -> datetime:
    return instant("clock", home.clock())


def _content(given: str) -> str:
    content = string("content", given)
    if not content.strip():
        raise EntryError("content must say something, got a blank text", field="content")
    return content


_MOST_LETTERS = 10_000


def _line(field: str, given: str, *, blank: bool = True) -> str:
    text = string(field, given)
    if len(text) > _MOST_LETTERS:
        message = f"{field} must have at most {_MOST_LETTERS:,} letters, got {len(text):,}"
        raise EntryError(message, field=field, recovery="Put a longer text into an entry.")
    if field == "title" and (text != text.strip() or "\n" in text or "\r" in text):
        raise EntryError(f"{field} must be one line without blanks around it, got {text!r}", field=field)
    if not blank and not text.strip():
        raise EntryError(f"{field} must say something, got a blank text", field=field)
    return text


def _title(name: str) -> str:
    """Return the title of a page that was given none.

    >>> _title("user-profile")
    'User Profile'
    """
    prefix, _, rest = name.rpartition("/")[2].partition("-")
    if prefix == "event":
        return f"Event {rest}"
    return " ".join(part[:1].upper() + part[1:] for part in (prefix, *rest.split("-")) if part)
