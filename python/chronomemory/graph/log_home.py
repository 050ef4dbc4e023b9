"""A graph in the chained log of a workspace: record ids, record conversion, reads and atomic batches."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

from chronomemory.errors import ChronoError, HistoryUnavailable, InvalidArgument
from chronomemory.event import WalEvent
from chronomemory.face.batch import Connection, Face, PrefixReader
from chronomemory.face.files import Folder
from chronomemory.face.handle import Handle, open_handle, open_test_handle
from chronomemory.face.moments import Now
from chronomemory.graph.changes import Changes, Look, numbered
from chronomemory.graph.errors import ModelError, WorkspaceError
from chronomemory.graph.models import (
    ActivationPlan,
    AuditRecord,
    Edge,
    MemoryEvent,
    MemoryPath,
    Model,
    Node,
    Profile,
    spellings,
)
from chronomemory.graph.view import FOLDERS, WORKSPACE, Shown, View
from chronomemory.record import ChronoRecord
from chronomemory.scope import Scope
from chronomemory.selection import view_of
from chronomemory.types import HasEngine

FACE = "graph"

NODE = "node"
EDGE = "gedge"
EVENT = "event"
AUDIT = "audit"

META_ID = f"{AUDIT}:@workspace"


def key_of(kind: str, item_id: str) -> str:
    """Return the record id of something.

    >>> key_of(EDGE, "a:b")
    'gedge:a:b'
    """
    return f"{kind}:{item_id}"


class GraphHandle(Handle):
    """The graph of one project, as one scope sees it."""

    face = Face(name=FACE)


KINDS: dict[type[Model], str] = {
    Profile: "profile",
    Node: NODE,
    Edge: EDGE,
    MemoryPath: "path",
    ActivationPlan: "plan",
    MemoryEvent: EVENT,
    AuditRecord: AUDIT,
}
EVENTS = "all"

_LOG = "log"
#: The number of an event in its workspace. Earlier versions wrote none.
PLACE = "place"

One = TypeVar("One", bound=Model)


def record_of(item: Model, place: int = 0) -> ChronoRecord:
    fields = item.shown()
    kind = KINDS[type(item)]
    if kind in (EVENT, AUDIT):
        fields[_LOG] = EVENTS
    if kind == EVENT:
        fields[PLACE] = place
    label = fields.get("label") or fields.get("name") or ""
    return ChronoRecord(id=key_of(kind, fields["id"]), kind=kind, label=label, confidence=1.0, data=fields)


_READER = PrefixReader()


@dataclass(frozen=True, slots=True)
class Books:
    """The revision of a workspace, and the number of its events."""

    revision: int = 0
    events: int = 0
    seq: int = 0

    @classmethod
    def of(cls, record: ChronoRecord | None) -> Books | None:
        data: dict[str, Any] = {} if record is None else record.data
        revision, events = data.get("revision"), data.get("events")
        if record is None or data.get("schema") != WORKSPACE:
            return None
        if not isinstance(revision, int) or not isinstance(events, int):
            return None
        return cls(revision, events, record.updated_seq or 0)

    def record(self) -> ChronoRecord:
        data = {"schema": WORKSPACE, "revision": self.revision, "events": self.events}
        return ChronoRecord(id=META_ID, kind="workspace", confidence=1.0, data=data)


class LogLook(Look):
    """Reads the current state of a store."""

    def __init__(self, store: HasEngine) -> None:
        self._store = store

    def books(self) -> Books | None:
        """Return what the workspace knows of itself, or None if there is no workspace."""
        return Books.of(self._record(META_ID))

    def nodes(self, kind: str | None = None) -> list[Node]:
        if kind is None:
            return self.every(Node)
        return _readable(Node, self._found("graph.nodes_by_kind", kind))

    def edges(
        self, *, source: str | None = None, target: str | None = None, kind: str | None = None
    ) -> list[Edge]:
        asked = {"source": source, "target": target, "kind": kind}
        by = next((name for name, value in asked.items() if value is not None), None)
        if by is None:
            return self.every(Edge)
        found = _readable(Edge, self._found(f"graph.edges_by_{by}", asked[by]))
        return [edge for edge in found if target in (None, edge.target) and kind in (None, edge.kind)]

    def events(self, kind: str | None = None) -> list[MemoryEvent]:
        index, key = ("graph.appended", EVENTS) if kind is None else ("graph.appended_by_kind", kind)
        found = sorted(self._found(index, key), key=lambda record: int(record.data.get(PLACE, 0)))
        return _readable(MemoryEvent, found)

    def audits(self) -> list[AuditRecord]:
        return _readable(AuditRecord, self._found("graph.audited", EVENTS))

    def event_count(self) -> int:
        books = self.books()
        return 0 if books is None else books.events

    def audit_count(self) -> int:
        return self._count(AUDIT)

    def one(self, cls: type[One], item_id: str) -> One | None:
        found = (self._record(key_of(KINDS[cls], one)) for one in spellings(item_id))
        return next(iter(_readable(cls, [record for record in found if record is not None])), None)

    def every(self, cls: type[One]) -> list[One]:
        return sorted(_readable(cls, self._records(KINDS[cls])), key=attrgetter("id"))

    def _record(self, record_id: str) -> ChronoRecord | None:
        record = self._store.engine.get(record_id)
        return None if record is None or record.status == "tombstone" else record

    def _records(self, kind: str) -> list[ChronoRecord]:
        return _READER.records(self._store.engine, kind, "active", None)

    def _count(self, kind: str) -> int:
        return _READER.count(self._store.engine, kind, "active")

    def _found(self, index: str, key: object) -> list[ChronoRecord]:
        return self._store.engine.find(index, [key], limit=sys.maxsize)


class BatchLook(LogLook):
    """Reads within a batch; records read by id must not change before it is written."""

    def __init__(self, conn: Connection) -> None:
        super().__init__(conn.store)
        self._conn = conn

    def _record(self, record_id: str) -> ChronoRecord | None:
        return self._conn.record(record_id)


class PastLook(LogLook):
    """Reads an earlier state."""

    def __init__(self, store: HasEngine, as_of: int | datetime) -> None:
        super().__init__(store)
        self._past = view_of(store.engine, as_of)

    def _record(self, record_id: str) -> ChronoRecord | None:
        record = self._past.get(record_id)
        return None if record is None or record.status == "tombstone" else record

    def _records(self, kind: str) -> list[ChronoRecord]:
        found = self._past.query(kind=kind)
        return [record for record in found if record.id.startswith(key_of(kind, ""))]

    def _count(self, kind: str) -> int:
        return len(self._records(kind))

    def _found(self, index: str, key: object) -> list[ChronoRecord]:
        return self._past.find(index, [key], limit=sys.maxsize)


def _readable(cls: type[One], records: Iterable[ChronoRecord]) -> list[One]:
    """Return what records are of; one that this face would not have written is none of its own."""
    found = []
    for record in records:
        try:
            found.append(cls.known(record.data))
        except (ModelError, KeyError, TypeError):
            continue
    return found


class MemoryHome:
    """A graph in a temporary log, in memory where the system has a folder for that."""

    def __init__(self) -> None:
        self.handle = open_test_handle(GraphHandle)
        #: Whether a graph store uses it: then its events must lead to that graph.
        self.keeps_graph = False

    def look(self) -> LogLook:
        return LogLook(self.handle.store)

    def run(self, work: Callable[[Look], Changes]) -> Changes:
        """Write the changes that a function returns, all or nothing."""

        def attempt(conn: Connection) -> Changes:
            look = BatchLook(conn)
            count = look.event_count()
            changes = numbered(work(look), look)
            _put(conn, changes, count + 1)
            if changes.events:
                conn.put(Books(events=count + len(changes.events)).record())
            return changes

        return self.handle.run(attempt)


class LogHome:
    """The log, and the view that follows it."""

    keeps_graph = True

    def __init__(self, handle: GraphHandle, view: View) -> None:
        self.handle = handle
        self.view = view
        self._turn = threading.RLock()

    def look(self) -> LogLook:
        return LogLook(self.handle.store)

    def books(self) -> Books:
        books = self.look().books()
        if books is None:
            raise WorkspaceError(f"{self.view.folder.root} is no workspace of {self.handle.scope}")
        return books

    def create(self) -> bool:
        """Create the workspace unless it exists; return whether it was created."""
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
                    # The workspace belongs to another scope, which is not named.
                    root = self.view.folder.root
                    raise WorkspaceError(f"{root}: the workspace there belongs to other names") from error
                self.view.begin()
                if stale:
                    self.view.rebuild(self.look(), self.shown())
                return True

    def is_stale(self) -> bool:
        """Return whether an erasure happened after the files were written."""
        erasures = self.handle.store.engine.unscoped().query(kind="erasure", status="", faces=True)
        if not erasures:
            return False
        shown, since = self.view.shown(), 0
        with suppress(HistoryUnavailable):
            # A log that went back gives the seqs of what it lost to other events.
            engine = self.handle.store.engine
            if shown is not None and (not shown.log_head or engine.has_event(shown.log_seq, shown.log_head)):
                since = shown.log_seq
        return any(int(record.id.rpartition(":")[2]) > since for record in erasures)

    def forget(self) -> None:
        """Rewrite the files if they may show erased data, unless the log is damaged."""
        with self._turn, self.view.folder.locked():
            before = self.books()
            if self.is_stale() and self._is_sound():
                # A batch of its own says that the files know of the erasure.
                anew = Books(before.revision + 1, before.events)
                self._commit(lambda conn: (Changes(), anew), before)

    def _is_sound(self) -> bool:
        return bool(self.handle.store.engine.upkeep.findings()["valid"])

    def run(self, work: Callable[[Look], Changes]) -> Changes:
        """Write the changes that a function returns as one batch, then update the files."""
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
        """Write a batch and update the files; the caller holds the lock of the folder."""
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
            # The log has it: an error would make the caller write it twice.
            warnings.warn(
                f"{self.view.folder.root}: this is in the log, but the files do not show it ({error}); "
                "rebuild() writes them anew",
                RuntimeWarning,
                stacklevel=2,
            )
        return changes

    def follows(self, books: Books) -> bool:
        shown = self.view.shown()
        return shown is not None and (shown.revision, shown.log_seq) == (books.revision, books.seq)

    def shown(self) -> Shown:
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
        """Correct the files; return the counts of written and removed files, and renamed ones."""
        with self._turn, self.view.folder.locked():
            return self._rewrite()

    def _rewrite(self) -> tuple[int, int, tuple[str, ...]]:
        shown = self.shown()
        if not shown.log_head and (claimed := self.view.shown()) is not None:
            # The log has lost the line; what the view says of it is all that is left.
            shown = replace(shown, log_head=claimed.log_head if claimed.log_seq == shown.log_seq else "")
        return self.view.rebuild(self.look(), shown)


def open_home(place: Path, scope: Scope, clock: Now | None, options: dict[str, Any]) -> LogHome:
    """Stand on the log of a folder; nothing is read or made before it is asked."""
    # The folder itself may be reached through a link; what is in it never is.
    root = place.resolve()
    handle = open_handle(GraphHandle, root, scope=scope, shared=scope == Scope(), clock=clock, **options)
    return LogHome(handle, View(Folder(root, mode=handle.project.upkeep.folder_mode), scope))


def clear_erased(store: HasEngine) -> None:
    """Write the files of a workspace anew after an erasure in its log, if there is a workspace."""
    project: Any = getattr(store, "_store", store)  # of a handle, the store that it is of
    folder = Folder(project.project_root.resolve(), mode=project.upkeep.folder_mode)
    scope = View(folder, Scope()).scope_shown()
    if scope is None:
        return
    handle = open_handle(GraphHandle, project, scope=scope, shared=scope == Scope())
    home = LogHome(handle, View(folder, scope))
    shown = home.view.shown()
    if home.look().books() is not None:
        home.forget()
    elif shown is not None:
        # All of it was erased: nothing is written in its scope before the workspace is opened again.
        with folder.locked():
            home.view.rebuild(home.look(), shown)


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
