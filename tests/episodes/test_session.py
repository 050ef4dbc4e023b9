"""The turns of an agent's session are kept as its SDK expects, and as episodes."""

from __future__ import annotations

import asyncio
from datetime import datetime, timezone
from typing import Any

import pytest
from chronomemory import ChronoStore
from chronomemory.episodes import ChronoMemoryStore, ChronoSession, MemoryScopeError
from chronomemory.errors import InvalidRecord
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


def test_an_item_that_somebody_else_takes_first_is_not_the_last(
    store: ChronoStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = ChronoMemoryStore(store)
    session = ChronoSession("s1", memory, user="ann", agent="helper")
    asyncio.run(session.add_items([{"n": number} for number in range(4)]))
    forget, rivals = memory.episodes.forget, iter([True, True, False])

    def late(episode_id: str, **names: str) -> bool:
        if next(rivals):
            forget(episode_id, **names)
        return forget(episode_id, **names)

    with monkeypatch.context() as patched:
        patched.setattr(memory.episodes, "forget", late)
        assert asyncio.run(session.pop_item()) == {"n": 1}
    assert asyncio.run(session.get_items()) == [{"n": 0}]


@pytest.mark.parametrize("turns", [0, 1])
def test_a_clock_without_a_time_zone_is_refused(store: ChronoStore, turns: int) -> None:
    memory = ChronoMemoryStore(store)
    put(memory.episodes, *(episode(f"e{number}") for number in range(turns)))
    session = ChronoSession(
        "s1", memory, user="ann", agent="helper", clock=lambda: START.replace(tzinfo=None)
    )
    with pytest.raises(InvalidRecord, match="time zone"):
        asyncio.run(session.add_items([USER]))


def test_nothing_comes_after_the_end_of_the_calendar(store: ChronoStore) -> None:
    end = datetime.max.replace(tzinfo=timezone.utc)
    session = ChronoSession("s1", ChronoMemoryStore(store), user="ann", agent="helper", clock=lambda: end)
    with pytest.raises(InvalidRecord, match="no turn can come after"):
        asyncio.run(session.add_items([USER, CALL]))
    asyncio.run(session.add_items([USER]))
    with pytest.raises(InvalidRecord, match="no turn can come after"):
        asyncio.run(session.add_items([CALL]))
    assert asyncio.run(session.get_items()) == [USER]
