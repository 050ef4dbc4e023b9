"""Changes what others may change at the same moment, again if they did.

Whoever changes what it has read must not write over what another process wrote in between. So a ``Look``
notes where the log ended and which ids were read, and what is made from them is written only if none of
them has changed since; if one has, everything is read and made again.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from chronomemory._core import Engine
from chronomemory.errors import InvalidArgument, WriteConflict
from chronomemory.event import WalEvent
from chronomemory.record import ChronoRecord

__all__ = ["CONFLICT_SECONDS", "Look", "again_if_changed", "run", "update_by"]

#: For how long something is tried again before a conflict with other writers is told, and how much longer
#: it waits, by chance, before each time, up to a limit: two that conflict must not go on in step.
CONFLICT_SECONDS = 5.0
_STEP_ASIDE_SECONDS, _LONGEST_STEP_SECONDS = 0.002, 0.05

T = TypeVar("T")


class HasEngine(Protocol):
    """What a look needs of a store."""

    @property
    def engine(self) -> Engine:
        """The open engine."""


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
                "another writer changed what this change was made from; nothing was written",
                recovery="Do it again: it will see what the other one wrote.",
            )
        return written[0]

    def upsert(self, records: Sequence[ChronoRecord | Mapping[str, Any]]) -> WalEvent:
        """Write records as one atomic batch; return the last event."""
        return self.write(*(("upsert", record) for record in records))


def again_if_changed(attempt: Callable[[], T], *, patience: float = CONFLICT_SECONDS) -> T:
    """Make an attempt, again if another writer came in between, and return what it returned."""
    deadline = time.monotonic() + patience
    step = 0.0
    while True:
        try:
            return attempt()
        except WriteConflict:
            if time.monotonic() >= deadline:
                raise
        step = min(step + _STEP_ASIDE_SECONDS, _LONGEST_STEP_SECONDS)
        time.sleep(random.random() * step)


def run(store: HasEngine, work: Callable[[Look], T]) -> T:
    """Let something read and write through a look, again with a fresh one after a conflict."""
    return again_if_changed(lambda: work(Look(store)))


def update_by(
    store: HasEngine,
    record_id: str,
    change: Callable[[ChronoRecord | None], ChronoRecord | Mapping[str, Any] | None],
) -> WalEvent | None:
    """Write what ``change`` makes of a record, a tombstoned one too, or of None; if that is None, nothing.

    If another process writes the record meanwhile, ``change`` is called again with what that one wrote: no
    update is lost. It should do nothing but look at its argument.

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
