"""What may be asked and written of records, by whoever holds a handle?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from chronomemory import ingestion, metrics, pages, search, updates, vectors
from chronomemory._core import Door, Engine
from chronomemory.event import WalEvent
from chronomemory.face.arguments import count, flag, many, string, string_or_none
from chronomemory.pages import Page, page_of, query_terms
from chronomemory.record import ChronoRecord
from chronomemory.view import StoreView, look_back

__all__ = ["Records"]


class Records(Door):
    """What a store and a handle of a scope have in common: records, their past, search and embeddings."""

    @property
    def engine(self) -> Engine:
        """The open engine, for whom this handle asks and writes."""
        raise NotImplementedError

    # Writing.

    def insert(self, record: ChronoRecord | Mapping[str, Any]) -> WalEvent | None:
        """Write a record unless its id is taken, by another process too; return None if it is."""
        return self.engine.insert(record)

    def upsert_many(self, records: Iterable[ChronoRecord | Mapping[str, Any]]) -> range:
        """Write records as one atomic batch, all or none; return the seqs they took."""
        return range(*self.engine.upsert_many(many("records", records)))

    def delete(self, record_id: str) -> WalEvent:
        """Tombstone a record: ``get`` still returns it, ``query`` hides it."""
        return self.engine.delete(record_id)

    # Reading. Records are copies: changing one changes nothing until it is upserted.

    def get(self, record_id: str) -> ChronoRecord | None:
        """Return a record, a tombstoned one too, or None."""
        return self.engine.get(record_id)

    def query(
        self,
        *,
        kind: str | None = None,
        status: str | None = "active",
        rag_filter: bool = False,
        min_confidence: float = 0.0,
        limit: int | None = None,
        faces: bool = False,
        order_by: str | None = None,
        after: str | None = None,
    ) -> Page:
        """Return matching records in insertion order; ``status=""`` or None means any.

        Records of the other faces appear when their kind is named, or with ``faces=True``. ``order_by`` is
        ``created`` (the same order), ``updated``, ``happened``, ``confidence`` or ``id``; a ``-`` in front
        turns it round. With a ``limit`` the answer has a ``cursor``, which is ``after`` for the next page.
        """
        terms = query_terms(
            kind=kind,
            status=status,
            rag_filter=rag_filter,
            min_confidence=min_confidence,
            limit=limit,
            faces=faces,
        )
        return page_of(self.engine, terms, order_by, after)

    def record_count(self) -> int:
        """Return how many plain records are active."""
        return self.engine.count()

    def record_counts(self, *, status: str | None = "active", faces: bool = False) -> dict[str, int]:
        """Return how many records there are of each kind."""
        status, faces = string_or_none("status", status), flag("faces", faces)
        counts: dict[str, int] = {}
        for kind, its_status, of_face, number in self.engine.tally():
            if (faces or not of_face) and (not status or its_status == status):
                counts[kind] = counts.get(kind, 0) + number
        return counts

    def export_records(self, *, status: str | None = "active", faces: bool = False) -> list[dict[str, Any]]:
        """Return the active plain records as dicts, or those of another status."""
        return self.engine.export(status=string_or_none("status", status), faces=flag("faces", faces))

    # The past.

    def history(self, record_id: str) -> list[WalEvent]:
        """Return every event of one record that was kept, oldest first."""
        return [WalEvent._of_line(line) for line in self.engine.history(string("id", record_id))]

    def changed_since(self, seq: int) -> list[str]:
        """Return the ids upserted at ``seq`` or later, each once, also if the log was compacted since.

        Deletions are left out: ``replay`` has every event since the last compaction, and ``history`` every
        one of a record.
        """
        return self.engine.changed_since(count("seq", seq))

    def as_of(self, when: int | datetime) -> StoreView:
        """Look at the store as it was after event ``when``, or at a moment with a time zone."""
        return look_back(self.engine, when)

    # One-line calls of the modules that stand below: the handle is their first argument.

    ingest = ingestion.ingest
    iter = pages.iter_records
    search = search.search
    record_token_metric = metrics.record_token_metric
    get_token_metrics = metrics.get_token_metrics
    token_efficiency_report = metrics.token_efficiency_report
    find_skills = metrics.find_skills
    record_skill_run = metrics.record_skill_run
    attach = vectors.attach
    attach_many = vectors.attach_many
    detach = vectors.detach
    embedding = vectors.embedding
    nearest = vectors.nearest
    spaces = vectors.spaces
    update = updates.update
