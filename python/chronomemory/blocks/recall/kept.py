"""Rendered frames that can be given out again, since nothing was written meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Hashable

from chronomemory.blocks.types import FrameResult
from chronomemory.face.moments import Seconds

__all__ = ["KeptFrames"]

#: So many are kept; then it begins anew.
_MOST_FRAMES = 256


class KeptFrames:
    """Frames by what was asked, as of one head of the log: any event by anyone makes them worthless.

    The head, since a restore sets the seq back, and other events may then take the log to the same one.
    What showing a frame writes down is the exception: if nothing else came in between, ``follow`` says so.
    """

    def __init__(self, seconds: Seconds) -> None:
        self._seconds = seconds
        self._head: str | None = None
        self._frames: dict[Hashable, tuple[float, FrameResult]] = {}
        self._look = threading.Lock()

    @staticmethod
    def name_of(counter: object) -> Hashable:
        """Return what stands for a counter in what was asked; for one without a hash, something new."""
        try:
            hash(counter)
        except TypeError:
            return object()
        return counter

    def get(self, asked: Hashable, head: str) -> FrameResult | None:
        """Return a frame that is still right at this head, and not too old."""
        with self._look:
            until, frame = self._frames.get(asked, (0.0, None))
            return frame if head == self._head and self._seconds() < until else None

    def follow(self, before: str, after: str) -> None:
        """Take note that nothing was written between two heads but that a frame was shown."""
        with self._look:
            if self._head != before or len(self._frames) >= _MOST_FRAMES:
                self._frames.clear()
            self._head = after

    def keep(self, asked: Hashable, frame: FrameResult, head: str, seconds: float) -> None:
        """Keep a frame as of a head, for a time."""
        with self._look:
            if self._head == head:
                self._frames[asked] = (self._seconds() + seconds, frame)
