"""Lends one engine for each folder to all stores of a process, each on the terms of its own writes."""

from __future__ import annotations

import os
import threading
import weakref
from pathlib import Path
from typing import Any, Final

from chronomemory._core import Engine, after_fork_in_child, after_fork_in_parent, before_fork
from chronomemory.errors import Busy, LogCorrupted

_ALIKE = ("exclusive", "head_file")

#: The process, and what tells a folder from all others: device and inode, or where it would be.
_Key = tuple[int, int | str, int]


class _Shared:
    """An engine, and how many hold it."""

    def __init__(self, key: _Key, folder: int | None) -> None:
        self.key = key
        #: Held open, so that no other folder gets its inode meanwhile.
        self.folder = folder
        #: Reentrant: garbage collection may close a store at any point of its thread.
        self.turn = threading.RLock()
        self.engine: Engine | None = None
        self.options: dict[str, Any] = {}
        self.handles = 0
        self.is_gone = False

    def has_lost_its_log(self) -> bool:
        """Say whether the log that it knows is gone from its place: the folder may be another one by now."""
        try:
            if self.engine is not None:
                self.engine.last_seq()
        except LogCorrupted:
            return True
        return False

    def engine_for(self, project_root: Path, options: dict[str, Any]) -> tuple[Engine, dict[str, Any]]:
        """Return the engine with these options, and what was found when it was opened, or looked at anew."""
        if self.engine is None:
            self.engine = Engine(project_root, {**options, "seal": ENGINES.seal})
            self.options = dict(options)
            return self.engine.with_options(options), self.engine.upkeep.findings()
        # For whom a folder is made matters until it is there.
        for name in (*_ALIKE, "shared") if self.folder is None else _ALIKE:
            if options[name] != self.options[name]:
                raise Busy(
                    f"{name}: {project_root} is open in this process with {self.options[name]!r}, "
                    f"not {options[name]!r}",
                    recovery="Close what is open there first, or ask for the same.",
                )
        findings = self.engine.upkeep.findings()
        wants_hashes = options["verify"] == "full" and self.options["verify"] != "full"
        if wants_hashes or (options["strict"] and (findings["damage"] or findings["cut"])):
            # A closer look than the first had; a strict store gets the error that opening would raise.
            anew = Engine(project_root, {**options, "exclusive": False, "seal": ENGINES.seal})
            try:
                findings = anew.upkeep.findings()
            finally:
                anew.close()
            self.options["verify"] = options["verify"] if wants_hashes else self.options["verify"]
        return self.engine.with_options(options), findings

    def close(self) -> None:
        """Release the engine; the next store opens another."""
        self.is_gone = True
        engine, self.engine = self.engine, None
        try:
            if engine is not None:
                engine.close()
        finally:
            self.let_go_of_folder()

    def let_go_of_folder(self) -> None:
        folder, self.folder = self.folder, None
        if folder is not None:
            os.close(folder)


class Lease:
    """One who holds an engine, until it lets go."""

    def __init__(self, engines: Engines, shared: _Shared, engine: Engine, findings: dict[str, Any]) -> None:
        self.engine: Final = engine
        self.findings: Final = findings
        self._engines = engines
        self._shared: _Shared | None = shared
        self._process = os.getpid()

    @property
    def handles(self) -> int:
        return 0 if self._shared is None else self._shared.handles

    def release(self) -> None:
        """Let go; the last one closes the engine. In a forked child nothing happens: it is the parent's."""
        shared, self._shared = self._shared, None
        if shared is not None and self._process == os.getpid():
            self._engines._leave(shared)


class Engines:
    """The engines of this process, each as long as a store holds it."""

    def __init__(self) -> None:
        #: Whether stores share engines; a test of several processes within one may say that they do not.
        self.are_shared = True
        #: When a state is sealed: events while open, events at close, fewest events. Tests seal small stores.
        self.seal: tuple[int, int, int] | None = None
        self.forget()

    def forget(self) -> None:
        """Begin anew: what a forked child finds here belongs to its parent."""
        for shared in list(getattr(self, "_shared", {}).values()):
            shared.let_go_of_folder()
        self._turn = threading.RLock()
        self._shared: weakref.WeakValueDictionary[_Key, _Shared] = weakref.WeakValueDictionary()

    def borrow(self, project_root: Path, folder: Path, options: dict[str, Any], *, own: bool) -> Lease:
        """Return a hold on the engine of a folder, and open it if no store holds it yet."""
        while True:
            private = own or not self.are_shared
            shared = _Shared((os.getpid(), "", 0), None) if private else self._of(folder)
            with shared.turn:
                if shared.is_gone:
                    continue
                shared.handles += 1
                try:
                    if not shared.has_lost_its_log():
                        engine, findings = shared.engine_for(project_root, options)
                        return Lease(self, shared, engine, findings)
                except BaseException:
                    self._leave(shared)
                    raise
            self._forget(shared)
            self._leave(shared)

    def _leave(self, shared: _Shared) -> None:
        # INVARIANT: a thread never waits for the registry while it has the turn of an engine.
        try:
            with shared.turn:
                shared.handles -= 1
                if shared.handles == 0:
                    shared.close()
        finally:
            if shared.is_gone:
                self._forget(shared)

    def _forget(self, shared: _Shared) -> None:
        with self._turn:
            if self._shared.get(shared.key) is shared:
                del self._shared[shared.key]

    def _of(self, folder: Path) -> _Shared:
        """Return what serves a folder, or will: a folder that was replaced is another one."""
        here = (os.getpid(), os.path.realpath(folder), 0)
        with self._turn:
            try:
                # Held open, so that it stays what it is.
                held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except (FileNotFoundError, NotADirectoryError, PermissionError):
                return self._found(here) or self._put(_Shared(here, None))
            status = os.fstat(held)
            key = (os.getpid(), status.st_dev, status.st_ino)
            shared = self._found(key)
            if shared is None and (shared := self._found(here)) is not None:
                del self._shared[here]
                shared.key, shared.folder = key, held
                return self._put(shared)
            if shared is None:
                return self._put(_Shared(key, held))
            os.close(held)
            return shared

    def _found(self, key: _Key) -> _Shared | None:
        shared = self._shared.get(key)
        return None if shared is None or shared.is_gone else shared

    def _put(self, shared: _Shared) -> _Shared:
        self._shared[shared.key] = shared
        return shared


ENGINES: Final = Engines()


def _release_locks() -> None:
    """Replace the lock files of the parent by the null device: it alone may hold its locks."""
    locks = after_fork_in_child()
    if not locks:
        return
    # Closed first, so that a descriptor is free even at the limit; no other thread runs that could take it.
    os.close(locks[0])
    null = os.open(os.devnull, os.O_RDONLY)
    for lock in locks:
        if lock != null:
            os.dup2(null, lock, inheritable=False)
    if null not in locks:
        os.close(null)


os.register_at_fork(before=before_fork, after_in_parent=after_fork_in_parent, after_in_child=_release_locks)
os.register_at_fork(after_in_child=ENGINES.forget)
