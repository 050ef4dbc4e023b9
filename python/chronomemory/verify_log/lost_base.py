"""Finds what a log starts from whose first line is lost. Section 8 of docs/format.md, for `verify_log.py`.

Nothing is looked for here, as a repair would do: the verdict is on the lines as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from past_logs import file_digest

#: What a line says that names a base, or adopts one.
NAMING = re.compile(rb"base_sha256|__compact__|__adopt__")


class Left(NamedTuple):
    """What is left of a log."""

    first: dict[str, Any] | None  # the first event that can be read
    lines: int  # damaged ones before it
    seems_compacted: bool


def look(stream: BinaryIO, law: Any) -> Left:
    """Read the damaged lines: those before the first event, and those that seem to name a base."""
    first, lines, is_naming = None, 0, False
    stream.seek(0)
    for line in law.split(stream):
        raw = line.raw or b""
        if line.raw is not None and not raw.strip(b" \t\r") and line.complete:
            continue
        event, kind, _ = law.read_event(line.raw) if line.complete else (None, "unreadable", "")
        if not kind:
            first = first or event
            continue
        lines += first is None
        is_naming = is_naming or NAMING.search(raw) is not None
    return Left(first, lines, is_naming)


def is_lost(first: dict[str, Any] | None) -> bool:
    """Whether a log with this first event began with another one."""
    return first is None or (first["op"] != "compact" and first["prev_hash"] != "")


def check(
    log: Any, left: Left, has_past: bool, state: dict[str, Any] | None, hashes_at: Callable[[int], Any]
) -> str:
    """Say that the base is missing, if anything shows that there was one."""
    seq = left.first["seq"] if left.first else None
    if left.seems_compacted or (has_past and (seq is None or seq > 2)):
        log.report("base-missing", "the line that names the base is lost", None, "base")
        return "missing"
    if seq is not None and seq - 1 <= max(left.lines, 1):
        return "none"
    if state and (seq is None or state["seq"] < seq or state["last_hash"] in hashes_at(state["seq"])):
        log.report(
            "base-missing", "it may be what the log starts from: lines are lost", None, "snapshot.json"
        )
        return "missing"
    log.notes += [f"not known what came before seq {seq}: the first lines are lost"] * (seq is not None)
    return "none"


def unadopted(
    path: Path, names: list[str], first_seq: int, read_state: Callable[[str], dict[str, Any] | None]
) -> bool:
    """Whether the line is lost that adopted a base: one ends before the log, and the snapshot is another."""
    newest = (-1, "")
    for name in names:
        digest, inside = name.removesuffix(".json"), f"base/{name}"
        try:
            is_whole = file_digest(path / inside) == digest
        except OSError:
            continue
        state = read_state(inside) if is_whole else None
        if state is not None and state["seq"] + 1 <= first_seq:
            newest = max(newest, (state["seq"], digest))
    try:
        is_same = file_digest(path / "snapshot.json") == newest[1]
    except OSError:
        is_same = False
    return bool(newest[1]) and not is_same
