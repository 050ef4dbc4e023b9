"""The frame says how many blocks may come in by a link."""

from __future__ import annotations

import json

import pytest
from chronomemory.blocks import Frame, FrameFilters, Memory, ScoringWeights, sync
from living import angles
from pydantic import ValidationError

BELIEVED = ScoringWeights(similarity=0, confidence=1, recency=0, centrality=0, reinforcement=0)


@pytest.fixture
def linked(memory: Memory) -> Memory:
    """So many near the question that all seeds are among them, and 30 far away, linked and believed."""
    with memory.blocks.begin() as conn:

        def insert(block_id: str, angle: int, confidence: float) -> None:
            sync.insert_block(
                conn,
                block_id=block_id,
                content=f"{block_id} {angle}",
                category="knowledge",
                source="test",
                status="active",
                confidence=confidence,
            )
            (vector,) = angles([f"{angle}"])
            sync.update_block_scoring(conn, block_id, embedding=vector, embedding_model="angles")

        for number in range(300):
            insert(f"near{number}", number % 10, 0.1)
        for number in range(30):
            insert(f"far{number}", 180, 0.9)
            for seed in range(10):
                sync.insert_edge(conn, from_id=f"far{number}", to_id=f"near{seed * 10}", weight=0.5)
    return memory


def came_by_link(memory: Memory, frame: str, **options: int) -> int:
    return sum(found.was_expanded for found in memory.recall("where 0", frame=frame, top_k=25, **options))


@pytest.mark.parametrize(("filters", "expected"), [({}, 20), ({"expansion": 3}, 3), ({"expansion": 0}, 0)])
def test_it_is_twenty_unless_the_frame_says_otherwise(
    linked: Memory, filters: dict[str, int], expected: int
) -> None:
    linked.define_frame(Frame(name="mine", weights=BELIEVED, filters=FrameFilters(**filters)))
    assert came_by_link(linked, "mine") == expected
    shown = linked.frame("mine", "where 0", top_k=25, token_budget=10_000).blocks
    assert sum(block.was_expanded for block in shown) == expected


def test_a_question_may_say_otherwise_again(linked: Memory) -> None:
    linked.define_frame(Frame(name="mine", weights=BELIEVED, filters=FrameFilters(expansion=3)))
    assert came_by_link(linked, "mine", expansion=5) == 5


def test_it_is_part_of_what_is_stored(linked: Memory) -> None:
    linked.define_frame(Frame(name="mine", weights=BELIEVED, filters=FrameFilters(expansion=3)))
    with linked.blocks.begin() as conn:
        stored = sync.get_frame(conn, "mine")
        assert stored is not None
        filters = json.loads(stored.pop("filters_json"))
        assert filters["expansion"] == 3
        del stored["created_at"]
        sync.upsert_frame(conn, **stored, filters_json=json.dumps({**filters, "expansion": 7}))
    assert came_by_link(linked, "mine") == 7


@pytest.mark.parametrize("wrong", [-1, 10_001, 2.5, "many"])
def test_what_is_no_number_of_blocks_is_refused(wrong: object) -> None:
    with pytest.raises(ValidationError):
        FrameFilters(expansion=wrong)  # type: ignore[arg-type]
