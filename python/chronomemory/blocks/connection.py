"""How does one atomic batch of changes see what it is about to write?

A connection reads the store through what it has not written yet. ``begin`` collects changes and
writes them as one batch when its block ends, or none of them if the block raises.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterable, Iterator
from dataclasses import replace
from types import TracebackType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from chronomemory._core import block_count, block_record, block_records, bookmark, write_unless_changed
from chronomemory.blocks.checks import check_within
from chronomemory.blocks.errors import BatchConflict, IntegrityError
from chronomemory.blocks.ids import FACE
from chronomemory.errors import ChronoError, InvalidRecord, StoreLocked
from chronomemory.record import ChronoRecord
from chronomemory.store import ChronoStore

__all__ = ["Batch", "Connection", "Vector", "merged"]

Vector = npt.NDArray[np.float32]

_LOG = logging.getLogger("chronomemory.blocks")

#: How long a batch waits for another one of this process, and how often a task looks, in seconds.
_PATIENCE_SECONDS = 5.0
_LOOK_SECONDS = 0.001


def merged(value: Any, patch: Any) -> Any:
    """Apply an RFC 7396 merge patch, as the engine does."""
    if not isinstance(patch, dict):
        return patch
    result = dict(value) if isinstance(value, dict) else {}
    for name, part in patch.items():
        if part is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), part)
    return result


class Connection:
    """What the storage functions take as their first argument."""

    def __init__(self, store: ChronoStore, *, writable: bool, echo: bool = False) -> None:
        self.store = store
        self._writable = writable
        self._echo = echo
        self._changes: list[tuple[str, Any]] = []
        self._seen: dict[str, ChronoRecord] = {}
        self._since = bookmark(store.engine) if writable else ("", 0)
        self._watched: set[str] = set()
        #: Embeddings by record, each with its space and model.
        self._attached: dict[str, tuple[Vector, str, str]] = {}

    # Reading.

    def record(self, record_id: str) -> ChronoRecord | None:
        """Return a record as it will be, or None; a deleted one is None too. It must stay so."""
        self._watched.add(record_id)
        return self.glimpse(record_id)

    def glimpse(self, record_id: str) -> ChronoRecord | None:
        """Return a record that the batch can do without: others may change it meanwhile."""
        found = self._seen.get(record_id)
        if found is None:
            found = block_record(self.store.engine, record_id)
        return None if found is None or found.status == "tombstone" else found

    def records(self, kind: str, *statuses: str, limit: int | None = None) -> list[ChronoRecord]:
        """Return the records of a kind and of these statuses, or of all, in insertion order.

        Of one status, no more than ``limit`` are fetched if nothing of the batch could come in between.
        """
        engine = self.store.engine
        asked: tuple[str | None, ...] = statuses or (None,)
        most = limit if len(statuses) == 1 and not self._seen else None
        found = [record for status in asked for record in block_records(engine, kind, status, most)]
        if self._seen:
            found = [record for record in found if record.id not in self._seen]
            found += [record for record in self._seen.values() if record.kind == kind]
        return [
            record
            for record in found
            if record.status != "tombstone" and record.status in (statuses or (record.status,))
        ][:limit]

    def count(self, kind: str, status: str) -> int:
        """Return how many records of a kind have a status."""
        if any(record.kind == kind for record in self._seen.values()):
            return len(self.records(kind, status))
        return block_count(self.store.engine, kind, status)

    def events(self) -> int:
        """Return how many events the batch will be; several are announced by one more."""
        return len(self._changes) + (len(self._changes) > 1)

    def pending(self, kind: str) -> Iterator[ChronoRecord]:
        """Yield the records of a kind that this batch has touched, deleted ones too."""
        yield from (record for record in self._seen.values() if record.kind == kind)

    # Writing.

    def put(self, record: ChronoRecord) -> None:
        """Write a whole record."""
        self._check_writable()
        self._watched.add(record.id)
        self._changes.append(("upsert", record))
        self._seen[record.id] = record

    def patch(self, record_id: str, patch: dict[str, Any]) -> None:
        """Change some fields of a record; None takes a field away."""
        self._check_writable()
        known = self.record(record_id)
        if known is None:
            raise IntegrityError(f"there is no record {record_id!r} to change", recovery="Check the id.")
        if "confidence" in patch:
            patch = {**patch, "confidence": check_within("confidence", patch["confidence"])}
        self._changes.append(("patch", (record_id, patch)))
        self._seen[record_id] = replace(
            known, **{name: merged(getattr(known, name), part) for name, part in patch.items()}
        )

    def delete(self, record_id: str) -> None:
        """Take a record away; the log keeps it."""
        self._check_writable()
        known = self.record(record_id)
        if known is not None:
            self._changes.append(("delete", record_id))
            self._seen[record_id] = replace(known, status="tombstone")

    def attach(self, record_id: str, vector: Vector, space: str, model: str) -> None:
        """Give a record an embedding when the batch is written."""
        self._check_writable()
        self._attached[record_id] = (vector, space, model)

    def attached(self, record_id: str) -> Vector | None:
        """Return the embedding that a record gets with this batch, or None."""
        found = self._attached.get(record_id)
        return None if found is None else found[0]

    def _attach(self, ids: Iterable[str]) -> None:
        """Write the embeddings of some records."""
        of_space: dict[tuple[str, str, int], list[str]] = {}
        for record_id in ids:
            vector, space, model = self._attached[record_id]
            of_space.setdefault((space, model, len(vector)), []).append(record_id)
        for (space, model, _), members in of_space.items():
            rows = np.stack([self._attached[record_id][0] for record_id in members])
            self.store.attach_many(members, rows, space=space, model=model)

    def _arriving(self) -> set[str]:
        """Return the records that wait in the inbox, and have nothing yet that an embedding would replace."""
        known = {space.name for space in self.store.spaces()}
        arriving = set()
        for record_id, (_, space, _) in self._attached.items():
            found = self.store.engine.get(record_id)
            waits = found is not None and found.status == "inbox"
            if waits and (space not in known or self.store.embedding(record_id, space=space) is None):
                arriving.add(record_id)
        return arriving

    def _check_spaces(self) -> None:
        """Refuse vectors that their space cannot hold before anything is written."""
        bound = {space.name: (space.model, space.dim) for space in self.store.spaces()}
        for vector, space, model in self._attached.values():
            known = bound.setdefault(space, (model, len(vector)))
            # A space whose line was lost in a repair has no model until somebody names one.
            if known not in ((model, len(vector)), ("", len(vector))):
                raise InvalidRecord(
                    f"embedding: {len(vector)} numbers of {model!r} do not fit {known[1]} of {known[0]!r}",
                    field="embedding",
                    recovery="Name the model: each has a space of its own.",
                )

    def commit(self) -> None:
        """Write everything as one batch, unless another writer changed what this batch has looked at."""
        if not self._changes:
            return
        arriving: set[str] = set()
        if self._attached:
            self._check_spaces()
            # A block of the inbox gets its vector first: after a crash it waits with a vector that nobody
            # looks at, and is not active without one. What has a vector keeps it until the batch is written.
            arriving = self._arriving()
            self._attach(arriving)
        watched = list(self._watched)
        if write_unless_changed(self.store.engine, self._changes, FACE, self._since, watched) is None:
            raise BatchConflict(
                "another writer changed what this batch has read; nothing was written",
                recovery="Run the batch again: it will see what the other one wrote.",
            )
        self._attach(record_id for record_id in self._attached if record_id not in arriving)
        if self._echo:
            for verb, what in self._changes:
                _LOG.info("%s %s", verb, what)
        self._changes = []
        self._seen = {}

    def _check_writable(self) -> None:
        if not self._writable:
            raise ChronoError("this connection only reads", recovery="Use begin() to write.")


class Batch:
    """``with`` or ``async with``: one atomic batch, or one look at the store."""

    def __init__(self, store: ChronoStore, turn: threading.Lock, *, writable: bool, echo: bool) -> None:
        self._store = store
        self._turn = turn
        self._writable = writable
        self._echo = echo
        self._open: list[Connection] = []

    def __enter__(self) -> Connection:
        if self._writable and not self._turn.acquire(timeout=_PATIENCE_SECONDS):
            raise _another_batch()
        return self._begin()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> Literal[False]:
        connection = self._open.pop()
        try:
            if error is None and self._writable:
                connection.commit()
        finally:
            self._end(connection)
        return False

    async def __aenter__(self) -> Connection:
        waited = 0.0
        # Polled, since a thread that waits for the lock would keep it if its task were cancelled.
        while self._writable and not self._turn.acquire(blocking=False):
            if waited > _PATIENCE_SECONDS:
                raise _another_batch()
            await asyncio.sleep(_LOOK_SECONDS)
            waited += _LOOK_SECONDS
        return self._begin()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> Literal[False]:
        return self.__exit__(kind, error, trace)

    def _begin(self) -> Connection:
        try:
            connection = Connection(self._store, writable=self._writable, echo=self._echo)
        except BaseException:
            if self._writable:
                self._turn.release()
            raise
        self._open.append(connection)
        return connection

    def _end(self, connection: Connection) -> None:
        connection._writable = False
        if self._writable:
            self._turn.release()


def _another_batch() -> StoreLocked:
    return StoreLocked(
        "another batch of this process is open",
        recovery="End it first; one batch is open at a time.",
    )
