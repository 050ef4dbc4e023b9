"""One atomic batch of a face's changes: it sees what it is about to write, and minds what it has read.

A connection reads the store through what it has not written yet. ``begin`` collects changes and writes them
as one batch when its block ends, or none of them if the block raises. Every record that was read is watched:
if another writer changes one of them first, nothing is written, and the batch can be run again.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, TypeVar

from chronomemory._core import Edition, Engine
from chronomemory.errors import ChronoError, StoreLocked, WriteConflict
from chronomemory.event import WalEvent
from chronomemory.face.arguments import contents, within
from chronomemory.face.moments import Now, micros
from chronomemory.numpy_later import Floats, np
from chronomemory.record import ChronoRecord
from chronomemory.scope import SHARED, Scope
from chronomemory.types import HasEngine
from chronomemory.updates import merged, retry_in_turn


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
    reader: PrefixReader = field(default_factory=PrefixReader)
    #: Raised when another writer came in between, and when a record that is to be changed is not there.
    conflict: type[WriteConflict] = WriteConflict
    missing: type[ChronoError] = ChronoError


#: An edition, where the log ended, records, and numbers for the scopes of those that may be changed.
Fetched: TypeAlias = tuple[Edition, tuple[str, int], list[ChronoRecord | None], list[int | None]]
#: Ids, their rows, the space and the model, and the length of token vectors if the rows are codes of them.
Attachment: TypeAlias = tuple[list[str], Floats, str | None, str | None, int]


class Attachments:
    """Embeddings by record, each with its space and the model that made it, and codes of tokens."""

    def __init__(self) -> None:
        self._pending: dict[str, tuple[Floats, str, str]] = {}
        self._codes: dict[str, tuple[Floats, str, str, int]] = {}

    def __len__(self) -> int:
        return len(self._pending) + len(self._codes)

    def __iter__(self) -> Iterator[str]:
        return iter(self._pending.keys() | self._codes.keys())

    def add(self, record_id: str, vector: Floats, space: str, model: str) -> None:
        """Carry an embedding for a record, in place of one that is carried already."""
        self._pending[record_id] = (vector, space, model)

    def add_codes(self, record_id: str, codes: Floats, space: str, model: str, dim: int) -> None:
        """Carry the codes of a record's tokens likewise; their vectors had ``dim`` numbers each."""
        self._codes[record_id] = (codes, space, model, dim)

    def drop(self, record_id: str) -> None:
        self._pending.pop(record_id, None)
        self._codes.pop(record_id, None)

    def get(self, record_id: str) -> Floats | None:
        found = self._pending.get(record_id)
        return None if found is None else found[0]

    def by_space(self) -> list[Attachment]:
        """Return the embeddings as the engine takes them; it refuses those that their space cannot hold."""
        members: dict[tuple[str, str, int, int], dict[str, Floats]] = {}
        for record_id, (vector, space, model) in self._pending.items():
            members.setdefault((space, model, 0, len(vector)), {})[record_id] = vector
        for record_id, (codes, space, model, dim) in self._codes.items():
            members.setdefault((space, model, dim, len(codes)), {})[record_id] = codes
        return [
            (list(rows), np.stack(list(rows.values())), space, model, dim)
            for (space, model, dim, _), rows in members.items()
        ]


#: How long a batch waits for another one of this process, and how often a task looks, in seconds.
_PATIENCE_SECONDS = 5.0
_LOOK_SECONDS = 0.001

T = TypeVar("T")


class Connection:
    """What the storage functions of a face take as their first argument."""

    def __init__(
        self,
        face: Face,
        store: HasEngine,
        *,
        writable: bool,
        echo: bool = False,
        scope: Scope = SHARED,
        clock: Now | None = None,
    ) -> None:
        self.store = store
        #: Whose records are made here.
        self.scope = scope
        self._face = face
        self._writable = writable
        self._echo = echo
        #: Says when what is written happened; without it that is when it is written.
        self._clock = clock
        self._changes: list[tuple[str, Any]] = []
        self._acts: list[tuple[str, Any]] = []
        self._seen: dict[str, ChronoRecord] = {}
        self._fetched: dict[str, ChronoRecord | None] = {}
        self._own_scopes: dict[str, int | None] = {}
        #: Where the log ended before the first look; who only says what happened has none.
        self._since: tuple[str, int] | None = None
        self._watched: set[str] = set()
        self._attachments = Attachments()
        #: The last event of what was written, and what was seen before and after it.
        self.last_event: WalEvent | None = None
        self.seen_before: Edition | None = None
        self.seen_after: Edition | None = None

    # Reading.

    def record(self, record_id: str) -> ChronoRecord | None:
        """Return a record as it will be, or None; a deleted one is None too. It must stay so."""
        self._watched.add(record_id)
        return self.glimpse(record_id)

    def fetch(self, record_ids: Iterable[str]) -> Edition:
        """Look at several records in one go, and return what they are as of.

        Asked for later, they are what they were at this look.
        """
        ids = list(record_ids)
        return self.keep(ids, self.store.engine.records_at_once(ids))

    def keep(self, ids: Sequence[str], fetched: Fetched) -> Edition:
        """Keep what the engine fetched of records, and return what it is as of."""
        edition, end, found, own_scopes = fetched
        if self._writable and self._since is None:
            self._since = end
        self._fetched.update(zip(ids, found, strict=True))
        self._own_scopes.update(zip(ids, own_scopes, strict=True))
        return edition

    def own_scope(self, record_id: str) -> int | None:
        """Return the scope of a fetched record that may be changed here: a number, alike for those of one."""
        return self._own_scopes[record_id]

    def glimpse(self, record_id: str) -> ChronoRecord | None:
        """Return a record that the batch can do without: others may change it meanwhile."""
        found = self._seen.get(record_id)
        if found is None and record_id in self._fetched:
            found = self._fetched[record_id]
        elif found is None:
            self._begin()
            found = self._face.reader.record(self.store.engine, record_id)
        return None if found is None or found.status == "tombstone" else found

    def records(
        self, kind: str, *statuses: str, limit: int | None = None, own: bool = False
    ) -> list[ChronoRecord]:
        """Return the records of a kind and of these statuses, or of all, in insertion order.

        Of one status, no more than ``limit`` are fetched if nothing of the batch could come in between.
        """
        self._begin()
        engine, read = self.store.engine, self._face.reader.records
        asked: tuple[str | None, ...] = statuses or (None,)
        most = limit if len(statuses) == 1 and not self._seen else None
        found = [record for status in asked for record in read(engine, kind, status, most, own=own)]
        if self._seen:
            found = [record for record in found if record.id not in self._seen]
            found += [record for record in self._seen.values() if record.kind == kind]
        return [
            record
            for record in found
            if record.status != "tombstone" and record.status in (statuses or (record.status,))
        ][:limit]

    def count(self, kind: str, status: str, *, own: bool = False) -> int:
        """Return how many records of a kind have a status, own ones or all that are seen."""
        if any(record.kind == kind for record in self._seen.values()):
            return len(self.records(kind, status, own=own))
        self._begin()
        return self._face.reader.count(self.store.engine, kind, status, own=own)

    def events(self) -> int:
        """Return how many events the batch will be; several are announced by one more."""
        written = len(self._changes) + len(self._acts)
        return written + (written > 1)

    def pending(self, kind: str) -> Iterator[ChronoRecord]:
        """Yield the records of a kind that this batch has touched, deleted ones too."""
        yield from (record for record in self._seen.values() if record.kind == kind)

    # Writing.

    def put(self, record: ChronoRecord) -> None:
        """Write a whole record; one that names no scope is given that of the connection."""
        self._check_writable()
        self._begin()
        if self.scope != SHARED and "@scope" not in record.data:
            record = replace(record, data={"@scope": self.scope.to_dict(), **record.data})
        self._watched.add(record.id)
        self._changes.append(("upsert", record))
        self._seen[record.id] = record

    def patch(self, record_id: str, patch: dict[str, Any]) -> None:
        """Change some fields of a record; None takes a field away."""
        self._check_writable()
        known = self.record(record_id)
        if known is None:
            raise self._face.missing(f"there is no record {record_id!r} to change", recovery="Check the id.")
        if "confidence" in patch:
            with contents:
                patch = {**patch, "confidence": within("confidence", patch["confidence"])}
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
            self._attachments.drop(record_id)

    def act(self, event: dict[str, Any]) -> None:
        """Say what happened to several records; what follows from it is the engine's to tell.

        It happens when the batch ends, after everything else in it: nothing that the batch reads knows of it,
        and what others write meanwhile is no conflict with it.
        """
        self._check_writable()
        self._acts.append(("act", event))

    def attach(self, record_id: str, vector: Floats, space: str, model: str) -> None:
        """Give a record that this batch writes an embedding, when it is written."""
        self._check_written(record_id)
        self._attachments.add(record_id, vector, space, model)

    def attach_codes(self, record_id: str, codes: Floats, space: str, model: str, dim: int) -> None:
        """Give it the codes of its tokens likewise; their vectors had ``dim`` numbers each."""
        self._check_written(record_id)
        self._attachments.add_codes(record_id, codes, space, model, dim)

    def attached(self, record_id: str) -> Floats | None:
        """Return the embedding that a record gets with this batch, or None."""
        return self._attachments.get(record_id)

    def commit(self) -> None:
        """Write everything as one batch, unless another writer changed what this batch has looked at."""
        changes, face = [*self._changes, *self._acts], self._face
        if not changes:
            return
        watched, attachments = list(self._watched), self._attachments.by_space()
        engine, since = self.store.engine, self._since or ("", 0)
        at_us = None if self._clock is None else micros("clock", self._clock())
        written = engine.write_unless_changed(changes, face.name, since, watched, attachments, at_us=at_us)
        if written is None:
            raise face.conflict(
                "another writer changed what this batch has read; nothing was written",
                recovery="Run the batch again: it will see what the other one wrote.",
            )
        self.last_event, self.seen_before, self.seen_after = written
        if self._echo:
            log = logging.getLogger(f"chronomemory.{face.name}")
            for verb, what in changes:
                log.info("%s %s", verb, what)
        self._changes, self._acts, self._seen, self._attachments = [], [], {}, Attachments()
        self._fetched, self._own_scopes = {}, {}

    def _begin(self) -> None:
        """Take note of where the log ends, before the first look at it."""
        if self._writable and self._since is None:
            self._since = self.store.engine.bookmark()

    def _check_written(self, record_id: str) -> None:
        self._check_writable()
        if record_id not in self._seen:
            raise ChronoError(
                f"the batch does not write {record_id!r}, so it can give it no embedding",
                recovery="Put or patch the record first.",
            )

    def _check_writable(self) -> None:
        if not self._writable:
            raise ChronoError("this connection only reads", recovery="Use begin() to write.")


class Batch:
    """``with`` or ``async with``: one atomic batch, or one look at the store."""

    def __init__(
        self, connect: Callable[[], Connection], store: HasEngine, turn: threading.Lock, *, writable: bool
    ) -> None:
        self._connect = connect
        self._store = store
        self._turn = turn
        self._writable = writable
        self._open: list[Connection] = []

    def __enter__(self) -> Connection:
        self._acquire()
        return self._begin()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> Literal[False]:
        connection = self._open.pop()
        try:
            if error is None and self._writable:
                connection.commit()
        finally:
            connection._writable = False
            self._release()
        return False

    def run(self, work: Callable[[Connection], T]) -> T:
        """Run ``work`` in this batch; after a lost race again, while no one else writes."""

        def attempt() -> T:
            connection = self._connect()
            try:
                done = work(connection)
                connection.commit()
            finally:
                connection._writable = False
            return done

        # INVARIANT: this lock comes before that of the store, for which its holder waits when it commits.
        self._acquire()
        try:
            return retry_in_turn(self._store, attempt)
        finally:
            self._release()

    async def __aenter__(self) -> Connection:
        waited = 0.0
        # Polled, since a thread that waits for the lock would keep it if its task were cancelled.
        while self._writable and not self._turn.acquire(blocking=False):
            if waited > _PATIENCE_SECONDS:
                raise _another_batch()
            await asyncio.sleep(_LOOK_SECONDS)
            waited += _LOOK_SECONDS
        return self._begin()

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> Literal[False]:
        return self.__exit__(kind, error, trace)

    def _begin(self) -> Connection:
        self._open.append(self._connect())
        return self._open[-1]

    def _acquire(self) -> None:
        if self._writable and not self._turn.acquire(timeout=_PATIENCE_SECONDS):
            raise _another_batch()

    def _release(self) -> None:
        if self._writable:
            self._turn.release()


def _another_batch() -> StoreLocked:
    return StoreLocked(
        "another batch of this process is open",
        recovery="End it first; one batch is open at a time.",
    )
