"""What the ground must know of blocks: how they are read, their errors, and the spaces of their vectors."""

from __future__ import annotations

from chronomemory._core import Engine
from chronomemory.blocks.errors import BatchConflict, IntegrityError
from chronomemory.blocks.ids import FACE
from chronomemory.face.declaration import Face
from chronomemory.face.readings import Reader
from chronomemory.face.spaces import Spaces
from chronomemory.record import ChronoRecord

__all__ = ["BLOCKS", "READER", "SPACES"]


class _Reader:
    """Reads what this face would have written: the engine leaves out what another hand put there."""

    def record(self, engine: Engine, record_id: str) -> ChronoRecord | None:
        """Return a record, a tombstoned one too, or None."""
        return engine.block_record(record_id)

    def records(
        self, engine: Engine, kind: str, status: str | None, limit: int | None, *, own: bool = False
    ) -> list[ChronoRecord]:
        """Return the records of a kind and of a status, or of any, in insertion order; own ones, or all."""
        return engine.block_records(kind, status, limit, own=own)

    def count(self, engine: Engine, kind: str, status: str, *, own: bool = False) -> int:
        """Return how many there are."""
        return engine.block_count(kind, status, own=own)


BLOCKS = Face(
    name=FACE,
    reader=_Reader(),
    conflict=BatchConflict,
    missing=IntegrityError,
)

SPACES = Spaces(FACE)
#: The codes of tokens have spaces of their own: none of another name can be one of these.
READER = Reader(SPACES, Spaces(f"{FACE}-tokens"))
