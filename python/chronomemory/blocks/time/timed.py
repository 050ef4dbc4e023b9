"""Blocks with a clock: sessions, in which hours pass, and an hour for every change."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from chronomemory.blocks.engine import Blocks
from chronomemory.blocks.storage.sessions import end_session, has_session, start_session
from chronomemory.blocks.time.clock import Clock
from chronomemory.face.arguments import contents, public_names, string
from chronomemory.face.batch import Connection
from chronomemory.face.moments import Seconds

__all__ = ["Timed"]

T = TypeVar("T")
Own = TypeVar("Own", bound="Timed")


@public_names
class Timed:
    """Blocks with a clock."""

    def __init__(self, blocks: Blocks, seconds: Seconds = time.monotonic) -> None:
        self.blocks = blocks
        self._clock = Clock(seconds)
        self._session: str | None = None
        #: How many have entered the session, and who may come or go.
        self._inside = 0
        self._door = threading.RLock()
        #: The tick of a batch is confirmed before the next one begins. Nothing slow is done meanwhile.
        self._turn = threading.RLock()

    def close(self) -> None:
        """End an open session and let go."""
        if self._session is not None:
            self.end_session()
        self.blocks.close()

    @property
    def session_id(self) -> str | None:
        """The session that is open here, or None."""
        return self._session

    def begin_session(self, task_type: str = "general") -> str:
        """Open a session, in which time passes, and return its id; one that is open here goes on."""
        with contents:
            string("task_type", task_type)
        with self._door:
            if self._session is not None:
                if has_session(self.blocks.look(), self._session):
                    return self._session
                # It was erased, by another process.
                self.end_session()
            session_id = uuid.uuid4().hex

            def work(conn: Connection) -> None:
                hours = self._clock.now(conn)
                start_session(conn, session_id=session_id, task_type=task_type, start_active_hours=hours)

            self._run(work)
            self._clock.start()
            self._session = session_id
            return session_id

    def end_session(self) -> float:
        """End the session, add its hours to the clock and return them; without a session none passed."""
        with self._door:
            session_id = self._session
            if session_id is None:
                return 0.0
            passed = self._clock.session_hours()

            def work(conn: Connection) -> None:
                self._clock.tick(conn, to_the_last=True)
                if has_session(conn, session_id):
                    end_session(conn, session_id)

            self._write(work)
            self._clock.stop()
            self._session = None
            return passed

    @contextmanager
    def session(self: Own, task_type: str = "general") -> Iterator[Own]:
        """Be in a session for the length of a block; those who are in it at a time share one."""
        self.enter_session(task_type)
        try:
            yield self
        finally:
            self.leave_session()

    def enter_session(self, task_type: str = "general") -> str:
        """Join the session that is open, or open one, and return its id."""
        with self._door:
            session_id = self.begin_session(task_type)
            self._inside += 1
            return session_id

    def leave_session(self) -> None:
        """Leave a session that was entered; the last one ends it. Without an entry nothing happens."""
        with self._door:
            if not self._inside:
                return
            self._inside -= 1
            if not self._inside:
                self.end_session()

    def active_hours(self) -> float:
        """Return how late it is."""
        return self._clock.now(self.blocks.look())

    def _hour(self) -> float:
        """Write the present hour down, before changes that depend on it, and return it."""
        return self._write(self._clock.tick)

    def _write(self, work: Callable[[Connection], T]) -> T:
        with self._turn:
            self._clock.begin()
            done = self._run(work)
            self._clock.ticked()
            return done

    def _run(self, work: Callable[[Connection], T]) -> T:
        return self.blocks.run(work)
