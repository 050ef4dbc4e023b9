"""Blocks that have no embedding of a model, and how they get one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from chronomemory.blocks.declaration import SPACES
from chronomemory.blocks.engine import Blocks
from chronomemory.blocks.ids import BLOCK, block_key
from chronomemory.blocks.types import BlockStatus
from chronomemory.embedders import Embedder, Matrix, Vector
from chronomemory.face.batch import Connection
from chronomemory.face.results import Result, counted
from chronomemory.record import ChronoRecord
from chronomemory.selection import query
from chronomemory.vectors import HasEngine

__all__ = ["ReembedResult", "lacking", "reembed"]

#: How many are embedded at once.
_TOGETHER = 256


@dataclass(frozen=True, slots=True)
class ReembedResult(Result):
    """How many blocks were given an embedding, and of which model."""

    embedded: int
    model: str

    @property
    def summary(self) -> str:
        """How many, and of which model."""
        return f"{counted(self.embedded, 'block')} embedded anew with {self.model}."


def lacking(store: HasEngine, model: str) -> list[ChronoRecord]:
    """Return the active blocks that have no embedding of a model, in insertion order."""
    lacks = {"data.space": {"ne": SPACES.of(model)}}
    found = query(store, kind=BLOCK, status=BlockStatus.ACTIVE.value, where=lacks, faces=True)
    # A plain record may be of any kind, and what no verb of the face can use is none of its blocks.
    blocks = (record for record in found if record.id.startswith(block_key("")))
    return [record for record in blocks if store.engine.block_record(record.id) is not None]


def reembed(
    blocks: Blocks, embedder: Embedder, write: Callable[[Callable[[Connection], int]], int]
) -> ReembedResult:
    """Embed what has no embedding of this model; in batches, so that what is interrupted goes on later."""
    model = embedder.model_name
    found = lacking(blocks.store, model)
    own = blocks.store.engine.are_own([record.id for record in found])
    records = [record for record, is_own in zip(found, own, strict=True) if is_own]
    embedded = 0
    for start in range(0, len(records), _TOGETHER):
        some = records[start : start + _TOGETHER]
        with blocks.connect() as conn:
            vectors = SPACES.embedded(conn, some, _content, embedder)

        def work(conn: Connection, some: Sequence[ChronoRecord] = some, vectors: Matrix = vectors) -> int:
            given = (_give(conn, *pair, model) for pair in zip(some, vectors, strict=True))
            return sum(given)

        embedded += write(work)
    return ReembedResult(embedded, model)


def _content(record: ChronoRecord) -> str:
    content: str = record.data["content"]
    return content


def _give(conn: Connection, record: ChronoRecord, vector: Vector, model: str) -> bool:
    """Give a block its embedding, unless it was put away or says something else by now."""
    known = conn.record(record.id)
    if known is None or known.status != BlockStatus.ACTIVE or _content(known) != _content(record):
        return False
    conn.patch(record.id, {"data": {"embedding_model": model}})
    SPACES.attach(conn, record.id, vector, model)
    return True
