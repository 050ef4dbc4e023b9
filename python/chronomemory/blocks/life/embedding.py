"""Blocks that have no embedding of a model, or no codes of its tokens, and how they get them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from chronomemory.blocks.engine import READER, SPACES, Blocks
from chronomemory.blocks.ids import BLOCK
from chronomemory.blocks.storage.blocks import blocks_among
from chronomemory.blocks.types import BlockStatus
from chronomemory.embedders import Embedder
from chronomemory.embedders.protocol import offers_tokens
from chronomemory.errors import UnknownSpace
from chronomemory.face.batch import Connection
from chronomemory.face.results import Result, counted
from chronomemory.face.spaces import Reading
from chronomemory.record import ChronoRecord
from chronomemory.selection import query
from chronomemory.types import HasEngine

#: How many are embedded at once.
_TOGETHER = 256


@dataclass(frozen=True, slots=True)
class ReembedResult(Result):
    """How many blocks were given an embedding, and of which model."""

    embedded: int
    model: str

    @property
    def summary(self) -> str:
        return f"{counted(self.embedded, 'block')} embedded anew with {self.model}."


def lacking(store: HasEngine, embedder: Embedder) -> list[ChronoRecord]:
    """Return the active blocks that have no embedding of a model, in insertion order.

    If it gives tokens too, those that have no codes of them are among these.
    """
    model = embedder.model_name
    lacks = None if offers_tokens(embedder) else {"data.space": {"ne": SPACES.of(model)}}
    found = list(query(store, kind=BLOCK, status=BlockStatus.ACTIVE.value, where=lacks, faces=True))
    if offers_tokens(embedder):
        has_codes = _owners(store, READER.tokens.of(model))
        found = [
            record
            for record in found
            if record.data.get("space") != SPACES.of(model) or record.id not in has_codes
        ]
    return blocks_among(store, found)


def reembed(
    blocks: Blocks, embedder: Embedder, write: Callable[[Callable[[Connection], int]], int]
) -> ReembedResult:
    """Embed what has no embedding of this model; in batches, so that what is interrupted goes on later."""
    model = embedder.model_name
    found = lacking(blocks.store, embedder)
    own = blocks.store.engine.are_own([record.id for record in found])
    records = [record for record, is_own in zip(found, own, strict=True) if is_own]
    embedded = 0
    for start in range(0, len(records), _TOGETHER):
        some = records[start : start + _TOGETHER]
        with blocks.connect() as conn:
            reading = READER.read(conn, some, _content, embedder)

        def work(conn: Connection, some: Sequence[ChronoRecord] = some, reading: Reading = reading) -> int:
            return sum(_give(conn, record, reading, place, model) for place, record in enumerate(some))

        embedded += write(work)
    return ReembedResult(embedded, model)


def _content(record: ChronoRecord) -> str:
    content: str = record.data["content"]
    return content


def _owners(store: HasEngine, space: str) -> set[str | None]:
    try:
        return set(store.engine.vectors.matrix(space=space)[3])
    except UnknownSpace:
        return set()


def _give(conn: Connection, record: ChronoRecord, reading: Reading, place: int, model: str) -> bool:
    """Give a block its embedding, unless it was put away or says something else by now."""
    known = conn.record(record.id)
    if known is None or known.status != BlockStatus.ACTIVE or _content(known) != _content(record):
        return False
    conn.patch(record.id, {"data": {"embedding_model": model}})
    READER.attach(conn, record.id, reading, place, model)
    return True
