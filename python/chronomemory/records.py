"""What may be asked and written of records, by whoever holds a handle?"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from chronomemory import metrics, search, updates, vectors
from chronomemory._core import Door, Engine
from chronomemory.event import WalEvent
from chronomemory.face.arguments import count, flag, function_or_none, many, path, string, string_or_none
from chronomemory.record import ChronoRecord
from chronomemory.types import IngestReport, Progress
from chronomemory.view import StoreView, look_back, query_terms

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

    def ingest(
        self,
        source: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        *,
        progress: Progress | None = None,
    ) -> IngestReport:
        """Load NDJSON files of records, one object a line, without a Python object per row.

        Each file goes in as a row of atomic batches: an error ends the load at the batch that
        has the bad line, and what came before it stays. ``progress`` gets bytes done and in all; what
        it raises is raised once its file is loaded, and the files after that are not.
        """
        progress = function_or_none("progress", progress)
        sources = [source] if isinstance(source, str | os.PathLike) else many("source", source)
        paths = [path("source", name) for name in sources]
        sizes = [file.stat().st_size for file in paths]
        for file in paths:
            if not file.is_file():
                raise OSError(errno.EINVAL, "not a regular file; its rows can only be read once", str(file))
        records = done = 0
        seqs: list[int] = []
        for file, size in zip(paths, sizes, strict=True):
            told = self.engine.ingest(os.fspath(file), _shifted(progress, done, sum(sizes)))
            done += size
            records += told["records"]
            if told["records"]:
                seqs += (told["first_seq"], told["last_seq"])
        first, last = (seqs[0], seqs[-1]) if seqs else (None, None)
        return IngestReport(records, done, first, last, [str(file) for file in paths])

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
    ) -> list[ChronoRecord]:
        """Return matching records in insertion order; ``status=""`` or None means any.

        Records of the other faces appear when their kind is named, or with ``faces=True``.
        """
        return self.engine.query(
            **query_terms(
                kind=kind,
                status=status,
                rag_filter=rag_filter,
                min_confidence=min_confidence,
                limit=limit,
                faces=faces,
            )
        )

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


def _shifted(progress: Progress | None, before: int, total: int) -> Progress | None:
    """Let the progress of one file among several count as progress of them all."""
    if progress is None:
        return None
    return lambda done, _: progress(before + done, total)
