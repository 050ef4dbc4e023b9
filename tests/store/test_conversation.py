"""Turns are kept beside a memory of blocks, and one question is put to both."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from chronomemory import ChronoRecord, ChronoStore, InvalidArgument, InvalidRecord, Memory, MemorySystem
from chronomemory.conversation import AwaitedConversation, Conversation, Recollection
from chronomemory.episodes import ConsolidationRule, Episodes, Facts

START = datetime(2026, 5, 18, 9, tzinfo=timezone.utc)


def found(recalled: list[Recollection]) -> list[tuple[str, str]]:
    return [(one.kind, one.content) for one in recalled]


def test_turns_come_back_in_their_order_though_the_clock_stands(store: ChronoStore) -> None:
    memory = Memory(store, user="ann")
    talk = Conversation(memory, "s1", agent="helper", clock=lambda: START)
    said = [talk.say(f"turn {number}", role="user" if number % 2 else "assistant") for number in range(4)]
    assert talk.turns() == said
    assert talk.turns(limit=2) == said[2:]
    assert [one.timestamp - START for one in said] == [timedelta(microseconds=step) for step in range(4)]
    assert said[0].source_node == "assistant"
    with Episodes(store) as episodes:
        assert episodes.recent("ann", "s1", "helper", limit=9) == said[::-1]


def test_one_question_finds_blocks_turns_and_facts_of_the_user_alone(store: ChronoStore) -> None:
    ann, bob = Memory(store, user="ann"), Memory(store, user="bob")
    ann.remember("Ann takes the train to Oslo")
    bob.remember("Bob takes the plane to Oslo")
    for memory, words in ((ann, "I live in Oslo"), (bob, "Oslo is too cold for Bob")):
        Conversation(memory, "earlier", agent="helper").say(words, metadata={"subject": "x"})
    with Episodes(store) as episodes, Facts(store) as facts:
        rule = ConsolidationRule(id="r", cadence={"every": 1}, when_filter="", then_emits=[])
        for delta in episodes.consolidate(rule):
            facts.apply_delta(delta)
    talk = Conversation(ann, "now", agent="helper")
    talk.say("Is there snow in Oslo?")
    told = talk.recall("Oslo")
    assert {content for _, content in found(told)} == {
        "Ann takes the train to Oslo",
        "I live in Oslo",
        "Is there snow in Oslo?",
    }
    assert len(told) == 3  # a fact and its episode say the same
    assert told.scope == ann.blocks.scope and told.known
    assert [one.score for one in told] == sorted((one.score for one in told), reverse=True)
    assert all(0 <= one.score <= 1 for one in told)
    assert len(talk.recall("Oslo", top_k=1)) == 1
    assert "episode" in str(next(one for one in told if one.kind == "episode"))
    head = store.engine.last_event()[1]
    talk.recall("Oslo")
    assert store.engine.last_event()[1] == head


def test_a_memory_of_a_session_recalls_that_session(store: ChronoStore) -> None:
    for session in ("s1", "s2"):
        memory = Memory(store, user="ann", session=session, agent="helper")
        Conversation(memory).say(f"Oslo in {session}")
    talk = Conversation(Memory(store, user="ann", session="s1", agent="helper"))
    assert found(talk.recall("Oslo")) == [("episode", "Oslo in s1")]


def test_names_are_those_of_the_memory(store: ChronoStore) -> None:
    with pytest.raises(InvalidArgument, match="of a user"):
        Conversation(Memory(store), "s1", agent="helper")
    with pytest.raises(InvalidArgument, match="agent: a turn has one"):
        Conversation(Memory(store, user="ann"), "s1")
    with pytest.raises(InvalidArgument, match="session: the memory is of 's1', got 's2'"):
        Conversation(Memory(store, user="ann", session="s1"), "s2", agent="helper")
    talk = Conversation(Memory(store, user="ann"), "s1", agent="helper")
    with pytest.raises(ValueError, match="top_k"):
        talk.recall("Oslo", top_k=0)
    assert talk.recall("Oslo") == [] and talk.turns() == []


def test_tasks_have_the_same(tmp_path: Path) -> None:
    async def live() -> list[tuple[str, str]]:
        async with MemorySystem(tmp_path, user="ann") as system:
            await system.remember("Ann likes green tea")
            talk = AwaitedConversation(system, "s1", agent="helper")
            await talk.say("Tea, please")
            assert len(await talk.turns()) == 1
            return found(await talk.recall("tea"))

    assert asyncio.run(live()) == [("block", "Ann likes green tea"), ("episode", "Tea, please")]


def test_plain_records_of_these_kinds_are_no_recollections(store: ChronoStore) -> None:
    memory = Memory(store, user="ann")
    ann = store.scoped(user="ann")
    for kind in ("fact", "episode"):
        ann.upsert(ChronoRecord(id=f"a {kind}", kind=kind, label="Oslo Oslo", data={"content": ["Oslo"]}))
    talk = Conversation(memory, "s1", agent="helper")
    talk.say("Is there snow in Oslo?")
    assert len(ann.search("Oslo")) == 3
    (one,) = talk.recall("Oslo")
    assert (one.kind, one.content) == ("episode", "Is there snow in Oslo?")


@pytest.mark.parametrize("kind", ["block", "fact", "episode"])
def test_plain_records_of_these_kinds_change_no_recollection(store: ChronoStore, kind: str) -> None:
    told = []
    for user, other in (("ann", "note"), ("bob", kind)):
        memory = Memory(store, user=user)
        memory.remember("The train, never the plane, goes to places like Oslo and many others in the north")
        talk = Conversation(memory, "s1", agent="helper")
        talk.say("Oslo by train tomorrow")
        own = store.scoped(user=user)
        # More than a question looks at.
        own.upsert_many({"kind": other, "label": "train Oslo train Oslo"} for _ in range(50))
        told.append([(one.kind, one.content, one.score.hex()) for one in talk.recall("train Oslo")])
    assert told[0] == told[1]
    assert {one[0] for one in told[1]} == {"block", "episode"}


def test_what_no_verb_of_a_memory_can_use_changes_no_recollection(store: ChronoStore) -> None:
    memory = Memory(store, user="ann")
    memory.remember("Ann takes the train to Oslo, never the plane")
    talk = Conversation(memory, "s1", agent="helper")
    talk.say("Is there snow in Oslo?")
    strange = ChronoRecord(id="block:strange", kind="block", label="Oslo", data={"@scope": {"user": "ann"}})
    store.everyone().engine.upsert(strange, "blocks")
    assert memory.blocks.store.search("Oslo")[0].id == "block:strange"
    told = talk.recall("Oslo")
    # The best by words and the best that the memory recalls have the whole share of it.
    assert {one.kind for one in told} == {"block", "episode"}
    assert max(one.score for one in told if one.kind == "episode") == pytest.approx(2 / 3)


def test_a_clock_without_a_time_zone_is_refused(store: ChronoStore) -> None:
    memory = Memory(store, user="ann")
    Conversation(memory, "s1", agent="helper").say("Good morning")
    naive = Conversation(memory, "s1", agent="helper", clock=lambda: START.replace(tzinfo=None))
    with pytest.raises(InvalidRecord, match="time zone"):
        naive.say("Good evening")
