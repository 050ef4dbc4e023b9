"""Finds the note of a store's last head: outside the project, with the user's other state.

A chain cannot miss its own end. So each store's last synced head is noted in a small file under
``$XDG_STATE_HOME/chronomemory/heads`` (``~/.local/state`` unless set), named by the store's path.
"""

from __future__ import annotations

import os
import re
import stat
import time
from hashlib import sha256
from pathlib import Path

from chronomemory._core import parse_json
from chronomemory.layout import log_folder

__all__ = ["head_file", "heads_folder"]

#: Notes about projects that are gone are swept out when there are more than this many,
_MANY_NOTES = 1_000
#: only what is named as a note is one,
_NOTE_NAME = re.compile(r"[0-9a-f]{32}\.json")
#: and only those that nobody has touched for so long: a drive may just not be there today.
_OLD_SECONDS = 90 * 24 * 3600


def heads_folder() -> Path | None:
    """Return where heads are noted; None for a user without a home."""
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
    name = sha256(os.fsencode(log_folder(project_root).resolve())).hexdigest()[:32]
    note = folder / f"{name}.json"
    if not _is_there(note):
        _sweep(folder)
    return note


def _is_file(path: Path) -> bool:
    return stat.S_ISREG(path.lstat().st_mode)


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except PermissionError:  # in a folder that may not be looked into
        return False


def _sweep(folder: Path) -> None:
    """Forget the heads of stores whose project is gone, once there are many notes."""
    try:
        notes = [note for note in folder.iterdir() if _NOTE_NAME.fullmatch(note.name) and _is_file(note)]
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
