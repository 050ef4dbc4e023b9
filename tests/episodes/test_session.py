"""Are the turns of an agent's session kept as its SDK expects, and as episodes?"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from chronomemory import ChronoStore
from chronomemory.episodes import ChronoMemoryStore, ChronoSession, MemoryScopeError
from conversing import START, episode, put

USER = {"role": "user", "content": "Where is Oslo?"}
CALL = {"type": "function_call", "call_id": "c1", "name": "find", "arguments": "{}", "status": None}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "in Norway"}
ANSWER: dict[str, Any] = {"role": "assistant", "content": [{"type": "output_text", "text": "In Norway."}]}
ITEMS = [USER, CALL, OUTPUT, ANSWER]


def test_items_come_back_in_their_order(store: ChronoStore) -> None:
    async def live() -> None:
        memory = ChronoMemoryStore(store)
        session = ChronoSession("s1", memory, user="ann", agent="helper", clock=lambda: START)
        assert await session.get_items() == []
        assert await session.pop_item() is None
        await session.add_items([])
        await session.add_items(ITEMS[:3])
        await session.add_items(ITEMS[3:])
        assert await session.get_items() == ITEMS
        assert await session.get_items(2) == ITEMS[2:]
        assert await session.get_items(limit=0) == []
        assert await session.pop_item() == ANSWER
        assert await session.get_items() == ITEMS[:3]
        again = ChronoSession("s1", ChronoMemoryStore(store), user="ann", agent="helper", clock=lambda: START)
        await again.add_items([ANSWER])
        assert await session.get_items() == ITEMS
        await session.clear_session()
        assert await again.get_items() == []

    asyncio.run(live())


def test_turns_are_episodes_that_are_found(store: ChronoStore) -> None:
    memory = ChronoMemoryStore(store)
    put(memory.episodes, *(episode(f"other{number}", minute=10**6 + number) for number in range(5)))
    session = ChronoSession("s1", memory, user="ann", agent="helper")
    asyncio.run(session.add_items(ITEMS))
    assert asyncio.run(session.get_items(3)) == ITEMS[1:]
    assert [one.content for one in memory.episodes.recent("ann", limit=4)][:2] == ["In Norway.", "in Norway"]
    assert len(store.scoped(user="ann").search("Norway")) == 2
    asyncio.run(session.clear_session())
    assert len(memory.episodes.recent("ann", limit=99)) == 5


def test_sessions_are_apart(store: ChronoStore) -> None:
    memory = ChronoMemoryStore(store)
    names = [("s1", "ann", "a"), ("s2", "ann", "a"), ("s1", "bob", "a"), ("s1", "ann", "b")]
    sessions = [ChronoSession(name, memory, user=user, agent=agent) for name, user, agent in names]

    async def live() -> None:
        await asyncio.gather(*(one.add_items([{"n": at}]) for at, one in enumerate(sessions)))
        assert [await one.get_items() for one in sessions] == [[{"n": at}] for at in range(4)]
        await sessions[0].clear_session()
        assert [len(await one.get_items()) for one in sessions] == [0, 1, 1, 1]

    asyncio.run(live())
    with pytest.raises(MemoryScopeError):
        ChronoSession("a/b", memory, user="ann", agent="a")


def test_items_are_added_together_or_not_at_all(store: ChronoStore) -> None:
    session = ChronoSession("s1", ChronoMemoryStore(store), user="ann", agent="helper")
    for bad in (["text"], [{"n": float("nan")}]):
        with pytest.raises(ValueError, match=r"items|data"):
            asyncio.run(session.add_items([USER, *bad]))
    assert asyncio.run(session.get_items()) == []
