"""The result types and settings of blocks, such as ``ScoredBlock`` and ``FrameResult``."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, model_validator

from chronomemory.errors import InvalidArgument
from chronomemory.face.results import Result, counted
from chronomemory.scope import Scope

#: How much of a block stands in a line.
_SUMMARY_LETTERS = 60
#: How far the weights of a frame may miss one in sum.
_SUM_TOLERANCE = 1e-4


class BlockStatus(str, Enum):
    """Where a block stands in its life."""

    INBOX = "inbox"
    ACTIVE = "active"
    ARCHIVED = "archived"


class ArchiveReason(str, Enum):
    """Why a block was put away."""

    DECAYED = "decayed"
    SUPERSEDED = "superseded"
    FORGOTTEN = "forgotten"


class DecayTier(float, Enum):
    """How fast a block fades, per active hour."""

    PERMANENT = 1e-5
    DURABLE = 1e-3
    STANDARD = 1e-2
    EPHEMERAL = 5e-2

    @classmethod
    def of(cls, tags: tuple[str, ...] | list[str], category: str) -> DecayTier:
        """Return the tier that tags and category ask for; tags speak first.

        >>> DecayTier.of(["self/goal"], "knowledge").name, DecayTier.of([], "observation").name
        ('DURABLE', 'EPHEMERAL')
        """
        if "self/constitutional" in tags:
            return cls.PERMANENT
        if category == "mind" or any(tag in _DURABLE_TAGS for tag in tags):
            return cls.DURABLE
        return cls.EPHEMERAL if category == "observation" else cls.STANDARD


_DURABLE_TAGS = frozenset({"self/value", "self/constraint", "self/goal"})


class ScoringWeights(BaseModel):
    """How much each of the five components counts; together they are one.

    >>> ScoringWeights(similarity=1, confidence=0, recency=0, centrality=0, reinforcement=0).as_tuple()
    (1.0, 0.0, 0.0, 0.0, 0.0)
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    similarity: float = Field(ge=0.0)
    confidence: float = Field(ge=0.0)
    recency: float = Field(ge=0.0)
    centrality: float = Field(ge=0.0)
    reinforcement: float = Field(ge=0.0)

    @model_validator(mode="after")
    def _sum_is_one(self) -> ScoringWeights:
        total = sum(self.as_tuple())
        if not abs(total - 1.0) <= _SUM_TOLERANCE:
            raise ValueError(f"the weights must sum to 1, not {total}")
        return self

    def as_tuple(self) -> tuple[float, float, float, float, float]:
        """Return the weights in the order of the components."""
        return (self.similarity, self.confidence, self.recency, self.centrality, self.reinforcement)

    def without_similarity(self) -> ScoringWeights:
        """Return the weights for when nothing was asked: the others share what similarity had."""
        rest = 1.0 - self.similarity
        if rest <= _SUM_TOLERANCE:
            raise InvalidArgument("query: a frame that only looks at similarity needs one", field="query")
        shares = [weight / sum(self.as_tuple()[1:]) for weight in self.as_tuple()[1:]]
        names = ("confidence", "recency", "centrality", "reinforcement")
        return ScoringWeights(similarity=0.0, **dict(zip(names, shares, strict=True)))


class CachePolicy(BaseModel):
    """For how long a rendered frame may be given out again."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    ttl_seconds: float = Field(default=0.0, ge=0.0)


class Edge(NamedTuple):
    """A link between two blocks; links have no direction, so the smaller id stands first."""

    from_id: str
    to_id: str

    @classmethod
    def canonical(cls, a: str, b: str) -> Edge:
        """Return the link of two blocks in the one order that is stored.

        >>> Edge.canonical("b", "a")
        Edge(from_id='a', to_id='b')
        """
        return cls(min(a, b), max(a, b))


def log_normalise_reinforcement(count: int, most: int) -> float:
    """Return how much a block was used, as a share of the most used one, by logarithm.

    >>> log_normalise_reinforcement(0, 10), log_normalise_reinforcement(10, 10)
    (0.0, 1.0)
    """
    if count <= 0 or most <= 0:
        return 0.0
    return math.log1p(count) / math.log1p(most)


@dataclass(frozen=True, slots=True)
class LearnResult(Result):
    """What became of a text: created, duplicate_rejected, reactivated, merged, restored or edited."""

    block_id: str
    status: str
    #: The active block that states the same, if this one was archived in favour of it.
    merged_into: str | None = None
    #: The blocks that this one has replaced; ``restore`` brings them back.
    superseded: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        into = f" into {self.merged_into}" if self.merged_into else ""
        over = f", replaces {', '.join(self.superseded)}" if self.superseded else ""
        return f"Block {self.block_id}: {self.status.replace('_', ' ')}{into}{over}."


@dataclass(frozen=True, slots=True)
class ForgetResult(Result):
    """Which block was put away."""

    block_id: str
    status: str = BlockStatus.ARCHIVED.value

    @property
    def summary(self) -> str:
        return f"Block {self.block_id}: forgotten."


@dataclass(frozen=True, slots=True)
class ScoredBlock(Result):
    """A block that was found, with the five components that its score is made of."""

    id: str
    content: str
    tags: tuple[str, ...]
    category: str
    score: float
    similarity: float
    confidence: float
    recency: float
    centrality: float
    reinforcement: float
    #: The cosine to the query or the share of its words that the block has, the greater; 1 without a query.
    relevance: float = 1.0
    tokens: int = 0
    was_expanded: bool = False
    guaranteed: bool = False
    #: The block whose place this one took, because it states a newer value of the same subject.
    newer_than: str | None = None
    #: Whether a frame shows only its first sentences, because there was no room for all.
    cut: bool = False
    source: str = ""
    speaker: str | None = None
    #: When it happened or was said: the ``time`` that was given, or else when it was learned.
    time: datetime | None = field(default=None, compare=False)
    metadata: dict[str, Any] = field(default_factory=dict, compare=False)
    #: When its record was made and last changed, which version of it this is, and whose it is.
    created_at: datetime | None = field(default=None, compare=False)
    updated_at: datetime | None = field(default=None, compare=False)
    version: str | None = field(default=None, compare=False)
    scope: Scope | None = field(default=None, compare=False)

    @property
    def components(self) -> tuple[float, float, float, float, float]:
        """The five components, in the order of the weights."""
        return (self.similarity, self.confidence, self.recency, self.centrality, self.reinforcement)

    @property
    def summary(self) -> str:
        return f"{self.score:.3f} {shortened(self.content)}"


@dataclass(frozen=True, slots=True)
class Dropped(Result):
    """A block that would have been shown, and why it is not: contradiction, budget or score."""

    block_id: str
    reason: str

    @property
    def summary(self) -> str:
        return f"Block {self.block_id}: left out ({self.reason})."


@dataclass(frozen=True, slots=True)
class FrameResult(Result):
    """A rendered frame: its text, the blocks in it, and what had to stay out."""

    frame: str
    text: str
    blocks: tuple[ScoredBlock, ...] = ()
    guaranteed: tuple[str, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    warnings: tuple[str, ...] = ()
    tokens: int = 0
    token_budget: int | None = None
    cached: bool = False
    explanation: str = ""
    weights: ScoringWeights | None = field(default=None, repr=False)

    @property
    def overflow(self) -> int:
        """How many tokens the guaranteed blocks need beyond the budget."""
        return 0 if self.token_budget is None else max(0, self.tokens - self.token_budget)

    @property
    def summary(self) -> str:
        of = "" if self.token_budget is None else f" of {self.token_budget:,}"
        left = f", {len(self.dropped)} left out" if self.dropped else ""
        return f"Frame {self.frame}: {counted(len(self.blocks), 'block')}, {self.tokens:,}{of} tokens{left}."

    def to_dict(self) -> dict[str, Any]:
        """Return the frame as JSON can carry it; how its scores are drawn is left out."""
        values = super(FrameResult, self).to_dict()
        del values["explanation"], values["weights"]
        return {**values, "overflow": self.overflow}


def shortened(text: str, letters: int = _SUMMARY_LETTERS) -> str:
    """Return how a text begins, in one line.

    >>> shortened("one  two\\nthree", 8)
    'one two…'
    """
    line = " ".join(text.split())
    return line if len(line) <= letters else line[: letters - 1].rstrip() + "…"
