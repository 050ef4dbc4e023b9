"""Reads a project that may or may not have a store yet, for other tools."""

from __future__ import annotations

import os
import warnings
import weakref
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from chronomemory.compat.migrate import _governance_to_esdb_status, confidence_of, read_objects
from chronomemory.errors import ChronoError
from chronomemory.face.handle import Closing
from chronomemory.face.results import Fields
from chronomemory.layout import is_of_a_store, log_folder, log_path
from chronomemory.record import ChronoRecord
from chronomemory.store import ChronoStore
from chronomemory.updates import update_by

__all__ = ["EsdbBridge", "EsdbRecord", "EsdbStatus"]

_WAL_BACKEND = "ChronoStore WAL"
_JSON_BACKEND = ".specsmith/ JSON fallback (run migrate_from_json to get a chained log)"
_SHARED_FIELDS = ("id", "kind", "status", "confidence", "label", "data")
_FALLBACK_CONFIDENCE = {"requirement": 0.7, "testcase": 1.0}


@dataclass(slots=True)
class EsdbRecord:
    """A record as the bridge shows it: without most of its provenance."""

    id: str
    kind: str = "fact"
    status: str = "active"
    confidence: float = 0.7
    label: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    source_ids: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return the original object where there is one, else the fields."""
        return dict(self.data) if self.data else asdict(self)


@dataclass(frozen=True, slots=True)
class EsdbStatus(Fields):
    """What can be read; ``available`` is False for a log that cannot be opened."""

    available: bool
    backend: str
    record_count: int = 0
    wal_seq: int = 0
    epoch: int = 0
    chain_valid: bool = True


class EsdbBridge(Closing):
    """Reads a project's store when it has, or ever had, a log, else its JSON files."""

    def __init__(self, project_dir: str | os.PathLike[str] = ".") -> None:
        self._root = Path(project_dir)
        self._store = ChronoStore(self._root)
        self._closing = weakref.finalize(self, self._store.close)

    def close(self) -> None:
        """Close the store behind the bridge; the next call opens it again."""
        self._store.close()

    def status(self) -> EsdbStatus:
        """Say what the project offers; this never raises for a broken store, it reports it."""
        if not self._has_log():
            both = [self._fallback(kind) for kind in _FALLBACK_CONFIDENCE]
            problems = [problem for _, problem in both if problem]
            count = sum(len(records) for records, _ in both)
            return EsdbStatus(True, "; ".join([_JSON_BACKEND, *problems]), record_count=count)
        try:
            report = self._store.verify()
            return EsdbStatus(
                available=True,
                backend=_WAL_BACKEND,
                record_count=self._store.record_count(),
                wal_seq=self._store.wal_seq(),
                epoch=(report.first_seq or 1) - 1,
                chain_valid=report.valid,
            )
        except (ChronoError, OSError) as error:
            return EsdbStatus(
                available=False,
                backend=f"{_WAL_BACKEND} (cannot be opened: {error})",
                chain_valid=False,
            )

    def requirements(self) -> list[EsdbRecord]:
        """Return the active requirements."""
        return self._active("requirement")

    def testcases(self) -> list[EsdbRecord]:
        """Return the active test cases."""
        return self._active("testcase")

    def record_counts(self) -> dict[str, int]:
        """Return how many active records there are of each kind."""
        if self._has_log():
            return self._store.count(by="kind")
        return {"requirements": len(self.requirements()), "testcases": len(self.testcases())}

    def upsert_record(self, record: EsdbRecord) -> bool:
        """Write a record, keeping the provenance it has in the store; False without a log."""
        if not self._has_log():
            return False

        def renewed(known: ChronoRecord | None) -> ChronoRecord:
            made = known or ChronoRecord(id=record.id)
            for name in _SHARED_FIELDS:
                setattr(made, name, getattr(record, name))
            made.evidence = record.source_ids
            return made

        update_by(self._store, record.id, renewed)
        return True

    def delete_record(self, record_id: str) -> bool:
        """Tombstone a record; False without a log."""
        if not self._has_log():
            return False
        self._store.delete(record_id)
        return True

    def _has_log(self) -> bool:
        """Say whether there is a log, or was one, as what lies beside it tells."""
        return os.path.lexists(log_path(self._root)) or is_of_a_store(log_folder(self._root))

    def _active(self, kind: str) -> list[EsdbRecord]:
        if self._has_log():
            found = self._store.query(kind=kind)
            shared = [{name: getattr(record, name) for name in _SHARED_FIELDS} for record in found]
            pairs = zip(shared, found, strict=True)
            return [EsdbRecord(**fields, source_ids=record.evidence) for fields, record in pairs]
        records, problem = self._fallback(kind)
        if problem:
            warnings.warn(problem, RuntimeWarning, stacklevel=3)
        return records

    def _fallback(self, kind: str) -> tuple[list[EsdbRecord], str | None]:
        entries, problem = read_objects(self._root / ".specsmith" / f"{kind}s.json")
        records = [
            EsdbRecord(
                id=entry["id"],
                kind=kind,
                status=_governance_to_esdb_status(entry.get("status")),
                confidence=confidence_of(entry, _FALLBACK_CONFIDENCE[kind]),
                label=str(entry.get("title") or ""),
                data=entry,
            )
            for entry in entries
        ]
        return [record for record in records if record.status == "active"], problem
