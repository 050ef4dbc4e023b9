"""In which conversation something was said, after what, when and by whom."""

from __future__ import annotations

from datetime import datetime

from chronomemory.blocks.ids import block_key
from chronomemory.face.arguments import string
from chronomemory.face.moments import instant

__all__ = ["CIRCUMSTANCES", "circumstances"]

#: The fields of a block that hold them; the engine reads them, and so does a search of the whole store.
CIRCUMSTANCES = ("conversation", "previous", "speaker", "time")


def circumstances(
    *,
    conversation: str | None = None,
    previous: str | None = None,
    time: datetime | None = None,
    speaker: str | None = None,
) -> dict[str, str]:
    """Return what is known of these as fields of a block.

    >>> circumstances(previous="3f2a", speaker="Anna")
    {'previous': 'block:3f2a', 'speaker': 'Anna'}
    """
    said: dict[str, str] = {}
    if conversation is not None:
        said["conversation"] = string("conversation", conversation, empty=False)
    if previous is not None:
        said["previous"] = block_key(string("previous", previous, empty=False))
    if speaker is not None:
        said["speaker"] = string("speaker", speaker, empty=False)
    if time is not None:
        said["time"] = instant("time", time).isoformat()
    return said
