"""A conversation of the OpenAI Agents SDK, kept as episodes: the four methods of its ``Session`` protocol.

Nothing of that SDK is imported. An item is a JSON object; it is kept whole in the metadata of its episode,
and what it says in words is the content, which is searched and consolidated like that of any other.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable
from typing import Any

from chronomemory.episodes.ids import taken
from chronomemory.episodes.memory import Episodes
from chronomemory.episodes.models import Episode
from chronomemory.episodes.storage.episodes import later
from chronomemory.episodes.stores import ChronoMemoryStore
from chronomemory.errors import InvalidRecord
from chronomemory.face.arguments import LAST_SEQ, count
from chronomemory.face.moments import Now, utc_now

#: Where an item stands in the metadata.
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

    #: The SDK's own settings, of which none are kept here.
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
        return await asyncio.to_thread(self._items, most)

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
        if most == 0:
            return []
        wanted = most
        while True:
            found = self._recent(wanted)
            turns = [one for one in found if isinstance(one.metadata.get(_ITEM), dict)]
            if len(turns) >= most or len(found) < wanted:
                return turns[:most]
            wanted = min(2 * wanted, LAST_SEQ)

    def _recent(self, most: int) -> list[Episode]:
        names = self._names
        return self._episodes.recent(names["user"], names["session"], names["agent"], limit=most)

    def _items(self, most: int) -> list[dict[str, Any]]:
        return [one.metadata[_ITEM] for one in reversed(self._latest(most))]

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
        # Somebody else may take the latest first: then it is the turn of the one before.
        while latest := self._latest(1):
            (turn,) = latest
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
        said = item.get(name)
        if isinstance(said, str):
            yield said
        elif isinstance(said, list):
            yield from (
                part["text"] for part in said if isinstance(part, dict) and isinstance(part.get("text"), str)
            )
