"""Those in a session at the same time share it, and one that is cancelled leaves none open."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from chronomemory import ChronoStore
from chronomemory.blocks import Memory, MemorySystem, sync
from chronomemory.blocks.storage import sessions


def open_sessions(memory: Memory) -> int:
    return memory.blocks.store.engine.count(kind="session", status="active")


def test_the_last_one_ends_it(memory: Memory) -> None:
    first, second = memory.session("one"), memory.session("other")
    assert first.__enter__() is memory
    session_id = memory.session_id
    assert (second.__enter__(), memory.session_id) == (memory, session_id)
    first.__exit__(None, None, None)
    assert open_sessions(memory) == 1
    with memory.session() as third:
        assert third.session_id == session_id
    second.__exit__(None, None, None)
    assert (open_sessions(memory), memory.session_id) == (0, None)
    with memory.session() as fourth:
        assert fourth.session_id != session_id


def test_one_that_was_ended_meanwhile_is_opened_anew(memory: Memory) -> None:
    with memory.session():
        one = memory.session_id
        memory.end_session()
        with memory.session():
            other = memory.session_id
            assert other != one
        with memory.blocks.connect() as conn:
            assert sync.get_active_session(conn)["id"] == other
    assert open_sessions(memory) == 0


def test_who_leaves_without_having_entered_changes_nothing(memory: Memory) -> None:
    memory._leave_session()
    with memory.session():
        pass
    assert (open_sessions(memory), memory.status().session) == (0, None)
    mine = memory.begin_session()
    memory._leave_session()
    assert memory.status().session == mine


@pytest.mark.parametrize(("hours", "is_shown"), [(23, True), (25, False)])
def test_one_that_nobody_ended_is_abandoned_after_a_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hours: int, is_shown: bool
) -> None:
    began = (datetime.now(timezone.utc) - timedelta(hours=hours)).isoformat()
    with Memory(tmp_path) as killed, Memory(tmp_path) as asked:
        with monkeypatch.context() as past:
            past.setattr(sessions, "now", lambda: began)
            lost = killed.begin_session()
        assert asked.status().session == (lost if is_shown else None)
        assert killed.status().session == lost
        with asked.session() as mine:
            assert asked.status().session == mine.session_id != lost
        assert asked.status().session == (lost if is_shown else None)


def test_tasks_do_not_end_the_session_of_each_other(tmp_path: Path) -> None:
    async def live() -> None:
        async with MemorySystem(tmp_path) as system:
            left = asyncio.Event()

            async def short() -> str | None:
                async with system.session() as entered:
                    mine = entered.session_id
                    await asyncio.sleep(0.02)
                left.set()
                return mine

            async def long() -> str | None:
                async with system.session() as entered:
                    assert entered is system
                    mine = entered.session_id
                    await left.wait()
                    assert (await system.status()).session == mine
                return mine

            one, other = await asyncio.gather(short(), long())
            assert one == other is not None
            assert open_sessions(system.memory) == 0

    asyncio.run(live())


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
def test_a_cancelled_entry_leaves_none_open(tmp_path: Path, steps: int) -> None:
    async def live() -> None:
        async with MemorySystem(tmp_path) as system:

            async def use() -> None:
                async with system.session():
                    await asyncio.sleep(10)

            for turn in range(8):
                task = asyncio.create_task(use())
                for _ in range(steps):
                    await asyncio.sleep(0)
                task.cancel()
                if turn % 2:
                    await asyncio.sleep(0)
                    task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            await system.status()
            async with system.session():
                pass
            # Whoever was cancelled twice leaves on a thread that nobody waits for.
            for _ in range(500):
                if open_sessions(system.memory) == 0:
                    return
                await asyncio.sleep(0.01)
            raise AssertionError("a session stays open")

    asyncio.run(live())


def test_a_session_that_was_erased_elsewhere_is_over(tmp_path: Path) -> None:
    with Memory(tmp_path, user="ann") as memory:
        session = memory.begin_session()
        memory.learn("tea at four")
        with ChronoStore(tmp_path, own_engine=True) as other:
            other.erase(scope={"user": "ann"}, reason="asked for")
        again = memory.begin_session()
        assert again != session
        memory.learn("milk at five")
        with ChronoStore(tmp_path, own_engine=True) as other:
            other.erase(scope={"user": "ann"}, reason="asked for again")
        assert memory.end_session() >= 0.0
        assert memory.session_id is None
