"""Puts a question to the engine, and its answer into words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from chronomemory._core import fit_budget
from chronomemory.blocks.declaration import READER, SPACES
from chronomemory.blocks.life.asking import TokenCounter
from chronomemory.blocks.recall.frames import Frame
from chronomemory.blocks.storage.blocks import by_scope, tags_of
from chronomemory.blocks.types import Dropped, FrameResult, ScoredBlock, ScoringWeights
from chronomemory.embedders import Matrix, Vector
from chronomemory.face.arguments import count
from chronomemory.face.batch import Connection

if TYPE_CHECKING:
    import numpy as np
else:
    from chronomemory import numpy_later as np

__all__ = ["Question", "frame_of", "recall"]


@dataclass(frozen=True)
class Question:
    """What is asked of a memory, beside what its frame says."""

    hours: float
    k: int
    model: str | None = None
    vector: Vector | None = None
    #: A vector for each token of the text.
    tokens: Matrix | None = None
    text: str | None = None
    #: Whether words count alone where they are found: an embedder that reads nothing but words adds nothing.
    by_words: bool = False
    #: What "yesterday" is counted from, in microseconds since 1970.
    now_us: int = 0
    #: How many blocks may come in by a link; None leaves it to the frame.
    expansion: int | None = None
    diversify: bool = False
    exploration: float = 0.0
    budget: int | None = None
    counter: TokenCounter | None = None
    #: The very tags of which a block must have one.
    tags: tuple[str, ...] = ()
    #: What is scored lower is left out, unless it is guaranteed.
    min_score: float | None = None
    #: Whether a frame says when each block came.
    dates: bool = False
    #: What must hold for a block, as JSON; what is guaranteed is there in any case.
    condition: bytes | None = None


def _weights(frame: Frame, question: Question) -> ScoringWeights:
    """Return what counts: without a query not similarity."""
    return frame.weights if question.vector is not None else frame.weights.without_similarity()


def _asked(frame: Frame, question: Question, *, whole: bool) -> dict[str, Any]:
    filters = frame.filters
    vector, tokens = question.vector, question.tokens
    return {
        "hours": question.hours,
        "k": question.k,
        "weights": frame.weights.as_tuple(),
        "tag_patterns": list(filters.tag_patterns),
        "tags": list(question.tags),
        "categories": list(filters.categories),
        "window": filters.search_window,
        "min_confidence": filters.min_confidence,
        "guarantees": list(frame.guarantees),
        "space": SPACES.of(question.model),
        "query": None if vector is None else np.ascontiguousarray(vector, dtype="<f4").tobytes(),
        "tokens": None if tokens is None else np.ascontiguousarray(tokens, dtype="<f4").tobytes(),
        "token_space": READER.tokens.of(question.model),
        "token_dim": 0 if tokens is None else tokens.shape[1],
        "text": question.text,
        "by_words": question.by_words,
        "now_us": question.now_us,
        "expansion": filters.expansion if question.expansion is None else question.expansion,
        "diversify": question.diversify,
        "exploration": question.exploration,
        "frame": whole,
        "budget": None if question.counter is not None else question.budget,
        "condition": question.condition,
    }


def _scored(row: tuple[Any, ...]) -> ScoredBlock | None:
    block_id, score, components, tokens, expanded, guaranteed, record, _ = row
    if record is None or record.status == "tombstone":
        return None
    similarity, confidence, recency, centrality, reinforcement = components
    created_at, updated_at, version = record.moments_and_version()
    return ScoredBlock(
        id=block_id,
        content=record.data["content"],
        tags=tags_of(record),
        category=record.data["category"],
        score=score,
        similarity=similarity,
        confidence=confidence,
        recency=recency,
        centrality=centrality,
        reinforcement=reinforcement,
        tokens=tokens,
        was_expanded=expanded,
        guaranteed=guaranteed,
        created_at=created_at,
        updated_at=updated_at,
        version=version,
        scope=record.scope,
    )


def _results(rows: Sequence[tuple[Any, ...]]) -> list[ScoredBlock]:
    found = (_scored(row) for row in rows)
    return [block for block in found if block is not None]


def _said(block: ScoredBlock, question: Question) -> str:
    """Return what a frame says of a block, with the day on which it came if that is asked for."""
    if not question.dates or block.created_at is None:
        return block.content
    return f"({block.created_at:%Y-%m-%d}) {block.content.lstrip()}"


def recall(conn: Connection, frame: Frame, question: Question) -> list[ScoredBlock]:
    """Return the blocks that matter, at most ``k``; nothing is changed by it."""
    _weights(frame, question)  # a question that cannot be answered is refused here too
    told = conn.store.engine.recall_blocks(_asked(frame, question, whole=False))
    least = question.min_score
    return [block for block in _results(told["results"]) if least is None or block.score >= least]


def frame_of(conn: Connection, frame: Frame, question: Question) -> tuple[FrameResult, list[list[str]]]:
    """Return a rendered frame: guarantees first, then contradictions, then the budget.

    And those of its blocks that may be changed here, the ids of one scope together.
    """
    weights = _weights(frame, question)
    told = conn.store.engine.recall_blocks(_asked(frame, question, whole=True))
    blocks = _results(told["results"])
    dropped = [Dropped(block_id, reason) for block_id, reason in told["dropped"]]
    least = question.min_score
    if least is not None:
        low = {block.id for block in blocks if block.score < least and not block.guaranteed}
        dropped += [Dropped(block.id, "score") for block in blocks if block.id in low]
        blocks = [block for block in blocks if block.id not in low]
    if question.counter is not None:
        blocks = [
            replace(block, tokens=count("token_count", question.counter(block.content), most=None))
            for block in blocks
        ]
        fits = fit_budget(
            [block.tokens for block in blocks], [block.guaranteed for block in blocks], question.budget
        )
        dropped += [Dropped(block.id, "budget") for block, fit in zip(blocks, fits, strict=True) if not fit]
        blocks = [block for block, fit in zip(blocks, fits, strict=True) if fit]
    warnings = [
        f"{one} and {other} are both guaranteed and contradict each other" for one, other in told["clashes"]
    ]
    result = FrameResult(
        frame=frame.name,
        text=frame.render([_said(block, question) for block in blocks], question.text),
        blocks=tuple(blocks),
        guaranteed=tuple(block.id for block in blocks if block.guaranteed),
        dropped=tuple(dropped),
        tokens=sum(block.tokens for block in blocks),
        token_budget=question.budget,
        weights=weights,
    )
    if result.overflow:
        warnings.append(f"the frame needs {result.overflow} tokens more than its budget of {question.budget}")
    return replace(result, warnings=tuple(warnings)), _own(conn, blocks, told["results"])


def _own(conn: Connection, blocks: Sequence[ScoredBlock], rows: Sequence[tuple[Any, ...]]) -> list[list[str]]:
    ids = [block.id for block in blocks]
    if not conn.scope.to_dict():
        return [ids] if ids else []
    own_scopes = {row[0]: row[-1] for row in rows}
    return by_scope({block_id: own_scopes[block_id] for block_id in ids})
