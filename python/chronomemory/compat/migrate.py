"""Turns requirements and test cases kept as JSON files into records."""

from __future__ import annotations

import json
import logging
from functools import partial
from pathlib import Path
from typing import Any

from chronomemory.errors import InvalidRecord
from chronomemory.layout import read_bounded
from chronomemory.record import ChronoRecord, is_same
from chronomemory.rollback import WITHDRAWN
from chronomemory.types import Writable
from chronomemory.updates import Look, run

__all__ = ["confidence_of", "migrate_from_json", "read_objects"]

_log = logging.getLogger(__name__)

#: (what is counted, kind of record); the file has the name of what is counted.
_SOURCES = (("requirements", "requirement"), ("testcases", "testcase"))
_DEFAULT_CONFIDENCE = 0.7
_MOST_BYTES = 16 << 20
#: What a delete and a rollback make of a record; no file says so.
_DONE_SINCE = WITHDRAWN | {"hypothesis"}


def _governance_to_esdb_status(status: object) -> str:
    """Turn a governance life-cycle status into a record's: only deprecation carries over."""
    return "deprecated" if "deprecat" in str(status).lower() else "active"


def confidence_of(entry: dict[str, Any], default: float) -> float:
    """Return an entry's own confidence where it is a number in 0..1, else the default."""
    value = entry.get("confidence")
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    return default


def read_objects(path: Path) -> tuple[list[dict[str, Any]], str | None]:
    """Read the objects with an id out of a JSON list, and say what could not be used."""
    try:
        entries = json.loads(read_bounded(path, _MOST_BYTES).decode("utf-8-sig"), parse_constant=_refuse)
    except FileNotFoundError:
        return [], None
    except (OSError, ValueError, RecursionError) as error:
        return [], f"{path} cannot be read: {error}"
    if not isinstance(entries, list):
        return [], f"{path} holds no list"
    usable = [e for e in entries if isinstance(e, dict) and isinstance(e.get("id"), str) and e["id"]]
    if len(usable) < len(entries):
        return usable, f"{path}: {len(entries) - len(usable)} entries without an id"
    return usable, None


def migrate_from_json(store: Writable, directory: str | Path) -> dict[str, int]:
    """Bring ``requirements.json`` and ``testcases.json`` in as one batch; a second run changes nothing."""
    counts = {"requirements": 0, "testcases": 0, "skipped": 0}
    wanted: dict[str, tuple[str, ChronoRecord]] = {}
    for counted, kind in _SOURCES:
        path = Path(directory) / f"{counted}.json"
        entries, problem = read_objects(path)
        if problem:
            _log.warning("%s", problem)
        elif not path.is_file():
            _log.info("%s is not there: nothing to migrate", path)
        for entry in entries:
            record = ChronoRecord(
                id=entry["id"],
                kind=kind,
                status=_governance_to_esdb_status(entry.get("status")),
                label=str(entry.get("title") or ""),
                confidence=confidence_of(entry, _DEFAULT_CONFIDENCE),
                source_type="observed",
                evidence=[f"migrated from {path.name}"],
                data=entry,
            )
            if wanted.pop(record.id, None) is not None:
                _log.warning("%s is named twice; the last one counts", record.id)
                counts["skipped"] += 1
            wanted[record.id] = (counted, record)
    written, refused = _bring_in(store, [record for _, record in wanted.values()])
    counts["skipped"] += len(wanted) - len(written) - refused
    for counted, record in wanted.values():
        counts[counted] += record.id in written
    return counts


def _bring_in(store: Writable, records: list[ChronoRecord]) -> tuple[set[str], int]:
    """Write missing records, one by one after a refusal; return their ids, and how many were refused."""
    try:
        return run(store, partial(_write_missing, records=records)), 0
    except InvalidRecord:
        written: set[str] = set()
        refused = 0
        for record in records:
            try:
                written |= run(store, partial(_write_missing, records=[record]))
            except InvalidRecord as error:
                _log.warning("%r cannot be migrated: %s", record.id, error)
                refused += 1
        return written, refused


def _write_missing(look: Look, records: list[ChronoRecord]) -> set[str]:
    missing = [record for record in records if not _is_there(look, record)]
    if missing:
        look.upsert(missing)
    return {record.id for record in missing}


def _is_there(look: Look, record: ChronoRecord) -> bool:
    known = look.get(record.id)
    if known is None or known.label != record.label:
        return False
    if known.status in _DONE_SINCE:
        return is_same(known.data, record.data)
    return known.status == record.status


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no JSON number")
