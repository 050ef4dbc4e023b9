"""The text of a page or of a free Markdown note, parsed so that it can be written back byte for byte."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

from chronomemory.pages.errors import NotAPage
from chronomemory.pages.text.entries import (
    EntryText,
    moment_of,
    read_entry,
    spell_entry,
    stretches,
    wall_time,
)
from chronomemory.pages.text.frontmatter import Meta, frontmatter_end, read_meta, read_values

_TITLE = re.compile(r"^# ([^\r\n]*[^\r\n \t])[ \t]*(?=\r?$)", re.MULTILINE)
_LETTERS_A_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Stretch:
    """An entry and its raw text."""

    entry: EntryText
    raw: str

    @classmethod
    def of(cls, entry: EntryText, eol: str) -> Stretch:
        return cls(entry, spell_entry(entry, eol))


@dataclass(frozen=True, slots=True)
class PageText:
    """A page that was read; ``text`` is the very same bytes again."""

    head: str
    meta: Meta
    stretches: tuple[Stretch, ...]
    tail: str
    eol: str
    #: The title of a note, which stands in its frontmatter or its sections; that of a page is in its head.
    title: str = ""

    @property
    def text(self) -> str:
        return "".join((self.head, *(stretch.raw for stretch in self.stretches), self.tail))

    @property
    def entries(self) -> list[EntryText]:
        return [stretch.entry for stretch in self.stretches]

    @property
    def preamble(self) -> str:
        return self.head[frontmatter_end(self.head) :].strip("\r\n")


def read_page(text: str, known: tuple[str, Meta] | None = None) -> PageText:
    """Parse a page; ``known`` is a head parsed before, and its metadata."""
    start = frontmatter_end(text)
    eol = eol_of(text)
    head, raws, tail = stretches(text, start)
    meta = known[1] if known is not None and known[0] == head else read_meta(head)
    read = tuple(Stretch(read_entry(raw, eol), raw) for raw in raws)
    twice = _twice(stretch.entry.entry_id for stretch in read)
    if twice is not None:
        raise NotAPage(f"two entries have the id {twice}: give one of them another")
    return PageText(head, meta, read, tail, eol)


def _twice(ids: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for one in ids:
        if one in seen:
            return one
        seen.add(one)
    return None


def eol_of(text: str) -> str:
    """Return how the lines of a page end: as its first one does."""
    end = text.find("\n")
    return "\r\n" if end > 0 and text[end - 1] == "\r" else "\n"


def title_of(head: str) -> str:
    found = _TITLE.search(head, frontmatter_end(head))
    return "" if found is None else found[1]


def without_title(preamble: str) -> str:
    return _TITLE.sub("", preamble, count=1)


def tokens_of(letters: int) -> int:
    return letters // _LETTERS_A_TOKEN


def decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise NotAPage("the file is not UTF-8", line=line) from None


_DATES = ("date", "created", "created_at", "timestamp")
_UPDATES = ("updated", "modified", "updated_at", "lastmod")
_MOST_LETTERS = 60
_MOST_SECTIONS = 5_000
_LINE = re.compile(
    r"^ {0,3}(?:(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)|#{1,6}(?P<title>[ \t][^\n]*)?)$", re.MULTILINE
)


def is_section(entry_id: str) -> bool:
    """Return whether an id is that of a section of a note, which we never change."""
    return not entry_id or entry_id.startswith("#")


def read_note(text: str) -> PageText:
    r"""Read a note. Each heading begins a section, up to the first entry with an id of its own.

    >>> [entry.entry_id for entry in read_note("Above.\n\n# Tea House\nGreen.\n\n## Tea house\n").entries]
    ['', '#tea-house', '#tea-house-2']
    """
    start = frontmatter_end(text)
    eol = eol_of(text)
    above, raws, tail = stretches(text, start)
    front, parts = above[:start], _parts(above[start:])
    if parts and not parts[0].strip():  # blanks above the first section belong to it
        parts[:2] = ["".join(parts[:2])]
    if len(parts) == 1 and not parts[0].strip():
        front, parts = above, []
    meta = read_meta(front)
    values = read_values(front)
    read: list[Stretch] = []
    ids: set[str] = set()
    numbers: Counter[str] = Counter()
    for raw in parts:
        entry_id = _section_id(raw, ids, numbers)
        body = raw.replace(eol, "\n").strip("\n").removeprefix("\ufeff")
        read.append(Stretch(EntryText(entry_id, "", meta.tags, body), raw))
    for raw in raws:
        read.append(Stretch(entry := read_entry(raw, eol), raw))
        if entry.entry_id in ids:
            raise NotAPage(f"two entries have the id {entry.entry_id}: give one of them another")
        ids.add(entry.entry_id)
    created, updated = _moment_in(values, _DATES), _moment_in(values, _UPDATES)
    meta = replace(
        meta,
        created="" if created is None else created.isoformat(),
        updated="" if updated is None else updated.isoformat(),
    )
    title = values.get("title")
    if not isinstance(title, str):
        title = next((_heading(raw) or "" for raw in parts if raw.lstrip("\r\n").startswith("# ")), "")
    return PageText(front, meta, tuple(read), tail, eol, title.strip())


def _parts(body: str) -> list[str]:
    """Cut a text before each heading that is not code; line ends before a heading go with it."""
    cuts = [0]
    fence = ""
    for line in _LINE.finditer(body):
        mark = line["fence"] or ""
        if fence:
            is_end = mark.startswith(fence) and not line["info"].strip()
            fence = "" if is_end else fence
        elif mark:
            fence = mark if mark[0] == "~" or "`" not in line["info"] else ""
        elif len(cuts) <= _MOST_SECTIONS:
            cut = line.start()
            while cut > cuts[-1] and body[cut - 1] in "\r\n":
                cut -= 1
            cuts.append(cut)
    parts = [body[here:there] for here, there in zip(cuts, [*cuts[1:], len(body)], strict=True)]
    return [part for part in parts if part]


def _heading(raw: str) -> str | None:
    """Return the heading of a section without its number signs; None if it has none."""
    found = _LINE.match(raw.lstrip("\r\n"))
    return None if found is None or found["fence"] else found[0].strip(" #\t\r")


def _section_id(raw: str, taken: set[str], numbers: Counter[str]) -> str:
    """Return the id of a section: its heading in letters and dashes, with a number if there is another."""
    heading = _heading(raw)
    words = re.sub(r"\W+", "-", (heading or "").casefold()).strip("-_")[:_MOST_LETTERS]
    slug = "" if heading is None else f"#{words}"
    while True:
        numbers[slug] += 1
        entry_id = slug if numbers[slug] == 1 else f"{slug}-{numbers[slug]}"
        if entry_id not in taken:
            break
    taken.add(entry_id)
    return entry_id


def _moment_in(values: Mapping[str, Any], keys: tuple[str, ...]) -> datetime | None:
    for key in keys:
        value = values.get(key)
        spelled = value.isoformat() if isinstance(value, date) else value
        moment = moment_of(spelled) if isinstance(spelled, str) else None
        try:
            if moment is not None:
                return moment.astimezone()
        except (OverflowError, ValueError):  # beyond the calendar in local time
            continue
    return None


def dated(note: PageText, known: Mapping[str, Stretch], created: str, changed: datetime) -> PageText:
    """Return a note whose sections have times: of the frontmatter, of ``known`` sections, or now."""
    created_at = moment_of(note.meta.created) if note.meta.created else None
    read = []
    for stretch in note.stretches:
        entry, before = stretch.entry, known.get(stretch.entry.entry_id)
        if is_section(entry.entry_id):
            is_same = created_at is None and before is not None and before.raw == stretch.raw
            moment = (
                before.entry.timestamp if is_same and before is not None else wall_time(created_at or changed)
            )
            stretch = replace(stretch, entry=replace(entry, timestamp=moment))
        read.append(stretch)
    now = changed.isoformat(timespec="seconds")
    meta = replace(note.meta, created=note.meta.created or created or now, updated=note.meta.updated or now)
    return replace(note, stretches=tuple(read), meta=meta)
