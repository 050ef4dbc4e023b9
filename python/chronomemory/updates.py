"""Writes a change only if the records it was computed from are unchanged, and retries a lost race in turn.

A ``Look`` notes where the log ended and which ids were read, and the change is written only if none of them
has changed since. If one has, the writer lost a race: it takes the writer lock, and reads, computes and
writes again while it holds the lock, so that it cannot lose a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from chronomemory.errors import InvalidArgument, WriteConflict
from chronomemory.event import WalEvent
from chronomemory.record import ChronoRecord
from chronomemory.types import HasEngine

__all__ = ["Look", "retry_in_turn", "run", "update_by"]

T = TypeVar("T")


class Look:
    """What a change is made from: the records that were read, and where the log ended before."""

    def __init__(self, store: HasEngine) -> None:
        # One engine for all of it: a store that is closed meanwhile opens another one.
        self._engine = store.engine
        self._since = self._engine.bookmark()
        self._read: set[str] = set()

    def own_id(self, name: str) -> str:
        """Return an id that no other scope can take; without a scope it is the name."""
        digits = self._engine.scope_digits()
        return f"{name}@{digits}" if digits else name

    def get(self, record_id: str) -> ChronoRecord | None:
        """Return a record, a tombstoned one too, or None; it must stay so until the change is written."""
        found = self._engine.get(record_id)
        if found is None:
            # One that has expired is out of sight, and there: whoever changes or replaces it means it.
            found = self._engine.with_expired().get(record_id)
        self._read.add(record_id)
        return found

    def write(self, *changes: tuple[str, Any], face: str | None = None) -> WalEvent:
        """Write changes as one atomic batch, each a verb and what it takes; return the last event."""
        written = self._engine.write_unless_changed(changes, face, self._since, list(self._read))
        if written is None:
            raise WriteConflict(
                "a record that this change was computed from was changed meanwhile; nothing was written",
                recovery="Read the records again and write the change anew.",
            )
        return written[0]

    def upsert(self, records: Sequence[ChronoRecord | Mapping[str, Any]]) -> WalEvent:
        """Write records as one atomic batch; return the last event."""
        return self.write(*(("upsert", record) for record in records))


def retry_in_turn(store: HasEngine, attempt: Callable[[], T]) -> T:
    """Make an attempt; if it loses a race, make it again while no other thread or process writes.

    The second attempt still raises ``WriteConflict`` if it writes itself what it has read, or if it takes
    longer than the second for which the lock is held and another writer comes first after that.
    """
    with suppress(WriteConflict):
        return attempt()
    return store.engine.in_turn(attempt)


def run(store: HasEngine, work: Callable[[Look], T]) -> T:
    """Let ``work`` read and write through a look; after a lost race again, through a fresh one."""
    return retry_in_turn(store, lambda: work(Look(store)))


def update_by(
    store: HasEngine,
    record_id: str,
    change: Callable[[ChronoRecord | None], ChronoRecord | Mapping[str, Any] | None],
) -> WalEvent | None:
    """Write what ``change`` makes of a record, a tombstoned one too, or of None; if that is None, nothing.

    If another process writes the record meanwhile, ``change`` is called once more, with what that one wrote,
    while no one else may write: no update is lost. It should only compute, in less than a second.

    >>> import tempfile
    >>> from chronomemory import ChronoStore
    >>> def count(record):
    ...     record = record or ChronoRecord(id="VISITS")
    ...     record.data["visits"] = record.data.get("visits", 0) + 1
    ...     return record
    >>> with ChronoStore(tempfile.mkdtemp()) as store:
    ...     events = [store.update("VISITS", count) for _ in range(3)]
    ...     store.get("VISITS").data
    {'visits': 3}
    """

    def work(look: Look) -> WalEvent | None:
        changed = change(look.get(record_id))
        if changed is None:
            return None
        made = changed.id if isinstance(changed, ChronoRecord) else changed.get("id")
        if made and made != record_id:
            # Of another record nothing was read: whatever it says would be lost.
            raise InvalidArgument(
                f'change: it made a record with the id {made!r} of "{record_id}"',
                field="change",
                recovery="Return the record that was given, or None to write nothing.",
            )
        return look.upsert([changed])

    return run(store, work)
