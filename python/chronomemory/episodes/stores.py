"""Awaited stores of episodes and facts, and a session of the OpenAI Agents SDK over them."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Iterable
from typing import Any, TypeVar

from chronomemory.episodes.facts import Facts
from chronomemory.episodes.ids import taken
from chronomemory.episodes.kept import Kept
from chronomemory.episodes.memory import Episodes, later, latest
from chronomemory.episodes.models import Episode
from chronomemory.errors import InvalidArgument, InvalidRecord
from chronomemory.face.arguments import LAST_SEQ, count, string
from chronomemory.face.awaited import Awaited, awaited_at_once, awaited_verb
from chronomemory.face.moments import Now, utc_now
from chronomemory.store import ChronoStore

Plain = TypeVar("Plain", bound=Kept)
Own = TypeVar("Own", bound="AwaitedKept[Any]")

_SCHEME = "chrono"


class AwaitedKept(Awaited[Plain]):
    """What the awaited stores of episodes and of facts share."""

    @property
    def store(self) -> ChronoStore:
        """The project behind it: its log, its search, its evidence."""
        return self._plain.store

    bootstrap = awaited_verb(Kept.bootstrap)
    health = awaited_verb(Kept.health)
    migrate = awaited_verb(Kept.migrate)
    close = awaited_verb(Kept.close)

    async def __aenter__(self: Own) -> Own:
        await self.bootstrap()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class ChronoMemoryStore(AwaitedKept[Episodes]):
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

    put = awaited_at_once(Episodes.put, Episodes.put_at_once)
    put_many = awaited_verb(Episodes.put_many)
    recent = awaited_verb(Episodes.recent)
    forget = awaited_verb(Episodes.forget)
    consolidate = awaited_verb(Episodes.consolidate)


class ChronoFactStore(AwaitedKept[Facts]):
    """A ``FactStore`` on a project folder, or on a store that is open already."""

    def __init__(self, path: str | os.PathLike[str] | ChronoStore) -> None:
        super().__init__(Facts(path))

    @property
    def facts(self) -> Facts:
        """The plain verbs."""
        return self._plain

    pin = awaited_verb(Facts.pin)
    query = awaited_verb(Facts.query)
    get = awaited_verb(Facts.get)
    unpin = awaited_verb(Facts.unpin)
    apply_delta = awaited_verb(Facts.apply_delta)


def open_memory_store(url: str) -> ChronoMemoryStore:
    """Return the store that a wiring names: ``chrono:./.memory`` is the project folder ``./.memory``."""
    scheme, colon, place = string("url", url).partition(":")
    if scheme != _SCHEME or not colon or not place:
        raise InvalidArgument(f"url must be {_SCHEME}:<folder>, got {url!r}", field="url")
    return ChronoMemoryStore(place.removeprefix("//"))


_ITEM = "item"


class ChronoSession:
    """The turns of one session between a user and an agent, for ``Runner.run(agent, …, session=session)``.

    >>> import tempfile
    >>> async def live() -> list[dict]:
    ...     async with ChronoMemoryStore(tempfile.mkdtemp()) as memory:
    ...         session = ChronoSession("s1", memory, user="ann", agent="helper")
    ...         await session.add_items([{"role": "user", "content": "Hello"}])
    ...         return await session.get_items()
    >>> asyncio.run(live())
    [{'content': 'Hello', 'role': 'user'}]
    """

    session_settings: Any = None

    def __init__(
        self, session_id: str, memory: ChronoMemoryStore, *, user: str, agent: str, clock: Now = utc_now
    ) -> None:
        taken("session", user=user, session=session_id, agent=agent)
        self.session_id = session_id
        self._names = {"user": user, "session": session_id, "agent": agent}
        self._episodes: Episodes = memory.episodes
        self._clock = clock
        # Of this object: two tasks that add at once must not put their turns into each other.
        self._turn = asyncio.Lock()

    async def get_items(self, limit: int | None = None) -> list[dict[str, Any]]:
        """Return the latest items, or all, in the order in which they were added."""
        most = LAST_SEQ if limit is None else count("limit", limit)
        turns = await asyncio.to_thread(self._latest, most)
        return [turn.metadata[_ITEM] for turn in reversed(turns)]

    async def add_items(self, items: list[dict[str, Any]]) -> None:
        """Add items behind those that are there."""
        async with self._turn:
            await asyncio.to_thread(self._add, list(items))

    async def pop_item(self) -> dict[str, Any] | None:
        """Take the latest item away and return it, or None if there is none; the log keeps it."""
        async with self._turn:
            return await asyncio.to_thread(self._pop)

    async def clear_session(self) -> None:
        """Take all items away; the log keeps them."""
        async with self._turn:
            await asyncio.to_thread(self._clear)

    def _latest(self, most: int) -> list[Episode]:
        """Return the latest turns, newest first; other episodes of the session are none of its items."""
        names = self._names

        def read(limit: int) -> list[Episode]:
            return self._episodes.recent(names["user"], names["session"], names["agent"], limit=limit)

        return latest(read, most, lambda one: isinstance(one.metadata.get(_ITEM), dict)) if most else []

    def _add(self, items: list[dict[str, Any]]) -> None:
        moment = self._episodes.next_moment(self._clock(), **self._names)
        turns = []
        for number, item in enumerate(items):
            if not isinstance(item, dict):
                raise InvalidRecord(f"items[{number}]: an object expected", field="items")
            turns.append(
                Episode(
                    id=secrets.token_hex(16),
                    content="\n".join(_words(item)),
                    timestamp=later(moment, number),
                    source_node=str(item.get("role") or item.get("type") or "item"),
                    metadata={_ITEM: item},
                    **self._names,
                )
            )
        self._episodes.put_many(turns, **self._names)

    def _pop(self) -> dict[str, Any] | None:
        tried = None
        # Another writer may take the latest first: then the one before is taken.
        while turns := self._latest(1):
            (turn,) = turns
            if self._episodes.forget(turn.id, **self._names):
                item: dict[str, Any] = turn.metadata[_ITEM]
                return item
            if turn.id == tried:
                break
            tried = turn.id
        return None

    def _clear(self) -> None:
        for one in self._latest(LAST_SEQ):
            self._episodes.forget(one.id, **self._names)


def _words(item: dict[str, Any]) -> Iterable[str]:
    """Yield what an item says in words: its content, or the text of each part of it, or its output."""
    for name in ("content", "output"):
        value = item.get(name)
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            yield from (
                part["text"] for part in value if isinstance(part, dict) and isinstance(part.get("text"), str)
            )
