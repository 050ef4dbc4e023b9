"""What a face declares of itself: its name, how its records are read, and its errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from chronomemory._core import Engine
from chronomemory.errors import ChronoError, WriteConflict
from chronomemory.record import ChronoRecord


class Reader(Protocol):
    """How the records of a face are read from an engine."""

    def record(self, engine: Engine, record_id: str) -> ChronoRecord | None:
        """Return a record, a tombstoned one too, or None."""

    def records(
        self, engine: Engine, kind: str, status: str | None, limit: int | None, *, own: bool = False
    ) -> list[ChronoRecord]:
        """Return the records of a kind and of a status, or of any, in insertion order; own ones, or all."""

    def count(self, engine: Engine, kind: str, status: str, *, own: bool = False) -> int:
        """Return how many there are."""


class PrefixReader:
    """Reads the records whose prefix is their kind; plain records of the same kind are none of a face's."""

    def record(self, engine: Engine, record_id: str) -> ChronoRecord | None:
        """Return a record, a tombstoned one too, or None."""
        return engine.get(record_id)

    def records(
        self, engine: Engine, kind: str, status: str | None, limit: int | None, *, own: bool = False
    ) -> list[ChronoRecord]:
        """Return the records of a kind and of a status, or of any, in insertion order; own ones, or all."""
        found = engine.query(kind=kind, status=status, limit=limit)
        of_face = [record for record in found if record.id.startswith(f"{kind}:")]
        if own:
            are_own = engine.are_own([record.id for record in of_face])
            of_face = [record for record, is_own in zip(of_face, are_own, strict=True) if is_own]
        if limit is not None and len(of_face) < len(found):
            # Plain records, or those of others, took some of the places.
            return self.records(engine, kind, status, None, own=own)[:limit]
        return of_face

    def count(self, engine: Engine, kind: str, status: str, *, own: bool = False) -> int:
        """Return how many there are."""
        if own:
            return len(self.records(engine, kind, status, None, own=True))
        return sum(
            number
            for its_kind, its_status, of_face, number in engine.tally()
            if of_face and its_kind == kind and its_status == status
        )


@dataclass(frozen=True)
class Face:
    """A face as the ground knows it."""

    #: As the engine lists it, with the prefixes that only this face may write.
    name: str
    reader: Reader = field(default_factory=PrefixReader)
    #: Raised when another writer came in between, and when a record that is to be changed is not there.
    conflict: type[WriteConflict] = WriteConflict
    missing: type[ChronoError] = ChronoError
