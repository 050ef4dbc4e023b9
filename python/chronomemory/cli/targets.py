"""Output files of commands: never inside a store, never over an existing file without ``--force``."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path

from chronomemory.cli.session import RefusedError
from chronomemory.face.files import PART, create_file
from chronomemory.layout import FOLDER, folder_mode, log_folder

#: A folder that holds these is a store, whatever its name: a backup is one.
_OF_A_STORE = ("events.wal", "synced")


def check_target(path: Path, project: Path, *, force: bool) -> None:
    """Refuse a file that must not be written; with ``force`` one that is there may be replaced."""
    place = path.parent.resolve()
    stores = {log_folder(project).resolve()}
    for folder in (place, *place.parents):
        if folder.name == FOLDER or folder in stores or all((folder / name).exists() for name in _OF_A_STORE):
            raise RefusedError(
                f"{path} lies in the folder of a store, {folder}", recovery="Give a name somewhere else."
            )
    if not stat.S_ISDIR(place.stat().st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(place))
    if not os.access(place, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(place))
    if path.name == FOLDER:
        raise RefusedError(f"{path} is the folder of a store", recovery="Give another name.")
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not force:
        raise RefusedError(f"{path} exists", recovery="Give --force to replace it, or another name.")
    if not stat.S_ISREG(found.st_mode) and not stat.S_ISLNK(found.st_mode):
        raise RefusedError(f"{path} is not a regular file", recovery="Give another name; - is stdout.")


def write_target(path: Path, parts: Iterable[bytes], project: Path, *, force: bool) -> tuple[int, int]:
    """Write a file atomically; return the number of lines and bytes. A replaced file keeps its mode."""
    count = written = 0
    draft = path.parent / f".{secrets.token_hex(8)}{PART}"
    handle = create_file(draft, os.O_WRONLY | os.O_EXCL, folder_mode(project))
    try:
        with os.fdopen(handle, "wb") as target:
            if path.is_file():
                os.fchmod(handle, stat.S_IMODE(path.stat().st_mode))
            for part in parts:
                written += target.write(part)
                count += part.count(b"\n")
        _name(draft, path, force=force)
    finally:
        draft.unlink(missing_ok=True)
    return count, written


def _name(draft: Path, path: Path, *, force: bool) -> None:
    """Give a finished file its name, unless another program took it."""
    if not force:
        try:
            os.link(draft, path)
            return
        except FileExistsError:
            raise RefusedError(
                f"{path} exists", recovery="Give --force to replace it, or another name."
            ) from None
        except OSError as error:  # a file system without second names
            if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK):
                raise
        if os.path.lexists(path):
            raise RefusedError(f"{path} exists", recovery="Give --force to replace it, or another name.")
    draft.replace(path)
