"""The store: what a caller may ask of a project's memory."""

from __future__ import annotations

import os
import threading
import warnings
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NoReturn

from chronomemory import erasure
from chronomemory._core import Engine, Store, verify_path
from chronomemory.compat.migrate import _governance_to_esdb_status as _governance_to_esdb_status
from chronomemory.compat.store import StoreNames
from chronomemory.complaints import callers_level, complaints
from chronomemory.engines import ENGINES, Lease
from chronomemory.erasure import Erased, Salt
from chronomemory.errors import UnknownScope
from chronomemory.event import WalEvent
from chronomemory.face.arguments import (
    count,
    finite,
    flag,
    function_or_none,
    must,
    path,
    word,
)
from chronomemory.filters import Where
from chronomemory.heads import head_file
from chronomemory.health import Health, health_of
from chronomemory.layout import folder_mode, log_folder
from chronomemory.record import ChronoRecord
from chronomemory.records import Records
from chronomemory.scope import NOT_GIVEN, Scope
from chronomemory.scoped import Everyone, ScopeCount, ScopedStore
from chronomemory.types import Progress, VerifyReport
from chronomemory.upkeep import Upkeep
from chronomemory.vectors import StoreVectors
from chronomemory.watching import tell, watched

__all__ = ["ChronoRecord", "ChronoStore", "WalEvent", "open_store"]

_DURABILITY = ("full", "normal", "off")
_VERIFY = ("full", "quick")


class ChronoStore(StoreNames, Records):
    """The memory of one project: records in a chained log under ``<project_root>/.chronomemory``.

    The first call that needs the store opens it, also after ``close``; reading never creates
    a file. One store may be shared between threads, and many processes may open the same project.
    Its files are private to whoever makes it; with ``shared``, the group may read and write too.

    All stores of a process on the same folder share one engine, each on its own terms: ``recursion_depth``,
    ``durability``, ``lock_timeout`` and ``salt`` hold for its writes alone. With ``own_engine`` it shares
    with nobody, as another process would. Lines of records with a scope carry a salt, so that the hash of
    one that is erased later cannot be guessed; with ``salt=True`` all do, with ``salt=False`` none.

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
        verify: str = "full",
        head_file: str | os.PathLike[str] | None = None,
        shared: bool = False,
        own_engine: bool = False,
        salt: Salt = "scope",
    ) -> None:
        self._engine = None
        # Absolute: a process that goes to another folder must not take its stores along.
        self.project_root = path("project_root", project_root).absolute()
        self.recursion_depth: Final = count("recursion_depth", recursion_depth)
        self._given_head_file = None if head_file is None else path("head_file", head_file).absolute()
        self._options: dict[str, Any] = {
            "recursion_depth": self.recursion_depth,
            "durability": word("durability", durability, _DURABILITY),
            "exclusive": flag("exclusive", exclusive),
            "lock_timeout": finite("lock_timeout", lock_timeout, least=0.0),
            "strict": flag("strict", strict),
            "verify": word("verify", verify, _VERIFY),
            "shared": flag("shared", shared),
            "salt": erasure.salting(salt),
        }
        self._handles: weakref.WeakSet[Records] = weakref.WeakSet()
        self._own_engine = flag("own_engine", own_engine)
        self._lease: Lease | None = None
        self._opening = threading.Lock()
        self._process = os.getpid()
        self._opened_by = 0

    # Life.

    def open(self) -> ChronoStore:
        """Open the store unless it is open, and warn of damage or an interrupted write."""
        self._opened()
        return self

    def _opened(self) -> Engine:
        with self._turn():
            # INVARIANT: an engine belongs to the process that made it; after a fork the
            # child must not go on with its parent's.
            engine = self._engine
            if engine is None or self._opened_by != os.getpid():
                with watched("open", self.project_root):
                    lease = self._borrow()
                try:
                    for complaint in complaints(self.project_root, lease.findings):
                        tell(complaint)
                        warnings.warn(complaint, RuntimeWarning, stacklevel=callers_level())
                except BaseException:  # a caller who makes warnings errors gets a closed store
                    lease.release()
                    raise
                engine = lease.engine
                self._lease, self._engine, self._opened_by = lease, engine, os.getpid()
        return engine

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
        """Return where the last head is remembered: the given file, or one in the user's state folder."""
        return self._given_head_file or head_file(self.project_root)

    def _folder_mode(self) -> int:
        return folder_mode(self.project_root, shared=self._options["shared"])

    def close(self) -> None:
        """Close the store; closing twice is fine, and the next call opens it again.

        Other stores of this process that are open on the same folder stay open.
        """
        with self._turn():
            lease, self._lease, self._engine = self._lease, None, None
            for handle in list(self._handles):
                handle._engine = None
        if lease is not None:
            lease.release()

    def __enter__(self) -> ChronoStore:
        return self.open()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
        state = "closed" if self._engine is None else "open"
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

    #: ``upsert(record, *, if_version=None, if_new=False)`` writes a record in place of one with its id, and
    #: returns the event. It is the engine's own: every call would pay for a function of Python in between.
    upsert = Store.upsert

    # Many users.

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

        A name that is left out widens within one's own things and never beyond them. With ``shared=False``
        only own records are seen, and they must carry every name given.
        """
        handle = ScopedStore(self, Scope.of(user=user, agent=agent, session=session), shared=shared)
        if flag("must_exist", must_exist) and not handle.known:
            raise UnknownScope(f"nothing was ever written for {handle.scope}")
        return handle

    def everyone(self) -> Everyone:
        """Return a handle that sees every record, whosever it is, and writes what a row says."""
        return Everyone(self)

    def shared(self) -> ScopedStore:
        """Return the handle for records that all may see, where a scope is required."""
        return ScopedStore(self, Scope(), public=True)

    def _lend_to(self, handle: Records) -> None:
        """Note who holds the engine, and must let go of it when the store closes."""
        self._handles.add(handle)

    def scopes(self, *, after: Scope | None = None, limit: int = 1000) -> list[ScopeCount]:
        """Return the scopes that records carry, in their order, each with the number of its records."""
        if after is not None and not isinstance(after, Scope):
            raise must("after", "be a Scope", after)
        names = None if after is None else after.names
        listed = self.engine.scopes(names, limit=count("limit", limit))
        return [ScopeCount(Scope(*each), records) for *each, records in listed]

    # Evidence.

    def sync(self) -> None:
        """Wait until everything written so far is on disk."""
        with watched("sync", self.project_root):
            self.engine.sync()

    def health(self) -> Health:
        """Say how the store is, as far as that can be told without reading its log: it may be asked often."""
        engine, lease = self.engine, self._lease
        return health_of(engine, self.project_root, handles=0 if lease is None else lease.handles)

    def replay(self, *, from_seq: int = 0) -> list[WalEvent]:
        """Return every event of the log with this seq or a later one, whatever its op."""
        return [WalEvent._of_line(line) for line in self.engine.replay(count("from_seq", from_seq))]

    def verify(self, *, progress: Progress | None = None) -> VerifyReport:
        """Read the files again and say what they prove; nothing of the project is opened or made for it."""
        engine, progress = self._engine, function_or_none("progress", progress)
        with watched("verify", self.project_root, large=True):
            if engine is None:
                found = verify_path(os.fspath(log_folder(self.project_root)), progress, self._head_file())
            else:
                found = engine.verify(progress)
        report = VerifyReport.from_dict(found)
        for damage in report.damage:
            tell(f"{self.project_root}: damage in {damage}")
        return report

    # Care.

    def erase(
        self,
        *,
        ids: Iterable[str] | None = None,
        scope: Mapping[str, str] | None = None,
        where: Where | None = None,
        reason: str,
        history: str = "redact",
        again: Iterable[str] = (),
        derived: bool = False,
        backup: bool = True,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Erased:
        """Erase records from the store and from all of its past; the log still proves everything else.

        They are named by their ``ids``, by a ``scope`` (all that carries its names or ever did, others beside
        them or not), or by what they say now (``where``). With ``history="drop"`` the history of all goes.
        What those in ``again`` say now is said again: their past goes, and they stay. What belongs to one
        goes with it, with ``derived`` also facts that rest on it. The ``reason`` stays for ever. ``dry_run``
        writes nothing. Backups and quarantined files that hold a record go too; in place of the backups one
        new is made and verified, unless ``backup=False``.
        """
        with watched("erase", self.project_root, large=True):
            return erasure.erase(
                self,
                ids=ids,
                scope=scope,
                where=where,
                reason=reason,
                history=history,
                again=again,
                derived=derived,
                backup=backup,
                dry_run=dry_run,
                progress=progress,
            )

    @contextmanager
    def _lenient_engine(self) -> Iterator[Engine]:
        """Lend an engine that also opens a damaged store: this is the way out of damage."""
        if self._engine is not None:
            yield self._engine
            return
        lease = self._borrow(strict=False)
        try:
            yield lease.engine
        finally:
            lease.release()


def open_store(project_root: str | os.PathLike[str], **options: Any) -> ChronoStore:
    """Open a project's store; the options are those of ``ChronoStore``."""
    return ChronoStore(project_root, **options).open()
