"""Puts the reference's memory into a store or takes it out of one, and asks its question."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import bm25
import numpy as np
import reference
from chronomemory import ChronoStore
from chronomemory.blocks import Blocks, ScoredBlock, sync
from chronomemory.blocks.ids import block_key, edge_key
from chronomemory.face.batch import Connection

#: The text that records of this face, and those beside them, have in the default fields.
WEIGHTS = {
    **bm25.WEIGHTS,
    "data.name": 2,
    "data.speaker": 1,
    "data.category": 1,
    "data.description": 1,
    "data.reason": 1,
}


def write_block(conn: Connection, block: reference.Block) -> None:
    sync.insert_block(
        conn,
        block_id=block.id,
        content=block.content or block.id,
        category=block.category,
        source="test",
        status=block.status,
        confidence=block.confidence,
        decay_lambda=block.decay_lambda,
        last_reinforced_at=block.last_reinforced_at,
    )
    sync.add_tags(conn, block.id, list(block.tags))
    sync.update_block_scoring(conn, block.id, embedding=block.embedding)
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
        for pair in memory.of_likeness:
            conn.patch(edge_key(*pair), {"data": {"made_by": "likeness"}})
        for one, other in memory.contradictions:
            sync.insert_contradiction(conn, block_a_id=one, block_b_id=other, score=0.9)


def question_of(question: reference.Question) -> dict[str, Any]:
    return {
        "hours": question.hours,
        "k": question.k,
        "prefer_newest": False,
        "weights": question.weights,
        "tag_patterns": list(question.tag_patterns),
        "tags": [],
        "categories": list(question.categories),
        "window": question.window,
        "min_similarity": 0.0,
        "min_confidence": question.min_confidence,
        "guarantees": list(question.guarantees),
        "space": "blocks",
        "vector": question.query,
        "query_tokens": None,
        "token_space": "blocks-tokens",
        "text": question.text,
        "by_words": question.by_words,
        "now_us": 0,
        "expansion": question.expansion,
        "diversify": question.diversify,
        "exploration": question.exploration,
        "frame": question.frame,
        "condition": None,
    }


def words_of(store: ChronoStore, text: str | None) -> dict[str, float]:
    """BM25 of blocks by brute force over all records of a store, in single precision as cosines are."""
    # What the store keeps for its own search has no words.
    records = store.query(status=None, faces=True)
    documents = [record for record in records if not record.id.startswith(("vector:", "search:"))]
    found = bm25.scores(documents, text or "", WEIGHTS)
    return {
        name.removeprefix("block:"): float(np.float32(score))
        for name, score in found.items()
        if name.startswith("block:")
    }


def memory_of(blocks: Blocks) -> reference.Memory:
    """What a store holds, as the reference sees it."""
    memory = reference.Memory()
    with blocks.connect() as conn:
        for record in blocks.store.query(kind="block", status=None):
            data, block_id = record.data, record.id.removeprefix("block:")
            raw = (sync.get_block(conn, block_id) or {})["embedding"]
            memory.blocks.append(
                reference.Block(
                    id=block_id,
                    status=record.status,
                    category=data["category"],
                    confidence=record.confidence,
                    last_reinforced_at=data["last_reinforced_at"],
                    decay_lambda=data["decay_lambda"],
                    reinforcement_count=data.get("reinforcement_count", 0),
                    tags=tuple(data.get("tags", ())),
                    embedding=None if raw is None else sync.bytes_to_embedding(raw),
                    evidence=data.get("evidence", 0.0),
                    content=data["content"],
                    conversation=data.get("conversation"),
                    speaker=data.get("speaker"),
                    previous=data.get("previous", "").removeprefix("block:") or None,
                    moment=datetime.fromisoformat(data.get("time", data["created_at"])),
                )
            )
    for record in blocks.store.query(kind="bedge"):
        link = record.data
        memory.edges.append(
            (link["from_id"], link["to_id"], link["weight"], link.get("reinforcement_count", 0))
        )
        if link.get("made_by") == "likeness":
            memory.of_likeness.add((link["from_id"], link["to_id"]))
    return memory


def assert_same(found: list[ScoredBlock], right: reference.Answer) -> None:
    """Hold what a caller was given against the reference: order, score, all five components."""
    assert [block.id for block in found] == [item.id for item in right.results]
    for block, item in zip(found, right.results, strict=True):
        given = tuple(getattr(block, name) for name in reference.NAMES)
        assert np.allclose(given, item.components, rtol=0, atol=1e-6), (block, item)
        assert abs(block.score - item.score) < 1e-6
        assert (block.was_expanded, block.guaranteed) == (item.expanded, item.guaranteed)


def assert_agrees(
    blocks: Blocks, memory: reference.Memory, question: reference.Question, where: str = ""
) -> None:
    """Hold the engine's answer against the reference's: order, scores, all five components."""
    told = blocks.store.engine.blocks.recall(question_of(question))
    question = replace(question, words=words_of(blocks.store, question.text))
    right = reference.recall(memory, question)
    assert [row[0] for row in told["results"]] == [item.id for item in right.results], where
    for row, item in zip(told["results"], right.results, strict=True):
        _, score, components, _, expanded, guaranteed, _, record, own_scope = row
        assert abs(score - item.score) < 1e-6, where
        assert all(abs(one - other) < 1e-6 for one, other in zip(components, item.components, strict=True))
        assert (expanded, guaranteed) == (item.expanded, item.guaranteed)
        assert record.id == f"block:{item.id}"
        assert own_scope is not None
    assert told["suppressed"] == right.suppressed
    assert told["clashes"] == right.clashes
    assert told["candidates"] == len(right.candidates)
