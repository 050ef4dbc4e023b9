"""A folder of pages and the log behind it."""

from __future__ import annotations

import errno
import os
import re
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeVar

from chronomemory.errors import InvalidArgument, Limit, WriteConflict
from chronomemory.face.arguments import word
from chronomemory.face.batch import Connection, Face
from chronomemory.face.files import Folder
from chronomemory.face.handle import Handle, open_handle
from chronomemory.face.moments import Now, utc_now
from chronomemory.layout import FOLDER
from chronomemory.page_files import INDEX_FILE, OUR_MARK
from chronomemory.pages.errors import FolderError, NotAPage, PageConflict, UnknownFolder, UnknownPage
from chronomemory.pages.ids import (
    FACE,
    FOLDER_KIND,
    MOST_PAGE_BYTES,
    SUFFIX,
    file_of,
    folder_digits,
    folder_key,
    folder_place,
    is_page_file,
    page_name,
)
from chronomemory.pages.layout import (
    FREE,
    LAYOUTS,
    PREFIXED,
    find_layout,
    is_vault,
    note_name,
    notes_in,
    refused_notes,
    spellings,
)
from chronomemory.pages.storage.changes import PageChange, change_to, merged
from chronomemory.pages.storage.look import Look
from chronomemory.pages.storage.records import BY_HAND, MOST_EARLIER, PageState, digest_of
from chronomemory.pages.text.entries import suspects_in
from chronomemory.pages.text.frontmatter import frontmatter_end, utc_text
from chronomemory.pages.text.links import call_of
from chronomemory.pages.text.page import PageText, dated, decoded, read_note, read_page
from chronomemory.pages.types import Problem
from chronomemory.record import ChronoRecord
from chronomemory.scope import Scope
from chronomemory.store import ChronoStore
from chronomemory.updates import retry_in_turn


class PagesHandle(Handle):
    """The pages of one project, as one scope sees them."""

    face = Face(name=FACE)


_OWNER = re.compile(rb"<!-- The pages of ([a-z]+|[0-9a-f]{16}) -->")
_ALL = "all"


def owner_line(scope: Scope) -> str:
    """Return the line that identifies the owner by a digest."""
    return f"<!-- The pages of {_owner(scope)} -->"


def _owner(scope: Scope) -> str:
    return scope.digits if scope != Scope() else _ALL


T = TypeVar("T")
_MOST_EDITS = 20
_SCHEMA = "chronomemory.pages.folder"
_MEMORY = "memory"
#: How names of files begin that editors write beside the one they edit.
_BESIDE = (".", "#", "~")


@dataclass(frozen=True, slots=True)
class Settled:
    """A page that log and file agree on, or will once the file is written."""

    page: PageState
    text: str
    shown: str | None

    @property
    def is_shown(self) -> bool:
        return self.shown == self.page.digest


class Home:
    """The log, and the folder that follows it."""

    def __init__(
        self, handle: PagesHandle, folder: Folder, project: Path, clock: Now | None, layout: str | None
    ) -> None:
        self.handle = handle
        self.folder = folder
        self.place = folder_place(project, folder.root)
        self.digits = folder_digits(project, folder.root)
        self.clock: Now = clock or utc_now
        self.look = Look(handle.store, self.digits)
        self._layout = layout
        self._turn = threading.RLock()
        self._held = 0

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Be the only writer of the folder, of all threads and processes; a thread may come in again."""
        with self._turn:
            if self._held:
                yield
                return
            _check_real(self.folder.root)
            if not self.is_free:
                self.folder.make()
            elif not self.folder.root.is_dir():
                raise FolderError(
                    f"{self.folder.root}: the folder of the notes is not there; nothing was forgotten",
                    recovery="Bring it back, or let rebuild() write it anew from the log.",
                )
            with self.folder.locked():
                self._held += 1
                try:
                    yield
                finally:
                    self._held -= 1

    @property
    def is_free(self) -> bool:
        """Whether it holds a user's notes under any names, instead of pages with prefixes."""
        return self.look.is_free

    def _settle_layout(self, known: str | None) -> None:
        """Take the layout on record, or the one that was asked for, or the one that the folder shows."""
        asked = self._layout
        if known is not None and asked not in (None, known):
            raise FolderError(
                f"{self.folder.root} has the layout {known!r}, which was decided when it was first opened, "
                f"not {asked!r}",
                recovery="Leave layout out, or give another folder.",
            )
        self._layout = known or asked or find_layout(self.folder.root)
        self.look.is_free = self._layout == FREE

    def books(self) -> dict[str, Any] | None:
        """Return what the log says of the folder itself; None if it was never made for these names."""
        record = self.handle.store.engine.get(folder_key(self.digits))
        if record is None or record.status == "tombstone":
            return None
        if record.scope != self.handle.scope:
            raise self._of_others()
        return dict(record.data)

    def _is_known(self) -> bool:
        if (books := self.books()) is None:
            return False
        self._settle_layout(books.get("layout", PREFIXED))
        return True

    def create(self) -> bool:
        """Create the folder and record its owner, unless done; return whether it was created."""
        if self._is_known():
            return False
        with self.locked():
            if self._is_known():
                return False
            self._settle_layout(None)
            if self.place == ["within"] and not self.is_free:
                raise _no_place(self.folder.root)
            self._moved_here()
            try:
                self.handle.run(lambda conn: conn.put(self._books({})))
            except InvalidArgument as error:
                # The owner is not named.
                raise self._of_others() from error
            return True

    def check(self) -> None:
        """Refuse to go on if there is no folder of pages; one that was moved here with its pages is one."""
        if self._is_known():
            return
        try:
            is_moved = self._moved_here()
        except FolderError as error:
            raise UnknownFolder(f"there are no pages for these names: {error}") from None
        if not is_moved:
            raise UnknownFolder(f"there are no pages in {self.folder.root}")
        self.create()

    def _moved_here(self) -> bool:
        try:
            index = self.folder.read(INDEX_FILE)
        except OSError:
            return False
        owner = _OWNER.search(index) if OUR_MARK.encode() in index else None
        if owner is not None and owner[1].decode() != _owner(self.handle.scope):
            raise self._of_others()
        return owner is not None

    def note(self, conn: Connection, **fields: Any) -> None:
        """Put something down about the folder itself, as part of a batch."""
        known = conn.record(folder_key(self.digits))
        data = (
            {} if known is None else {name: value for name, value in known.data.items() if name != "@scope"}
        )
        conn.put(self._books({**data, **fields}))

    def _books(self, fields: Mapping[str, Any]) -> ChronoRecord:
        data = {
            **fields,
            "schema": _SCHEMA,
            "folder": self.digits,
            "place": self.place,
            "layout": self._layout,
        }
        return ChronoRecord(id=folder_key(self.digits), kind=FOLDER_KIND, confidence=1.0, data=data)

    def _of_others(self) -> FolderError:
        return FolderError(f"{self.folder.root}: the pages there belong to other names")

    def name(self, given: str) -> str:
        """Return the name of the page that is meant; a note may be called by its title or an alias too."""
        if not self.is_free:
            return page_name(given)
        name = note_name(given)
        if self.look.page(name) is None and self.content(name) is None:
            return next(iter(self.look.called(call_of(given) or "")), name)
        return name

    def new_name(self, given: str) -> str:
        return note_name(given) if self.is_free else page_name(given)

    def read(self, text: str, known: PageState | None = None) -> PageText:
        """Read the text of a page; ``known`` is what the log says of it."""
        if self.is_free:
            return read_note(text)
        return read_page(text, None if known is None else (known.head, known.meta))

    def files(self) -> tuple[dict[str, str], list[Problem]]:
        """Return the file of each page by name, and problems with other files."""
        problems: list[Problem] = []
        if self.is_free:
            notes = {name: file for file, name in notes_in(self.folder.root, problems)}
            # Two notes whose names differ only in Unicode form cannot be matched to a page.
            return {name: notes[name] for name in notes.keys() - refused_notes(problems)}, problems
        found = {}
        for file in self.folder.names(""):
            if is_page_file(file):
                found[file.removesuffix(SUFFIX)] = file
            elif file.endswith(SUFFIX) and file != INDEX_FILE and not file.startswith(_BESIDE):
                message = "this is no name of a page, so it is left alone; rename it"
                problems.append(Problem("strange", file, message))
        return found, problems

    def file(self, name: str) -> tuple[str, str]:
        """Return the folder that the file of a page lies in, and its name there, as it is spelled on disk."""
        files = spellings(file_of(name)) if self.is_free else (file_of(name),)
        found = [file for file in files if os.path.lexists(self.folder.root / file)]
        if len(found) > 1 and len({os.lstat(self.folder.root / file).st_ino for file in found}) > 1:
            raise PageConflict(
                f"there are two files {found[0]}, spelled in two forms of Unicode",
                recovery="Rename one of them.",
            )
        there = found[0] if found else files[0]
        within, _, leaf = there.rpartition("/")
        return within, leaf

    def remove(self, name: str) -> None:
        within, leaf = self.file(name)
        self.folder.remove([leaf], within)

    def earlier(self, page: PageState) -> tuple[str, ...]:
        """Return the digests of texts that a file may still have which is behind the log."""
        return () if self.is_free else page.earlier

    def content(self, name: str) -> bytes | None:
        """Return what the file of a page has, or None if there is none."""
        within, leaf = self.file(name)
        try:
            stamp = self.folder.stamp(leaf, within)
            if stamp is not None and stamp[1] > MOST_PAGE_BYTES:
                raise PageConflict(
                    f"{file_of(name)} has {stamp[1]:,} bytes, and a page has at most {MOST_PAGE_BYTES:,}",
                    recovery="Divide it, or move it out of the folder.",
                )
            return self.folder.read(leaf, within)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            why = "it is a link" if error.errno == errno.ELOOP else error.strerror or str(error)
            raise PageConflict(f"{file_of(name)} cannot be read as a file of this folder: {why}") from error

    def show(
        self, texts: Mapping[str, str], shown: Mapping[str, str | None], *, lasting: bool = False
    ) -> list[str] | None:
        """Write files of pages over known contents; return the pages left, None if the disk refuses."""
        folders: dict[str, dict[str, str]] = {}
        for name in texts:
            within, leaf = self.file(name)
            folders.setdefault(within, {})[leaf] = name
        try:
            left: list[str] = []
            for within, names in folders.items():

                def is_known(leaf: str, content: bytes | None, names: dict[str, str] = names) -> bool:
                    return shown[names[leaf]] == (None if content is None else digest_of(content))

                if within:
                    self.folder.make(within)
                files = {leaf: texts[name].encode() for leaf, name in names.items()}
                found = self.folder.write_all(files, within, lasting=lasting, is_known=is_known)
                left += [names[leaf] for leaf in found]
            return left
        except OSError as error:
            if self.is_free:
                raise PageConflict(
                    f"{self.folder.root}: nothing was written: {error.strerror or error}",
                    recovery="Make room, or let the folder be written.",
                ) from error
            # The log has it: an error would make the caller write it twice.
            warnings.warn(
                f"{self.folder.root}: this is in the log, but the files do not show it ({error}); "
                "rebuild() writes them anew",
                RuntimeWarning,
                stacklevel=4,
            )
            return None

    def is_edited(self, name: str) -> bool:
        page, content = self.look.page(name), self.content(name)
        return content is not None and (
            page is None or digest_of(content) not in (page.digest, *self.earlier(page))
        )

    def settle(self, name: str) -> Settled:
        """Take in edits of a page made by hand, under the caller's lock; a stale file is not written yet."""
        page = self.look.page(name)
        content = self.content(name)
        shown = None if content is None else digest_of(content)
        if page is None or (content is None and self.is_free):
            if content is None:
                raise UnknownPage(f"there is no page {name!r}")
            return self._take_in(name, None, content)
        if content is None or shown in self.earlier(page):
            return Settled(page, self.look.text(page), shown)
        if shown == page.digest:
            return Settled(page, content.decode(), shown)
        return self._take_in(name, page, content)

    def _take_in(self, name: str, page: PageState | None, content: bytes) -> Settled:
        change = self.edit_by_hand(name, page, content)
        self.commit([change], show=False)
        for suspect in change.suspects:
            warnings.warn(f"{file_of(name)}: {suspect}", RuntimeWarning, stacklevel=5)
        return Settled(change.page, change.text, digest_of(content))

    def catch_up(self, name: str) -> bool:
        """Write the file of a page if it is stale; return whether it is up to date."""
        for _ in range(_MOST_EDITS):
            settled = self.settle(name)
            left = [] if settled.is_shown else self.show({name: settled.text}, {name: settled.shown})
            if not left:
                return left is not None
        warnings.warn(
            f"{file_of(name)} is edited all the time; sync takes it in", RuntimeWarning, stacklevel=3
        )
        return False

    def edit_by_hand(self, name: str, page: PageState | None, content: bytes) -> PageChange:
        try:
            new = self.read(decoded(content), page)
        except NotAPage as error:
            line = "" if error.line is None else f", line {error.line}"
            raise PageConflict(f"{file_of(name)}{line}: {error}") from error
        entries = [] if page is None else self.look.entries(page)
        kept: tuple[str, ...] = ()
        # A note has headings of its own, such as one with a day in brackets.
        suspects = [] if self.is_free else suspects_in(new.text)
        if suspects and page is not None:
            # What stood there before, in a content that quotes a heading, is no slip of this edit.
            before = "".join((page.head, *(entry.stretch.raw for entry in entries)))
            suspects = suspects_in(new.text, {line.removesuffix("\r") for line in before.split("\n")})
        if self.is_free:
            new = self.dated(name, page, new)
        elif page is not None:
            self._check_whole(name, page, new)
            new, kept = merged(page, entries, new, self.clock())
        change = change_to(
            self.digits,
            name,
            new,
            BY_HAND,
            page=page,
            entries=entries,
            on_disk=True,
            written=utc_text(self.clock()),
        )
        change.kept = kept
        change.suspects = tuple(suspects)
        if kept:
            # Until the file is written it has the text of the person, which is a part of what the log says.
            change.page = replace(change.page, earlier=(digest_of(content),))
        return change

    def dated(self, name: str, page: PageState | None, new: PageText) -> PageText:
        """Give the sections of a note their moments: those that they have, or that of the file."""
        within, leaf = self.file(name)
        stamp = self.folder.stamp(leaf, within)
        now = self.clock() if stamp is None else datetime.fromtimestamp(stamp[2] / 1e9, timezone.utc)
        entries = [] if page is None else self.look.entries(page)
        known = {entry.stretch.entry.entry_id: entry.stretch for entry in entries}
        return dated(new, known, "" if page is None else page.meta.created, now.astimezone())

    def _check_whole(self, name: str, page: PageState, new: PageText) -> None:
        """Refuse a file that an editor has emptied and not written yet: its entries are not deleted."""
        is_blank = not new.text.strip() and bool(page.head.strip() or page.count)
        is_bare = page.count > 0 and not new.entries and frontmatter_end(page.head) > 0
        if is_blank or (is_bare and frontmatter_end(new.head) == 0):
            what = "is empty" if is_blank else "has neither frontmatter nor entries any more"
            raise PageConflict(
                f"{file_of(name)} {what}, which is not taken for a deletion; save its text again, or delete "
                "the file and rebuild"
            )

    def commit(
        self,
        changes: Iterable[PageChange],
        *,
        show: bool = True,
        also: Callable[[Connection], None] | None = None,
    ) -> None:
        """Write changes of pages as one batch, then show those that are new."""
        listed = list(changes)
        texts = {change.page.name: change.text for change in listed}
        if show and self.is_free and self.show(texts, dict.fromkeys(texts), lasting=True):
            raise PageConflict(f"{', '.join(texts)}: another program made the file meanwhile")

        def work(conn: Connection) -> None:
            for change in listed:
                change.put(conn, self.digits)
            if also is not None:
                also(conn)

        try:
            self.handle.run(work)
        except BaseException:
            for name in texts if show and self.is_free else ():
                self.remove(name)
            raise
        if show and not self.is_free:
            # A new file that is lost in a crash would look like a deletion.
            for name in self.show(texts, dict.fromkeys(texts), lasting=True) or ():
                self._catch_up_later(name)

    def _catch_up_later(self, name: str) -> None:
        """Take in a file that was edited while its page was written; failures only warn."""
        try:
            self.catch_up(name)
        except (PageConflict, InvalidArgument, Limit) as error:
            warnings.warn(
                f"{error}; this is in the log, but the file does not show it yet",
                RuntimeWarning,
                stacklevel=5,
            )

    def _lasting(self, settled: Settled) -> Settled:
        """Let a file last that shows its page, before there are more texts than a page remembers."""
        if not settled.is_shown or len(settled.page.earlier) < MOST_EARLIER:
            return settled
        self.folder.sync()
        return replace(settled, page=replace(settled.page, earlier=()))

    def change(self, name: str, work: Callable[[Connection, Settled], tuple[T, str]]) -> T:
        """Let something change one page: it puts records and returns the new text of the page."""

        def attempt() -> tuple[T, bool]:
            settled = self._lasting(self.settle(name))
            written: str | None = None
            try:
                with self.handle.begin() as conn:
                    now = self.look.page(name, conn)
                    if now is None or now.digest != settled.page.digest:
                        raise WriteConflict("another writer changed the page; nothing was written")
                    result, text = work(conn, settled)
                    if self.is_free and text != settled.text:
                        if self.show({name: text}, {name: settled.shown}, lasting=True):
                            raise WriteConflict("the file was edited meanwhile; nothing was written")
                        written = text
            except BaseException:
                if written is not None:
                    self.show({name: settled.text}, {name: digest_of(written.encode())}, lasting=True)
                raise
            is_stale = not self.is_free and (text != settled.text or not settled.is_shown)
            return result, is_stale and bool(self.show({name: text}, {name: settled.shown}))

        with self.locked():
            result, is_left = retry_in_turn(self.handle.store, attempt)
            if is_left:
                self._catch_up_later(name)
            return result


def _check_real(root: Path) -> None:
    if root.is_symlink():
        raise FolderError(
            f"{root} is a link, and pages are not written through one", recovery="Give the folder itself."
        )
    if root.exists() and not root.is_dir():
        raise FolderError(f"{root} is not a folder", recovery="Give the folder that holds the pages.")


def _no_place(root: Path) -> FolderError:
    return FolderError(f"{root} cannot hold pages: a store is there", recovery="Give a folder of its own.")


def open_home(
    place: Path | ChronoStore,
    folder: Path | None,
    scope: Scope,
    clock: Now | None,
    options: dict[str, Any],
    layout: str | None = None,
) -> Home:
    """Stand on the log of a project; nothing is read or made before it is asked."""
    asked = None if layout is None else word("layout", layout, LAYOUTS)
    handle = open_handle(PagesHandle, place, scope=scope, shared=scope == Scope(), clock=clock, **options)
    project = Path(handle.project.project_root).resolve()
    try:
        # The way to the folder may lead through links; the folder itself is none, nor is what is in it.
        where = project / (_usual_folder(handle, project, asked) if folder is None else folder)
        _check_real(where)
        root = where.resolve()
        if FOLDER in root.parts or (root == project and asked == PREFIXED):
            raise _no_place(root)
    except BaseException:
        handle.close()
        raise
    shown = Folder(root, is_real=True, mode=handle.project.upkeep.folder_mode, most_bytes=MOST_PAGE_BYTES)
    return Home(handle, shown, project, clock, asked)


def _usual_folder(handle: PagesHandle, project: Path, layout: str | None) -> str:
    """Return the folder of pages of a project: ``memory``, or the project if that is a vault itself."""
    vault, memory = (
        handle.store.engine.get(folder_key(folder_digits(project, folder)))
        for folder in (project, project / _MEMORY)
    )
    is_itself = vault is not None or layout == FREE or (memory is None and is_vault(project))
    return "." if is_itself and layout != PREFIXED else _MEMORY
