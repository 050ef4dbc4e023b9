"""A folder that a face shows things in: files are whole under their names, and never reached by a link."""

from __future__ import annotations

import errno
import fcntl
import importlib
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from chronomemory.errors import StoreLocked
from chronomemory.layout import read_bounded

#: What changes when a file does: its inode, length and time; None if it is not there.
Stamp = tuple[int, int, int] | None

#: A larger file is not read, unless the folder has a limit of its own.
_MOST_BYTES = 1 << 30
PRIVATE = 0o700
PART = ".part"
ASIDE = ".aside"
#: With the name of the file that it is of, if it may change places with it.
_DRAFT = re.compile(rf"\.[0-9a-f]{{16}}(?:\.(.+))?{re.escape(PART)}")
_DRAFT_SECONDS = 60
#: Of more files than these, one sync of the system is quicker than one of each.
_MANY_FILES = 256
_PATIENCE_SECONDS = 10.0
_LOOK_SECONDS = 0.002
#: The flag of renameat2 (Linux) and renameatx_np (macOS) that exchanges two names.
_SWAP = 2


def is_draft(name: str) -> bool:
    """Say whether a file is called as those are that are not whole yet."""
    return _DRAFT.fullmatch(name) is not None


class Folder:
    """A folder of files, never reached through a link; ``mode`` returns the permissions of new folders."""

    def __init__(
        self,
        root: Path,
        *,
        is_real: bool = False,
        mode: Callable[[], int] = lambda: PRIVATE,
        most_bytes: int = _MOST_BYTES,
    ) -> None:
        self.root = root
        self._most_bytes = most_bytes
        self._mode = mode
        self._flags = os.O_RDONLY | os.O_DIRECTORY | (os.O_NOFOLLOW if is_real else 0)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Be the only writer of the folder, of all processes; the lock is on it and leaves no file."""
        here = os.open(self.root, self._flags)
        try:
            waited = 0.0
            while not _lock(here):
                if waited > _PATIENCE_SECONDS:
                    raise StoreLocked(f"{self.root}: another process is writing this folder")
                time.sleep(_LOOK_SECONDS)
                waited += _LOOK_SECONDS
            yield
        finally:
            os.close(here)

    def make(self, *names: str) -> None:
        """Make the folder and some in it, unless they are there; a crash does not take it away again."""
        if not self.root.is_dir():
            missing = [place for place in (self.root, *self.root.parents) if not place.exists()]
            self.root.parent.mkdir(parents=True, exist_ok=True)
            _make_folder(self.root, self._mode())
            for place in missing:
                Folder(place.parent).sync()
        for name in names:
            steps = name.split("/")
            for end in range(1, len(steps) + 1):
                below = "/".join(steps[:end])
                _make_folder(self.root / below, self._mode())
                with self._entered(below):
                    pass

    def drafts(self, within: str = "") -> list[tuple[str, str]]:
        """Return drafts that a killed writer left, and of which file each is; young ones may be in use."""
        found = []
        for name in self.names(within):
            draft = _DRAFT.fullmatch(name)
            stamp = None if draft is None or draft[1] is None else self.stamp(name, within)
            if draft is not None and stamp is not None and time.time() - stamp[2] / 1e9 > _DRAFT_SECONDS:
                found.append((name, draft[1]))
        return found

    def sync(self) -> None:
        """Wait until every name in the folder leads on disk where it leads now."""
        with self._entered("") as here:
            os.fsync(here)

    def names(self, within: str) -> list[str]:
        """Return the names in a folder, sorted; none if it is not there."""
        try:
            with self._entered(within) as here:
                return sorted(entry.name for entry in os.scandir(here))
        except FileNotFoundError:
            return []

    def read(self, name: str, within: str = "") -> bytes:
        with self._entered(within) as here:
            return read_bounded(name, self._most_bytes, here)

    def stamp(self, name: str, within: str = "") -> Stamp:
        try:
            found = (self.root / within / name).lstat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns

    def write(self, name: str, content: bytes, within: str = "") -> None:
        """Write a file: what was under its name stays until all of it is on disk."""
        self.write_all({name: content}, within)

    def write_all(
        self,
        files: Mapping[str, bytes],
        within: str = "",
        *,
        lasting: bool = True,
        is_known: Callable[[str, bytes | None], bool] | None = None,
    ) -> list[str]:
        """Write several files of a folder; each is the old one or the new one, whatever happens.

        A file that ``is_known`` (given its name and content, or None) refuses stays, and its name is
        returned.
        """
        left: list[str] = []
        if not files:
            return left
        with self._entered(within) as here:
            together = len(files) > _MANY_FILES and sys.platform == "linux"
            parts = {}
            try:
                for name, content in files.items():
                    of = "" if is_known is None else name
                    parts[name] = self._draft(here, content, name, of, synced=not together)
                if together:
                    os.sync()
                for name in files:
                    if is_known is None:
                        os.replace(parts[name], name, src_dir_fd=here, dst_dir_fd=here)
                        del parts[name]
                    elif not _put_over(here, parts[name], name, is_known):
                        left.append(name)
            finally:
                for part in parts.values():
                    with suppress(FileNotFoundError):  # it stands under its name
                        os.unlink(part, dir_fd=here)
            if lasting:
                os.fsync(here)
        return left

    def append(self, name: str, content: bytes) -> None:
        """Write behind what is in a file; what is there never changes."""
        with self._entered("") as here:
            new = _mode(here, name) is None
            flags = os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK
            handle = create_file(name, flags, self._mode() if new else PRIVATE, here)
        with os.fdopen(handle, "ab") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())

    def remove(self, names: list[str], within: str) -> None:
        """Take files away; one that is not there is gone already."""
        if not names:
            return
        with self._entered(within) as here:
            for name in names:
                try:
                    os.unlink(name, dir_fd=here)
                except FileNotFoundError:
                    continue
            os.fsync(here)

    def has(self, name: str, within: str) -> bool:
        """Say whether anything stands under a name, be it a link or a folder."""
        return os.path.lexists(self.root / within / name)

    def set_aside(self, name: str, within: str) -> str:
        """Give what stands under a name another one beside it that nothing has; return that."""
        with self._entered(within) as here:
            for number in count(1):
                other = f"{name}{ASIDE}" if number == 1 else f"{name}{ASIDE}-{number}"
                try:
                    os.stat(other, dir_fd=here, follow_symlinks=False)
                except FileNotFoundError:
                    break
            # A writer of this folder holds its lock, so the name is not taken meanwhile.
            os.rename(name, other, src_dir_fd=here, dst_dir_fd=here)
            os.fsync(here)
        return other

    def _draft(self, folder: int, content: bytes, target: str, of: str, *, synced: bool) -> str:
        """Write a draft ``of`` a file, named after it, with the mode of the file that it replaces."""
        name = f".{os.urandom(8).hex()}{'.' if of else ''}{of}{PART}"
        mode = _mode(folder, target)
        handle = create_file(name, os.O_WRONLY | os.O_EXCL, self._mode() if mode is None else PRIVATE, folder)
        try:
            if mode is not None:
                os.fchmod(handle, mode)
            view = memoryview(content)
            while view:
                view = view[os.write(handle, view) :]
            if synced:
                os.fsync(handle)
        except BaseException:
            os.unlink(name, dir_fd=folder)
            raise
        finally:
            os.close(handle)
        return name

    @contextmanager
    def _entered(self, within: str) -> Iterator[int]:
        here = os.open(self.root, self._flags)
        try:
            for step in filter(None, within.split("/")):
                below = os.open(step, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
                os.close(here)
                here = below
            yield here
        finally:
            os.close(here)


def create_file(name: str | Path, flags: int, mode: int, folder: int | None = None) -> int:
    """Open a file, made with the permissions of a folder: a group that may write the folder may write it."""
    flags |= os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(name, flags, 0o600 | mode & 0o066, dir_fd=folder)
    if mode & stat.S_IWGRP:
        os.fchmod(handle, stat.S_IMODE(os.fstat(handle).st_mode) | 0o060)
    return handle


def _make_folder(place: Path, mode: int) -> None:
    try:
        place.mkdir(mode=PRIVATE | mode & 0o077)
    except FileExistsError:
        return
    if mode & stat.S_IWGRP:
        place.chmod(stat.S_IMODE(place.stat().st_mode) | mode & 0o2070)


def _lock(folder: int) -> bool:
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        if error.errno in (errno.EOPNOTSUPP, errno.ENOLCK, errno.EBADF):  # such as on a network
            return True
        raise
    return True


def _put_over(folder: int, part: str, name: str, is_known: Callable[[str, bytes | None], bool]) -> bool:
    """Replace a known file by a draft, and nothing else; return whether it was done."""

    def is_ours(place: str) -> bool:
        try:
            return is_known(name, read_bounded(place, _MOST_BYTES, folder))
        except FileNotFoundError:
            return is_known(name, None)
        except OSError:  # a link or a folder
            return False

    if not is_ours(name):
        return False
    if _exchange(folder, part, name):
        if is_ours(part):
            return True
        _exchange(folder, part, name)
        return False
    try:
        os.link(part, name, src_dir_fd=folder, dst_dir_fd=folder)
        return True
    except FileExistsError:
        if not is_ours(name):
            return False
    except OSError:  # no links on this disk
        pass
    os.replace(part, name, src_dir_fd=folder, dst_dir_fd=folder)
    return True


def _exchange(folder: int, one: str, other: str) -> bool:
    libc = importlib.import_module("ctypes").CDLL(None)
    exchange = getattr(libc, "renameat2", None) or getattr(libc, "renameatx_np", None)
    if exchange is None:
        return False
    return bool(exchange(folder, os.fsencode(one), folder, os.fsencode(other), _SWAP) == 0)


def _mode(folder: int, name: str) -> int | None:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return stat.S_IMODE(found.st_mode) if stat.S_ISREG(found.st_mode) else None
