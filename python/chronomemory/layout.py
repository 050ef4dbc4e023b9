"""Where the files of a store lie, its head note under ``$XDG_STATE_HOME``, and the file system below."""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from collections.abc import Callable
from pathlib import Path

from chronomemory._core import parse_json, sha256_hex, store_folder

FOLDER = ".chronomemory"

_MOST_CONFIG_BYTES = 1 << 14
_MOST_DOTS = 1_000
#: By these the engine knows, too, that there was a log.
_BESIDE_A_LOG = frozenset({"synced", "base", "archive"})

_LINK = "this is a symbolic link, and nothing in a store is reached through one"


def log_folder(project_root: Path) -> Path:
    """Return the folder that holds a project's store, whether it exists or not; a backup is one itself."""
    return store_folder(project_root)


def log_path(project_root: Path) -> Path:
    return log_folder(project_root) / "events.wal"


def folder_mode(project_root: Path, *, shared: bool = False) -> int:
    """Return the permissions of the folder of a project's store, or those that a new one gets."""
    try:
        return stat.S_IMODE(log_folder(project_root).stat().st_mode)
    except FileNotFoundError:
        return 0o2770 if shared else 0o700


def is_of_a_store(folder: Path) -> bool:
    """Say whether something was written in a folder of a store; one that cannot be read may hold anything."""
    try:
        return any(path.name in _BESIDE_A_LOG for path in folder.iterdir())
    except FileNotFoundError:
        return False
    except OSError:
        return True


def read_bounded(path: str | Path, most_bytes: int, folder: int | None = None) -> bytes:
    """Return what a file holds, unless it is too large; in an open ``folder`` it must be a regular file."""
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


def read_config(path: Path, most_bytes: int = _MOST_CONFIG_BYTES) -> str:
    """Return the text of a settings file: nested keys cost a reader of TOML the square of their number."""
    text = read_bounded(path, most_bytes).decode("utf-8")
    if any(line.count(".") > _MOST_DOTS for line in text.splitlines()):
        raise ValueError(f"a line has more than {_MOST_DOTS:,} dots: its keys are nested too deeply")
    return text


def unlinked(folder: Path) -> Callable[[str, int], int]:
    """Return an opener for files in a store's folder that follows no link and never waits for a pipe."""

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


#: Where the kernel lists what is mounted; other systems have no such file, and nothing is said there.
_MOUNTS = Path("/proc/self/mountinfo")

_NETWORK = frozenset(
    {
        "afs",
        "ceph",
        "cifs",
        "fuse.glusterfs",
        "fuse.sshfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "smb3",
        "smbfs",
    }
)


def file_system(path: Path) -> str | None:
    """Return the kind of file system that a path lies on, None where the kernel does not tell."""
    try:
        mounts = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    place = os.path.realpath(path)
    longest, kind = "", ""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields, its_kind = before.split(), after.split(" ", 1)[0]
        if len(fields) < 5:
            continue
        point = fields[4].replace("\\040", " ")
        inside = place == point or place.startswith(point.rstrip("/") + "/")
        # Of two mounts at one point the later hides the earlier.
        if inside and len(point) >= len(longest):
            longest, kind = point, its_kind
    return kind or None


def network_file_system(path: Path) -> str | None:
    kind = file_system(path)
    return kind if kind in _NETWORK else None


#: Notes about projects that are gone are swept out when there are more than this many,
_MANY_NOTES = 1_000
#: only what is named as a note is one,
_NOTE_NAME = re.compile(r"[0-9a-f]{32}\.json")
#: and only those that were not touched for so long: a drive may just not be mounted.
_OLD_SECONDS = 90 * 24 * 3600


def heads_folder() -> Path | None:
    state = os.environ.get("XDG_STATE_HOME")
    try:
        base = Path(state) if state else Path.home() / ".local" / "state"
    except RuntimeError:
        return None
    return base / "chronomemory" / "heads"


def head_file(project_root: Path) -> Path | None:
    """Return the note about a project's store, whether it exists or not."""
    folder = heads_folder()
    if folder is None:
        return None
    name = sha256_hex(os.fsencode(log_folder(project_root).resolve()))[:32]
    note = folder / f"{name}.json"
    try:
        if not note.exists():
            _sweep(folder)
    except PermissionError:  # the folder may not be looked into
        pass
    return note


def _sweep(folder: Path) -> None:
    try:
        named = [note for note in folder.iterdir() if _NOTE_NAME.fullmatch(note.name)]
        notes = [note for note in named if stat.S_ISREG(note.lstat().st_mode)]
    except OSError:
        return
    if len(notes) <= _MANY_NOTES:
        return
    old = time.time() - _OLD_SECONDS
    for note in notes:
        try:
            if (
                note.stat().st_mtime < old
                and not Path(parse_json(note.read_bytes())["folder"]).parent.exists()
            ):
                note.unlink()
                note.with_name(note.name + ".lock").unlink(missing_ok=True)
        except (OSError, ValueError, KeyError, TypeError):
            continue  # someone else's file, or swept by another process: not worth an error here
