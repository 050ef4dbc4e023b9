"""Asks the engine for blocks, renders frames, keeps rendered frames, and explains scores."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from chronomemory._core import Edition, fit_budget
from chronomemory.blocks.engine import READER, SPACES
from chronomemory.blocks.ids import BLOCK, block_key
from chronomemory.blocks.life.asking import TokenCounter
from chronomemory.blocks.storage.blocks import by_scope, tags_of
from chronomemory.blocks.storage.frames import Frame
from chronomemory.blocks.types import Dropped, FrameResult, ScoredBlock, ScoringWeights
from chronomemory.embedders import Embedder, Matrix, Vector
from chronomemory.face.arguments import count
from chronomemory.face.batch import Connection
from chronomemory.face.moments import Seconds
from chronomemory.store import Records

if TYPE_CHECKING:
    import numpy as np
else:
    from chronomemory import numpy_later as np

#: So many are kept; then it begins anew.
_MOST_FRAMES = 256


class KeptFrames:
    """Frames by what was asked, as of what was seen: any change of it, by anyone, makes them worthless.

    What is not seen here may change as it likes. What showing a frame writes down is the exception: if
    nothing else came in between, ``follow`` says so.
    """

    def __init__(self, seconds: Seconds) -> None:
        self._seconds = seconds
        self._seen: Edition | None = None
        self._frames: dict[Hashable, tuple[float, FrameResult]] = {}
        self._look = threading.Lock()

    @staticmethod
    def name_of(counter: object) -> Hashable:
        """Return what stands for a counter in what was asked; for one without a hash, something new."""
        try:
            hash(counter)
        except TypeError:
            return object()
        return counter

    def get(self, asked: Hashable, seen: Edition) -> FrameResult | None:
        """Return a frame that is still right for what is seen, and not too old."""
        with self._look:
            until, frame = self._frames.get(asked, (0.0, None))
            return frame if seen == self._seen and self._seconds() < until else None

    def follow(self, before: Edition, after: Edition) -> None:
        """Take note that nothing changed between the two but that a frame was shown."""
        with self._look:
            if self._seen != before or len(self._frames) >= _MOST_FRAMES:
                self._frames.clear()
            self._seen = after

    def keep(self, asked: Hashable, frame: FrameResult, seen: Edition, seconds: float) -> None:
        """Keep a frame as of what was seen, for a time."""
        with self._look:
            if self._seen == seen:
                self._frames[asked] = (self._seconds() + seconds, frame)


COMPONENTS = ("similarity", "confidence", "recency", "centrality", "reinforcement")

_EIGHTHS = " ▏▎▍▌▋▊▉"
_BAR_COLUMNS = 24
_CONTENT_LETTERS = 60


def shares(block: ScoredBlock, weights: ScoringWeights) -> Iterator[tuple[str, float, float, float]]:
    """Yield each component with its value, its weight and what it adds to the score."""
    for name, value, weight in zip(COMPONENTS, block.components, weights.as_tuple(), strict=True):
        yield name, value, weight, value * weight


def bar(value: float, columns: int = _BAR_COLUMNS) -> str:
    """Return a bar for a value from 0 to 1, exact to an eighth of a column.

    >>> bar(0.5, 4), bar(0.0, 4), bar(1.0, 4)
    ('██', '', '████')
    """
    eighths = round(max(0.0, min(1.0, value)) * columns * 8)
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")


def explained(blocks: Iterable[ScoredBlock], weights: ScoringWeights) -> str:
    """Return a drawing: for each block its score and the five parts, as long as what they add."""
    lines: list[str] = []
    for place, block in enumerate(blocks, 1):
        marks = [
            word
            for word, is_so in (("guaranteed", block.guaranteed), ("by link", block.was_expanded))
            if is_so
        ]
        content = " ".join(block.content.split())
        if len(content) > _CONTENT_LETTERS:
            content = content[: _CONTENT_LETTERS - 1] + "…"
        remark = f"  ({', '.join(marks)})" if marks else ""
        lines.append(f"{place}. {block.score:.3f}  {content}{remark}")
        for name, value, weight, added in shares(block, weights):
            lines.append(f"   {name:<13} {value:>6.3f} × {weight:.2f} = {added:>6.3f}  {bar(added)}".rstrip())
    return "\n".join(lines)


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
    answer = conn.store.engine.recall_blocks(_asked(frame, question, whole=False))
    least = question.min_score
    return [block for block in _results(answer["results"]) if least is None or block.score >= least]


def frame_of(conn: Connection, frame: Frame, question: Question) -> tuple[FrameResult, list[list[str]]]:
    """Return a rendered frame: guarantees first, then contradictions, then the budget.

    And those of its blocks that may be changed here, the ids of one scope together.
    """
    weights = _weights(frame, question)
    answer = conn.store.engine.recall_blocks(_asked(frame, question, whole=True))
    blocks = _results(answer["results"])
    dropped = [Dropped(block_id, reason) for block_id, reason in answer["dropped"]]
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
        f"{one} and {other} are both guaranteed and contradict each other" for one, other in answer["clashes"]
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
    return replace(result, warnings=tuple(warnings)), _own(conn, blocks, answer["results"])


def _own(conn: Connection, blocks: Sequence[ScoredBlock], rows: Sequence[tuple[Any, ...]]) -> list[list[str]]:
    ids = [block.id for block in blocks]
    if not conn.scope.to_dict():
        return [ids] if ids else []
    own_scopes = {row[0]: row[-1] for row in rows}
    return by_scope({block_id: own_scopes[block_id] for block_id in ids})


def reading_of(door: Records, embedder: Embedder, text: str) -> dict[str, Any]:
    """Return the arguments for ``door.search``; none where the asker sees no block that was embedded by it.

    That others have such blocks does not count: what one scope holds changes no answer in another.
    """
    space = SPACES.of(embedder.model_name)
    # A plain record may be of any kind, and say anything of spaces.
    embedded = {"id": {"starts": block_key("")}, "data.space": space}
    known = {one.name for one in door.vectors.spaces()}
    if not text.strip() or space not in known or not door.query(kind=BLOCK, where=embedded, limit=1):
        return {}
    reading: dict[str, Any] = {"vector": SPACES.of_query(door, text, embedder), "space": space}
    token_space = READER.tokens.of(embedder.model_name)
    if token_space in known:
        tokens = READER.query_tokens(text, embedder)
        if tokens is not None:
            reading.update(query_tokens=tokens, token_space=token_space)
    return reading
