"""A graph in the chained log of a workspace: each change is one atomic batch, which the view then shows."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from chronomemory._core import WalEvent
from chronomemory.errors import ChronoError, HistoryUnavailable, InvalidArgument
from chronomemory.face.batch import Connection
from chronomemory.face.files import Folder
from chronomemory.face.handle import open_handle
from chronomemory.face.moments import Now
from chronomemory.graph.changes import Changes, Look, numbered
from chronomemory.graph.declaration import GraphHandle
from chronomemory.graph.errors import WorkspaceError
from chronomemory.graph.ids import EDGE, META_ID, NODE, key_of
from chronomemory.graph.storage.log_look import BatchLook, Books, LogLook, PastLook
from chronomemory.graph.storage.records import record_of
from chronomemory.graph.view import FOLDERS, Shown, View
from chronomemory.scope import Scope

__all__ = ["LogHome", "open_home"]


class LogHome:
    """The log, and the view that follows it."""

    keeps_graph = True

    def __init__(self, handle: GraphHandle, view: View) -> None:
        self.handle = handle
        self.view = view
        self._turn = threading.RLock()

    def look(self) -> LogLook:
        """Return a look at what the log says now."""
        return LogLook(self.handle.store)

    def look_back(self, as_of: int | datetime) -> PastLook:
        """Return a look at what the log said after an event, or at a moment."""
        return PastLook(self.handle.store, as_of)

    def books(self) -> Books:
        """Return what the workspace knows of itself."""
        books = self.look().books()
        if books is None:
            raise WorkspaceError(f"{self.view.folder.root} is no workspace of {self.handle.scope}")
        return books

    def create(self) -> bool:
        """Begin the books and show them, unless there are some; say whether there were none."""
        with self._turn:
            if self.look().books() is None:
                self.view.check_strangers()
            self.view.make()
            with self.view.folder.locked():
                if self.look().books() is not None:
                    return False
                stale = self.is_stale()
                try:
                    self._commit(lambda conn: (Changes(), Books(revision=1)), before=None)
                except InvalidArgument as error:
                    # The books are there, and of others: whose they are is not told.
                    root = self.view.folder.root
                    raise WorkspaceError(f"{root}: the workspace there belongs to other names") from error
                self.view.begin()
                if stale:
                    self.view.rebuild(self.look(), self.shown())
                return True

    def begin_anew(self) -> None:
        """Begin the books again if they were erased with all that the files showed."""
        if self.look().books() is None and self.is_stale() and self.view.is_of_scope():
            self.create()

    def is_stale(self) -> bool:
        """Say whether something was erased since the files were written: they may show it still."""
        told = self.handle.store.engine.everyone().query(kind="erasure", status="", faces=True)
        if not told:
            return False
        since = self._shown_until()
        return any(int(record.id.rpartition(":")[2]) > since for record in told)

    def _shown_until(self) -> int:
        """Return the event up to which the files show the log; 0 if that is none of its events."""
        shown = self.view.shown()
        if shown is None:
            return 0
        try:
            # A log that went back gives the seqs of what it lost to other events.
            is_here = not shown.log_head or self.handle.store.engine.has_event(shown.log_seq, shown.log_head)
        except HistoryUnavailable:
            is_here = False
        return shown.log_seq if is_here else 0

    def forget(self) -> None:
        """Write the files anew if they may show what was erased; not by a damaged log."""
        with self._turn, self.view.folder.locked():
            before = self.books()
            if self.is_stale() and self._is_sound():
                # A batch of its own says that the files know of the erasure.
                anew = Books(before.revision + 1, before.events)
                self._commit(lambda conn: (Changes(), anew), before)

    def _is_sound(self) -> bool:
        return bool(self.handle.store.engine.findings()["valid"])

    def run(self, work: Callable[[Look], Changes]) -> Changes:
        """Write what a function makes of a look as one batch of the log, then let the view show it."""
        with self._turn, self.view.folder.locked():
            before = self.books()

            def attempt(conn: Connection) -> tuple[Changes, Books | None]:
                look = BatchLook(conn)
                books = look.books() or before
                changes = numbered(work(look), look)
                if not changes.of_graph:
                    return changes, None
                events = books.events + len(changes.events)
                return changes, Books(books.revision + 1, events)

            return self._commit(attempt, before)

    def _commit(
        self, attempt: Callable[[Connection], tuple[Changes, Books | None]], before: Books | None
    ) -> Changes:
        """Write a batch and show it. Who comes here is the only writer of the folder."""
        followed = before is None or self.follows(before)
        stale = before is not None and self.is_stale()
        last: list[Connection] = []

        def work(conn: Connection) -> tuple[Changes, Books | None]:
            changes, books = attempt(conn)
            _put(conn, changes, 1 + (books.events - len(changes.events) if books else 0))
            if books is not None:
                conn.put(books.record())
            last[:] = [conn]
            return changes, books

        changes, books = self.handle.run(work)
        event = last[0].last_event
        if event is None:
            return changes
        shown = None
        if books is not None and followed:
            shown = Shown(books.revision, event.seq, event.hash)
        try:
            self.view.follow(changes, shown)
            if stale and self._is_sound():
                self._rewrite()
        except OSError as error:
            # It is written all the same: whoever took this for a refusal would do it again.
            warnings.warn(
                f"{self.view.folder.root}: this is in the log, but the files do not show it ({error}); "
                "rebuild() writes them anew",
                RuntimeWarning,
                stacklevel=2,
            )
        return changes

    def follows(self, books: Books) -> bool:
        """Say whether the view shows the last batch, as far as it says so itself."""
        shown = self.view.shown()
        return shown is not None and (shown.revision, shown.log_seq) == (books.revision, books.seq)

    def shown(self) -> Shown:
        """Return what the view should say that it shows."""
        books = self.books()
        return Shown(books.revision, books.seq, self.head_of(books) or "")

    def head_of(self, books: Books) -> str | None:
        """Return the hash of the last event of a workspace; None if the log has it no more."""
        try:
            events = [WalEvent._of_line(line) for line in self.handle.store.engine.history(META_ID)]
        except ChronoError:  # an archive is gone
            return None
        return next((event.hash for event in reversed(events) if event.seq == books.seq), None)

    def rebuild(self) -> tuple[int, int, tuple[str, ...]]:
        """Write the view anew where it is wrong; return what was written, removed and set aside."""
        with self._turn, self.view.folder.locked():
            return self._rewrite()

    def _rewrite(self) -> tuple[int, int, tuple[str, ...]]:
        shown = self.shown()
        if not shown.log_head and (said := self.view.shown()) is not None:
            # The log has lost the line; what the view says of it is all that is left.
            shown = replace(shown, log_head=said.log_head if said.log_seq == shown.log_seq else "")
        return self.view.rebuild(self.look(), shown)


def open_home(place: Path, scope: Scope, clock: Now | None, options: dict[str, Any]) -> LogHome:
    """Stand on the log of a folder; nothing is read or made before it is asked."""
    # The folder itself may be reached through a link; what is in it never is.
    root = place.resolve()
    handle = open_handle(GraphHandle, root, scope=scope, shared=scope == Scope(), clock=clock, **options)
    return LogHome(handle, View(Folder(root, mode=handle.project.upkeep.folder_mode), scope))


def _put(conn: Connection, changes: Changes, place: int) -> None:
    for name in changes.gone_edges:
        conn.delete(key_of(EDGE, name))
    for name in changes.gone_nodes:
        conn.delete(key_of(NODE, name))
    for name in FOLDERS.values():
        for item in getattr(changes, name):
            conn.put(record_of(item))
    for number, event in enumerate(changes.events, place):
        conn.put(record_of(event, number))
    for audit in changes.audits:
        conn.put(record_of(audit))
