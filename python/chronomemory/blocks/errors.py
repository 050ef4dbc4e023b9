"""What can go wrong with blocks, beside what can go wrong with any store?"""

from __future__ import annotations

from chronomemory.errors import ChronoError, WriteConflict

__all__ = ["BatchConflict", "FrameError", "IntegrityError"]


class IntegrityError(ChronoError):
    """Something is there already, or what it speaks of is not; nothing was written."""


class BatchConflict(IntegrityError, WriteConflict):  # noqa: N818
    """Another writer changed what a batch has read; nothing was written, and the batch can be run again."""


class FrameError(ChronoError, LookupError):
    """There is no frame of this name, or what is stored under it is no frame."""
