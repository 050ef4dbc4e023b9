"""The clock of active hours goes forward only, whatever fails, and whoever looks."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from chronomemory.blocks import Memory
from chronomemory.blocks.clock import Clock


def test_a_refused_change_does_not_eat_the_hours(tmp_path: Path) -> None:
    seconds = [0.0]
    with Memory(tmp_path, seconds=lambda: seconds[0]) as memory:
        one, other = (memory.remember(text).block_id for text in ("alpha beta", "gamma delta"))
        memory.begin_session()
        seconds[0] = 5 * 3600
        with pytest.raises(ValueError, match="signal"):
            memory.outcome([one], 1.5)
        memory.forget(other)
        assert memory.status().active_hours == pytest.approx(5.0)
        memory.end_session()
        assert memory.status().active_hours == pytest.approx(5.0)


def test_hours_that_are_being_written_down_count_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread looks between the writing of a batch and its confirmation."""
    seconds, seen = [0.0], []
    with Memory(tmp_path, seconds=lambda: seconds[0]) as memory:
        block_id = memory.remember("alpha beta").block_id
        memory.begin_session()
        seconds[0] = 10 * 3600
        confirm = Clock.ticked

        def look_first(clock: Clock) -> None:
            looker = threading.Thread(target=lambda: seen.append(memory.status().active_hours))
            looker.start()
            looker.join()
            confirm(clock)

        monkeypatch.setattr(Clock, "ticked", look_first)
        memory.outcome([block_id], 0.9)
        monkeypatch.undo()
        assert seen == [pytest.approx(10.0)]
        assert memory.status().active_hours == pytest.approx(10.0)


def test_the_hour_is_written_when_it_has_moved(tmp_path: Path) -> None:
    """All processes share its record: a change of each moment would be in conflict with all others."""
    seconds = [0.0]
    with Memory(tmp_path, seconds=lambda: seconds[0]) as memory:
        block_id = memory.remember("alpha beta").block_id
        memory.begin_session()
        for second, written in ((1.0, 0.0), (3.0, 0.0), (4.0, 4.0), (6.0, 4.0), (8.0, 8.0)):
            seconds[0] = second
            memory.outcome([block_id], 0.9)
            record = memory.blocks.store.get(f"block:{block_id}")
            assert record.data["last_reinforced_at"] * 3600 == pytest.approx(written)
            assert memory.status().active_hours * 3600 == pytest.approx(second)
        seconds[0] = 9.0
        memory.end_session()
        assert memory.status().active_hours * 3600 == pytest.approx(9.0)


@pytest.mark.parametrize("top_k", [0, -1, 2**62])
def test_a_recall_has_a_size(tmp_path: Path, top_k: int) -> None:
    with Memory(tmp_path) as memory:
        memory.remember("alpha beta")
        with pytest.raises(ValueError, match="top_k"):
            memory.recall("alpha", top_k=top_k)
