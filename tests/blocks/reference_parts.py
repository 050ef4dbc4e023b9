"""The parts of a score, computed the slow and obvious way.

What a block, a memory and a question are to the reference, and each of the five components.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import numpy as np

NAMES = ("similarity", "confidence", "recency", "centrality", "reinforcement")

#: A hub of few links is lifted while it is fresh.
FLOOR_BELOW, FRESH_ABOVE, FLOOR_SHARE = 0.10, 0.70, 0.5
#: What a link gains by being used.
USE_BONUS = 0.10
PRIOR_STRENGTH = 2.0


@dataclass
class Block:
    """One block as the reference sees it."""

    id: str
    status: str = "active"
    category: str = "knowledge"
    confidence: float = 0.5
    last_reinforced_at: float = 0.0
    decay_lambda: float = 0.01
    reinforcement_count: int = 0
    tags: tuple[str, ...] = ()
    embedding: np.ndarray | None = None
    evidence: float = 0.0
    content: str = ""
    conversation: str | None = None
    speaker: str | None = None
    #: The block that it was said after.
    previous: str | None = None
    #: When it happened or was made.
    moment: datetime | None = None
    #: How close it is to a time that the question names.
    closeness: float = 0.0


@dataclass
class Memory:
    """All blocks, the links between them as (a, b, weight, count), and what contradicts what."""

    blocks: list[Block] = field(default_factory=list)
    edges: list[tuple[str, str, float, int]] = field(default_factory=list)
    contradictions: list[tuple[str, str]] = field(default_factory=list)
    #: Links that were made because both ends are alike: they count as others do, and lift nothing.
    of_likeness: set[tuple[str, str]] = field(default_factory=set)

    def block(self, block_id: str) -> Block:
        return next(block for block in self.blocks if block.id == block_id)

    def shown_edges(self) -> list[tuple[str, str, float, int]]:
        """Links of which no end is archived."""
        shown = {block.id for block in self.blocks if block.status != "archived"}
        return [edge for edge in self.edges if edge[0] in shown and edge[1] in shown]


@dataclass
class Question:
    """What is asked; the defaults are those of the attention frame."""

    hours: float = 0.0
    k: int = 5
    weights: tuple[float, float, float, float, float] = (0.35, 0.15, 0.25, 0.15, 0.10)
    tag_patterns: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    window: float | None = 200.0
    min_confidence: float = 0.0
    guarantees: tuple[str, ...] = ()
    query: np.ndarray | None = None
    text: str | None = None
    #: Words count alone where they are found.
    by_words: bool = False
    #: BM25 of blocks that share words with the text, as float32; without any the text has no signal.
    words: dict[str, float] = field(default_factory=dict)
    expansion: int = 20
    diversify: bool = False
    exploration: float = 0.0
    now: datetime | None = None
    #: Frames guarantee and suppress.
    frame: bool = False


@dataclass
class Scored:
    """One block with all that its score is made of."""

    id: str
    score: float
    components: tuple[float, float, float, float, float]
    expanded: bool = False
    guaranteed: bool = False


@dataclass
class Answer:
    """What a recall gives, or a frame: then also what was suppressed."""

    results: list[Scored]
    candidates: list[Scored]
    suppressed: list[str] = field(default_factory=list)
    clashes: list[tuple[str, str]] = field(default_factory=list)


def like(pattern: str, text: str) -> bool:
    """SQL LIKE: ``%`` is any text, ``_`` one character; ASCII letters match in either case."""
    parts = [{"%": ".*", "_": "."}.get(letter, re.escape(letter)) for letter in pattern]
    return re.fullmatch("".join(parts), text, re.DOTALL | re.IGNORECASE | re.ASCII) is not None


def cosine(one: np.ndarray | None, other: np.ndarray | None) -> float:
    """The cosine, between -1 and 1; 0 where there is no direction to compare."""
    if one is None or other is None or len(one) != len(other):
        return 0.0
    wide, wider = one.astype(np.float64), other.astype(np.float64)
    norms = math.sqrt(wide @ wide) * math.sqrt(wider @ wider)
    return float(np.clip(np.float32((wide @ wider) / norms), -1.0, 1.0)) if norms > 0 else 0.0


def recency(block: Block, question: Question) -> float:
    since = question.hours - block.last_reinforced_at
    if question.hours <= 0 and block.moment is not None and question.now is not None:
        # No session ever advanced the clock: ten hours of wall-clock time count as one.
        since = (question.now - block.moment) // timedelta(hours=1) / 10
    return math.exp(-block.decay_lambda * max(0.0, since))


def weighted_degree(memory: Memory, block_id: str) -> float:
    mine = [edge for edge in memory.shown_edges() if block_id in edge[:2]]
    return sum(weight + USE_BONUS * math.log1p(count) for _, _, weight, count in mine)


def log_normalised(count: int, most: int) -> float:
    return math.log1p(count) / math.log1p(most) if most > 0 else 0.0


def centrality(degree: float, largest: float, how_recent: float) -> float:
    value = degree / largest if largest > 0 else 0.0
    if value < FLOOR_BELOW and how_recent > FRESH_ABOVE:
        return max(value, FLOOR_SHARE * how_recent)
    return value


def without_similarity(weights: tuple[float, ...]) -> tuple[float, ...]:
    """What the weights are when nothing was asked for."""
    rest = sum(weights[1:])
    return (0.0, *(weight / rest if rest > 0 else 0.0 for weight in weights[1:]))


def weighted(weights: tuple[float, ...], components: tuple[float, ...]) -> float:
    return sum(weight * value for weight, value in zip(weights, components, strict=True))


def uncertainty(block: Block) -> float:
    """How little is known of a block's worth: the deviation of its Beta distribution."""
    strength = PRIOR_STRENGTH + block.evidence
    alpha, beta = block.confidence * strength, (1.0 - block.confidence) * strength
    total = alpha + beta
    return math.sqrt(alpha * beta / (total * total * (total + 1.0)))
