"""How does what was learned become part of the memory?

Each block of the inbox is embedded once, compared with what is active, linked, and promoted; or it turns out
to be known already. Blocks are taken in small batches, each of them atomic, so an interrupted consolidation
goes on where it stopped, and what takes its time is done before a batch begins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from chronomemory._core import nearest_blocks
from chronomemory.blocks import embeddings
from chronomemory.blocks.arrival import Arrival, ConsolidateResult, Near, least_cosine
from chronomemory.blocks.asking import Answers, Unanswered
from chronomemory.blocks.connection import Connection
from chronomemory.blocks.engine import CONFLICT_SECONDS, Blocks
from chronomemory.blocks.errors import BatchConflict
from chronomemory.blocks.ids import BLOCK
from chronomemory.embedders import Embedder, Matrix
from chronomemory.embedders.protocol import as_matrix
from chronomemory.record import ChronoRecord

__all__ = ["ConsolidateResult", "Consolidation"]

#: How many blocks are embedded at once, and how many become part of the memory at once.
_EMBEDDED_BLOCKS, _TOGETHER = 500, 32
#: How many neighbours of a newcomer are looked at.
_NEIGHBOURS = 64


def embedded(conn: Connection, records: Sequence[ChronoRecord], embedder: Embedder) -> Matrix:
    """Return a vector for each block, embedding each text once; a vector of the same model is kept."""
    rows: list[Any] = [None] * len(records)
    wanted: dict[str, list[int]] = {}
    for at, record in enumerate(records):
        same_model = record.data.get("space") == embeddings.space_of(embedder.model_name)
        known = embeddings.read(conn, record) if same_model else None
        if known is None:
            wanted.setdefault(record.data["content"], []).append(at)
        else:
            rows[at] = embeddings.bytes_to_embedding(known)
    if wanted:
        made = as_matrix(embedder.embed_batch(list(wanted)), len(wanted))
        for row, places in zip(made, wanted.values(), strict=True):
            for at in places:
                rows[at] = row
    return as_matrix(rows, len(records))


@dataclass
class Consolidation:
    """One walk through the inbox.

    ``write`` runs a batch, and is patient for some seconds if it is in conflict with others; ``hour`` writes
    down how late it is.
    """

    blocks: Blocks
    embedder: Embedder
    answers: Answers
    write: Callable[[Callable[[Connection], ConsolidateResult], float], ConsolidateResult]
    hour: Callable[[], float]
    result: ConsolidateResult = field(default_factory=ConsolidateResult)

    def run(self, limit: int | None = None) -> ConsolidateResult:
        """Take in what waits, or so much of it."""
        while limit is None or self.result.processed < limit:
            most = _EMBEDDED_BLOCKS if limit is None else min(_EMBEDDED_BLOCKS, limit - self.result.processed)
            records = self.blocks.store.engine.query(kind=BLOCK, status="inbox", limit=most)
            if not records:
                break
            with self.blocks.connect() as conn:
                vectors = embedded(conn, records, self.embedder)
            for start in range(0, len(records), _TOGETHER):
                self._take(records[start : start + _TOGETHER], vectors[start : start + _TOGETHER])
        return self.result

    def _take(self, records: Sequence[ChronoRecord], vectors: Matrix) -> None:
        while True:
            hours = self.hour()
            near = self._near(vectors)

            def work(conn: Connection, hours: float = hours, near: Near = near) -> ConsolidateResult:
                return Arrival(conn, hours, self.embedder.model_name, self.answers).run(
                    records, vectors, near
                )

            try:
                self.result.add(self.write(work, CONFLICT_SECONDS if len(records) == 1 else 0.0))
                return
            except Unanswered:
                with self.answers.asking():
                    work(Connection(self.blocks.store, writable=True))  # a rehearsal: it is never written
            except BatchConflict:
                if len(records) == 1:
                    raise
                # The less is taken at once, the less can come in between.
                half = len(records) // 2
                self._take(records[:half], vectors[:half])
                self._take(records[half:], vectors[half:])
                return

    def _near(self, vectors: Matrix) -> Near:
        """Return the active neighbours of each vector; found before a batch begins, as it takes its time."""
        return nearest_blocks(
            self.blocks.store.engine,
            embeddings.space_of(self.embedder.model_name),
            vectors.tobytes(),
            vectors.shape[1],
            _NEIGHBOURS,
            least_cosine(self.answers),
        )
