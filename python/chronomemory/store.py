"""The store and its handles. Scopes separate, they do not protect: a caller chooses the names of a handle."""

from __future__ import annotations

import json
import os
import threading
import warnings
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal, NoReturn, overload

from chronomemory import erasure, ingestion, reasons, rollback, search, selection, updates
from chronomemory._core import Engine, Store, verify_path
from chronomemory.compat.migrate import _governance_to_esdb_status as _governance_to_esdb_status
from chronomemory.compat.store import RecordNames, StoreNames
from chronomemory.deps import DepGraph
from chronomemory.engines import ENGINES, Lease
from chronomemory.erasure import Salt
from chronomemory.errors import InvalidArgument, UnknownRecord, UnknownScope
from chronomemory.event import WalEvent
from chronomemory.face import arguments as check
from chronomemory.health import Health, health_of
from chronomemory.layout import folder_mode, head_file, log_folder
from chronomemory.record import ChronoRecord
from chronomemory.rollback import RollbackReport
from chronomemory.scope import NOT_GIVEN, Scope
from chronomemory.selection import StoreView, engine_of, view_of
from chronomemory.types import Progress, VerifyReport
from chronomemory.upkeep import Upkeep
from chronomemory.vectors import StoreVectors, Vectors
from chronomemory.watching import callers_level, complaints, tell, watched

__all__ = [
    "ChronoRecord",
    "ChronoStore",
    "Everyone",
    "Records",
    "ScopeCount",
    "ScopedStore",
    "WalEvent",
    "open_store",
]

_DELETED = "tombstone"


@check.public_names
class Records(RecordNames, Store):
    """What a store and a handle have in common: a mapping of ids to records, searches and the past."""

    project_root: Path

    @property
    def engine(self) -> Engine:
        """The open engine, for whom this handle asks and writes."""
        raise NotImplementedError

    @property
    def vectors(self) -> Vectors:
        """The embeddings of the records: ``attach``, ``nearest``, ``spaces`` and more."""
        return Vectors(self)

    def upsert_many(self, records: Iterable[ChronoRecord | Mapping[str, Any]]) -> range:
        """Write records as one atomic batch; return their seqs. A record without an id gets a random one."""
        if isinstance(records, Mapping | ChronoRecord):
            raise check.must("records", "be a list of records; upsert() takes one", records)
        if ingestion.is_table(records):
            raise check.must("records", 'be a list of records, such as table.to_dict("records")', records)
        return range(*self.engine.upsert_many(check.many("records", records)))

    # Reading. Records are copies: changing one changes nothing until it is upserted.

    #: ``get(record_id, *, expired=False)`` returns a record, a tombstoned one too, or None; one that has
    #: expired only if that is asked for. It is the engine's own method, which is faster than one in Python.
    get = Store.get

    def _get_expired(self, record_id: str, expired: bool) -> ChronoRecord | None:
        return engine_of(self, expired).get(record_id)

    def __getitem__(self, record_id: str) -> ChronoRecord:
        record = self.engine.get(record_id)
        if record is None or record.status == _DELETED:
            raise UnknownRecord(f"id {json.dumps(record_id)}: there is no such record", id=record_id)
        return record

    def __contains__(self, record_id: object) -> bool:
        record = self.engine.get(record_id) if isinstance(record_id, str) else None
        return record is not None and record.status != _DELETED

    def __len__(self) -> int:
        return sum(number for _, status, _, number in self.engine.tally() if status != _DELETED)

    def __iter__(self) -> Iterator[str]:
        walk = self.stream(status=None, faces=True)
        return (record.id for record in walk if record.status != _DELETED)

    def __bool__(self) -> bool:
        return True  # an empty store is still a store: code that asks ``if store`` asks for None

    @overload
    def count(
        self, *, by: None = None, status: str | None = ..., faces: bool = ..., expired: bool = ...
    ) -> int: ...
    @overload
    def count(
        self,
        *,
        by: Literal["kind", "status"],
        status: str | None = ...,
        faces: bool = ...,
        expired: bool = ...,
    ) -> dict[str, int]: ...
    def count(
        self,
        *,
        by: Literal["kind", "status"] | None = None,
        status: str | None = "active",
        faces: bool = False,
        expired: bool = False,
    ) -> int | dict[str, int]:
        """Return how many records there are, in all or by kind or status; ``status=None`` means any."""
        group = None if by is None else check.word("by", by, ("kind", "status"))
        status, faces, engine = (
            check.string_or_none("status", status),
            check.flag("faces", faces),
            engine_of(self, expired),
        )
        if group is None and status == "active" and not faces:
            return engine.count()
        counts: dict[str, int] = {}
        for kind, its_status, of_face, number in engine.tally():
            if (faces or not of_face) and (not status or its_status == status):
                key = its_status if group == "status" else kind
                counts[key] = counts.get(key, 0) + number
        return sum(counts.values()) if group is None else counts

    def invalidate(self, record_id: str, reason: str, dep_graph: DepGraph | None = None) -> RollbackReport:
        """Invalidate an own record and doubt what rests on it, by default along the stored edges."""
        return rollback.invalidate(record_id, reason, self, dep_graph)

    def history(self, record_id: str) -> list[WalEvent]:
        """Return every event of one record that was kept, oldest first."""
        return [WalEvent._of_line(line) for line in self.engine.history(check.string("id", record_id))]

    def changed_since(self, seq: int) -> list[str]:
        """Return the ids upserted at ``seq`` or later, each once; deletions are left out."""
        return self.engine.changed_since(check.count("seq", seq))

    def as_of(self, when: int | datetime) -> StoreView:
        """Look at the store as it was after event ``when``, or at a moment with a time zone."""
        return StoreView(view_of(self.engine, when))

    ingest = ingestion.ingest
    query = selection.query
    stream = selection.stream
    search = search.search
    sweep = erasure.sweep
    why = reasons.why
    rollbacks = rollback.rollbacks
    reinstate = rollback.reinstate
    update = updates.update
    get_many = updates.get_many
    delete = updates.delete
    delete_many = updates.delete_many
    _upsert_if = updates.upsert_if


@dataclass(frozen=True, slots=True)
class ScopeCount:
    """A scope that records carry, and how many do; tombstones count."""

    scope: Scope
    records: int


class _Handle(Records):
    """A handle on a store, which its owner opens and closes."""

    def __init__(self, store: ChronoStore) -> None:
        self._engine = None
        self._store = store
        self.project_root = store.project_root
        # The store clears the engine of its handles when it closes.
        store._handles.add(self)

    def _view(self, engine: Engine) -> Engine:
        raise NotImplementedError

    @property
    def engine(self) -> Engine:
        # The store forgets what its handles hold when it closes.
        engine = self._engine
        if engine is None:
            engine = self._view(self._store.engine)
            self._engine = engine
        return engine

    def __reduce__(self) -> NoReturn:
        raise TypeError("a handle cannot be pickled: open the project again")


class ScopedStore(_Handle):
    """The records of a scope and what is wider; made by ``store.scoped(…)``.

    >>> import tempfile
    >>> from chronomemory import ChronoStore
    >>> with ChronoStore(tempfile.mkdtemp()) as store:
    ...     ann, bob = store.scoped(user="ann"), store.scoped(user="bob")
    ...     _ = ann.upsert({"id": ann.id("TEA"), "label": "Ann likes green tea"})
    ...     [hit.record.label for hit in ann.search("tea")], bob.search("tea")
    (['Ann likes green tea'], [])
    """

    def __init__(
        self, store: ChronoStore, scope: Scope, *, shared: bool = True, public: bool = False
    ) -> None:
        super().__init__(store)
        self._scope = scope
        self._public = public
        self.shared: Final = check.flag("shared", shared)
        if not self.shared and scope == Scope():
            raise InvalidArgument("shared must be True without names, got False", field="shared")

    def _view(self, engine: Engine) -> Engine:
        if self._public:
            return engine.public()
        return engine.scoped(self.scope.names, shared=self.shared)

    @property
    def scope(self) -> Scope:
        """The names that were given."""
        return self._scope

    @property
    def known(self) -> bool:
        """Whether anything of one's own is there, tombstones too."""
        return self.engine.is_known()

    def id(self, name: str) -> str:
        """Return an id that no other scope can take: the name, and digits that stand for the scope."""
        digits = self.engine.scope_digits()
        return f"{check.string('name', name)}@{digits}" if digits else check.string("name", name)

    def without(self, level: str) -> ScopedStore:
        """Return the handle without one of its names, for what should outlive a session."""
        return ScopedStore(self._store, self.scope.without(level), shared=self.shared)

    def __repr__(self) -> str:
        return f"<ScopedStore of {self.scope}>"


class Everyone(_Handle):
    """Every record of a store, of all scopes; made by ``store.everyone()``."""

    def _view(self, engine: Engine) -> Engine:
        return engine.unscoped()

    def __repr__(self) -> str:
        return "<Everyone>"


_DURABILITY = ("full", "normal", "off")
_VERIFY = ("full", "later", "quick")


class ChronoStore(StoreNames, Records):
    """The memory of one project: records in a chained log under ``<project_root>/.chronomemory``.

    The first call opens it, also after ``close``; reading creates no file. Threads may share a store,
    processes a project. Files are private; with ``shared`` the group may read and write. All stores of a
    process on a folder share one engine, unless ``own_engine``. ``salt`` says which lines carry a salt, so
    that the hash of an erased one cannot be guessed.

    >>> import tempfile
    >>> with ChronoStore(tempfile.mkdtemp()) as store:
    ...     event = store.upsert(ChronoRecord(id="FACT-1", label="Water is wet"))
    ...     store.get("FACT-1").label, event.seq
    ('Water is wet', 1)
    """

    def __init__(
        self,
        project_root: str | os.PathLike[str],
        *,
        recursion_depth: int = 0,
        durability: str = "normal",
        exclusive: bool = False,
        lock_timeout: float = 5.0,
        strict: bool = False,
        verify: str = "later",
        head_file: str | os.PathLike[str] | None = None,
        shared: bool = False,
        own_engine: bool = False,
        salt: Salt = "scope",
    ) -> None:
        self._engine = None
        # Absolute: a process that goes to another folder must not take its stores along.
        self.project_root = check.path("project_root", project_root).absolute()
        self.recursion_depth: Final = check.count("recursion_depth", recursion_depth)
        self._given_head_file = None if head_file is None else check.path("head_file", head_file).absolute()
        self._options: dict[str, Any] = {
            "recursion_depth": self.recursion_depth,
            "durability": check.word("durability", durability, _DURABILITY),
            "exclusive": check.flag("exclusive", exclusive),
            "lock_timeout": check.finite("lock_timeout", lock_timeout, least=0.0),
            "strict": check.flag("strict", strict),
            "verify": check.word("verify", verify, _VERIFY),
            "shared": check.flag("shared", shared),
            "salt": erasure.salting(salt),
        }
        self._handles: weakref.WeakSet[Records] = weakref.WeakSet()
        self._own_engine = check.flag("own_engine", own_engine)
        self._lease: Lease | None = None
        self._opening = threading.Lock()
        self._process = os.getpid()
        self._opened_by = 0

    def open(self) -> ChronoStore:
        """Open the store unless it is open, and warn of damage or an interrupted write."""
        self._opened()
        return self

    def _opened(self) -> Engine:
        with self._turn():
            # INVARIANT: an engine belongs to the process that made it, and never to a forked child.
            if self._lease is None or self._opened_by != os.getpid():
                with watched("open", self.project_root):
                    lease = self._borrow()
                try:
                    self._warn(lease.findings)
                except BaseException:  # a caller who makes warnings errors gets a closed store
                    lease.release()
                    raise
                self._lease, self._engine, self._opened_by = lease, lease.engine, os.getpid()
                return lease.engine
            engine = self._lease.engine
            if self._engine is None:  # damage was found since it was opened
                self._engine = engine
                self._warn(engine.upkeep.findings())
        return engine

    def _warn(self, findings: dict[str, Any]) -> None:
        for complaint in complaints(self.project_root, findings):
            tell(complaint)
            warnings.warn(complaint, RuntimeWarning, stacklevel=callers_level())

    def _turn(self) -> threading.Lock:
        """Return the lock of those who open and close; a forked child must not wait for its parent's."""
        if self._process != os.getpid():
            self._opening, self._process = threading.Lock(), os.getpid()
        return self._opening

    def _borrow(self, **other_options: Any) -> Lease:
        options = {**self._options, "head_file": self._head_file(), **other_options}
        folder = log_folder(self.project_root)
        return ENGINES.borrow(self.project_root, folder, options, own=self._own_engine)

    def _head_file(self) -> Path | None:
        return self._given_head_file or head_file(self.project_root)

    def _folder_mode(self) -> int:
        return folder_mode(self.project_root, shared=self._options["shared"])

    def close(self) -> None:
        """Close the store; the next call opens it again. Other stores on the folder stay open."""
        with self._turn():
            lease, self._lease, self._engine = self._lease, None, None
            for handle in list(self._handles):
                handle._engine = None
        if lease is not None:
            lease.release()

    def __enter__(self) -> ChronoStore:
        return self.open()

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        lease = getattr(self, "_lease", None)
        if lease is not None:
            warnings.warn(f"unclosed store {self!r}", ResourceWarning, source=self, stacklevel=2)
            lease.release()

    def __copy__(self) -> ChronoStore:
        raise TypeError("a store cannot be copied: open the project again")

    def __reduce__(self) -> NoReturn:
        raise TypeError("a store cannot be pickled: open the project again")

    def __repr__(self) -> str:
        state = "closed" if self._lease is None else "open"
        return f"<ChronoStore {os.fspath(self.project_root)!r}, {state}>"

    @property
    def engine(self) -> Engine:
        """The open engine: the doorway that the other faces of this package write through."""
        return self._engine or self._opened()

    @property
    def vectors(self) -> StoreVectors:
        """The embeddings of the records and their spaces: ``attach``, ``nearest``, ``reembed`` and more."""
        return StoreVectors(self)

    @property
    def upkeep(self) -> Upkeep:
        """Maintenance and settings: ``compact``, ``backup``, ``restore``, ``repair``, indexes and more."""
        return Upkeep(self)

    #: ``upsert(record, *, if_version=None, if_new=False)`` writes a record in place of the one with its id,
    #: and returns the event. It is the engine's own method, which is faster than one in Python.
    upsert = Store.upsert

    def scoped(
        self,
        *,
        user: str = NOT_GIVEN,
        agent: str = NOT_GIVEN,
        session: str = NOT_GIVEN,
        shared: bool = True,
        must_exist: bool = False,
    ) -> ScopedStore:
        """Return a handle for some names: it sees what is theirs and what is wider, writes what is theirs.

        With ``shared=False`` it sees only own records, which carry every name given.
        """
        handle = ScopedStore(self, Scope.of(user=user, agent=agent, session=session), shared=shared)
        if check.flag("must_exist", must_exist) and not handle.known:
            raise UnknownScope(f"nothing was ever written for {handle.scope}")
        return handle

    def everyone(self) -> Everyone:
        """Return a handle that sees the records of all scopes, and writes to the scope that a row names."""
        return Everyone(self)

    def shared(self) -> ScopedStore:
        """Return the handle for records that all may see, where a scope is required."""
        return ScopedStore(self, Scope(), public=True)

    def scopes(self, *, after: Scope | None = None, limit: int = 1000) -> list[ScopeCount]:
        """Return the scopes that records carry, in their order, each with the number of its records."""
        if after is not None and not isinstance(after, Scope):
            raise check.must("after", "be a Scope", after)
        names = None if after is None else after.names
        listed = self.engine.scopes(names, limit=check.count("limit", limit))
        return [ScopeCount(Scope(*each), records) for each, records in listed]

    def sync(self) -> None:
        """Wait until everything written so far is on disk."""
        with watched("sync", self.project_root):
            self.engine.sync()

    def health(self) -> Health:
        """Return the state of the store without reading its log: a call is cheap."""
        engine, lease = self.engine, self._lease
        return health_of(engine, self.project_root, handles=0 if lease is None else lease.handles)

    def replay(self, *, from_seq: int = 0) -> list[WalEvent]:
        """Return every event of the log with this seq or a later one, whatever its op."""
        return [WalEvent._of_line(line) for line in self.engine.replay(check.count("from_seq", from_seq))]

    def verify(self, *, progress: Progress | None = None) -> VerifyReport:
        """Read the files again and say what they prove; nothing of the project is opened or made for it."""
        lease, progress = self._lease, check.function_or_none("progress", progress)
        with watched("verify", self.project_root, large=True):
            if lease is None:
                found = verify_path(os.fspath(log_folder(self.project_root)), progress, self._head_file())
            else:
                found = lease.engine.upkeep.verify(progress)
        report = VerifyReport.from_dict(found)
        for damage in report.damage:
            tell(f"{self.project_root}: damage in {damage}")
        return report

    erase = erasure.erase

    @contextmanager
    def _lenient_engine(self) -> Iterator[Engine]:
        """Lend an engine that also opens a damaged store: this is the way out of damage."""
        if self._lease is not None:
            yield self._lease.engine
            return
        lease = self._borrow(strict=False)
        try:
            yield lease.engine
        finally:
            lease.release()


def open_store(project_root: str | os.PathLike[str], **options: Any) -> ChronoStore:
    """Open a project's store; the options are those of ``ChronoStore``."""
    return ChronoStore(project_root, **options).open()
