"""Is a log one that another took the place of? Sections 1 and 8 of docs/format.md, for `verify_log.py`.

Such a log is as whole as it ever was: what shows it are `synced`, which speaks of another one, and what a
compaction or a restore left.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

LOG = "events.wal"
PIECE_BYTES = 1024 * 1024
BASE_NAME = re.compile(r"([0-9a-f]{64})\.json")
BACKUP_NAME = re.compile(r"[0-9]{8}T[0-9]{6}(-[0-9]+)*")

State = Callable[[str], dict[str, Any] | None]


def how(folder: Any, log: Any, stream: BinaryIO, reader: Any, read_state: State) -> str | None:
    """What shows that the log was replaced; None if nothing does, or if `synced` fits it."""
    synced = folder.synced
    if not reader.NAMED.knows_a_log(synced) or log.fits_synced:
        return None
    left = [one for one in _folders(folder.path / "quarantine") if "-before-restore" in one.name]
    if any(_bytes_of(one / "synced") == synced for one in left):
        return None
    for one in left:
        if _begins_with(one / LOG, stream, log.bytes, is_all=True):
            backups = [one for one in _folders(folder.path / "backup") if BACKUP_NAME.fullmatch(one.name)]
            if any(_begins_with(backup / LOG, stream, log.bytes, is_all=False) for backup in backups):
                break
            return f"it is the one that a restore set aside in quarantine/{one.name}"
    first, known = _first(stream, reader), synced[24:56].hex()
    if first is None or first["hash"] == known:
        return None
    base = _later_base(folder, first, read_state)
    return base if base is None or not _holds(stream, known, reader) else None


def _later_base(folder: Any, first: dict[str, Any], read_state: State) -> str | None:
    """The base of a log that came later, if this one was compacted by nobody else."""
    data = (first["record"] or {}).get("data")
    is_foreign = first["op"] == "compact" and not (isinstance(data, dict) and "base_sha256" in data)
    if is_foreign or first["prev_hash"]:
        return None
    for one in _files(folder.path / "base"):
        named = BASE_NAME.fullmatch(one.name)
        if named is None or hashlib.sha256(one.read_bytes()).hexdigest() != named[1]:
            continue
        state = read_state(f"base/{one.name}")
        if state is not None and state["seq"] >= first["seq"]:
            return f"base/{one.name} holds what a later one started from"
    return None


def _first(stream: BinaryIO, reader: Any) -> dict[str, Any] | None:
    """The event of the first line that is not blank; None if that is none."""
    stream.seek(0)
    for line in reader.split(stream):
        if line.complete and line.raw is not None and not line.raw.strip(b" \t\r"):
            continue
        event, kind, _ = reader.read_event(line.raw) if line.complete else (None, "unreadable", "")
        return None if kind else dict(event)
    return None


def _holds(stream: BinaryIO, digest: str, reader: Any) -> bool:
    """Whether a line that can be loaded has this hash."""
    stream.seek(0)
    found = (reader.read_event(line.raw) for line in reader.split(stream) if line.complete)
    return any(not kind and event["hash"] == digest for event, kind, _ in found)


def _folders(parent: Path) -> list[Path]:
    return [one for one in _entries(parent) if one.is_dir()]


def _files(parent: Path) -> list[Path]:
    return [one for one in _entries(parent) if one.is_file()]


def _entries(parent: Path) -> list[Path]:
    """What lies in a folder; links are nobody's."""
    try:
        found = [] if parent.is_symlink() else sorted(parent.iterdir())
    except OSError:
        found = []
    return [one for one in found if not one.is_symlink()]


def _bytes_of(path: Path) -> bytes | None:
    try:
        return None if path.is_symlink() else path.read_bytes()
    except OSError:
        return None


def _begins_with(path: Path, stream: BinaryIO, length: int, *, is_all: bool) -> bool:
    """Whether a file begins with all of the log; or is the same."""
    try:
        size = path.stat().st_size
        if path.is_symlink() or size < length or (is_all and size != length):
            return False
        with path.open("rb") as other:
            stream.seek(0)
            for at in range(0, length, PIECE_BYTES):
                wanted = min(PIECE_BYTES, length - at)
                if stream.read(wanted) != other.read(wanted):
                    return False
    except OSError:
        return False
    return True
