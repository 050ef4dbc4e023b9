"""Synchronization of folder and log: index file, sync, rebuild, clean and watch."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from operator import itemgetter
from pathlib import Path
from typing import Any

from chronomemory.errors import InvalidArgument, Limit, LogCorrupted
from chronomemory.face.arguments import word
from chronomemory.face.batch import Connection
from chronomemory.face.results import counted
from chronomemory.page_files import INDEX_FILE, OUR_MARK
from chronomemory.pages.errors import NotAPage, PageConflict, PageError
from chronomemory.pages.ids import SUFFIX, file_of, is_page_file, page_key
from chronomemory.pages.layout import refused_notes
from chronomemory.pages.reading import PageReader
from chronomemory.pages.storage.changes import PageChange, change_to, remove_page
from chronomemory.pages.storage.home import Home, owner_line
from chronomemory.pages.storage.records import BY_US, NO_FILE, Origin, PageState, digest_of
from chronomemory.pages.text.entries import escape
from chronomemory.pages.text.frontmatter import read_values, utc_text
from chronomemory.pages.text.page import is_section
from chronomemory.pages.types import Cleaned, Indexed, PageInfo, Problem, Rebuilt, Synced
from chronomemory.pages.writing import Settings, set_state
from chronomemory.record import ChronoRecord
from chronomemory.selection import query
from chronomemory.types import Progress

try:
    from watchfiles import watch as watch_files
except ImportError as error:  # pragma: no cover (the tests have it)
    raise ImportError("to watch pages needs watchfiles: pip install 'chronomemory-rs[pages]'") from error

OF_OTHERS = "somebody else wrote it, so it is left alone"
_RECENT = 20
_LETTERS = 120
_SECTIONS = (("Active", "active"), ("Dormant", "dormant"), ("Archived", "archived"))


def write_index(home: Home) -> str | None:
    """Write ``index.md`` where it differs; return why it cannot be written, or None."""
    if home.is_free or home.books() is None:
        return None
    try:
        there = home.folder.read(INDEX_FILE)
    except FileNotFoundError:
        there = None
    except OSError as error:
        return f"it cannot be read as a file of this folder: {error.strerror or error}"
    if there is not None and OUR_MARK.encode() not in there:
        return OF_OTHERS
    # It depends on what the log says and on nothing else.
    reader = PageReader(home)
    pages = reader.list(include_dormant=True, include_archived=True)
    lines = ["# Memory", "", OUR_MARK, owner_line(home.handle.scope)]
    for title, state in _SECTIONS:
        listed = [page for page in pages if page.status == state]
        lines += ["", f"## {title}", "", *(map(_of_page, listed) if listed else ["None."])]
    lines += ["", "## Recent activity", ""]
    entries = reader.recent(limit=_RECENT)
    for entry in entries:
        lines.append(f"- {entry.timestamp} [{entry.page}]({_way(entry.page)}): {_short(entry.content)}")
    text = "\n".join([*lines, *([] if entries else ["None."]), ""]).encode()
    try:
        if there != text:
            home.folder.write(INDEX_FILE, text)
    except OSError as error:
        # It only repeats the log, so a failure must not stop the caller.
        return f"it cannot be written: {error.strerror or error}"
    return None


def _of_page(page: PageInfo) -> str:
    entries = counted(page.entry_count, "entry", "entries")
    line = f"- [{_short(page.title)}]({_way(page.name)}): {_short(page.description)} ({entries})"
    flagged = " **to be compacted**" if page.needs_compact else ""
    return line + "".join(f" #{tag}" for tag in page.tags) + flagged


def _way(name: str) -> str:
    way = file_of(name)
    return f"<{way}>" if set(way) & set(" ()") else way


def _short(text: str) -> str:
    line = " ".join(text.split())
    line = line if len(line) <= _LETTERS else f"{line[: _LETTERS - 1]}…"
    return escape(line).replace("[", "\\[").replace("]", "\\]") if line else ""


def clear_drafts(home: Home, known: Mapping[str, PageState]) -> list[Problem]:
    """Remove drafts that hold logged text, and report the others, which may hold a user's edit."""
    problems = []
    folders = {"", *(name.rpartition("/")[0] for name in known)} if home.is_free else {""}
    drafts = [(within, *draft) for within in sorted(folders) for draft in home.folder.drafts(within)]
    for within, file, of in drafts:
        page = known.get(f"{within}/{of}".removeprefix("/").removesuffix(SUFFIX))
        if page is None:
            continue
        try:
            content = home.folder.read(file, within)
            is_ours = digest_of(content) in (page.digest, *page.earlier)
            if is_ours or home.look.text(page).encode().startswith(content.rstrip(b"\x00")):
                home.folder.remove([file], within)
                continue
            message = (
                f"a writer was killed while {of} was edited: this may be what was saved; take it over by hand"
            )
        except OSError as error:
            message = f"a killed writer left it, and it cannot be taken away: {error.strerror or error}"
        problems.append(Problem("strange", f"{within}/{file}".removeprefix("/"), message))
    return problems


#: Files are written so many at a time when all of them are: each time the system is synced once.
_AT_ONCE = 4_000
CLEANED = ("memory", "all")
_EDITED = "it was edited by hand, so it is left alone; sync takes it in"
_UNWRITTEN = "it is behind the log, and cannot be written now"
_GONE_BY_HAND = Origin("observed", ("deleted by hand",))


@dataclass(slots=True)
class _Found:
    """The findings of a sync in progress."""

    edited: list[str] = field(default_factory=list)
    created: list[str] = field(default_factory=list)
    caught_up: list[str] = field(default_factory=list)
    dormant: list[str] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)
    added: int = 0
    changed: int = 0
    deleted: int = 0
    kept: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    new: dict[str, str] = field(default_factory=dict)

    def take(self, change: PageChange, *, is_new: bool) -> None:
        name = change.page.name
        (self.created if is_new else self.edited).append(name)
        self.added += len(change.added)
        self.changed += len(change.changed)
        self.deleted += len(change.gone)
        self.kept += change.kept
        self.problems += _suspects(change)
        if is_new:
            for key in (change.page.digest, *map(_key, change.added)):
                self.new.setdefault(key, name)

    def alike(self, page: PageState, entries: list[ChronoRecord]) -> str:
        """Return the name of a new page with the text of this one, or with half of its entries."""
        if page.digest in self.new:
            return self.new[page.digest]
        known = Counter(self.new[key] for key in map(_key, entries) if key in self.new)
        name, count = max(known.items(), key=itemgetter(1), default=("", 0))
        return name if count * 2 >= len(entries) else ""

    def caught(self, home: Home, name: str) -> None:
        if home.catch_up(name):
            self.caught_up.append(name)
        else:
            self.problems.append(Problem("conflict", file_of(name), _UNWRITTEN))

    def report(self) -> Synced:
        values: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(Synced)}
        values |= {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
        return Synced(**values)


def _key(record: ChronoRecord) -> str:
    """Return what identifies an entry on any page; sections of different notes may have the same id."""
    return str(record.data["content" if is_section(record.data["id"]) else "id"])


def _suspects(change: PageChange) -> list[Problem]:
    return [Problem("heading", file_of(change.page.name), suspect) for suspect in change.suspects]


def sync(
    home: Home,
    settings: Settings,
    names: Iterable[str] | None = None,
    *,
    forget_missing: bool = False,
    progress: Progress | None = None,
) -> Synced:
    with home.locked():
        found = _Found()
        pages = home.look.pages() if names is None else map(home.look.page, names)
        known = {page.name: page for page in pages if page is not None}
        there, problems = home.files()
        found.problems += problems if names is None else []
        files = sorted(there if names is None else there.keys() & set(names))
        # The pages of which a repair has put something on hold.
        where = {"data.folder": home.look.folder, "data.@unsettled": {"exists": True}}
        on_hold = query(home.handle.store, status=None, faces=True, where=where)
        doubtful = {str(record.data.get("page", record.id)) for record in on_hold}
        for number, name in enumerate(files):
            _sync_file(home, name, known, doubtful, found)
            if progress is not None:
                progress(number + 1, len(files))
        missing = [page for name, page in known.items() if name not in there]
        if home.is_free:
            _sync_deleted(home, missing, found, problems, forget=forget_missing or bool(there))
        else:
            _sync_missing(home, missing, found, forget=forget_missing)
        if names is None:
            found.problems += clear_drafts(home, known)
        if names is None and not home.is_free:
            _let_sleep(home, settings, found)
        report = found.report()
        if report.edited or report.created or report.caught_up or report.forgotten:
            home.handle.run(lambda conn: home.note(conn, synced=utc_text(home.clock())))
        if names is None:
            report = replace(report, problems=(*report.problems, *_index_problems(home)))
        return report


def _index_problems(home: Home) -> list[Problem]:
    why = write_index(home)
    return [] if why is None else [Problem("strange", INDEX_FILE, why)]


def _sync_file(home: Home, name: str, known: dict[str, PageState], doubtful: set[str], found: _Found) -> None:
    page = known.get(name)
    try:
        content = home.content(name)
        if content is None:
            return
        shown = digest_of(content)
        if page is not None and shown == page.digest:
            is_doubtful = page_key(home.look.folder, name) in doubtful
            if is_doubtful and home.look.text(page).encode() != content:
                # The digest proves the file: what the log has lost of it comes back from there.
                change = _indexed(home, name, page)
                home.commit([change], show=False)
                found.take(change, is_new=False)
            return
        if page is not None and shown in home.earlier(page):
            found.caught(home, name)
            return
        change = home.edit_by_hand(name, page, content)
        home.commit([change], show=False)
        found.take(change, is_new=page is None)
        if change.kept:
            home.catch_up(name)
    except (PageConflict, InvalidArgument, Limit) as error:
        found.problems.append(Problem("conflict", file_of(name), str(error)))


def _sync_deleted(
    home: Home, missing: list[PageState], found: _Found, problems: list[Problem], *, forget: bool
) -> None:
    """Drop notes whose files were deleted; if none is left (an unmounted disk?), only with ``forget``."""
    unread = tuple("" if problem.file == "." else f"{problem.file}/" for problem in problems)
    refused = refused_notes(problems)
    gone = [page for page in missing if page.name not in refused and not page.name.startswith(unread)]
    if gone and not forget:
        message = f"no note is left of {len(gone):,}; sync with forget_missing lets go of them"
        found.problems.append(Problem("missing", str(home.folder.root), message))
    elif gone:
        _forget(home, gone, _GONE_BY_HAND, found)
        found.forgotten += [page.name for page in gone]


def _sync_missing(home: Home, missing: list[PageState], found: _Found, *, forget: bool) -> None:
    for page in missing:
        if NO_FILE in page.earlier or not page.digest:
            # Its file was never written, since the writer was killed before, or an erasure removed it.
            found.caught(home, page.name)
            continue
        if forget:
            _forget(home, [page], _GONE_BY_HAND, found)
            found.forgotten.append(page.name)
            continue
        kind, reason = "missing", "its file is gone"
        if alike := found.alike(page, home.look.entry_records(page.name)):
            kind, reason = "renamed", f"its file is gone, and {file_of(alike)} says the same"
            _note_alike(home, page.name, alike)
        message = f"{reason}; rebuild writes it anew, sync with forget_missing lets go of the page"
        found.problems.append(Problem(kind, file_of(page.name), message))


def _note_alike(home: Home, name: str, alike: str) -> None:
    """Let the record of a page name the new one that says the same: an erasure of that one mentions it."""
    digits = home.look.folder
    patch = {"data": {"alike": page_key(digits, alike)}}
    home.handle.run(lambda conn: conn.patch(page_key(digits, name), patch))


def _forget(home: Home, pages: list[PageState], origin: Origin, found: _Found, **notes: object) -> int:
    """Delete pages with all their entries, as one batch; one that a new page is like was renamed."""
    gone = [(page, home.look.entry_records(page.name)) for page in pages]

    def work(conn: Connection) -> None:
        for page, records in gone:
            renamed_to = found.alike(page, records)
            remove_page(conn, home.digits, page.name, records, origin, renamed_to=renamed_to)
        if notes:
            home.note(conn, **notes)

    home.handle.run(work)
    return sum(len(records) for _, records in gone)


def _let_sleep(home: Home, settings: Settings, found: _Found) -> None:
    before = utc_text(home.clock() - timedelta(days=settings.auto_dormant_days))
    busy = {problem.file for problem in found.problems}
    for page in home.look.in_state("active", before):
        # A page without the time of its last write is left alone, and so is a status in a user's own words.
        if not page.written or file_of(page.name) in busy:
            continue
        try:
            if read_values(page.head).get("status", page.meta.state) == page.meta.state:
                set_state(home, page.name, "dormant")
                found.dormant.append(page.name)
        except (NotAPage, PageConflict) as error:
            found.problems.append(Problem("conflict", file_of(page.name), str(error)))


def rebuild(home: Home, progress: Progress | None = None) -> Rebuilt:
    try:
        report = home.handle.project.verify()
        broken = str(report.damage[0]) if report.damage else None
        if broken is None and not report.valid:
            broken = "its chain is not valid"
    except LogCorrupted as error:  # the log that was open here is gone, or shorter than it was
        broken = str(error)
    if broken:
        raise PageError(
            f"{home.folder.root}: the log is damaged ({broken}), so the files are left as they are",
            recovery="Repair the store first: chronomemory repair, or pages.store.upkeep.repair().",
        )
    home.folder.make()
    with home.locked():
        pages = home.look.pages()
        written: list[str] = []
        problems: list[Problem] = []
        for start in range(0, len(pages), _AT_ONCE):
            texts: dict[str, str] = {}
            shown: dict[str, str | None] = {}
            for number, page in enumerate(pages[start : start + _AT_ONCE], start + 1):
                text, digest = _text_to_write(home, page, problems)
                if text is not None:
                    texts[page.name], shown[page.name] = text, digest
                if progress is not None:
                    progress(number, len(pages))
            left = home.show(texts, shown, lasting=True)
            why = _UNWRITTEN if left is None else _EDITED
            kept = set(texts if left is None else left)
            problems += [Problem("conflict", file_of(name), why) for name in texts if name in kept]
            written += [name for name in texts if name not in kept]
        problems += _index_problems(home)
        return Rebuilt(len(pages), tuple(written), tuple(problems))


def _text_to_write(home: Home, page: PageState, problems: list[Problem]) -> tuple[str | None, str | None]:
    """Return the text that a file lacks, unless it was edited, and the digest of what it has."""
    file = file_of(page.name)
    try:
        content = home.content(page.name)
    except PageConflict as error:
        problems.append(Problem("conflict", file, str(error)))
        return None, None
    shown = None if content is None else digest_of(content)
    if shown == page.digest:
        return None, shown
    if shown is not None and shown not in home.earlier(page):
        problems.append(Problem("conflict", file, _EDITED))
        return None, shown
    text = home.look.text(page)
    if page.digest and digest_of(text.encode()) != page.digest:
        message = "the log has lost a part of it: its entries do not make up the text that was written"
        problems.append(Problem("conflict", file, message))
    return text, shown


def rebuild_index(home: Home, progress: Progress | None = None) -> Indexed:
    """Read all pages and correct what the log says of their entries as one batch; then write ``index.md``."""
    with home.locked():
        changes: list[PageChange] = []
        problems: list[Problem] = []
        known = {page.name: page for page in home.look.pages()}
        names = sorted(home.files()[0].keys() | known.keys())
        for number, name in enumerate(names):
            try:
                changes.append(_indexed(home, name, known.get(name)))
                problems += _suspects(changes[-1])
            except (PageConflict, InvalidArgument) as error:
                problems.append(Problem("conflict", file_of(name), str(error)))
            if progress is not None:
                progress(number + 1, len(names))
        home.commit(changes, show=False)
        for change in changes:
            if change.kept:
                home.catch_up(change.page.name)
        problems += _index_problems(home)
        entries = sum(change.page.count for change in changes)
        corrected = sum(change.corrections for change in changes)
        return Indexed(len(changes), entries, corrected, tuple(problems))


def _indexed(home: Home, name: str, page: PageState | None) -> PageChange:
    content = home.content(name)
    shown = None if content is None else digest_of(content)
    if content is not None and (page is None or (shown != page.digest and shown not in home.earlier(page))):
        return home.edit_by_hand(name, page, content)
    if page is None:
        raise PageConflict(f"{file_of(name)} is gone")
    is_shown = shown == page.digest and content is not None
    text = content.decode() if is_shown and content is not None else home.look.text(page)
    new = home.read(text, page)
    change = change_to(
        home.digits,
        name,
        home.dated(name, page, new) if home.is_free else new,
        BY_US,
        page=page,
        entries=home.look.entries(page),
        shown=shown,
    )
    change.page = replace(change.page, plain=page.plain, earlier=page.earlier)
    return change


def clean(home: Home, settings: Settings, what: str) -> Cleaned:
    """Remove all pages from folder and index, after taking in edits; the log and a user's notes stay."""
    word("what", what, CLEANED)
    with home.locked():
        before = sync(home, settings)
        left = {problem.file for problem in before.problems if problem.kind == "conflict"}
        pages = home.look.pages()
        notes: dict[str, object] = {"cleaned": [utc_text(home.clock()), what]}
        if what == "all":
            notes["synced"] = None
        # The files first: of one that is left, the next sync would make a page again. Notes are a user's.
        files = [file for file in home.files()[0].values() if file not in left and not home.is_free]
        home.folder.remove(files, "")
        entries = _forget(home, pages, Origin("observed", (f"cleaned: {what}",)), _Found(), **notes)
        write_index(home)
        return Cleaned(what, len(pages), entries, tuple(sorted(left)))


#: Editors write a file in several steps: what comes within this time belongs together.
_TOGETHER_MS = 200
_LOOK_MS = 200


def watch(
    home: Home, settings: Settings, tell: Callable[[Synced], object], stop: threading.Event | None = None
) -> None:
    """Sync once, and then each page that changes, until ``stop`` is set; ``tell`` gets the reports."""
    ending = stop or threading.Event()
    root = home.folder.root

    def is_watched(path: Path) -> bool:
        is_hidden = any(step.startswith(".") for step in path.parts)
        return not is_hidden if home.is_free else is_page_file(path.name)

    tell(sync(home, settings))
    changed = watch_files(
        root,
        stop_event=ending,
        recursive=home.is_free,
        debounce=_TOGETHER_MS,
        rust_timeout=_LOOK_MS,
        raise_interrupt=True,
        watch_filter=lambda _, place: is_watched(Path(place).relative_to(root)),
    )
    for some in changed:
        # A folder of notes that is moved is reported without the notes in it: then all are looked at.
        names = None if home.is_free else sorted({Path(place).name.removesuffix(SUFFIX) for _, place in some})
        report = sync(home, settings, names)
        if report != Synced():
            tell(report)
