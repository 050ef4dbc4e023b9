"""The clock of active hours.

Memory fades while it is used, not while it lies still: the clock runs during sessions only. What
has passed of a session is written down with the changes that depend on it, once it is a few seconds,
so a crash loses little, and without a session the stored total is the time. A batch uses the hour that
is written down; an act says only by how much the clock goes on, and the engine adds it to the total.
"""

from __future__ import annotations

import threading
import time

from chronomemory.blocks.storage.config import glimpse_total_active_hours, set_total_active_hours
from chronomemory.face.batch import Connection
from chronomemory.face.moments import Seconds

_HOUR_SECONDS = 3600.0
#: So much is worth an event. All writers share the record of the hour: were it written with every change,
#: each change would be in conflict with those of all other processes.
_WORTH_WRITING_HOURS = 0.001


class Clock:
    """The clock of one memory system: runs between ``start`` and ``stop``."""

    def __init__(self, seconds: Seconds = time.monotonic) -> None:
        self._seconds = seconds
        #: When the running session began, and how much of it is in the stored total.
        self._since: float | None = None
        self._told = 0.0
        #: What the last tick would add and lead to, until its batch is written.
        self._pending, self._total = 0.0, 0.0
        #: Held for moments only: other threads read the hour while a batch is under way.
        self._look = threading.Lock()

    def start(self) -> None:
        """Begin to count."""
        self._since, self._told = self._seconds(), 0.0

    def stop(self) -> None:
        """Count no more."""
        self._since, self._told = None, 0.0

    def session_hours(self) -> float:
        """Return how long the session has lasted."""
        return 0.0 if self._since is None else max(0.0, (self._seconds() - self._since) / _HOUR_SECONDS)

    def untold_hours(self) -> float:
        """Return what has passed of the session and is not in the stored total yet."""
        if self._since is None:
            return 0.0
        return max(0.0, (self._seconds() - self._since) / _HOUR_SECONDS - self._told)

    def now(self, conn: Connection) -> float:
        """Return the present hour, also while another thread writes one down."""
        with self._look:
            stored, untold = glimpse_total_active_hours(conn), self.untold_hours()
            if self._pending > 0.0 and stored >= self._total:  # written, and not confirmed yet
                untold = max(0.0, untold - self._pending)
            return stored + untold

    def begin(self) -> None:
        """Forget a tick whose batch was never written."""
        with self._look:
            self._pending = 0.0

    def tick(self, conn: Connection, *, to_the_last: bool = False) -> float:
        """Write the present hour down, as part of a batch, and return it; ``ticked`` confirms it."""
        passed = self.passing(conn, to_the_last=to_the_last)
        if passed == 0.0:
            return glimpse_total_active_hours(conn)
        set_total_active_hours(conn, self._total)
        return self._total

    def passing(self, conn: Connection, *, to_the_last: bool = False) -> float:
        """Return how many hours an act adds to the clock, as part of a batch; ``ticked`` confirms it."""
        with self._look:
            passed = self.untold_hours()
            if passed < _WORTH_WRITING_HOURS and not to_the_last:
                passed = 0.0
            self._pending = passed
            if passed > 0.0:
                self._total = glimpse_total_active_hours(conn) + passed
        return passed

    def ticked(self) -> None:
        """Take note that the batch of the last tick was written."""
        with self._look:
            self._told += self._pending
            self._pending = 0.0
