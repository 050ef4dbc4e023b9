"""What can go wrong with blocks, beside what can go wrong with any store?"""

from __future__ import annotations

from chronomemory.errors import ChronoError

__all__ = ["FrameError", "IntegrityError"]


class IntegrityError(ChronoError):
    """Something is there already, or what it speaks of is not; nothing was written."""


class FrameError(ChronoError, LookupError):
    """There is no frame of this name, or what is stored under it is no frame."""
