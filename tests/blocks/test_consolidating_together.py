"""Consolidations at the same time see each other, and go on past what cannot be answered."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chronomemory.blocks import Memory, MemorySystem, content_hash, sync
from chronomemory.blocks.life.consolidation import Neighbours, leave_mark
from chronomemory.embedders import CallableEmbedder
from chronomemory.embedders.protocol import as_matrix
from chronomemory.face import batch as connection
from living import angles

ANGLES = CallableEmbedder("angles", angles)


def all_contradict(_one: str, _other: str) -> float:
    return 1.0


@pytest.fixture
def overtaken(monkeypatch: pytest.MonkeyPatch) -> Callable[[Memory, Callable[[], object]], None]:
    """Let something happen once, right before the first batch of a memory that makes blocks active."""

    def arrange(memory: Memory, happen: Callable[[], object]) -> None:
        commit, left = connection.Connection.commit, [happen]

        def commit_late(conn: connection.Connection) -> None:
            arrives = any(record.status == "active" for record in conn.pending("block"))
            if left and arrives and conn.store is memory.blocks.store:
                left.pop()()
            commit(conn)

        monkeypatch.setattr(connection.Connection, "commit", commit_late)

    return arrange


def arrive(memory: Memory, content: str) -> None:
    """Make one block active as a consolidation of another process does, and leave the inbox as it is."""
    block_id = content_hash(content)
    with memory.blocks.begin() as conn:
        sync.insert_block(
            conn, block_id=block_id, content=content, category="knowledge", source="api", status="active"
        )
        sync.update_block_scoring(conn, block_id, embedding=angles([content])[0], embedding_model="angles")
        leave_mark(conn)


class TestAnotherProcess:
    def test_a_contradiction_of_a_moment_ago_is_found(
        self, tmp_path: Path, overtaken: Callable[..., None]
    ) -> None:
        with Memory(tmp_path, embedder=ANGLES, judge=all_contradict) as mine, Memory(tmp_path) as yours:
            mine.learn("Fact 0")
            mine.learn("Fact 180")
            overtaken(mine, lambda: arrive(yours, "Fact 40"))
            assert mine.consolidate().contradictions == 1
            assert mine.status().active == 3

    def test_the_same_said_a_moment_ago_is_found(
        self, tmp_path: Path, overtaken: Callable[..., None]
    ) -> None:
        with Memory(tmp_path, embedder=ANGLES, merge="similar") as mine, Memory(tmp_path) as yours:
            for number in range(3):
                mine.learn(f"Fact {number * 60}")
            overtaken(mine, lambda: arrive(yours, "Other 60"))
            assert mine.consolidate().duplicates == [content_hash("Fact 60")]
            assert mine.status().active == 3

    @pytest.mark.parametrize("keep_history", [True, False])
    def test_a_compaction_in_between_hides_nothing(self, tmp_path: Path, keep_history: bool) -> None:
        with Memory(tmp_path, embedder=ANGLES) as mine, Memory(tmp_path) as yours:
            vectors = as_matrix(angles(["Fact 0", "Fact 180"]), 2)
            found = Neighbours(mine.blocks, "angles", vectors, 0.5)
            arrive(yours, "Fact 40")
            yours.blocks.store.compact(keep_history=keep_history)
            with mine.blocks.connect() as conn:
                (near,), far = found.caught_up(conn)
            assert near[0] == content_hash("Fact 40")
            assert near[1] == pytest.approx(math.cos(math.radians(40)))
            assert far == []


def test_tasks_of_one_system_see_each_other(tmp_path: Path) -> None:
    async def live() -> tuple[int, int]:
        async with MemorySystem(tmp_path, embedder=ANGLES, judge=all_contradict) as system:
            for turn in range(20):
                await asyncio.gather(
                    system.remember(f"One {turn} {turn * 1000}"),
                    system.remember(f"Other {turn} {turn * 1000 + 30}"),
                )
            status = await system.status()
            return status.contradictions, status.active

    contradictions, active = asyncio.run(live())
    assert active == 40
    assert contradictions >= 20


class TestAModelThatFails:
    def test_one_text_keeps_no_other_in_the_inbox(self, tmp_path: Path) -> None:
        def analyse(content: str) -> dict[str, Any]:
            if "poison" in content:
                raise TimeoutError("cannot parse")
            return {}

        with Memory(tmp_path, analyser=analyse) as memory:
            memory.learn("A poison pill")
            for number in range(100):
                memory.learn(f"Entirely different thing {number} {number * 31} word{number}")
            with pytest.raises(TimeoutError, match="cannot parse"):
                memory.consolidate()
            assert (memory.status().active, memory.status().inbox) == (100, 1)
            with pytest.raises(TimeoutError):
                memory.consolidate(limit=1)

    def test_what_was_answered_is_not_asked_again(self, tmp_path: Path) -> None:
        asked: Counter[tuple[str, str]] = Counter()
        failing = {"Fact 60"}

        def judge(one: str, other: str) -> float:
            asked[one, other] += 1
            if one in failing and other == "Fact 30":
                raise TimeoutError("rate limit")
            return 0.0

        with Memory(tmp_path, embedder=CallableEmbedder("a", angles), judge=judge) as memory:
            for number in range(0, 180, 30):
                memory.learn(f"Fact {number}")
            with pytest.raises(TimeoutError):
                memory.consolidate()
            assert memory.status().inbox == 1
            failing.clear()
            memory.consolidate()
            assert memory.status().inbox == 0
            assert [pair for pair in asked if asked[pair] > 1] == [("Fact 60", "Fact 30")]

    def test_one_that_is_down_is_not_asked_about_everything(self, tmp_path: Path) -> None:
        asked = []

        def analyse(content: str) -> dict[str, Any]:
            asked.append(content)
            raise ConnectionError("no route")

        with Memory(tmp_path, analyser=analyse) as memory:
            for number in range(200):
                memory.learn(f"Entirely different thing {number} {number * 31} word{number}")
            with pytest.raises(ConnectionError):
                memory.consolidate()
            assert len(asked) == 32
            assert memory.status().inbox == 200

    @pytest.mark.parametrize("said", [None, "a text", 3])
    def test_an_analyser_that_says_no_mapping_is_told_so(self, tmp_path: Path, said: Any) -> None:
        with Memory(tmp_path, analyser=lambda content: said) as memory:
            with pytest.raises(ValueError, match="analysis"):
                memory.remember("Whales sing")
            assert memory.status().inbox == 1
