"""Warns a caller when a store opens, at the line of theirs that opened it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chronomemory.layout import network_file_system
from chronomemory.types import DAMAGED_SYNCED, VerifyReport

_PACKAGE = __name__.partition(".")[0]


def complaints(project_root: Path, findings: dict[str, Any]) -> Iterator[str]:
    """Say what is wrong, or may be missed, one sentence each."""
    network = network_file_system(project_root)
    if network is not None:
        yield (
            f"{project_root}: on a network file system ({network}) several processes, "
            "and power failures of the server, are not promised anything"
        )
    found = VerifyReport.from_dict(findings)
    if found.damage:
        others = f" and {len(found.damage) - 1} more" if len(found.damage) > 1 else ""
        yield (
            f"{project_root}: damage in {found.damage[0]}{others}; "
            "every good line is loaded, verify() lists the others, and records that a lost line may have "
            "changed say so (in_doubt)"
        )
    if found.damaged_synced:
        yield f"{project_root}: {DAMAGED_SYNCED}; the next sync writes it anew"
    if found.tail:
        first = "run repair() before anything is written: " if found.tail.events else ""
        yield f"{project_root}: {found.tail}; {first}the next write puts them aside"
    if found.cut and not any(item.kind == "log-missing" for item in found.damage):
        yield (
            f"{project_root}: {found.cut}; run repair() before anything is written: "
            "until then a write is refused"
        )
    if found.returned:
        others = f" and {len(found.returned) - 1} more" if len(found.returned) > 1 else ""
        yield (
            f"{project_root}: what was erased is back: {found.returned[0].path}{others}; "
            "remove what is not yours to keep, verify() lists it"
        )
    for short in findings["short_rows"]:
        yield (
            f"{project_root}: {short}; these embeddings are missing, "
            "verify() lists them and repair() takes them back"
        )
    if found.remembered in ("lost", "unknown", "unreadable"):
        yield (
            f"{project_root}: {found.remembered_reason}; "
            "if that was meant, accept_head() or 'chronomemory accept-head' says so"
        )


def callers_level() -> int:
    """Return the ``stacklevel`` at which a warning of who calls this points out of the package.

    A store opens by ``with``, by ``open()`` or by the first call that needs it: each is of another depth.
    """
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        frame, level = frame.f_back, level + 1
    return level
