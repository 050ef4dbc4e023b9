"""Stores of episodes and facts for tasks: the verbs of ``Episodes`` and ``Facts``, awaited.

Each runs in a thread of the loop, so that other tasks go on. Only a ``put`` that needs to wait for nobody, no
other writer and no disk, is done on the spot: while puts follow each other, and for two milliseconds at most.
"""

from __future__ import annotations

import os
from typing import TypeVar

from chronomemory.episodes.facts import Facts
from chronomemory.episodes.memory import Episodes
from chronomemory.errors import InvalidArgument
from chronomemory.face.arguments import string
from chronomemory.face.awaited import Awaited, awaited_at_once, awaited_verb
from chronomemory.face.moments import Now, utc_now
from chronomemory.store import ChronoStore

OwnMemory = TypeVar("OwnMemory", bound="ChronoMemoryStore")
OwnFacts = TypeVar("OwnFacts", bound="ChronoFactStore")

_SCHEME = "chrono"


class ChronoMemoryStore(Awaited[Episodes]):
    """A ``MemoryStore`` on a project folder, or on a store that is open already.

    >>> import asyncio, tempfile
    >>> from datetime import datetime, timezone
    >>> from chronomemory.episodes import Episode
    >>> async def live() -> list[str]:
    ...     async with ChronoMemoryStore(tempfile.mkdtemp()) as memory:
    ...         turn = Episode(id="t1", content="I moved to Oslo", timestamp=datetime.now(timezone.utc),
    ...                        source_node="chat", user="ann", session="s1", agent="helper")
    ...         await memory.put(turn, user="ann", session="s1", agent="helper")
    ...         return [episode.content for episode in await memory.recent("ann", limit=5)]
    >>> asyncio.run(live())
    ['I moved to Oslo']
    """

    def __init__(self, path: str | os.PathLike[str] | ChronoStore, *, clock: Now = utc_now) -> None:
        super().__init__(Episodes(path, clock=clock))

    @property
    def episodes(self) -> Episodes:
        """The plain verbs."""
        return self._plain

    @property
    def store(self) -> ChronoStore:
        """The project behind it: its log, its search, its evidence."""
        return self._plain.store

    bootstrap = awaited_verb(Episodes.bootstrap)
    health = awaited_verb(Episodes.health)
    migrate = awaited_verb(Episodes.migrate)
    put = awaited_at_once(Episodes.put, Episodes.put_at_once)
    put_many = awaited_verb(Episodes.put_many)
    recent = awaited_verb(Episodes.recent)
    forget = awaited_verb(Episodes.forget)
    consolidate = awaited_verb(Episodes.consolidate)
    close = awaited_verb(Episodes.close)

    async def __aenter__(self: OwnMemory) -> OwnMemory:
        await self.bootstrap()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class ChronoFactStore(Awaited[Facts]):
    """A ``FactStore`` on a project folder, or on a store that is open already."""

    def __init__(self, path: str | os.PathLike[str] | ChronoStore) -> None:
        super().__init__(Facts(path))

    @property
    def facts(self) -> Facts:
        """The plain verbs."""
        return self._plain

    @property
    def store(self) -> ChronoStore:
        """The project behind it: its log, its search, its evidence."""
        return self._plain.store

    bootstrap = awaited_verb(Facts.bootstrap)
    health = awaited_verb(Facts.health)
    migrate = awaited_verb(Facts.migrate)
    pin = awaited_verb(Facts.pin)
    query = awaited_verb(Facts.query)
    get = awaited_verb(Facts.get)
    unpin = awaited_verb(Facts.unpin)
    apply_delta = awaited_verb(Facts.apply_delta)
    close = awaited_verb(Facts.close)

    async def __aenter__(self: OwnFacts) -> OwnFacts:
        await self.bootstrap()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def open_memory_store(url: str) -> ChronoMemoryStore:
    """Return the store that a wiring names: ``chrono:./.memory`` is the project folder ``./.memory``."""
    scheme, colon, place = string("url", url).partition(":")
    if scheme != _SCHEME or not colon or not place:
        raise InvalidArgument(f"url must be {_SCHEME}:<folder>, got {url!r}", field="url")
    return ChronoMemoryStore(place.removeprefix("//"))
