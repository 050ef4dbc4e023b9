"""Recognises a log that another took the place of. Sections 1 and 8 of docs/format.md, for `verify_log.py`.

Such a log is as whole as it ever was: what shows it are `synced`, which speaks of another one, and what a
compaction or a restore left.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from erased_lines import sentinel_data
from past_logs import file_digest

LOG = "events.wal"
PIECE_BYTES = 1024 * 1024
BASE_NAME = re.compile(r"([0-9a-f]{64})\.json")

State = Callable[[str], dict[str, Any] | None]


def how(folder: Any, log: Any, stream: BinaryIO, reader: Any, read_state: State) -> str | None:
    """What shows that the log was replaced; None if nothing does."""
    synced = folder.synced
    if not reader.NAMED.knows_a_log(synced):
        return None
    aside = [one for one in _folders(folder.path / "quarantine") if "-before-restore" in one.name]
    aside = [one for one in aside if _was_left(one, synced, reader)]
    end, known = int.from_bytes(synced[8:16], "little"), synced[24:56].hex()
    if log.fits_synced:
        return _set_aside(aside, stream, range(end, log.bytes)) if end < log.bytes else None
    first = _first(stream, reader)
    if first is None and not reader.NAMED.has_blank_log(stream):
        return None
    if first is None or first["hash"] == known:
        as_long = [one for one in aside if _size_of(one / LOG) == log.bytes]
        found = _set_aside(as_long, stream, range(log.bytes))
        return None if found and _copy_with(folder, stream, log.bytes, reader, ("backup",)) else found
    if first["prev_hash"] or _holds(stream, known, reader):
        return None
    found = _set_aside(aside, stream, range(log.bytes))
    if found or sentinel_data(first).get("previous_head") == synced[56:88].hex():
        return found
    copy = _copy_with(folder, stream, log.bytes, reader, ("backup", "quarantine"))
    return _later_base(folder, first, read_state) or (f"{copy} holds it as it was once" if copy else None)


def _was_left(folder: Path, synced: bytes, reader: Any) -> bool:
    """Whether a folder holds a log that was left, all of which its own `synced` knows."""
    path = folder / "synced"
    try:
        own = b"" if path.is_symlink() else reader.NAMED.read_hint(path)
    except OSError:
        own = b""
    is_other = own != synced and reader.NAMED.knows_a_log(own)
    return bool(is_other and _size_of(folder / LOG) == int.from_bytes(own[8:16], "little"))


def _set_aside(folders: list[Path], stream: BinaryIO, part: range) -> str | None:
    """The log that a restore set aside and that has these bytes at their place."""
    found = (one for one in folders if _has(one / LOG, stream, part))
    return next((f"it is the one that a restore set aside in quarantine/{one.name}" for one in found), None)


def _copy_with(
    folder: Any, stream: BinaryIO, length: int, reader: Any, parents: tuple[str, ...]
) -> str | None:
    """A copy that begins with all of the log."""
    for parent, shape in reader.NAMED.COPIES:
        if parent not in parents:
            continue
        for one in _folders(folder.path / parent):
            if shape.fullmatch(one.name) and _has(one / LOG, stream, range(length)):
                return f"{parent}/{one.name}"
    return None


def _later_base(folder: Any, first: dict[str, Any], read_state: State) -> str | None:
    """The base of a later log, if no other program compacted this one."""
    is_foreign = first["op"] == "compact" and not sentinel_data(first)
    if is_foreign or first["prev_hash"]:
        return None
    for one in _entries(folder.path / "base"):
        named = BASE_NAME.fullmatch(one.name)
        if named is None or not one.is_file() or file_digest(one) != named[1]:
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
        return dict(event) if event and not kind else None
    return None


def _holds(stream: BinaryIO, digest: str, reader: Any) -> bool:
    """Whether a line that can be loaded has this hash."""
    stream.seek(0)
    found = (reader.read_event(line.raw) for line in reader.split(stream) if line.complete)
    return any(not kind and event["hash"] == digest for event, kind, _ in found)


def _folders(parent: Path) -> list[Path]:
    return [one for one in _entries(parent) if one.is_dir()]


def _entries(parent: Path) -> list[Path]:
    """The entries of a folder, without links."""
    try:
        found = [] if parent.is_symlink() else sorted(parent.iterdir())
    except OSError:
        found = []
    return [one for one in found if not one.is_symlink()]


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


def _has(path: Path, stream: BinaryIO, part: range) -> bool:
    """Whether a file has this part of the log at the same place."""
    try:
        if path.is_symlink() or path.stat().st_size < part.stop:
            return False
        with path.open("rb") as other:
            for at in range(part.start, part.stop, PIECE_BYTES):
                wanted = min(PIECE_BYTES, part.stop - at)
                stream.seek(at)
                other.seek(at)
                if stream.read(wanted) != other.read(wanted):
                    return False
    except OSError:
        return False
    return True
