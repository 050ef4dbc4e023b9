"""What the ground must know of this face, and how a store of it is opened."""

from __future__ import annotations

import os

from chronomemory.episodes.ids import FACE
from chronomemory.face.declaration import Face
from chronomemory.face.handle import Handle, open_handle
from chronomemory.store import ChronoStore

__all__ = ["EPISODES", "EpisodesHandle", "open_episodes"]

EPISODES = Face(name=FACE)


class EpisodesHandle(Handle):
    """Episodes and facts of one project, whosever they are: every call above names a user."""

    face = EPISODES


def open_episodes(place: str | os.PathLike[str] | ChronoStore) -> EpisodesHandle:
    """Stand on a project folder or on a store that is there; nothing is opened before it is asked."""
    return open_handle(EpisodesHandle, place, everyone=True)
