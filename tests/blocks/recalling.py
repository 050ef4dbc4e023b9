"""How is the reference's memory put into a store, and the reference's question asked of it?"""

from __future__ import annotations

from typing import Any

import reference
from chronomemory._core import recall_blocks
from chronomemory.blocks import Blocks, sync
from chronomemory.blocks.connection import Connection
from chronomemory.blocks.ids import block_key


def write_block(conn: Connection, block: reference.Block) -> None:
    sync.insert_block(
        conn,
        block_id=block.id,
        content=block.id,
        category=block.category,
        source="test",
        status=block.status,
        confidence=block.confidence,
        decay_lambda=block.decay_lambda,
        last_reinforced_at=block.last_reinforced_at,
    )
    sync.add_tags(conn, block.id, list(block.tags))
    sync.update_block_scoring(conn, block.id, token_count=block.tokens, embedding=block.embedding)
    known = {"reinforcement_count": block.reinforcement_count, "evidence": block.evidence}
    conn.patch(block_key(block.id), {"data": known})


def write_edge(conn: Connection, edge: tuple[str, str, float, int]) -> None:
    one, other, weight, count = edge
    sync.insert_edge(conn, from_id=one, to_id=other, weight=weight)
    for _ in range(count):
        sync.reinforce_edges(conn, [(one, other)])


def write_memory(blocks: Blocks, memory: reference.Memory) -> None:
    with blocks.begin() as conn:
        for block in memory.blocks:
            write_block(conn, block)
        for edge in memory.edges:
            write_edge(conn, edge)
        for one, other in memory.contradictions:
            sync.insert_contradiction(conn, block_a_id=one, block_b_id=other, score=0.9)


def question_of(question: reference.Question) -> dict[str, Any]:
    return {
        "hours": question.hours,
        "k": question.k,
        "weights": question.weights,
        "tag_patterns": list(question.tag_patterns),
        "categories": list(question.categories),
        "window": question.window,
        "min_confidence": question.min_confidence,
        "guarantees": list(question.guarantees),
        "space": "blocks",
        "query": None if question.query is None else question.query.tobytes(),
        "words": list(question.text.items()),
        "expansion": question.expansion,
        "diversify": question.diversify,
        "exploration": question.exploration,
        "frame": question.frame,
        "budget": question.budget,
    }


def assert_agrees(
    blocks: Blocks, memory: reference.Memory, question: reference.Question, where: str = ""
) -> None:
    """Hold the engine's answer against the reference's: order, scores, all five components."""
    told = recall_blocks(blocks.store.engine, question_of(question))
    right = reference.recall(memory, question)
    assert [row[0] for row in told["results"]] == [item.id for item in right.results], where
    for row, item in zip(told["results"], right.results, strict=True):
        _, score, components, tokens, expanded, guaranteed = row
        assert abs(score - item.score) < 1e-6, where
        assert all(abs(one - other) < 1e-6 for one, other in zip(components, item.components, strict=True))
        assert (expanded, guaranteed) == (item.expanded, item.guaranteed)
        assert tokens == memory.block(item.id).tokens
    assert told["dropped"] == right.dropped
    assert told["clashes"] == right.clashes
    assert told["candidates"] == len(right.candidates)
