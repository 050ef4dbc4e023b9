"""Adds, supersedes and retracts memories, each in one atomic batch with its operation.

A new memory is a block, kept as it was said: similar texts are linked, never merged. A plain record stays
one, with its edges and rollbacks.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from chronomemory.blocks import Blocks
from chronomemory.blocks.ids import block_key, plain_id
from chronomemory.blocks.life.learning import (
    CREATED,
    DUPLICATE,
    REACTIVATED,
    drafted,
    forget,
    put_into_inbox,
    supersede,
)
from chronomemory.blocks.memory import Memory
from chronomemory.blocks.storage.blocks import tags_of
from chronomemory.blocks.types import BlockStatus, LearnResult
from chronomemory.deps import DependencyEdge, edge_in
from chronomemory.embedders import LexicalEmbedder
from chronomemory.errors import ChronoError, InvalidArgument, InvalidRecord, UnknownRecord
from chronomemory.face.arguments import contents, within
from chronomemory.face.batch import Connection
from chronomemory.face.handle import open_handle
from chronomemory.mcp.idempotency import Operation, RepeatedError
from chronomemory.mcp.served_store import ServedStore, is_block
from chronomemory.record import INFRASTRUCTURE_KINDS, ChronoRecord
from chronomemory.rollback import WITHDRAWN, RollbackReport, invalidate
from chronomemory.scope import Scope
from chronomemory.updates import Look, run

ADDED, KNOWN, RETURNED, SUPERSEDED, RETRACTED = (
    "added",
    "known already",
    "brought back",
    "superseded",
    "retracted",
)

#: A plain record with such a status is no longer believed.
_GONE = WITHDRAWN | {SUPERSEDED}

#: Why a block is no longer found; one that comes back has no such reason any more.
_BECAUSE = ("superseded_because", "retracted_because")

_OUTCOMES = {CREATED: ADDED, REACTIVATED: RETURNED, DUPLICATE: KNOWN}

Result = dict[str, Any]


class Keeper(Memory):
    """A memory that makes a new block active just as it was said, together with a change, in one batch."""

    def take_in(
        self, record: ChronoRecord, change: Callable[[Connection], LearnResult], fetched: Iterable[str]
    ) -> None:
        """Run a change that puts a block into the inbox, link the block and make it active; merge nothing."""
        self._taken_at_once(record, lambda conn, _: change(conn), merge="never", fetched=fetched)

    def change(self, work: Callable[[Connection], None], fetched: Iterable[str]) -> None:
        """Run a batch that depends on some records."""

        def fetch_and_work(conn: Connection) -> None:
            self._look_at(conn, fetched)
            work(conn)

        self._write(fetch_and_work)


def open_keeper(served: ServedStore) -> Keeper:
    """Open the memory of a scope for writes."""
    embedder = LexicalEmbedder() if served.embedder is None else served.embedder
    return Keeper(open_handle(Blocks, served.store, scope=served.scope), embedder=embedder)


def _once(served: ServedStore, operation: Operation, work: Callable[[], Result]) -> Result:
    served.check_writable()
    try:
        try:
            return {**work(), "repeated": False}
        except ChronoError:
            # The reason may be that this very operation was done before.
            operation.check(served.door)
            raise
    except RepeatedError as done:
        return {**done.result, "repeated": True}


def add(
    served: ServedStore,
    content: str,
    *,
    tags: Sequence[str],
    category: str,
    source: str,
    confidence: float,
    operation_id: str,
) -> Result:
    """Add a memory; the same words again are the same memory, which then has the tags of both."""
    asked = {"content": content, "tags": list(tags), "category": category, "source": source}
    operation = Operation.of(operation_id, served.scope, "add_memory", {**asked, "confidence": confidence})

    def work() -> Result:
        record = _draft(content, tags, category, source, confidence, served.scope)
        result: Result = {}

        def change(conn: Connection) -> LearnResult:
            operation.begin_blocks(conn)
            learned = put_into_inbox(conn, record)
            if learned.status == REACTIVATED:
                _drop_reasons(conn, block_key(learned.block_id))
            result.update(outcome=_OUTCOMES[learned.status], memory_id=block_key(learned.block_id))
            operation.keep_beside_blocks(conn, result)
            return learned

        served.keeper.take_in(record, change, operation.keys)
        return result

    return _once(served, operation, work)


def _draft(
    content: str, tags: Sequence[str], category: str, source: str, confidence: float, scope: Scope
) -> ChronoRecord:
    record = drafted(content, tags, category, source, hours=0.0, session_id=None, scope=scope)
    with contents:
        record.confidence = within("confidence", confidence)
    return record


def _drop_reasons(conn: Connection, record_id: str) -> None:
    known = conn.record(record_id)
    stale = [name for name in _BECAUSE if known is not None and name in known.data]
    if stale:
        conn.patch(record_id, {"data": dict.fromkeys(stale)})


def supersede_with(
    served: ServedStore, memory_id: str, content: str, *, reason: str, source: str, operation_id: str
) -> Result:
    """Put a new memory in the place of another, which is no longer found but stays in the log."""
    asked = {"memory_id": memory_id, "content": content, "reason": reason, "source": source}
    operation = Operation.of(operation_id, served.scope, "supersede_memory", asked)

    def work() -> Result:
        old = _changeable(served, memory_id)
        if is_block(old):
            return _supersede_block(served, old, content, reason, source, operation)
        return _supersede_record(served, old, content, reason, source, operation)

    return _once(served, operation, work)


def _supersede_block(
    served: ServedStore, old: ChronoRecord, content: str, reason: str, source: str, operation: Operation
) -> Result:
    tags, category = tags_of(old), old.data["category"]
    new = _draft(content, tags, category, source, old.confidence, served.scope)
    result: Result = {"outcome": SUPERSEDED, "superseded_id": old.id}

    def change(conn: Connection) -> LearnResult:
        operation.begin_blocks(conn)
        learned = supersede(conn, new, plain_id(old.id))
        result["memory_id"] = block_key(learned.block_id)
        _drop_reasons(conn, result["memory_id"])
        if reason:
            conn.patch(old.id, {"data": {"superseded_because": reason}})
        operation.keep_beside_blocks(conn, result)
        return learned

    served.keeper.take_in(new, change, [*operation.keys, old.id])
    return result


def _supersede_record(
    served: ServedStore, old: ChronoRecord, content: str, reason: str, source: str, operation: Operation
) -> Result:
    def work(look: Look) -> Result:
        known = look.get(old.id)
        if known is None or known.status in _GONE:
            raise _gone(old.id)
        new = ChronoRecord(
            id=look.own_id(f"MEMORY-{uuid.uuid4().hex}"),
            kind=known.kind,
            label=content,
            confidence=known.confidence,
            data={"source": source, "tags": _plain_tags(known)},
        )
        known.status = "superseded"
        if reason:
            known.data["superseded_because"] = reason
        result = {"outcome": SUPERSEDED, "memory_id": new.id, "superseded_id": old.id}
        noted = operation.beside_records(look, result)
        edge = edge_in(look, DependencyEdge(new.id, old.id, "supersedes"))
        look.upsert([*noted, known, new, *edge])
        return result

    with _plain(old):
        return run(served.door, work)


def _plain_tags(record: ChronoRecord) -> list[str]:
    tags = record.data.get("tags", [])
    return [str(tag) for tag in tags] if isinstance(tags, list | dict) else []


def retract(served: ServedStore, memory_id: str, *, reason: str, operation_id: str) -> Result:
    """Withdraw a memory that was wrong; what rests on it is doubted, and the log keeps all of it."""
    operation = Operation.of(
        operation_id, served.scope, "retract_memory", {"memory_id": memory_id, "reason": reason}
    )

    def work() -> Result:
        old = _changeable(served, memory_id)
        if is_block(old):
            return _retract_block(served, old, reason, operation)
        return _retract_record(served, old, reason, operation)

    return _once(served, operation, work)


def _retract_block(served: ServedStore, old: ChronoRecord, reason: str, operation: Operation) -> Result:
    result: Result = {"outcome": RETRACTED, "memory_id": old.id, "doubted": []}

    def work(conn: Connection) -> None:
        operation.begin_blocks(conn)
        known = conn.record(old.id)
        if known is None or known.status == BlockStatus.ARCHIVED:
            raise _gone(old.id)
        forget(conn, plain_id(old.id))
        conn.patch(old.id, {"data": {"retracted_because": reason}})
        operation.keep_beside_blocks(conn, result)

    served.keeper.change(work, [*operation.keys, old.id])
    return result


def _retract_record(served: ServedStore, old: ChronoRecord, reason: str, operation: Operation) -> Result:
    result: Result = {"outcome": RETRACTED, "memory_id": old.id}

    def check(known: ChronoRecord | None) -> None:
        if known is None or known.status in _GONE:
            raise _gone(old.id)

    def note(look: Look, report: RollbackReport) -> list[ChronoRecord]:
        result["doubted"] = [change.record_id for change in report.cascaded]
        return operation.beside_records(look, result)

    with _plain(old):
        invalidate(old.id, reason, served.door, check=check, note=note)
    return result


def _changeable(served: ServedStore, memory_id: str) -> ChronoRecord:
    """Return a memory that is no bookkeeping record, so that tools may change it."""
    found = served.find(memory_id)
    if found.kind in INFRASTRUCTURE_KINDS:
        raise _not_here(found)
    return found


@contextmanager
def _plain(record: ChronoRecord) -> Iterator[None]:
    """Translate the engine's refusal to change a record of a face."""
    try:
        yield
    except InvalidRecord as error:
        if error.field != "id":
            raise
        raise _not_here(record) from None


def _not_here(record: ChronoRecord) -> InvalidArgument:
    return InvalidArgument(
        f'memory_id: "{record.id}" is of kind {record.kind}, which is not changed here',
        field="memory_id",
        recovery="Change it through the face that made it; search_memories shows what is a memory.",
    )


def _gone(memory_id: str) -> UnknownRecord:
    return UnknownRecord(
        f'the memory "{memory_id}" was superseded or retracted before; nothing was written',
        id=memory_id,
        recovery="Look with search_memories for what took its place, or see its history.",
    )
