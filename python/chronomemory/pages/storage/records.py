"""Conversion of pages and entries to records and back, and validation of such records."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

from chronomemory.pages.ids import ENTRY, PAGE, PREAMBLE, entry_key, page_key, prefix_of
from chronomemory.pages.text.entries import LONGEST_TAG, EntryText, moment_of, spell_entry, wall_time
from chronomemory.pages.text.frontmatter import Mark, Meta, frontmatter_end
from chronomemory.pages.text.links import calls_in, hashtags_in
from chronomemory.pages.text.page import Stretch, title_of, tokens_of, without_title
from chronomemory.pages.types import Entry, PageInfo
from chronomemory.record import ChronoRecord

SUPERSEDED = "superseded"
#: Stands among the digests of earlier texts for a page that had no file yet.
NO_FILE = ""
_TITLE_LETTERS = 80
#: So many texts a file may be behind after a loss of power; before there are more, the folder is synced.
MOST_EARLIER = 8


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a change comes from."""

    source_type: str
    evidence: tuple[str, ...]

    def record(self, record_id: str, kind: str, label: str, data: dict[str, Any]) -> ChronoRecord:
        evidence = list(self.evidence)
        return ChronoRecord(
            record_id, kind, "active", label, 1.0, source_type=self.source_type, evidence=evidence, data=data
        )


BY_US = Origin("inferred", ())
BY_HAND = Origin("observed", ("edited by hand",))


@dataclass(frozen=True, slots=True)
class PageState:
    """What the log says of a page."""

    name: str
    head: str
    tail: str
    eol: str
    meta: Meta
    plain: bool
    count: int
    letters: int
    #: Of the text that the file should have, and of those that it may have if it has not been written since.
    digest: str
    earlier: tuple[str, ...]
    next_order: int
    written: str = ""
    #: The note that it was imported from, and the digest of that.
    source: tuple[str, str] | None = None
    title: str = ""

    @property
    def within(self) -> str:
        """The folder of that note, or of this one in a free folder: ways in links begin there."""
        return (self.name if self.source is None else self.source[0]).rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class EntryState:
    """What the log says of an entry."""

    order: int
    stretch: Stretch
    record: ChronoRecord
    #: What the frontmatter said once it was there; None of an entry as old as its page, or as this mark.
    came: Mark | None = None


_META_FIELDS = tuple(field.name for field in fields(Meta))
_PAGE_FIELDS = tuple(
    field.name for field in fields(PageState) if field.name not in ("meta", "source", "title")
)


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def entry_record(
    folder: str,
    name: str,
    stretch: Stretch,
    order: int,
    eol: str,
    origin: Origin = BY_US,
    came: Mark | None = None,
    *,
    within: str = "",
) -> ChronoRecord:
    """Return the record of an entry; ``within`` is the folder of the note that its page was imported from."""
    entry = stretch.entry
    moment = moment_of(entry.timestamp)
    data: dict[str, Any] = {
        "folder": folder,
        "page": page_key(folder, name),
        "prefix": prefix_of(name),
        "id": entry.entry_id,
        "order": order,
        "timestamp": entry.timestamp,
        "at": "" if moment is None else wall_time(moment),
        "tags": (tags := _all_tags(entry.tags, entry.content)),
        "content": entry.content,
    }
    if len(tags) > len(entry.tags):
        data["headed"] = len(entry.tags)
    if mentions := calls_in(entry.content, within):
        data["mentions"] = mentions
    if entry.superseded_by is not None:
        data["superseded_by"] = entry.superseded_by
    if entry.reason is not None:
        data["reason"] = entry.reason
    if came is not None:
        data["came"] = list(came)
    if stretch.raw != spell_entry(entry, eol):
        data["raw"] = stretch.raw
    record = origin.record(entry_key(folder, name, entry.entry_id), ENTRY, _line(entry.content), data)
    record.status = SUPERSEDED if entry.superseded else "active"
    return record


def _all_tags(first: tuple[str, ...], text: str) -> list[str]:
    """Return the tags that an entry is found by: of its heading, of its text, and ``a`` of ``a/b``."""
    tags = [tag for tag in (*first, *hashtags_in(text)) if len(tag) <= LONGEST_TAG]
    above = ["/".join(tag.split("/")[:end]) for tag in tags for end in range(1, tag.count("/") + 1)]
    return list(dict.fromkeys(tag for tag in (*tags, *above) if tag))


def preamble_record(folder: str, page: PageState, origin: Origin = BY_US) -> ChronoRecord | None:
    content = preamble_of(page)
    if not content:
        return None
    moment = moment_of(page.meta.created) or moment_of(page.meta.updated)
    at = "" if moment is None else wall_time(moment)
    data: dict[str, Any] = {
        "folder": folder,
        "page": page_key(folder, page.name),
        "prefix": prefix_of(page.name),
        "id": "",
        "timestamp": at,
        "at": at,
        "tags": _all_tags(page.meta.tags, content),
        "headed": len(page.meta.tags),
        "content": content,
    }
    return origin.record(entry_key(folder, page.name, ""), PREAMBLE, _line(content), data)


def preamble_of(page: PageState) -> str:
    """Return the text above the entries of a page, without its title."""
    above = without_title(page.head[frontmatter_end(page.head) :])
    return above.replace(page.eol, "\n").strip()


def _line(content: str) -> str:
    line = content.strip().partition("\n")[0].strip()
    return line if len(line) <= _TITLE_LETTERS else f"{line[: _TITLE_LETTERS - 1]}…"


def entry_state(record: ChronoRecord, eol: str) -> EntryState:
    data = record.data
    entry = EntryText(entry_id=data["id"], **_entry_fields(record))
    raw = data.get("raw") or None
    came = data.get("came")
    return EntryState(
        data["order"],
        Stretch.of(entry, eol) if raw is None else Stretch(entry, raw),
        record,
        None if came is None else (came[0], came[1]),
    )


def entry_of(record: ChronoRecord) -> Entry:
    data = record.data
    return Entry(id=data["id"], page=data["page"].split(":", 2)[2], **_entry_fields(record))


def _entry_fields(record: ChronoRecord) -> dict[str, Any]:
    data = record.data
    return {
        "timestamp": data["timestamp"],
        "tags": tuple(data["tags"][: data.get("headed")]),
        "content": data["content"],
        "superseded": record.status == SUPERSEDED,
        "superseded_by": data.get("superseded_by"),
        "reason": data.get("reason"),
    }


def page_record(folder: str, page: PageState, origin: Origin = BY_US) -> ChronoRecord:
    meta, title = page.meta, page.title or title_of(page.head)
    preamble = page.head[frontmatter_end(page.head) :]
    calls = [page.name, *([page.name.partition("-")[2]] if prefix_of(page.name) else ()), *meta.aliases]
    # A link may name the last steps of the path of a note, or its title.
    steps = page.name.split("/")
    calls += ["/".join(steps[start:]) for start in range(1, len(steps))] + (
        [page.title] if page.title else []
    )
    if page.source is not None:
        whole = page.source[0].removesuffix(".md")
        calls += [whole, whole.rpartition("/")[2]]
    data: dict[str, Any] = {
        **{name: _listed(getattr(meta, name)) for name in _META_FIELDS},
        **{name: _listed(getattr(page, name)) for name in _PAGE_FIELDS},
        "folder": folder,
        "prefix": prefix_of(page.name),
        "title": title,
        "written": page.written or meta.written,
        "calls": list(dict.fromkeys(unicodedata.normalize("NFC", call).casefold() for call in calls)),
        "mentions": calls_in(preamble, page.within),
    }
    if page.source is not None:
        data["source"] = list(page.source)
    return origin.record(page_key(folder, page.name), PAGE, title or page.name, data)


def page_state(record: ChronoRecord) -> PageState:
    data = record.data
    source = data.get("source")
    return PageState(
        **{name: _frozen(data[name]) for name in _PAGE_FIELDS},
        meta=Meta(**{name: _frozen(data[name]) for name in _META_FIELDS}),
        source=(source[0], source[1]) if source else None,
        title="" if title_of(data["head"]) else data.get("title", ""),
    )


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def info_of(page: PageState) -> PageInfo:
    meta = page.meta
    return PageInfo(
        name=page.name,
        title=page.title or title_of(page.head) or page.name.rpartition("/")[2],
        description=meta.description,
        tags=meta.tags,
        status=meta.state,
        created=meta.created,
        updated=meta.updated,
        entry_count=page.count,
        needs_compact=meta.needs_compact,
        tokens=tokens_of(page.letters),
        compact_reason=meta.compact_reason,
    )


def following(page: PageState, shown: str | None, text: str, **changed: Any) -> PageState:
    """Return a page with a new text that its file lacks; ``shown`` is the digest of the file."""
    earlier = tuple(one for one in (*page.earlier, page.digest) if one != NO_FILE or shown is None)
    digest = digest_of(text.encode())
    if page.digest == digest:
        earlier = page.earlier
    # A file that could not be written for long is behind all the same.
    first = (shown,) if shown in earlier[:-MOST_EARLIER] else ()
    earlier = (*first, *earlier[-MOST_EARLIER + len(first) :])
    return replace(page, digest=digest, earlier=earlier, letters=len(text), **changed)


_TEXT = (str,)
_PAGE: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("folder", "name", "state", "head", "tail", "eol", "digest", "written"), _TEXT),
    **dict.fromkeys(("description", "created", "updated", "compact_reason"), _TEXT),
    **dict.fromkeys(("tags", "aliases", "earlier"), (list,)),
    **dict.fromkeys(("count", "letters", "next_order"), (int,)),
    **dict.fromkeys(("needs_compact", "plain"), (bool,)),
}
_ENTRY: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("folder", "page", "id", "timestamp", "at", "content"), _TEXT),
    "tags": (list,),
}
_MORE: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("superseded_by", "reason", "raw", "title"), _TEXT),
    **dict.fromkeys(("order", "headed"), (int,)),
    **dict.fromkeys(("came", "source"), (list,)),
}
_LISTS: dict[str, tuple[tuple[type, ...], ...]] = {"came": (_TEXT, (int,)), "source": (_TEXT, _TEXT)}


def fits(record: ChronoRecord, is_name: Callable[[str], bool]) -> bool:
    """Return whether a record has the shape of a page or an entry; ``is_name`` checks its name."""
    data = record.data
    if not all(_is_of(data[name], types) for name, types in _MORE.items() if name in data):
        return False
    # An erasure empties lists that were computed from what it erased.
    for name, types in _LISTS.items():
        listed = data.get(name) or ()
        if listed and not (len(listed) == len(types) and all(map(_is_of, listed, types))):
            return False
    if record.kind == PAGE:
        return (
            all(_is_of(data.get(name), types) for name, types in _PAGE.items())
            and all(_are_texts(data[name]) for name in ("tags", "aliases", "earlier"))
            and is_name(data["name"])
            and record.id == page_key(data["folder"], data["name"])
        )
    return (
        all(_is_of(data.get(name), types) for name, types in _ENTRY.items())
        and _are_texts(data["tags"])
        and (record.kind != ENTRY or "order" in data)
        and data["page"].startswith(start := page_key(data["folder"], ""))
        and is_name(data["page"].removeprefix(start))
    )


def _is_of(value: Any, types: tuple[type, ...]) -> bool:
    """Return whether a value has exactly one of these types: a bool is no int."""
    return type(value) in types


def _are_texts(values: list[Any]) -> bool:
    return all(type(value) is str for value in values)
