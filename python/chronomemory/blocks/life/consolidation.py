"""Makes what was learned part of the memory.

Each block of the inbox is embedded once, compared with what is active, linked, and promoted; or it turns out
to be known already. Blocks are taken in small batches, each of them atomic, so an interrupted consolidation
goes on where it stopped, and what takes its time is done before a batch begins. What became active meanwhile
is caught up with in the batch. A block whose questions nobody answers stays where it is; the others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from chronomemory.blocks.declaration import READER
from chronomemory.blocks.engine import Blocks
from chronomemory.blocks.ids import BLOCK
from chronomemory.blocks.life.arrival import Arrival, ConsolidateResult, least_cosine
from chronomemory.blocks.life.asking import BlockAnswers
from chronomemory.blocks.life.curation import CurateResult
from chronomemory.blocks.life.neighbours import Neighbours
from chronomemory.embedders import Embedder
from chronomemory.embedders.protocol import as_matrix
from chronomemory.face.batch import Connection
from chronomemory.face.models import NoAnswer, Unanswered, rehearse
from chronomemory.face.readings import Reading
from chronomemory.record import ChronoRecord

__all__ = ["ConsolidateResult", "Consolidation", "DreamResult"]

#: How many blocks are embedded at once, and how many become part of the memory at once.
_EMBEDDED_BLOCKS, _TOGETHER = 500, 32

#: Something to do in the same batch, at an hour.
Change = Callable[[Connection, float], object]


@dataclass
class Consolidation:
    """One walk through the inbox.

    ``write`` runs a batch; ``hour`` writes down how late it is.
    """

    blocks: Blocks
    embedder: Embedder
    answers: BlockAnswers
    write: Callable[[Callable[[Connection], ConsolidateResult]], ConsolidateResult]
    hour: Callable[[], float]
    result: ConsolidateResult = field(default_factory=ConsolidateResult)
    #: The blocks that stay in the inbox, and why.
    failed: dict[str, Exception] = field(default_factory=dict)
    _succeeded: int = 0
    _failed_before: int = 0

    def run(self, limit: int | None = None) -> ConsolidateResult:
        """Take in what waits, or so much of it; what went wrong with some of it is told at the end."""
        while limit is None or self.result.processed < limit:
            most = _EMBEDDED_BLOCKS if limit is None else min(_EMBEDDED_BLOCKS, limit - self.result.processed)
            waiting = self.blocks.store.engine.block_records(
                BLOCK, "inbox", most + len(self.failed), own=True
            )
            records = [record for record in waiting if record.id not in self.failed][:most]
            if not records:
                break
            with self.blocks.connect() as conn:
                reading = READER.read(conn, records, _content, self.embedder)
            for start in range(0, len(records), _TOGETHER):
                self._take(records[start : start + _TOGETHER], reading.part(start, start + _TOGETHER))
                self._check_that_some_succeed()
        for error in self.failed.values():
            raise error
        return self.result

    def _check_that_some_succeed(self) -> None:
        """A model that is down is not asked about everything that waits."""
        if self.result.processed > self._succeeded:
            self._succeeded, self._failed_before = self.result.processed, len(self.failed)
        elif len(self.failed) - self._failed_before >= _TOGETHER:
            raise next(reversed(self.failed.values()))

    def take_at_once(self, record: ChronoRecord, change: Change) -> None:
        """Take in a block that a change puts into the inbox, both in one batch, or neither."""
        content = _content(record)
        vectors = as_matrix(self.embedder.embed_batch([content]), 1)
        reading = READER.with_tokens(self.blocks.store, vectors, [content], self.embedder)
        self._take([record], reading, change)

    def _take(self, records: Sequence[ChronoRecord], reading: Reading, change: Change | None = None) -> None:
        model = self.embedder.model_name
        while True:
            hours = self.hour()
            found = Neighbours(self.blocks, model, reading.vectors, least_cosine(self.answers))

            def work(conn: Connection, hours: float = hours, found: Neighbours = found) -> ConsolidateResult:
                if change is not None:
                    change(conn, hours)
                arrival = Arrival(conn, hours, model, self.answers)
                return arrival.run(records, reading, found.caught_up(conn), self.failed)

            try:
                self.result.add(self.write(work))
                return
            except Unanswered:
                self._rehearse(work)
                if change is not None and self.failed:
                    raise next(iter(self.failed.values())) from None

    def _rehearse(self, work: Callable[[Connection], ConsolidateResult]) -> None:
        """Put the questions of a batch, by one that is never written; what nobody answers is left out."""
        while True:
            try:
                rehearse(self.blocks, work, self.answers)
                return
            except NoAnswer as nothing:
                self.failed[nothing.about] = nothing.error


def _content(record: ChronoRecord) -> str:
    content: str = record.data["content"]
    return content


class DreamResult(NamedTuple):
    """What a dream did; true if there was something in the inbox."""

    consolidated: ConsolidateResult
    curated: CurateResult

    def __bool__(self) -> bool:
        return bool(self.consolidated.processed)

    def __str__(self) -> str:
        return self.summary

    @property
    def summary(self) -> str:
        """What was taken in, and what was let go."""
        return f"{self.consolidated.summary} {self.curated.summary}"

    def to_dict(self) -> dict[str, Any]:
        """Return both as JSON can carry them."""
        return {"consolidated": self.consolidated.to_dict(), "curated": self.curated.to_dict()}
