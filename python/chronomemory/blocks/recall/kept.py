"""Rendered frames that can be given out again, since nothing that is seen changed meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Hashable

from chronomemory._core import Edition
from chronomemory.blocks.types import FrameResult
from chronomemory.face.moments import Seconds

__all__ = ["KeptFrames"]

#: So many are kept; then it begins anew.
_MOST_FRAMES = 256


class KeptFrames:
    """Frames by what was asked, as of what was seen: any change of it, by anyone, makes them worthless.

    What is not seen here may change as it likes. What showing a frame writes down is the exception: if
    nothing else came in between, ``follow`` says so.
    """

    def __init__(self, seconds: Seconds) -> None:
        self._seconds = seconds
        self._seen: Edition | None = None
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

    def get(self, asked: Hashable, seen: Edition) -> FrameResult | None:
        """Return a frame that is still right for what is seen, and not too old."""
        with self._look:
            until, frame = self._frames.get(asked, (0.0, None))
            return frame if seen == self._seen and self._seconds() < until else None

    def follow(self, before: Edition, after: Edition) -> None:
        """Take note that nothing changed between the two but that a frame was shown."""
        with self._look:
            if self._seen != before or len(self._frames) >= _MOST_FRAMES:
                self._frames.clear()
            self._seen = after

    def keep(self, asked: Hashable, frame: FrameResult, seen: Edition, seconds: float) -> None:
        """Keep a frame as of what was seen, for a time."""
        with self._look:
            if self._seen == seen:
                self._frames[asked] = (self._seconds() + seconds, frame)
