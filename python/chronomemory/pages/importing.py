"""Takes in a folder of foreign Markdown notes: each becomes a page, with its frontmatter, links and tags."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

from chronomemory.errors import InvalidArgument, Limit
from chronomemory.face.arguments import path as path_argument
from chronomemory.layout import read_bounded
from chronomemory.pages.errors import EntryError, FolderError, NotAPage
from chronomemory.pages.ids import MOST_PAGE_BYTES, SUFFIX, draw_id, is_page_file
from chronomemory.pages.storage.changes import PageChange, change_to
from chronomemory.pages.storage.home import Home
from chronomemory.pages.storage.records import Origin, digest_of
from chronomemory.pages.text.entries import EntryText
from chronomemory.pages.text.frontmatter import (
    Meta,
    edit,
    frontmatter_end,
    read_meta,
    read_values,
    utc_text,
)
from chronomemory.pages.text.hashtags import hashtags_in
from chronomemory.pages.text.headings import check_tag, fitting_tag, local_text, moment_of, wall_time
from chronomemory.pages.text.page import (
    PageText,
    Stretch,
    decoded,
    eol_of,
    read_page,
    title_of,
    without_title,
)
from chronomemory.pages.text.suspects import suspects_in
from chronomemory.pages.types import Imported, Problem

__all__ = ["import_folder"]

_MOST_TAGS = 3
#: How names of notes end; what is not spelled as ours is told, not passed over.
_MARKDOWN = (SUFFIX, ".markdown", ".mdown", ".mkd")
_CHANGED = "it was changed since it was imported; its page is left as it is"
_DATES = ("date", "created", "created_at", "timestamp")


def import_folder(home: Home, source: str | os.PathLike[str]) -> Imported:
    """Take in all notes of a folder and those below it; none of them is taken twice.

    They are one batch, unless the log refuses one: then each is, and the refused ones are reported.
    """
    root = path_argument("source", source)
    if not root.is_dir():
        raise FolderError(f"{root} is no folder", recovery="Give the folder of the notes.")
    if root.resolve() == home.folder.root:
        raise FolderError(f"{root} is the folder of the pages itself", recovery="sync() takes in its pages.")
    with home.locked():
        pages = home.look.pages()
        known = {page.source[0]: page.source[1] for page in pages if page.source is not None}
        taken = {page.name for page in pages} | {
            file.removesuffix(SUFFIX) for file in home.folder.names("") if is_page_file(file)
        }
        changes: list[PageChange] = []
        names: dict[str, str] = {}
        unchanged: list[str] = []
        problems: list[Problem] = []
        for way, content in _notes(root, problems):
            digest = digest_of(content)
            if known.get(way) == digest:
                unchanged.append(way)
                continue
            if way in known:
                problems.append(Problem("conflict", way, _CHANGED))
                continue
            try:
                page, told = _page_of(home, root / way, decoded(content))
                name = _name(way, taken)
                origin = Origin("observed", (f"imported from {way}",))
                # It is written now, however old it says it is: it does not sleep at once.
                written = utc_text(home.clock())
                change = change_to(home.digits, name, page, origin, source=(way, digest), written=written)
                changes.append(change)
                problems += [Problem("heading", way, one) for one in told]
            except (NotAPage, InvalidArgument) as error:
                problems.append(Problem("conflict", way, str(error)))
                continue
            taken.add(name)
            names[way] = name
        _commit(home, changes, names, problems)
        return Imported(names, tuple(unchanged), tuple(problems))


def _commit(home: Home, changes: list[PageChange], names: dict[str, str], problems: list[Problem]) -> None:
    """Write the pages as one batch; if the log refuses one, each by itself, and report what it refuses."""
    try:
        if changes:
            home.commit(changes)
    except (InvalidArgument, Limit) as error:
        if len(changes) > 1:
            for change in changes:
                _commit(home, [change], names, problems)
            return
        way = next(way for way, name in names.items() if name == changes[0].page.name)
        del names[way]
        problems.append(Problem("conflict", way, str(error)))


def _notes(root: Path, problems: list[Problem]) -> Iterator[tuple[str, bytes]]:
    """Yield the notes of a folder by their ways, in their order; nothing is reached through a link."""
    for above, folders, files, here in os.fwalk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            place = Path(above) / name
            if not name.casefold().endswith(_MARKDOWN) or name.startswith("."):
                continue
            way = os.fsencode(place.relative_to(root)).decode("utf-8", "backslashreplace")
            if not name.endswith(SUFFIX):
                told = f"its name does not end in {SUFFIX}, so it is not taken in; rename it"
                problems.append(Problem("strange", way, told))
                continue
            try:
                content = read_bounded(name, MOST_PAGE_BYTES, here)
            except OSError as error:
                problems.append(Problem("strange", way, f"it cannot be read: {error.strerror}"))
                continue
            yield way, content


def _page_of(home: Home, place: Path, text: str) -> tuple[PageText, list[str]]:
    """Return a note as a page, and what to tell of it.

    One that has entries is a page; else all it says becomes its entry.
    """
    if not frontmatter_end(text):
        text = text.removeprefix("\ufeff")
    page = read_page(text)
    told: list[str] = []
    if page.stretches and not _is_by_chance(page):
        return page, suspects_in(text)
    if page.stretches:
        line = text[: len(page.head)].count("\n") + page.stretches[0].raw.partition("##")[0].count("\n") + 1
        told = [f"line {line} looks like the heading of an entry in a note of other text; all is one entry"]
    end = frontmatter_end(text)
    values = read_values(text[:end])
    body = text[end:].strip("\r\n")
    if page.eol != "\n":
        body = body.replace(page.eol, "\n")
    title = _titled(place.stem)
    when = _moment(home, place, values)
    stamp = local_text(when)
    changes: dict[str, Any] = {
        "description": page.meta.description or title_of(page.head) or title,
        "status": page.meta.state,
        "created": stamp,
        "updated": stamp,
        "entry_count": 1 if body.strip() else 0,
        "needs_compact": False,
    }
    # What a note says of itself stays as it is.
    changes = {key: value for key, value in changes.items() if key == "entry_count" or key not in values}
    head, _ = edit(text[:end], changes, plain=False, eol=page.eol)
    head += f"{page.eol}{page.eol}# {title_of(page.head) or title}"
    meta: Meta = read_meta(head)
    stretches: tuple[Stretch, ...] = ()
    if body.strip():
        entry = EntryText(draw_id(when.astimezone()), wall_time(when), _tags(page.meta, body), body)
        stretches = (Stretch.of(entry, page.eol),)
    return replace(page, head=head, meta=meta, stretches=stretches, tail=page.eol, eol=eol_of(head)), told


def _is_by_chance(page: PageText) -> bool:
    """Say whether the one heading of a note looks like that of an entry and is not: text stands above it."""
    if len(page.stretches) != 1 or not without_title(page.preamble).strip():
        return False
    return "entry_count" not in read_values(page.head)


def _tags(meta: Meta, body: str) -> tuple[str, ...]:
    """Return the tags of a note: all of its frontmatter, which nothing else on an entry is found by.

    Of those in its text, by which it is found anyway, it has the first.
    """
    own = list(dict.fromkeys(tag for given in meta.tags if (tag := _as_tag(given))))
    found = [tag for tag in map(_as_tag, hashtags_in(body)) if tag and tag not in own]
    return (*own, *found[: max(0, _MOST_TAGS - len(own))]) or ("note",)


def _as_tag(given: str) -> str:
    """Return a tag as one of ours: blanks become dashes, and what no tag may have is left out."""
    tag = fitting_tag("-".join(given.split()))
    try:
        return check_tag(tag)
    except EntryError:
        return ""


def _moment(home: Home, place: Path, values: dict[str, Any]) -> datetime:
    """Return when a note was written, as it says itself, or else its file."""
    for key in _DATES:
        value = values.get(key)
        spelled = value.isoformat() if isinstance(value, date) else value
        moment = moment_of(spelled) if isinstance(spelled, str) else None
        if moment is not None:
            return moment.astimezone()
    try:
        return datetime.fromtimestamp(place.lstat().st_mtime, timezone.utc)
    except (OSError, OverflowError, ValueError):
        return home.clock()


def _titled(stem: str) -> str:
    title = " ".join(os.fsencode(stem).decode("utf-8", "replace").split())
    return title or "Note"


def _name(way: str, taken: set[str]) -> str:
    """Return a name for the page of a note: its own if it can be one."""
    if "/" not in way and is_page_file(way):
        wanted = way.removesuffix(SUFFIX)
    else:
        text = unicodedata.normalize("NFC", way.removesuffix(SUFFIX)).casefold()
        slug = re.sub(r"[^\w]+", "-", text).strip("-_") or "note"
        while len(slug.encode()) > 150:
            slug = slug[:-1]
        wanted = f"topic-{slug}"
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}-{number}"
    return name
