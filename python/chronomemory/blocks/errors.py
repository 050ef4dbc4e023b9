"""What can go wrong with blocks, beside what can go wrong with any store."""

from __future__ import annotations

from chronomemory.errors import ChronoError, InvalidArgument, UnknownRecord, WriteConflict


class IntegrityError(ChronoError):
    """Something is there already, or what it speaks of is not; nothing was written."""

    usual_recovery = (
        "Look up what is there (list() lists the blocks), then name what exists or add what does not."
    )


class UnknownBlock(IntegrityError, UnknownRecord):
    """There is no such block, or this memory does not see it; nothing was written."""

    usual_recovery = "Check the id: list() lists the blocks."


class BatchConflict(IntegrityError, WriteConflict):
    """Another writer changed what a batch has read; nothing was written, and the batch can be run again."""

    usual_recovery = "Run the batch again: it will see what the other one wrote."


class FrameError(ChronoError, LookupError):
    """There is no frame of this name, or what is stored under it is no frame."""

    usual_recovery = "Name a frame that list_frames() shows, or write it with define_frame()."


class ConfigError(InvalidArgument):
    """A configuration that says something that it cannot say, or a file that holds none."""

    usual_recovery = "Correct what the message names; the guide to blocks lists all settings."
