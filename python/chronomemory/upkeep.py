"""Maintenance of a store: compaction, backups, repair, and the settings that all processes share."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path, PosixPath
from typing import Any, Protocol

from chronomemory._core import Engine
from chronomemory.face.arguments import absolute, count, flag, function_or_none, must, path, string
from chronomemory.face.moments import EPOCH, Now, micros, utc_now
from chronomemory.layout import log_folder
from chronomemory.search import set_search_fields
from chronomemory.types import HasProject, Progress
from chronomemory.watching import watched

#: An erasure by another process may remove a copy right after it was made: then another is made.
_ATTEMPTS = 5


def copy_inside(engine: Engine, progress: Progress | None = None) -> dict[str, Any]:
    """Make a copy, and return what the engine tells of it."""
    for _ in range(_ATTEMPTS):
        folder = engine.upkeep.backup(progress)
        for copy in engine.upkeep.copies():
            if copy["path"] == folder:
                return copy
        if Path(folder).exists():
            raise OSError(errno.EIO, "the copy was made, but cannot be looked at", folder)
    raise FileNotFoundError(errno.ENOENT, "copies are made, and taken away again and again", folder)


class Compacted(int):
    """How many events the old log had; and what the store's folder weighed before and after, in bytes."""

    bytes_before: int
    bytes_after: int

    def __new__(cls, events: int, bytes_before: int, bytes_after: int) -> Compacted:
        compacted = super().__new__(cls, events)
        compacted.bytes_before, compacted.bytes_after = bytes_before, bytes_after
        return compacted

    def __reduce__(self) -> tuple[type[Compacted], tuple[int, int, int]]:
        return type(self), (int(self), self.bytes_before, self.bytes_after)


@dataclass(frozen=True, slots=True)
class Backup:
    """A copy of a store, ``inside`` its folder or outside; ``seq`` and ``head`` are of its last event."""

    path: Path
    at: datetime
    seq: int
    head: str
    bytes: int
    verified: bool
    there: bool
    inside: bool

    @classmethod
    def of(cls, found: dict[str, Any]) -> Backup:
        at = EPOCH + timedelta(microseconds=found["at"])
        return cls(**{**found, "path": Path(found["path"]), "at": at})


class BackedUp(PosixPath):
    """Where a copy is; its last event, what it weighs, and what the store's folder did before and after."""

    seq: int = 0
    head: str = ""
    bytes: int = 0
    verified: bool = False
    removed: tuple[Path, ...] = ()
    bytes_before: int = 0
    bytes_after: int = 0

    @classmethod
    def of(cls, made: dict[str, Any], bytes_before: int, bytes_after: int) -> BackedUp:
        copy = cls(made["path"])
        copy.seq, copy.head, copy.bytes = made["seq"], made["head"], made["bytes"]
        copy.verified, copy.removed = made["verified"], tuple(map(Path, made["removed"]))
        copy.bytes_before, copy.bytes_after = bytes_before, bytes_after
        return copy


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was removed, or with ``dry_run`` would be; ``held`` archives have no base behind them."""

    seq: int | None
    archives: tuple[str, ...]
    last_seq: int
    held: int
    backups: tuple[str, ...]
    bytes_before: int
    bytes_after: int
    dry_run: bool = False


def weight_of(folder: Path) -> int:
    """Return how many bytes the files in a folder and its folders have; a link weighs nothing."""
    total = 0
    for here, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):  # another process removed it just now
                found = Path(here, name).lstat()
                total += found.st_size if stat.S_ISREG(found.st_mode) else 0
    return total


class _Store(HasProject, Protocol):
    def _lenient_engine(self) -> AbstractContextManager[Engine]: ...

    def _folder_mode(self) -> int: ...


class Upkeep:
    """Maintenance and settings of a store; an error of a ``progress`` function is raised at the end."""

    __slots__ = ("_store",)

    def __init__(self, store: _Store) -> None:
        self._store = store

    def compact(self, *, keep_history: bool = True, progress: Progress | None = None) -> Compacted:
        """Start a new log from the present state; return how many events the old one had, and sizes.

        Without ``keep_history`` the old events are dropped. A tail with whole events must be repaired first.
        """
        progress = function_or_none("progress", progress)
        keep_history = flag("keep_history", keep_history)
        with watched("compact", self._store.project_root, large=True):
            engine, before = self._store.engine, self._weight()
            events = engine.upkeep.compact(keep_history=keep_history, progress=progress)
            return Compacted(events, before, self._weight())

    def prune(
        self,
        *,
        older_than: timedelta | None = None,
        before: datetime | None = None,
        keep_backups: int | None = None,
        reason: str,
        now: Now | None = None,
        dry_run: bool = False,
    ) -> Pruned:
        """Remove archives that ended ``before`` a moment or ``older_than`` so long, and old backups.

        An event records it. Archives go as long as a base stands behind them; ``history`` reaches back no
        further.
        """
        if older_than is not None and before is not None:
            raise must("older_than or before", "be one of the two", "both")
        if older_than is None and before is None and keep_backups is None:
            raise must("older_than, before or keep_backups", "be given", "none")
        if older_than is not None and not isinstance(older_than, timedelta):
            raise must("older_than", "be a timedelta", repr(older_than))
        moment = None if before is None else micros("before", before)
        if older_than is not None:
            moment = micros("now", (now or utc_now)()) - older_than // timedelta(microseconds=1)
        keep = None if keep_backups is None else count("keep_backups", keep_backups)
        with watched("prune", self._store.project_root, large=True):
            engine, weight = self._store.engine, self._weight()
            order = {"before": moment, "keep_backups": keep, "reason": string("reason", reason)}
            report = engine.upkeep.prune({**order, "dry_run": flag("dry_run", dry_run)})
            report |= {name: tuple(report[name]) for name in ("archives", "backups")}
            return Pruned(**report, bytes_before=weight, bytes_after=self._weight(), dry_run=dry_run)

    def backup(
        self,
        *,
        to: str | os.PathLike[str] | None = None,
        keep: int | None = None,
        progress: Progress | None = None,
    ) -> BackedUp:
        """Make a consistent copy and return where it is, with what it holds and weighs.

        Without ``to`` it lies in the store's folder. Else it gets a private folder in that one, is verified,
        and the store remembers it. Of the copies in the same place the newest ``keep`` stay.
        """
        progress = function_or_none("progress", progress)
        newest = None if keep is None else count("keep", keep, least=1)
        with watched("backup", self._store.project_root, large=True):
            engine, before = self._store.engine, self._weight()
            if to is not None:
                made = engine.upkeep.copy_out(absolute("to", to), newest, progress)
                made["verified"] = True
            else:
                made = copy_inside(engine, progress)
                order = {"keep_backups": newest, "reason": "", "dry_run": False}
                gone = [] if newest is None else engine.upkeep.prune(order)["backups"]
                made["removed"] = [os.fspath(log_folder(self._store.project_root) / name) for name in gone]
            return BackedUp.of(made, before, self._weight())

    def backups(self) -> list[Backup]:
        """Return the copies of the store, the oldest first: in its folder, and those it knows of outside."""
        return [Backup.of(found) for found in self._store.engine.upkeep.copies()]

    def forget_backups(self, *paths: str | os.PathLike[str]) -> int:
        """Forget copies outside that are gone for good, none that is there; return how many were known."""
        return self._store.engine.upkeep.forget_copies([absolute("paths", given) for given in paths])

    def restore(
        self,
        source: str | os.PathLike[str],
        *,
        damaged: bool = False,
        bring_back: bool = False,
        progress: Progress | None = None,
    ) -> dict[str, Any] | None:
        """Put the store back to a backup, or to what a repair or restore set aside in ``quarantine/``.

        What is replaced is set aside. A copy with damage needs ``damaged``. What was erased since the copy is
        erased first, unless ``bring_back``. Only a tail in ``quarantine/`` returns the report of its
        ``repair``.
        """
        folder, damaged = path("source", source), flag("damaged", damaged)
        bring_back = flag("bring_back", bring_back)
        progress = function_or_none("progress", progress)
        with (
            watched("restore", self._store.project_root, large=True),
            self._store._lenient_engine() as engine,
        ):
            order = {"source": os.fspath(folder), "damaged": damaged, "bring_back": bring_back}
            return engine.upkeep.restore(order, progress)

    def repair(self, *, unproven: bool = False, progress: Progress | None = None) -> dict[str, Any]:
        """Bring back what something in the folder proves, set damaged bytes aside, and return what was done.

        An unproven start is refused, or with ``unproven=True`` taken and marked.
        """
        unproven, progress = flag("unproven", unproven), function_or_none("progress", progress)
        with watched("repair", self._store.project_root, large=True), self._store._lenient_engine() as engine:
            return engine.upkeep.repair(progress, unproven=unproven)

    def accept_head(self) -> None:
        """Take the log as it is for the right one, after a change that was meant, such as a checkout."""
        with self._store._lenient_engine() as engine:
            engine.upkeep.accept_head()

    def require_scope(self, level: str, *, wanted: bool = True) -> bool:
        """Refuse writes without a name of this level, such as ``user``; return whether that is new."""
        return self._store.engine.upkeep.require(string("level", level), flag("wanted", wanted))

    def create_index(self, path: str) -> bool:
        """Index records by a field, such as ``"data.customer"``, at most 64; return whether that is new."""
        return self._store.engine.upkeep.create_index(string("path", path))

    def drop_index(self, path: str) -> bool:
        """Remove an index; return whether there was one."""
        return self._store.engine.upkeep.drop_index(string("path", path))

    def indexes(self) -> list[str]:
        """Return the fields that have an index, the oldest first."""
        return self._store.engine.upkeep.indexes()

    def set_search_fields(
        self,
        *,
        text: Mapping[str, int] | None = None,
        tags: Iterable[str] | None = None,
        links: Iterable[str] | None = None,
        groups: Iterable[str] | None = None,
        times: Iterable[str] | None = None,
        speakers: Iterable[str] | None = None,
    ) -> None:
        """Choose which fields are searched, by paths; ``text`` gives each a weight of 1 to 100."""
        named = {"tags": tags, "links": links, "groups": groups, "times": times, "speakers": speakers}
        set_search_fields(self._store, text, named)

    def set_now(self, moment: datetime | None) -> None:
        """Set the clock of expiries for all stores of this process on the folder; None resets it."""
        self._store.engine.set_clock(None if moment is None else micros("moment", moment))

    def folder_mode(self) -> int:
        """Return the permissions of the store's folder, or those that it will get when it is made."""
        return self._store._folder_mode()

    def _weight(self) -> int:
        return weight_of(log_folder(self._store.project_root))
