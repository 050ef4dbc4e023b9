"""A folder of pages and the log behind it: each change is one atomic batch, which the files then show.

The log comes first, the file second. A file that shows an earlier text of its page is behind, since a writer
was killed in between, and is written anew; a file that shows anything else was edited by hand, and is taken
in first.
"""

from __future__ import annotations

import errno
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from chronomemory.errors import InvalidArgument, Limit, WriteConflict
from chronomemory.face.batch import Connection
from chronomemory.face.files import Folder
from chronomemory.face.handle import open_handle
from chronomemory.face.moments import Now, utc_now
from chronomemory.layout import FOLDER
from chronomemory.pages.declaration import PagesHandle
from chronomemory.pages.errors import FolderError, NotAPage, PageConflict, UnknownFolder, UnknownPage
from chronomemory.pages.ids import (
    FOLDER_KIND,
    INDEX_FILE,
    MOST_PAGE_BYTES,
    file_of,
    folder_digits,
    folder_key,
)
from chronomemory.pages.storage.changes import PageChange, change_to
from chronomemory.pages.storage.look import Look
from chronomemory.pages.storage.merging import merged
from chronomemory.pages.storage.owners import owner_in
from chronomemory.pages.storage.records import BY_HAND, MOST_EARLIER, PageState, digest_of
from chronomemory.pages.text.frontmatter import frontmatter_end, utc_text
from chronomemory.pages.text.page import PageText, decoded, read_page
from chronomemory.pages.text.suspects import suspects_in
from chronomemory.record import ChronoRecord
from chronomemory.scope import Scope
from chronomemory.store import ChronoStore
from chronomemory.updates import again_if_changed

__all__ = ["Home", "Settled", "open_home"]

T = TypeVar("T")
#: So many edits in a row are taken in before a file is left as it is.
_MOST_EDITS = 20
_SCHEMA = "chronomemory.pages.folder"


@dataclass(frozen=True, slots=True)
class Settled:
    """A page that log and file agree on, or will once the file is written."""

    page: PageState
    text: str
    #: The digest of what the file has, None if there is no file.
    shown: str | None

    @property
    def is_shown(self) -> bool:
        """Whether the file has the text."""
        return self.shown == self.page.digest


class Home:
    """The log, and the folder that follows it."""

    def __init__(self, handle: PagesHandle, folder: Folder, digits: str, clock: Now | None) -> None:
        self.handle = handle
        self.folder = folder
        self.digits = digits
        self.clock: Now = clock or utc_now
        self.look = Look(handle.store, digits)
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
            self.folder.make()
            with self.folder.locked():
                self._held += 1
                try:
                    yield
                finally:
                    self._held -= 1

    # Whose it is.

    def books(self) -> dict[str, Any] | None:
        """Return what the log says of the folder itself; None if it was never made for these names."""
        record = self.handle.store.engine.get(folder_key(self.digits))
        if record is None or record.status == "tombstone":
            return None
        if record.scope != self.handle.scope:
            raise self._of_others()
        return dict(record.data)

    def create(self) -> bool:
        """Make the folder and say whose it is, unless that is done; say whether it was not."""
        with self.locked():
            if self.books() is not None:
                return False
            self._moved_here()
            try:
                self.handle.run(lambda conn: conn.put(self._books({})))
            except InvalidArgument as error:
                # Whose it is is not told.
                raise self._of_others() from error
            return True

    def check(self) -> None:
        """Refuse to go on if there is no folder of pages; one that was moved here with its pages is one."""
        if self.books() is not None:
            return
        try:
            is_moved = self._moved_here()
        except FolderError as error:
            raise UnknownFolder(f"there are no pages for these names: {error}") from None
        if not is_moved:
            raise UnknownFolder(f"there are no pages in {self.folder.root}")
        self.create()

    def _moved_here(self) -> bool:
        """Say whether there are pages that were written elsewhere; those of other names stay theirs."""
        try:
            is_ours = owner_in(self.folder.read(INDEX_FILE), self.handle.scope)
        except OSError:
            return False
        if is_ours is False:
            raise self._of_others()
        return bool(is_ours)

    def note(self, conn: Connection, **said: Any) -> None:
        """Put something down about the folder itself, as part of a batch."""
        known = conn.record(folder_key(self.digits))
        data = (
            {} if known is None else {name: value for name, value in known.data.items() if name != "@scope"}
        )
        conn.put(self._books({**data, **said}))

    def _books(self, said: Mapping[str, Any]) -> ChronoRecord:
        data = {**said, "schema": _SCHEMA, "folder": self.digits}
        return ChronoRecord(id=folder_key(self.digits), kind=FOLDER_KIND, confidence=1.0, data=data)

    def _of_others(self) -> FolderError:
        return FolderError(f"{self.folder.root}: the pages there belong to other names")

    # Files.

    def content(self, name: str) -> bytes | None:
        """Return what the file of a page has, or None if there is none."""
        try:
            return self.folder.read(file_of(name))
        except FileNotFoundError:
            return None
        except OSError as error:
            why = "it is a link" if error.errno == errno.ELOOP else error.strerror or str(error)
            raise PageConflict(f"{file_of(name)} cannot be read as a file of this folder: {why}") from error

    def show(
        self, texts: Mapping[str, str], shown: Mapping[str, str | None], *, lasting: bool = False
    ) -> list[str] | None:
        """Write the files of some pages, each whole, in place of what they are known to show.

        A file that shows something else was edited meanwhile: it is left, and the page is named. Unless they
        are to be ``lasting``, one may come back after a crash as it was before: then it is behind. Where the
        disk refuses, it is told in a warning, and None is returned.
        """
        known = {file_of(name): digest for name, digest in shown.items()}

        def is_known(file: str, content: bytes | None) -> bool:
            return known[file] == (None if content is None else digest_of(content))

        try:
            files = {file_of(name): text.encode() for name, text in texts.items()}
            left = set(self.folder.write_all(files, lasting=lasting, is_known=is_known))
            return [name for name in texts if file_of(name) in left]
        except OSError as error:
            # It is written all the same: whoever took this for a refusal would do it again.
            warnings.warn(
                f"{self.folder.root}: this is in the log, but the files do not show it ({error}); "
                "rebuild() writes them anew",
                RuntimeWarning,
                stacklevel=4,
            )
            return None

    # One page.

    def is_edited(self, name: str) -> bool:
        """Say whether the file of a page shows what the log never said."""
        page, content = self.look.page(name), self.content(name)
        return content is not None and (
            page is None or digest_of(content) not in (page.digest, *page.earlier)
        )

    def settle(self, name: str) -> Settled:
        """Bring log and file of a page together: what was edited by hand becomes events first.

        Who comes here is the only writer of the folder. The file of a page that is behind is not written yet.
        """
        page = self.look.page(name)
        content = self.content(name)
        shown = None if content is None else digest_of(content)
        if page is None:
            if content is None:
                raise UnknownPage(f"there is no page {name!r}")
            return self._take_in(name, None, content)
        if content is None or shown in page.earlier:
            return Settled(page, self.look.text(page), shown)
        if shown == page.digest:
            return Settled(page, content.decode(), shown)
        return self._take_in(name, page, content)

    def _take_in(self, name: str, page: PageState | None, content: bytes) -> Settled:
        change = self.edit_by_hand(name, page, content)
        self.commit([change], show=False)
        for told in change.suspects:
            warnings.warn(f"{file_of(name)}: {told}", RuntimeWarning, stacklevel=5)
        return Settled(change.page, change.text, digest_of(content))

    def catch_up(self, name: str) -> bool:
        """Let the file of a page show what the log says, and say whether it does.

        What is edited meanwhile is taken in first.
        """
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
        """Return what a file says that was edited by hand."""
        try:
            new = read_page(decoded(content), None if page is None else (page.head, page.meta))
        except NotAPage as error:
            line = "" if error.line is None else f", line {error.line}"
            raise PageConflict(f"{file_of(name)}{line}: {error}") from error
        entries = [] if page is None else self.look.entries(page)
        kept: tuple[str, ...] = ()
        suspects = suspects_in(new.text)
        if suspects and page is not None:
            # What stood there before, in a content that quotes a heading, is no slip of this edit.
            before = "".join((page.head, *(entry.stretch.raw for entry in entries)))
            suspects = suspects_in(new.text, {line.removesuffix("\r") for line in before.split("\n")})
        if page is not None:
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

        def work(conn: Connection) -> None:
            for change in listed:
                change.put(conn, self.digits)
            if also is not None:
                also(conn)

        self.handle.run(work)
        if show:
            texts = {change.page.name: change.text for change in listed}
            # One that is new would be gone after a crash, as if somebody had taken it away.
            for name in self.show(texts, dict.fromkeys(texts), lasting=True) or ():
                self._catch_up_later(name)

    def _catch_up_later(self, name: str) -> None:
        """Catch up with a file that was edited while its page was written; what was written stays so."""
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

            def batch(conn: Connection) -> tuple[T, str]:
                now = self.look.page(name, conn)
                if now is None or now.digest != settled.page.digest:
                    raise WriteConflict("another writer changed the page; nothing was written")
                return work(conn, settled)

            told, text = self.handle.run(batch, patience=0.0)
            if text != settled.text or not settled.is_shown:
                is_left = bool(self.show({name: text}, {name: settled.shown}))
            else:
                is_left = False
            return told, is_left

        with self.locked():
            told, is_left = again_if_changed(attempt)
            if is_left:
                self._catch_up_later(name)
            return told


def _check_real(root: Path) -> None:
    if root.is_symlink():
        raise FolderError(
            f"{root} is a link, and pages are not written through one", recovery="Give the folder itself."
        )


def open_home(
    place: Path | ChronoStore, folder: Path | None, scope: Scope, clock: Now | None, options: dict[str, Any]
) -> Home:
    """Stand on the log of a project; nothing is read or made before it is asked."""
    handle = open_handle(PagesHandle, place, scope=scope, shared=scope == Scope(), clock=clock, **options)
    project = Path(handle.project.project_root).resolve()
    # The way to the folder may lead through links; the folder itself is none, nor is what is in it.
    place = project / ("memory" if folder is None else folder)
    try:
        _check_real(place)
        root = place.resolve()
        if root == project or FOLDER in root.parts:
            raise FolderError(
                f"{root} cannot hold pages: a store is there", recovery="Give a folder of its own."
            )
    except BaseException:
        handle.close()
        raise
    shown = Folder(root, is_real=True, mode=handle.project.folder_mode, most_bytes=MOST_PAGE_BYTES)
    return Home(handle, shown, folder_digits(project, root), clock)
