"""Makes a copy in a store's folder that is still there when it is told of."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

from chronomemory._core import Engine, verify_path
from chronomemory.errors import LogCorrupted
from chronomemory.types import Progress

__all__ = ["copy_inside", "whole_copy_inside"]

#: An erasure by somebody else may take a copy away right after it was made: then another is made.
_ATTEMPTS = 5


def copy_inside(engine: Engine, progress: Progress | None = None) -> dict[str, Any]:
    """Make a copy, and return what the engine tells of it."""
    for _ in range(_ATTEMPTS):
        folder = engine.backup(progress)
        for told in engine.copies():
            if told["path"] == folder:
                return told
        if Path(folder).exists():
            raise OSError(errno.EIO, "the copy was made, but cannot be looked at", folder)
    raise _taken_away(folder)


def whole_copy_inside(engine: Engine) -> str:
    """Make a copy, read all of it again, and return where it lies."""
    for _ in range(_ATTEMPTS):
        folder: str = copy_inside(engine)["path"]
        found = verify_path(folder)
        if found["valid"]:
            return folder
        if Path(folder).exists():
            raise LogCorrupted(f"{folder}: the copy is not whole: {found['damage']}")
    raise _taken_away(folder)


def _taken_away(folder: str) -> OSError:
    return FileNotFoundError(errno.ENOENT, "copies are made, and taken away again and again", folder)
