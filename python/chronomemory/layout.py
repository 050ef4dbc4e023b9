"""Finds the folder and the log of a project's store, and opens files in it without following links.

The engine owns every other name inside the folder, and decides which folder is a store's.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

from chronomemory._core import store_folder

__all__ = [
    "FOLDER",
    "folder_mode",
    "is_of_a_store",
    "log_folder",
    "log_path",
    "read_bounded",
    "read_config",
    "unlinked",
]

#: The folder of a store in its project.
FOLDER = ".chronomemory"

#: Limits of a settings file: its length, and the dots of one line.
_MOST_CONFIG_BYTES = 1 << 14
_MOST_DOTS = 1_000
#: By these the engine knows, too, that there was a log.
_BESIDE_A_LOG = frozenset({"synced", "base", "archive"})

_LINK = "this is a symbolic link, and nothing in a store is reached through one"


def log_folder(project_root: Path) -> Path:
    """Return the folder that holds a project's store, whether it exists or not.

    A backup, which holds the files themselves, is a store's folder too, and only read.
    """
    return store_folder(project_root)


def log_path(project_root: Path) -> Path:
    """Return the chained log itself, the only truth of a store."""
    return log_folder(project_root) / "events.wal"


def folder_mode(project_root: Path, *, shared: bool = False) -> int:
    """Return the permissions of the folder of a project's store, or those that a new one gets."""
    try:
        return stat.S_IMODE(log_folder(project_root).stat().st_mode)
    except FileNotFoundError:
        return 0o2770 if shared else 0o700


def is_of_a_store(folder: Path) -> bool:
    """Say whether something was written in a folder of a store, though its log may be gone.

    A folder that cannot be looked into may hold anything: let the store say what is wrong with it.
    """
    try:
        return any(path.name in _BESIDE_A_LOG for path in folder.iterdir())
    except FileNotFoundError:
        return False
    except OSError:
        return True


def read_bounded(path: str | Path, most_bytes: int, folder: int | None = None) -> bytes:
    """Return what a file holds; a larger one is refused before it is read.

    In an open ``folder`` the file must be a regular one, and no link.
    """
    flags = os.O_RDONLY | (0 if folder is None else os.O_NOFOLLOW | os.O_NONBLOCK)
    handle = os.open(path, flags, dir_fd=folder)
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        if folder is not None and not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "this is not a regular file", str(path))
        content = b"" if found.st_size > most_bytes else file.read(most_bytes + 1)
        if max(found.st_size, len(content)) > most_bytes:
            raise OSError(errno.EFBIG, f"the file is larger than {most_bytes:,} bytes", str(path))
        return content


def read_config(path: Path) -> str:
    """Return the text of a settings file: nested keys cost a reader of TOML the square of their number."""
    text = read_bounded(path, _MOST_CONFIG_BYTES).decode("utf-8")
    if any(line.count(".") > _MOST_DOTS for line in text.splitlines()):
        raise ValueError(f"a line has more than {_MOST_DOTS:,} dots: its keys are nested too deeply")
    return text


def unlinked(folder: Path) -> Callable[[str, int], int]:
    """Return what ``open(opener=…)`` asks for, for files in a store's folder: no step leads through a link.

    Nor does it wait: a pipe in place of a file would wait for somebody who writes to it.
    """

    def opener(path: str, flags: int) -> int:
        *way, name = Path(path).relative_to(folder).parts
        here = _step(folder, None, os.O_DIRECTORY)
        try:
            for part in way:
                below = _step(Path(part), here, os.O_DIRECTORY)
                os.close(here)
                here = below
            return _step(Path(name), here, flags | os.O_NONBLOCK)
        except OSError as error:
            error.filename = path
            raise
        finally:
            os.close(here)

    return opener


def _step(path: Path, folder: int | None, flags: int) -> int:
    try:
        return os.open(path, flags | os.O_NOFOLLOW, dir_fd=folder)
    except OSError as error:
        if stat.S_ISLNK(os.stat(path, dir_fd=folder, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, _LINK, os.fspath(path)) from error
        raise
