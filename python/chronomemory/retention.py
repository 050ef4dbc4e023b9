"""How is a store kept small, and saved elsewhere?"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from chronomemory.face.arguments import count, flag, function_or_none, must, string
from chronomemory.face.moments import Now, micros, utc_now
from chronomemory.layout import log_folder
from chronomemory.records import Records
from chronomemory.types import Progress
from chronomemory.watching import watched

__all__ = ["Compacted", "Pruned", "Upkeep", "weight_of"]


class Compacted(int):
    """How many events the old log had; and what the store's folder weighed before and after, in bytes."""

    bytes_before: int
    bytes_after: int

    def __new__(cls, events: int, bytes_before: int, bytes_after: int) -> Compacted:
        told = super().__new__(cls, events)
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


class Upkeep(Records):
    """Records of a project whose files are looked after here."""

    project_root: Path

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

    def backup(self, *, progress: Progress | None = None) -> Path:
        """Make a consistent copy inside the store's folder and return where it is.

        What ``progress`` raises is raised when the copy is made: it cannot cancel the call.
        """
        progress = function_or_none("progress", progress)
        with watched("backup", self.project_root, large=True):
            return Path(self.engine.backup(progress))

    def _weight(self) -> int:
        return weight_of(log_folder(self.project_root))
