"""Tells how a store is, without reading its log."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from pathlib import Path

from chronomemory._core import Engine
from chronomemory.face.moments import EPOCH
from chronomemory.face.results import Fields
from chronomemory.layout import log_folder, log_path
from chronomemory.types import VerifyReport


def _counter(text: str) -> int:
    made: int = field(default=0, metadata={"help": text})
    return made


@dataclass(frozen=True, slots=True)
class Counters(Fields):
    """What was done through the engine of a folder since it was opened, by all stores that share it."""

    commits: int = _counter("Batches written from this process.")
    events: int = _counter("Events written from this process.")
    bytes: int = _counter("Bytes of the log written from this process.")
    syncs: int = _counter("How often the disk was waited for.")
    lock_waits: int = _counter("How often another writer was waited for.")
    searches: int = _counter("Searches, recalls and questions for neighbours.")

    def prometheus(self, labels: Mapping[str, str] | None = None) -> str:
        """Return the numbers as text that Prometheus reads.

        >>> print(Counters(commits=2).prometheus({"store": "notes"}).splitlines()[2])
        chronomemory_commits_total{store="notes"} 2
        """
        escapes = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
        pairs = ",".join(f'{name}="{value.translate(escapes)}"' for name, value in (labels or {}).items())
        marks = f"{{{pairs}}}" if pairs else ""
        lines = []
        for item in fields(self):
            full, number = f"chronomemory_{item.name}_total", getattr(self, item.name)
            lines += [f"# HELP {full} {item.metadata['help']}", f"# TYPE {full} counter"]
            lines.append(f"{full}{marks} {number}")
        return "\n".join((*lines, ""))


@dataclass(frozen=True, slots=True)
class Health(Fields):
    """How a store is: what opening found, what is on disk, and what would stop it."""

    #: Nothing is damaged as far as was seen at opening, and no sync has failed since.
    ok: bool
    #: What opening found: the rung of ``verify``, or "not verified"; how many places are damaged, whether a
    #: tail waits.
    rung: str
    damaged_places: int
    tail_bytes: int
    #: How many records may lack a later change, and which are named; see ``record.in_doubt``.
    records_in_doubt: int
    ids_in_doubt: tuple[str, ...]
    #: ``synced`` cannot be read: it is unknown whether the log was cut at its end.
    damaged_synced: bool
    #: Which failed sync refuses all writes; None while all is well.
    poisoned: str | None
    last_seq: int
    head: str
    log_bytes: int
    records: int
    #: What was written from here and is not on disk yet, and until when everything is.
    unsynced_bytes: int
    synced_until: datetime | None
    #: Up to which event the whole log was verified since the store was opened; when, if in the background.
    #: None until then, and with ``verify="quick"``: records are checked as they are read.
    verified_seq: int | None
    verified_at: datetime | None
    open_handles: int
    disk_free_bytes: int | None
    #: How many fields have an index that was declared, and up to which event the text index on disk goes.
    indexes: int
    text_index_seq: int | None
    counters: Counters


def health_of(engine: Engine, project_root: Path, *, handles: int) -> Health:
    """Ask an open engine and the file system; no log is read for it."""
    status, findings = engine.log_status(), engine.upkeep.findings()
    last_seq, head = engine.last_event()
    found = VerifyReport.from_dict(findings)
    until, verified_at = status["synced_until_us"], status["verified_at_us"]
    folder = log_folder(project_root)
    is_known = status["verified_seq"] is not None or not found.valid or found.cut is not None
    return Health(
        ok=found.valid and not (found.cut or found.damaged_synced) and status["poisoned"] is None,
        rung=found.rung if is_known else "not verified",
        damaged_places=len(found.damage),
        tail_bytes=found.tail.length if found.tail else 0,
        records_in_doubt=engine.unscoped().with_expired().upkeep.in_doubt()[0],
        ids_in_doubt=tuple(engine.upkeep.in_doubt()[1]),
        damaged_synced=found.damaged_synced,
        poisoned=status["poisoned"],
        last_seq=last_seq,
        head=head,
        log_bytes=_size(log_path(project_root)),
        records=engine.count(),
        unsynced_bytes=status["unsynced_bytes"],
        synced_until=None if until is None else EPOCH + timedelta(microseconds=until),
        verified_seq=status["verified_seq"],
        verified_at=None if verified_at is None else EPOCH + timedelta(microseconds=verified_at),
        open_handles=handles,
        disk_free_bytes=_free(folder),
        indexes=len(engine.upkeep.indexes()),
        text_index_seq=_text_index(folder / "index" / "text"),
        counters=Counters(**{item.name: status[item.name] for item in fields(Counters)}),
    )


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def _text_index(folder: Path) -> int | None:
    try:
        seqs = [path.name.partition("-")[0] for path in folder.iterdir() if path.suffix == ".text"]
    except OSError:
        return None
    return max((int(seq) for seq in seqs if seq.isascii() and seq.isdigit()), default=None)


def _free(folder: Path) -> int | None:
    for place in (folder, *folder.parents):
        try:
            found = os.statvfs(place)
        except OSError:
            continue
        return found.f_bavail * found.f_frsize
    return None
