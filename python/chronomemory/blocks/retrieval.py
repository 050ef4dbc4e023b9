"""Asks the engine for blocks, renders frames, keeps rendered frames, and explains scores."""

from __future__ import annotations

import math
import threading
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from chronomemory._core import Edition
from chronomemory.blocks.engine import READER, SPACES
from chronomemory.blocks.ids import BLOCK, block_key
from chronomemory.blocks.life.asking import TokenCounter, estimated_tokens
from chronomemory.blocks.life.learning import SENTENCE_ENDS
from chronomemory.blocks.storage.blocks import by_scope, tags_of, time_of
from chronomemory.blocks.storage.frames import Frame, bullet
from chronomemory.blocks.types import Dropped, FrameResult, ScoredBlock, ScoringWeights, shortened
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


def bar(value: float, columns: int = _BAR_COLUMNS) -> str:
    """Return a bar for a value from 0 to 1, exact to an eighth of a column.

    >>> bar(0.5, 4), bar(0.0, 4), bar(1.0, 4)
    ('██', '', '████')
    """
    eighths = round(max(0.0, min(1.0, value)) * columns * 8)
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")


def explained(blocks: Iterable[ScoredBlock], weights: ScoringWeights) -> str:
    """Return a drawing: for each block its score and what the five components add to it."""
    lines: list[str] = []
    for place, block in enumerate(blocks, 1):
        marks = ["guaranteed"] * block.guaranteed + ["by link"] * block.was_expanded
        if block.newer_than is not None:
            marks.append(f"newer than {block.newer_than}")
        remark = f"  ({', '.join(marks)})" if marks else ""
        lines.append(f"{place}. {block.score:.3f}  {shortened(block.content)}{remark}")
        created = "" if block.created_at is None else f" of {block.created_at:%Y-%m-%d}"
        lines.append(f"   block {block.id}{created}")
        for name, value, weight in zip(COMPONENTS, block.components, weights.as_tuple(), strict=True):
            added = value * weight
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
    #: Whether the newest value of a subject comes before older ones.
    prefer_newest: bool = False
    budget: int | None = None
    counter: TokenCounter | None = None
    #: The very tags of which a block must have one.
    tags: tuple[str, ...] = ()
    #: What is scored lower is left out, unless it is guaranteed.
    min_score: float | None = None
    #: What is less relevant to the query is left out, unless it is guaranteed or adjacent to a relevant one.
    min_similarity: float = 0.0
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
        "prefer_newest": question.prefer_newest,
        "weights": frame.weights.as_tuple(),
        "tag_patterns": list(filters.tag_patterns),
        "tags": list(question.tags),
        "categories": list(filters.categories),
        "window": filters.search_window,
        "min_similarity": question.min_similarity,
        "min_confidence": filters.min_confidence,
        "guarantees": list(frame.guarantees),
        "space": SPACES.of(question.model),
        "vector": None if vector is None else np.ascontiguousarray(vector, dtype=np.float32),
        "query_tokens": None if tokens is None else np.ascontiguousarray(tokens, dtype=np.float32),
        "token_space": READER.tokens.of(question.model),
        "text": question.text,
        "by_words": question.by_words,
        "now_us": question.now_us,
        "expansion": filters.expansion if question.expansion is None else question.expansion,
        "diversify": question.diversify,
        "exploration": question.exploration,
        "frame": whole,
        "condition": question.condition,
    }


def _scored(row: tuple[Any, ...]) -> ScoredBlock:
    block_id, score, components, relevance, expanded, guaranteed, newer_than, record, _ = row
    created_at, updated_at, version = record.moments_and_version()
    data = record.data
    return ScoredBlock(
        id=block_id,
        content=data["content"],
        tags=tags_of(record),
        category=data["category"],
        score=score,
        **dict(zip(COMPONENTS, components, strict=True)),
        relevance=relevance,
        was_expanded=expanded,
        guaranteed=guaranteed,
        newer_than=newer_than,
        source=data["source"],
        speaker=data.get("speaker"),
        time=time_of(data, created_at),
        metadata=data.get("metadata", {}),
        created_at=created_at,
        updated_at=updated_at,
        version=version,
        scope=record.scope,
    )


def recall(conn: Connection, frame: Frame, question: Question) -> list[ScoredBlock]:
    """Return the blocks that matter, at most ``k``; nothing is changed by it."""
    _weights(frame, question)  # a question that cannot be answered is refused here too
    answer = conn.store.engine.blocks.recall(_asked(frame, question, whole=False))
    least = question.min_score
    blocks = map(_scored, answer["results"])
    return [block for block in blocks if least is None or block.score >= least]


def frame_of(conn: Connection, frame: Frame, question: Question) -> tuple[FrameResult, list[list[str]]]:
    """Return a rendered frame: guarantees first, then contradictions, then the budget.

    And those of its blocks that may be changed here, the ids of one scope together.
    """
    weights = _weights(frame, question)
    answer = conn.store.engine.blocks.recall(_asked(frame, question, whole=True))
    dropped = [Dropped(block_id, "contradiction") for block_id in answer["suppressed"]]
    least = question.min_score
    blocks = []
    for block in map(_scored, answer["results"]):
        if least is None or block.score >= least or block.guaranteed:
            blocks.append(block)
        else:
            dropped.append(Dropped(block.id, "score"))
    rendering = Rendering(frame, question)
    for block in blocks:
        rendering.add(block)
    text, tokens = rendering.finish()
    warnings = [
        f"{one} and {other} are both guaranteed and contradict each other" for one, other in answer["clashes"]
    ]
    result = FrameResult(
        frame=frame.name,
        text=text,
        blocks=tuple(rendering.blocks),
        guaranteed=tuple(block.id for block in rendering.blocks if block.guaranteed),
        dropped=(*dropped, *rendering.dropped),
        tokens=tokens,
        token_budget=question.budget,
        weights=weights,
    )
    if result.overflow:
        warnings.append(f"the frame needs {result.overflow} tokens more than its budget of {question.budget}")
    return replace(result, warnings=tuple(warnings)), _own(conn, rendering.blocks, answer["results"])


#: Behind the last sentence that is shown of a block.
CUT_MARK = "[…]"


def cut_to_fit(content: str, room: float, cost: Callable[[str], int]) -> str | None:
    """Return a content if it fits, or the longest beginning that fits and ends with a sentence, or None.

    >>> cut_to_fit("One. Two. Three.", 13, len), cut_to_fit("One two three.", 9, len)
    ('One. Two. […]', None)
    """
    if cost(content) <= room:
        return content
    ends = [match.start() for match in SENTENCE_ENDS.finditer(content)]
    fitting = bisect_right(ends, room, key=lambda end: cost(f"{content[:end]} {CUT_MARK}"))
    return f"{content[: ends[fitting - 1]]} {CUT_MARK}" if fitting else None


class Rendering:
    """The text of a frame, which takes in one block after the other as long as the budget lasts.

    A block that does not fit is cut behind a sentence or left out; a guaranteed one is always shown whole.
    What is counted is the text that is shown, template and dates included.
    """

    def __init__(self, frame: Frame, question: Question) -> None:
        self.blocks: list[ScoredBlock] = []
        self.dropped: list[Dropped] = []
        self._frame = frame
        self._question = question
        self._lines: list[str] = []
        self._used = self._count(frame.render([""], question.text))

    def add(self, block: ScoredBlock) -> None:
        """Show a block, or as much of it as fits."""
        content: str | None = block.content
        cost = self._cost(block.content, block)
        if cost > self._left and not block.guaranteed:
            content = cut_to_fit(block.content, self._left, lambda text: self._cost(text, block))
            cost = 0 if content is None else self._cost(content, block)
        if content is None:
            self.dropped.append(Dropped(block.id, "budget"))
            return
        self.blocks.append(replace(block, cut=content != block.content, tokens=cost))
        self._lines.append(self._line(content, block))
        self._used += cost

    def finish(self) -> tuple[str, int]:
        """Return the text and its tokens; parts may have fewer tokens than the text made of them."""
        while True:
            text = self._frame.render(self._lines, self._question.text)
            tokens = self._count(text)
            budget = self._question.budget
            last = next(
                (at for at in reversed(range(len(self.blocks))) if not self.blocks[at].guaranteed), None
            )
            if budget is None or tokens <= budget or last is None:
                return text, tokens
            self.dropped.append(Dropped(self.blocks.pop(last).id, "budget"))
            del self._lines[last]

    @property
    def _left(self) -> float:
        budget = self._question.budget
        return math.inf if budget is None else budget - self._used

    def _cost(self, content: str, block: ScoredBlock) -> int:
        return self._count("\n" + bullet(self._line(content, block)))

    def _line(self, content: str, block: ScoredBlock) -> str:
        if not self._question.dates or block.time is None:
            return content
        return f"({block.time:%Y-%m-%d}) {content.lstrip()}"

    def _count(self, text: str) -> int:
        counter = self._question.counter
        return estimated_tokens(text) if counter is None else count("token_count", counter(text), most=None)


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
