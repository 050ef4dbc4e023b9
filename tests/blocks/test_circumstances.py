"""A memory finds what was said beside what, as the reference does, and nobody else's."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest
import reference
from chronomemory import ChronoStore, InvalidArgument
from chronomemory.blocks import Memory, open_test_blocks
from chronomemory.embedders import CallableEmbedder
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lifting import closeness
from living import REFERENCE_RULES
from recalling import assert_same, memory_of, words_of
from shares import share

WORDS = ("tea", "green", "black", "coffee", "cup", "house", "garden", "river")
DAY = datetime(2023, 5, 8, tzinfo=timezone.utc)
NOW = DAY + timedelta(days=1)


def spread(texts: list[str]) -> list[list[float]]:
    """Directions that have little to do with the words."""
    return [[np.cos(len(text) * 7.0), np.sin(len(text) * 7.0), 0.3, len(text) % 3 - 1.0] for text in texts]


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory(open_test_blocks(), **REFERENCE_RULES) as opened:
        yield opened


def talk(memory: Memory) -> list[str]:
    """Learn a conversation of three turns, and something else."""
    asked = memory.learn("Where did you find the violin?", conversation="c", speaker="Anna", time=DAY)
    said = memory.learn(
        "In a shop behind the station",
        conversation="c",
        speaker="Bo",
        previous=asked.block_id,
        time=DAY + timedelta(minutes=1),
    )
    last = memory.learn("It was cheap", conversation="c", speaker="Bo", previous=said.block_id, time=DAY)
    other = memory.learn("The soup is ready", speaker="Bo")
    memory.consolidate()
    return [learned.block_id for learned in (asked, said, last, other)]


def test_what_was_said_next_is_found(memory: Memory) -> None:
    asked, said, *_ = talk(memory)
    found = memory.recall("violin", top_k=2)
    assert [block.id for block in found] == [asked, said]
    assert 0 < found[1].similarity < found[0].similarity


def test_a_search_of_the_store_reads_the_same(memory: Memory) -> None:
    asked, said, last, _ = talk(memory)
    why = {
        hit.id: hit.why or {}
        for hit in memory.blocks.store.search("Anna's violin yesterday", explain=True, now=NOW)
    }
    assert why[f"block:{said}"]["linked_by"] == f"block:{asked}"
    assert f"block:{last}" not in why
    assert why[f"block:{asked}"]["spoken"] > 0 and why[f"block:{said}"]["spoken"] == 0
    assert why[f"block:{said}"]["timed"] == why[f"block:{asked}"]["timed"] > 0


def test_the_time_and_the_speaker_that_are_named_count(memory: Memory) -> None:
    for number in range(6):
        speaker = "Anna" if number % 2 else "Bo"
        memory.learn(f"We drank tea {number}", speaker=speaker, time=DAY + timedelta(days=30 * number))
    memory.consolidate()
    day = DAY + timedelta(days=91)
    assert memory.recall("tea yesterday", top_k=1, now=day)[0].content == "We drank tea 3"
    assert memory.frame("attention", "tea yesterday", top_k=1, now=day).blocks[0].content == "We drank tea 3"
    assert {block.content[-1] for block in memory.recall("what tea did Bo drink?", top_k=3)} == set("024")


def test_a_block_in_other_words_keeps_them_and_one_that_returns_does_not(memory: Memory) -> None:
    asked, said, *_ = talk(memory)
    new = memory.edit(said, "In a shop near the harbour").block_id
    record = memory.blocks.store.get(f"block:{new}")
    assert record is not None and record.data["previous"] == f"block:{asked}"
    assert (record.data["speaker"], record.data["conversation"]) == ("Bo", "c")
    memory.forget(asked)
    assert memory.learn("Where did you find the violin?", speaker="Anna", time=DAY).status == "reactivated"
    again = memory.blocks.store.get(f"block:{asked}")
    assert again is not None and again.data["speaker"] == "Anna"
    assert not {"conversation", "previous"} & again.data.keys()


def test_the_same_words_of_another_speaker_are_another_block() -> None:
    with Memory(open_test_blocks()) as memory:
        asked = memory.learn("I live in Paris", speaker="Anna")
        other = memory.learn("I live in Paris", speaker="Bo")
        again = memory.learn("I live in Paris ", speaker="Bo")
    assert (other.status, again.status) == ("created", "duplicate_rejected")
    assert asked.block_id != other.block_id == again.block_id


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("conversation", ""),
        ("speaker", 5),
        ("previous", ""),
        ("time", "2023"),
        ("time", datetime(2023, 5, 8)),
    ],
)
def test_what_they_cannot_be_is_refused_by_name(memory: Memory, name: str, value: object) -> None:
    with pytest.raises(InvalidArgument, match=name):
        memory.learn("Something", **{name: value})  # type: ignore[arg-type]


turns = st.fixed_dictionaries(
    {
        "words": st.lists(st.sampled_from(WORDS), min_size=1, max_size=4),
        "conversation": st.sampled_from([None, "c", "d"]),
        "speaker": st.sampled_from([None, "Ann", "Bob"]),
        "previous": st.none() | st.integers(0, 9),
        "day": st.integers(0, 40),
        "user": st.sampled_from(["", "ann", "bob"]),
    }
)


def fill(store: ChronoStore, said: list[dict[str, object]], users: tuple[str, ...]) -> None:
    """Learn what some users say; a turn before another may be somebody else's."""
    ids: dict[int, str] = {}
    for at, turn in enumerate(said):
        if turn["user"] not in users:
            continue
        names = {"user": str(turn["user"])} if turn["user"] else {}
        memory = Memory(store, embedder=CallableEmbedder("spread", spread), **REFERENCE_RULES, **names)  # type: ignore[arg-type]
        previous = turn["previous"]
        learned = memory.learn(
            f"{' '.join(turn['words'])} {at}",  # type: ignore[arg-type]
            conversation=turn["conversation"],  # type: ignore[arg-type]
            speaker=turn["speaker"],  # type: ignore[arg-type]
            previous=ids.get(previous) if isinstance(previous, int) else None,
            time=DAY + timedelta(days=int(str(turn["day"]))),
        )
        ids[at] = learned.block_id
        memory.consolidate()


QUESTIONS = ("green tea", "coffee that Ann drank on 8 May 2023", "Bob and Ann in the garden", "a river house")


@settings(max_examples=share(10, 200), deadline=None, suppress_health_check=list(HealthCheck))
@given(said=st.lists(turns, min_size=1, max_size=10))
def test_any_talk_is_recalled_as_the_reference_does(
    tmp_path_factory: pytest.TempPathFactory, said: list[dict[str, object]]
) -> None:
    with ChronoStore(tmp_path_factory.mktemp("talk"), durability="off") as store:
        fill(store, [turn | {"user": ""} for turn in said], ("",))
        with Memory(store, embedder=CallableEmbedder("spread", spread), **REFERENCE_RULES) as memory:
            known = memory_of(memory.blocks)
            for text in QUESTIONS:
                for block in known.blocks:
                    record = store.get(f"block:{block.id}")
                    assert record is not None
                    day = date.fromisoformat(record.data["time"][:10])
                    named = [(date(2023, 5, 8), date(2023, 5, 8))] if "May" in text else []
                    block.closeness = closeness(day, named)
                for k in (1, 4):
                    asked = reference.Question(
                        hours=memory.status().active_hours,
                        k=k,
                        query=np.asarray(memory.embedder.embed(text), dtype=np.float32),
                        text=text,
                        words=words_of(store, text),
                        now=datetime.now(timezone.utc),
                    )
                    assert_same(memory.recall(text, top_k=k), reference.recall(known, asked))


@settings(max_examples=share(6, 100), deadline=None, suppress_health_check=list(HealthCheck))
@given(said=st.lists(turns, min_size=2, max_size=10))
def test_what_others_say_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, said: list[dict[str, object]]
) -> None:
    def answers(folder: Path, users: tuple[str, ...]) -> list[object]:
        with ChronoStore(folder, durability="off") as store:
            fill(store, said, users)
            memory = Memory(store, user="ann", embedder=CallableEmbedder("spread", spread), **REFERENCE_RULES)
            return [
                [
                    (block.content, block.score.hex(), [part.hex() for part in block.components])
                    for block in found
                ]
                for text in QUESTIONS
                for k in (1, 5)
                for found in [memory.recall(text, top_k=k, now=NOW)]
            ]

    everybody, alone = (tmp_path_factory.mktemp(name) for name in ("everybody", "alone"))
    assert answers(everybody, ("", "ann", "bob")) == answers(alone, ("", "ann"))
