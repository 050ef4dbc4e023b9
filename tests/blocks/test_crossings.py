"""Counts how often a frame crosses the border to the engine, and what it writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoStore
from chronomemory.blocks import Memory
from living import Time

MOST_CROSSINGS, MOST_EVENTS, MOST_BYTES = 4, 4, 2_000


class Border:
    """An engine that counts who comes by."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine
        self.crossed: list[str] = []

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.engine, name)
        if not callable(found):
            return found

        def call(*args: Any, **options: Any) -> Any:
            self.crossed.append(name)
            return found(*args, **options)

        return call


@pytest.fixture
def border(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> Border:
    border = Border(memory.blocks.store.engine)
    monkeypatch.setattr(ChronoStore, "engine", property(lambda _: border))
    return border


@pytest.mark.parametrize("shown", [1, 5, 12])
def test_a_frame_crosses_the_border_a_few_times_however_much_it_shows(
    memory: Memory, border: Border, time: Time, shown: int
) -> None:
    for number in range(12):
        memory.learn(f"Fact number {number * 30}")
    memory.consolidate()
    with memory.session():
        memory.frame("attention", "about 30", top_k=shown)
        for hours in (0.0, 1.0):
            time.pass_hours(hours)
            border.crossed.clear()
            result = memory.frame("attention", "about 60", top_k=shown, token_budget=100_000)
            assert len(result.blocks) == shown
            assert len(border.crossed) <= MOST_CROSSINGS, border.crossed


def test_a_showing_and_its_outcome_are_small(memory: Memory, time: Time, tmp_path: Path) -> None:
    for number in range(5):
        memory.learn(f"Fact number {number * 30}")
    memory.consolidate()
    with memory.session():
        time.pass_hours(1.0)
        store = memory.blocks.store
        before = store.wal_seq()
        shown = memory.frame("attention", "about 30", top_k=5)
        assert len(shown.blocks) == 5
        memory.outcome([block.id for block in shown.blocks], 1.0, source="the tests")
        events = store.replay(from_seq=before + 1)
    assert 0 < len(events) <= MOST_EVENTS
    assert sum(len(event.to_json_line()) + 1 for event in events) <= MOST_BYTES
    # Each block tells what happened to it.
    acts = [event.record["act"] for event in memory.history(shown.blocks[0].id) if event.op == "act"]
    assert acts == ["shown/1", "outcome/1"]
