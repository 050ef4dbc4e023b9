"""Who knows the reference system can go on as before: its verbs, awaited, and the twins for scripts."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from chronomemory.blocks import Memory, MemorySystem, content_hash, open_test_blocks, sync
from chronomemory.blocks import memory as memories
from chronomemory.embedders import CallableEmbedder
from chronomemory.errors import InvalidRecord
from living import Time, angles

Live = Callable[[MemorySystem], Coroutine[Any, Any, None]]


@pytest.fixture
def live(time: Time) -> Callable[[Live], None]:
    """Run a coroutine with a system of angles."""

    def run(story: Live) -> None:
        async def whole() -> None:
            embedder = CallableEmbedder("angles", angles)
            async with MemorySystem(open_test_blocks(), embedder=embedder, seconds=time) as system:
                await story(system)

        asyncio.run(whole())

    return run


class TestLearning:
    def test_no_tags_may_be_none(self, live: Callable[[Live], None]) -> None:
        async def story(system: MemorySystem) -> None:
            await system.learn("Fact 0", tags=None)
            await system.remember("Fact 90", None)
            assert [item.tags for item in await system.list()] == [(), ()]

        live(story)

    def test_the_last_block_that_was_learned_is_known(self, memory: Memory) -> None:
        assert memory.last_learned_block_id is None
        memory.learn("Fact 0")
        memory.remember("Fact 90")
        assert memory.last_learned_block_id == content_hash("Fact 90")
        memory.learn("fact 0")
        assert memory.last_learned_block_id == content_hash("Fact 90")
        memory.begin_session()
        assert memory.last_learned_block_id is None
        memory.learn("Fact 180")
        memory.begin_session()
        assert memory.last_learned_block_id == content_hash("Fact 180")


class TestOutcomes:
    def test_who_said_it_is_in_the_log(self, live: Callable[[Live], None]) -> None:
        async def story(system: MemorySystem) -> None:
            one = (await system.remember("Fact 0")).block_id
            await system.outcome([one], 0.9, weight=2.0, source="tests passed")
            assert system.blocks.store.get(f"block:{one}").data["outcome_source"] == "tests passed"
            await system.outcome([one], 0.9)
            assert "outcome_source" not in system.blocks.store.get(f"block:{one}").data
            told = [event.record.get("source") for event in await system.history(one)]
            assert "tests passed" in told
            with pytest.raises(InvalidRecord, match="source"):
                await system.outcome([one], 0.9, source=7)  # type: ignore[arg-type]

        live(story)


class TestSessions:
    def test_they_begin_and_end(self, live: Callable[[Live], None], time: Time) -> None:
        async def story(system: MemorySystem) -> None:
            assert await system.end_session() == 0.0
            one = await system.begin_session("coding")
            time.pass_hours(2.0)
            assert await system.begin_session() == one == system.session_id
            assert (await system.status()).session == one
            time.pass_hours(0.5)
            assert await system.end_session() == pytest.approx(2.5)
            assert (system.session_id, (await system.status()).session) == (None, None)
            assert system.memory.status().active_hours == pytest.approx(2.5)
            assert await system.begin_session() != one

        live(story)

    def test_it_lends_the_system(self, live: Callable[[Live], None]) -> None:
        async def story(system: MemorySystem) -> None:
            async with system.session("coding") as entered:
                assert entered is system
                await entered.learn("Fact 0")
            assert system.session_id is None

        live(story)

    def test_so_it_does_in_a_script(self, memory: Memory) -> None:
        with memory.session() as entered:
            assert entered is memory

    def test_one_that_was_begun_is_joined_and_ended(self, memory: Memory) -> None:
        one = memory.begin_session()
        with memory.session() as entered:
            assert entered.session_id == one
        assert memory.session_id is None

    def test_those_who_begin_at_once_share_one(self, live: Callable[[Live], None]) -> None:
        async def story(system: MemorySystem) -> None:
            ids = await asyncio.gather(*(system.begin_session() for _ in range(8)))
            assert len(set(ids)) == 1
            assert system.blocks.store.engine.count(kind="session", status="active") == 1

        live(story)


class TestDreaming:
    def test_it_is_time_when_the_inbox_is_full(self, memory: Memory) -> None:
        for number in range(9):
            memory.learn(f"Fact {number * 40}")
            assert not memory.should_dream
        memory.learn("Fact 5000")
        assert memory.should_dream
        memory.dream()
        assert not memory.should_dream

    def test_how_full_is_a_setting(self, memory: Memory) -> None:
        memory.learn("Fact 0")
        with memory.blocks.begin() as conn:
            sync.set_config(conn, "inbox_threshold", "1")
        assert memory.should_dream
        assert memory.status().inbox_threshold == 1
        stricter = Memory(memory.blocks, inbox_threshold=2)
        assert not stricter.should_dream
        with memory.blocks.begin() as conn, pytest.raises(InvalidRecord, match="inbox_threshold"):
            sync.set_config(conn, "inbox_threshold", "0")

    def test_what_others_learned_counts(self, memory: Memory) -> None:
        other = Memory(memory.blocks)
        for number in range(10):
            other.learn(f"Fact {number}")
        assert memory.should_dream

    def test_models_can_be_left_alone(self, live: Callable[[Live], None]) -> None:
        def fail(*_: str) -> Any:
            raise AssertionError("nobody should be asked")

        async def story(system: MemorySystem) -> None:
            system.memory._analyser = system.memory._judge = fail
            await system.learn("Fact 0")
            await system.learn("Fact 20")
            told = await system.dream(skip_llm=True)
            assert told
            assert len(told.consolidated.promoted) == 2
            assert not await system.dream(skip_llm=True)
            await system.learn("Fact 90")
            assert len((await system.consolidate(skip_llm=True)).promoted) == 1

        live(story)

    def test_should_dream_is_not_awaited(self, live: Callable[[Live], None]) -> None:
        async def story(system: MemorySystem) -> None:
            assert system.should_dream is False
            assert system.last_learned_block_id is None

        live(story)


class TestTheGuide:
    VERBS = (
        "learn", "remember", "learn_document", "consolidate", "dream", "recall", "frame", "outcome",
        "connect", "disconnect", "edit", "forget", "keep", "reembed", "curate", "session",
        "list", "status", "history", "get", "restore",
    )  # fmt: skip

    def test_it_names_every_verb(self, memory: Memory) -> None:
        assert all(f"{verb}()" in memory.guide() for verb in self.VERBS)

    @pytest.mark.parametrize("verb", VERBS)
    def test_each_has_a_card(self, memory: Memory, verb: str) -> None:
        card = memory.guide(verb)
        assert card.splitlines()[0] == f"{verb}()"
        for part in ("What:", "Use when:", "Don't use:", "Cost:", "Returns:", "Next:", "Example:"):
            assert part in card
        assert callable(getattr(memory, verb))

    def test_every_verb_of_the_memory_is_in_it(self) -> None:
        public = {
            name for name, member in inspect.getmembers(MemorySystem, callable) if not name.startswith("_")
        }
        told = {*self.VERBS, "guide", "close", "from_config", "begin_session", "end_session", "define_frame"}
        assert public == told

    def test_an_unknown_verb_gets_those_there_are(self, live: Callable[[Live], None]) -> None:
        async def story(system: MemorySystem) -> None:
            told = system.guide("memorise")
            assert "'memorise'" in told
            assert all(verb in told for verb in self.VERBS)
            assert system.guide("learn") == system.memory.guide("learn")

        live(story)


def names_taken(function: Callable[..., object]) -> set[str]:
    """The parameters of a function; options that it passes on are those of their ``TypedDict``."""
    names: set[str] = set()
    for item in inspect.signature(function).parameters.values():
        if item.kind is inspect.Parameter.VAR_KEYWORD:
            names |= set(getattr(memories, item.annotation.removeprefix("Unpack[")[:-1]).__annotations__)
        else:
            names.add(item.name)
    return names


def test_the_system_takes_what_the_memory_takes(tmp_path: Path) -> None:
    """A word that is spelled wrong is refused, by a type checker too: options are declared."""
    for name, verb in inspect.getmembers(MemorySystem, inspect.isfunction):
        if not name.startswith("_") or name == "__init__":
            assert names_taken(verb) == names_taken(getattr(Memory, name)), name
    with pytest.raises(TypeError, match="usr"):
        MemorySystem(tmp_path, usr="ann")  # type: ignore[call-arg]
