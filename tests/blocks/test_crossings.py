"""Counts how often a frame crosses the border to the engine, and what it writes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoStore, WalEvent
from chronomemory.blocks import Memory, sync
from chronomemory.embedders import CallableEmbedder
from living import REFERENCE_RULES, Time, angles

#: Functions of the engine that work on what they are given.
PURE = ("sha256_hex", "unset_attribute")

MOST_CROSSINGS, MOST_EVENTS, MOST_BYTES = 4, 4, 2_000

#: Whose memory it is: of all, of a user, and of a session in which a user's agent works.
SHARED: dict[str, str] = {}
USER = {"user": "ann"}
NAMES = [SHARED, USER, {"user": "ann", "agent": "a", "session": "s"}]


def is_crossing(called: Any) -> bool:
    """Say whether a builtin is a function of the engine that does more than read or hash bytes."""
    name = called.__name__
    classes = type(getattr(called, "__self__", None)).__mro__
    homes = {home.__module__ for home in classes if name in vars(home)}
    return "chronomemory._core" in homes | {getattr(called, "__module__", None)} and name not in PURE


@contextmanager
def border() -> Iterator[list[str]]:
    """Write down who crosses the border, whichever way it takes."""
    crossed: list[str] = []

    def see(_frame: object, event: str, called: Any) -> None:
        if event == "c_call" and is_crossing(called):
            crossed.append(called.__name__)

    before = sys.getprofile()
    sys.setprofile(see)
    try:
        yield crossed
    finally:
        sys.setprofile(before)


def remembering(place: Path | ChronoStore, time: Time, **names: str) -> Memory:
    return Memory(
        place, embedder=CallableEmbedder("angles", angles), seconds=time, **REFERENCE_RULES, **names
    )


def learn(memory: Memory, number: int) -> None:
    for one in range(number):
        memory.learn(f"Fact number {one * 30}")
    memory.consolidate()


def length(events: list[WalEvent]) -> int:
    return sum(len(event.to_json_line().encode()) + 1 for event in events)


def test_the_border_is_seen(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store, border() as crossed:
        store.get("A")
    assert crossed == ["get"]


@pytest.mark.parametrize("shown", [1, 5, 12])
def test_a_frame_crosses_the_border_a_few_times_however_much_it_shows(
    memory: Memory, time: Time, shown: int
) -> None:
    learn(memory, 12)
    with memory.session():
        memory.frame("attention", "about 30", top_k=shown)
        for hours in (0.0, 1.0):
            time.pass_hours(hours)
            with border() as crossed:
                result = memory.frame("attention", "about 60", top_k=shown, token_budget=100_000)
            assert len(result.blocks) == shown
            assert len(crossed) <= MOST_CROSSINGS, crossed


@pytest.mark.parametrize("in_session", [False, True])
@pytest.mark.parametrize("names", NAMES)
def test_so_does_the_first_after_a_store_was_opened(
    tmp_path: Path, time: Time, names: dict[str, str], in_session: bool
) -> None:
    with remembering(tmp_path, time, **names) as earlier:
        learn(earlier, 5)
    with ChronoStore(tmp_path) as store, remembering(store, time, **names) as memory:
        memory.blocks.store.engine  # noqa: B018 - to open it is no part of a frame
        with memory.session() if in_session else nullcontext():
            for _ in range(2):
                time.pass_hours(1.0)
                with border() as crossed:
                    shown = memory.frame("attention", "about 30", token_counter=len, token_budget=100_000)
                assert len(shown.blocks) == 5
                assert len(crossed) <= MOST_CROSSINGS, crossed


def test_so_does_the_one_that_writes_down_what_a_memory_begins_with(memory: Memory) -> None:
    with memory.blocks.begin() as conn:
        for name in "abc":
            sync.insert_block(
                conn, block_id=name, content=name, category="knowledge", source="test", status="active"
            )
    with memory.blocks.connect() as conn:
        assert sync.list_frames(conn) == []
    with border() as crossed:
        assert len(memory.frame("attention").blocks) == 3
    assert len(crossed) <= MOST_CROSSINGS, crossed
    with memory.blocks.connect() as conn:
        assert {frame["name"] for frame in sync.list_frames(conn)} >= {"self", "attention", "task"}


@pytest.mark.parametrize("told", [1, 5, 12])
@pytest.mark.parametrize("names", NAMES)
def test_so_does_an_outcome(tmp_path: Path, time: Time, names: dict[str, str], told: int) -> None:
    with remembering(tmp_path, time, **names) as memory:
        learn(memory, 12)
        with memory.session():
            shown = memory.frame("attention", "about 30", top_k=told, token_budget=100_000)
            time.pass_hours(1.0)
            with border() as crossed:
                heard = memory.outcome([block.id for block in shown.blocks], 1.0)
            assert len(heard.confidence) == told
            assert len(crossed) <= MOST_CROSSINGS, crossed


def shown_and_told(store: ChronoStore, memory: Memory, time: Time) -> list[WalEvent]:
    """Show five blocks and say how it went; return what was written."""
    with memory.session():
        time.pass_hours(1.0)
        before = store.wal_seq()
        shown = memory.frame("attention", "about 30", top_k=5, token_budget=100_000)
        assert len(shown.blocks) == 5
        memory.outcome([block.id for block in shown.blocks], 1.0, source="the tests")
        events = store.replay(from_seq=before + 1)
        # Each block tells what happened to it.
        for block in shown.blocks:
            acts = [event.record["act"] for event in memory.history(block.id) if event.op == "act"]
            assert [act.partition("/")[0] for act in acts] == ["shown", "outcome"]
    return events


@pytest.mark.parametrize("names", NAMES)
def test_a_showing_and_its_outcome_are_small(tmp_path: Path, time: Time, names: dict[str, str]) -> None:
    with ChronoStore(tmp_path) as store, remembering(store, time, **names) as memory:
        learn(memory, 5)
        events = shown_and_told(store, memory, time)
    assert 0 < len(events) <= MOST_EVENTS
    assert length(events) <= MOST_BYTES


def test_blocks_of_several_scopes_take_one_act_for_each(tmp_path: Path, time: Time) -> None:
    # The exception: an act never names blocks of different scopes.
    scopes = [USER, {**USER, "agent": "a"}, {**USER, "session": "s"}, {**USER, "agent": "a", "session": "s"}]
    with ChronoStore(tmp_path) as store:
        whose = {}
        for number, names in enumerate([*scopes, USER]):
            with remembering(store, time, **names) as owner:
                whose[owner.remember(f"Fact number {number * 30}").block_id] = tuple(names.items())
        with remembering(store, time, **USER) as memory:
            events = shown_and_told(store, memory, time)
    assert [event.op for event in events] == ["begin", *["act"] * 4] * 2
    named = [event.record["ids"] for event in events if event.op == "act"]
    assert all(len({whose[block_id] for block_id in ids}) == 1 for ids in named)
    assert length(events) <= len(named) * 600


@pytest.mark.parametrize("names", NAMES, ids=str)
def test_remembering_crosses_twice(tmp_path: Path, names: dict[str, str]) -> None:
    with remembering(tmp_path, Time(), **names) as memory:
        for angle in (0, 40, 90):
            memory.remember(f"Fact {angle}")
        with border() as crossed:
            assert memory.remember("Fact 130").status == "created"
    assert crossed == ["arrival", "write_unless_changed"]
