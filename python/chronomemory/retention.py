"""Compacts, prunes and backs up a store, and lists its backups."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path, PosixPath
from typing import Any

from chronomemory.copying import copy_inside
from chronomemory.face.arguments import (
    absolute,
    count,
    flag,
    function_or_none,
    must,
    public_names,
    string,
)
from chronomemory.face.moments import Now, micros, utc_now
from chronomemory.layout import log_folder
from chronomemory.records import Records
from chronomemory.types import Progress
from chronomemory.watching import watched

__all__ = ["BackedUp", "Backup", "Compacted", "Pruned", "Upkeep", "weight_of"]


class Compacted(int):
    """How many events the old log had; and what the store's folder weighed before and after, in bytes."""

    bytes_before: int
    bytes_after: int

    def __new__(cls, events: int, bytes_before: int, bytes_after: int) -> Compacted:
        told = super().__new__(cls, events)
        told.bytes_before, told.bytes_after = bytes_before, bytes_after
        return told

    def __reduce__(self) -> tuple[type[Compacted], tuple[int, int, int]]:
        """Say what a copy is made of, in another process too."""
        return type(self), (int(self), self.bytes_before, self.bytes_after)


@dataclass(frozen=True, slots=True)
class Backup:
    """A copy of a store, in its folder (``inside``) or outside.

    ``seq`` and ``head`` are of its last event, 0 and "" if its files do not tell. ``verified`` says that
    all of it was read again and was right when it was made, and that it still ends so. One that is not
    ``there`` may lie on a medium that is not attached.
    """

    path: Path
    at: datetime
    seq: int
    head: str
    bytes: int
    verified: bool
    there: bool
    inside: bool

    @classmethod
    def of(cls, told: dict[str, Any]) -> Backup:
        """Return what the engine tells of a copy."""
        at = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=told["at"])
        return cls(**{**told, "path": Path(told["path"]), "at": at})


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
        """Return what the engine tells of a copy that it made."""
        told = cls(made["path"])
        told.seq, told.head, told.bytes = made["seq"], made["head"], made["bytes"]
        told.verified, told.removed = made["verified"], tuple(map(Path, made["removed"]))
        told.bytes_before, told.bytes_after = bytes_before, bytes_after
        return told


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was removed, or with ``dry_run`` would be.

    ``seq`` is the event that tells of it, None if no archive went. ``last_seq`` is the last event in the
    ``archives``. ``held`` archives are old enough and stay, because no base behind them is there.
    """

    seq: int | None
    archives: tuple[str, ...]
    last_seq: int
    held: int
    backups: tuple[str, ...]
    bytes_before: int
    bytes_after: int
    dry_run: bool = False


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    while True:
        try:
            with os.scandir(folder) as entries:
                return list(entries)
        except InterruptedError:
            continue  # a signal is no reason to fail
        except FileNotFoundError:
            return []


def weight_of(folder: Path) -> int:
    """Return how many bytes the files in a folder and its folders have; a link weighs nothing."""
    total, folders = 0, [folder]
    while folders:
        for entry in _entries(folders.pop()):
            if entry.is_dir(follow_symlinks=False):
                folders.append(Path(entry.path))
            elif entry.is_file(follow_symlinks=False):
                try:
                    total += entry.stat(follow_symlinks=False).st_size
                except FileNotFoundError:
                    continue  # somebody else removed it just now
    return total


@public_names
class Upkeep(Records):
    """Records of a project whose files are looked after here."""

    def compact(self, *, keep_history: bool = True, progress: Progress | None = None) -> Compacted:
        """Start a new log from the present state; return how many events the old one had.

        The new log commits to the state and to the old log by their hashes. Without
        ``keep_history`` the old events are dropped and cannot be looked at again. It is refused while
        a tail with whole events could still be taken back. The answer is a number that also says what the
        folder weighed, ``bytes_before`` and ``bytes_after``. What ``progress`` raises is raised when all is
        done: it cannot cancel the call.
        """
        progress = function_or_none("progress", progress)
        keep_history = flag("keep_history", keep_history)
        with watched("compact", self.project_root, large=True):
            engine, before = self.engine, self._weight()
            events = engine.compact(keep_history=keep_history, progress=progress)
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
        """Remove the oldest archives, and all backups but the newest; an event says so for ever.

        Archives go whose log ended ``before`` a moment, or ``older_than`` so long by ``now()``: oldest
        first, and only up to one that a base which is there stands behind, so that what is kept has no hole.
        Then ``history`` and ``as_of`` reach back no further. ``dry_run`` writes nothing.
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
        with watched("prune", self.project_root, large=True):
            engine, weight = self.engine, self._weight()
            told = engine.prune(moment, keep, string("reason", reason), flag("dry_run", dry_run))
            return Pruned(
                seq=told["seq"],
                archives=tuple(told["archives"]),
                last_seq=told["last_seq"],
                held=told["held"],
                backups=tuple(told["backups"]),
                bytes_before=weight,
                bytes_after=self._weight(),
                dry_run=dry_run,
            )

    def backup(
        self,
        *,
        to: str | os.PathLike[str] | None = None,
        keep: int | None = None,
        progress: Progress | None = None,
    ) -> BackedUp:
        """Make a consistent copy and return where it is; it is also told what it holds and weighs.

        Without ``to`` it lies in the store's folder. With it, it gets a folder of its own in that one, which
        must be outside: it is private, is read again and verified before it has its name, and the store
        remembers it, so that ``erase`` can tell of it. Of the copies of this store in the same place the
        newest ``keep`` stay, the new one among them. What ``progress`` raises is raised when the copy is
        made: it cannot cancel the call.
        """
        progress = function_or_none("progress", progress)
        newest = None if keep is None else count("keep", keep, least=1)
        with watched("backup", self.project_root, large=True):
            engine, before = self.engine, self._weight()
            if to is not None:
                made = engine.copy_out(absolute("to", to), newest, progress)
                made["verified"] = True
            else:
                made = copy_inside(engine, progress)
                gone = [] if newest is None else engine.prune(None, newest, "", False)["backups"]
                made["removed"] = [os.fspath(log_folder(self.project_root) / name) for name in gone]
            return BackedUp.of(made, before, self._weight())

    def backups(self) -> list[Backup]:
        """Return the copies of the store, the oldest first: in its folder, and those it knows of outside."""
        return [Backup.of(told) for told in self.engine.copies()]

    def forget_backups(self, *paths: str | os.PathLike[str]) -> int:
        """Forget copies outside that are gone for good; return how many were known.

        One that is still there is refused: ``erase`` must be able to tell of it.
        """
        return self.engine.forget_copies([absolute("paths", given) for given in paths])

    def _weight(self) -> int:
        return weight_of(log_folder(self.project_root))
