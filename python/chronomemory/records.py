"""The methods that read and write records, shared by all handles."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Literal, overload

from chronomemory import expiry, ingestion, reasons, reinstatement, rollback, search, selection, verbs
from chronomemory._core import Engine, Store
from chronomemory.compat.store import RecordNames
from chronomemory.deps import DepGraph
from chronomemory.errors import UnknownRecord
from chronomemory.event import WalEvent
from chronomemory.face.arguments import count, flag, many, must, public_names, string, string_or_none, word
from chronomemory.record import ChronoRecord
from chronomemory.rollback import RollbackReport
from chronomemory.selection import StoreView, engine_of, look_back
from chronomemory.vectors import Vectors

__all__ = ["Records"]

_DELETED = "tombstone"


@public_names
class Records(RecordNames, Store):
    """What a store and a handle of a scope have in common: records, their past, search and embeddings.

    It is read like a mapping of ids to records, of every face and status that is seen here, without deleted
    and expired ones. Iteration yields ids one by one, in the order the records came, as of its start.
    """

    @property
    def engine(self) -> Engine:
        """The open engine, for whom this handle asks and writes."""
        raise NotImplementedError

    @property
    def vectors(self) -> Vectors:
        """The embeddings of the records: ``attach``, ``nearest``, ``spaces`` and more."""
        return Vectors(self)

    # Writing.

    def upsert_many(self, records: Iterable[ChronoRecord | Mapping[str, Any]]) -> range:
        """Write records as one atomic batch, all or none; return the seqs they took.

        A record without an id gets a random one, which a ``ChronoRecord`` is told.
        """
        if isinstance(records, Mapping | ChronoRecord):
            raise must("records", "be a list of records; upsert() takes one", records)
        if ingestion.is_table(records):
            raise must("records", 'be a list of records, such as table.to_dict("records")', records)
        return range(*self.engine.upsert_many(many("records", records)))

    # Reading. Records are copies: changing one changes nothing until it is upserted.

    def get(self, record_id: str, *, expired: bool = False) -> ChronoRecord | None:
        """Return a record, a tombstoned one too, or None; one that has expired only if that is asked for."""
        if expired is False:
            return self.engine.get(record_id)
        return engine_of(self, expired).get(record_id)

    def __getitem__(self, record_id: str) -> ChronoRecord:
        record = self.engine.get(record_id)
        if record is None or record.status == _DELETED:
            raise UnknownRecord(f"id {json.dumps(record_id)}: there is no such record", id=record_id)
        return record

    def __contains__(self, record_id: object) -> bool:
        record = self.engine.get(record_id) if isinstance(record_id, str) else None
        return record is not None and record.status != _DELETED

    def __len__(self) -> int:
        return sum(number for _, status, _, number in self.engine.tally() if status != _DELETED)

    def __iter__(self) -> Iterator[str]:
        walk = self.stream(status=None, faces=True)
        return (record.id for record in walk if record.status != _DELETED)

    def __bool__(self) -> bool:
        return True  # an empty store is still a store: code that asks ``if store`` asks for None

    @overload
    def count(
        self, *, by: None = None, status: str | None = ..., faces: bool = ..., expired: bool = ...
    ) -> int: ...
    @overload
    def count(
        self,
        *,
        by: Literal["kind", "status"],
        status: str | None = ...,
        faces: bool = ...,
        expired: bool = ...,
    ) -> dict[str, int]: ...
    def count(
        self,
        *,
        by: Literal["kind", "status"] | None = None,
        status: str | None = "active",
        faces: bool = False,
        expired: bool = False,
    ) -> int | dict[str, int]:
        """Return how many records there are, in all or by kind or status; ``status=None`` means any."""
        group = None if by is None else word("by", by, ("kind", "status"))
        status, faces, engine = (
            string_or_none("status", status),
            flag("faces", faces),
            engine_of(self, expired),
        )
        if group is None and status == "active" and not faces:
            return engine.count()
        counts: dict[str, int] = {}
        for kind, its_status, of_face, number in engine.tally():
            if (faces or not of_face) and (not status or its_status == status):
                key = its_status if group == "status" else kind
                counts[key] = counts.get(key, 0) + number
        return sum(counts.values()) if group is None else counts

    def invalidate(self, record_id: str, reason: str, dep_graph: DepGraph | None = None) -> RollbackReport:
        """Invalidate an own record and doubt what rests on it, by default along the edges in the store.

        Also what rests on it in narrower scopes, which the report does not count if it is not seen here.
        """
        return rollback.invalidate(record_id, reason, self, dep_graph)

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
    query = selection.query
    stream = selection.stream
    search = search.search
    sweep = expiry.sweep
    why = reasons.why
    rollbacks = reinstatement.rollbacks
    reinstate = reinstatement.reinstate
    update = verbs.update
    get_many = verbs.get_many
    delete = verbs.delete
    delete_many = verbs.delete_many
    _upsert_if = verbs.upsert_if
