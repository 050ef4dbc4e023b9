"""Blocks that can be asked for: recalled by a question, or rendered as a frame for a prompt."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import Any

from chronomemory._core import Edition
from chronomemory.blocks.declaration import READER, SPACES
from chronomemory.blocks.engine import Blocks
from chronomemory.blocks.life.asking import TokenCounter
from chronomemory.blocks.recall.explain import explained
from chronomemory.blocks.recall.frames import Frame, define_frame, load_frame
from chronomemory.blocks.recall.kept import KeptFrames
from chronomemory.blocks.recall.retrieval import Question, frame_of, recall
from chronomemory.blocks.settings import Settled
from chronomemory.blocks.storage.acts import note_shown
from chronomemory.blocks.storage.config import MOST_RESULTS, TOTAL_ACTIVE_HOURS, config_keys
from chronomemory.blocks.storage.frames import checked_budget, frame_keys
from chronomemory.blocks.types import FrameResult, ScoredBlock
from chronomemory.embedders import Embedder, LexicalEmbedder, Matrix, Vector, check_embedder
from chronomemory.face.arguments import (
    count,
    finite,
    flag,
    public_names,
    string,
    string_list,
    within,
)
from chronomemory.face.batch import Connection
from chronomemory.face.moments import Seconds, micros
from chronomemory.filters import Where, where_json
from chronomemory.scope import Scope
from chronomemory.watching import timed

__all__ = ["Finding"]


def _looked_at(frame: str, scope: Scope) -> list[str]:
    """Return the records that a question depends on, beside blocks: its frame, the settings, the clock."""
    settings = (config_keys(key, scope) for key in ("top_k", TOTAL_ACTIVE_HOURS))
    return [*frame_keys(string("frame", frame), scope), *chain.from_iterable(settings)]


@public_names
class Finding(Settled):
    """Blocks that can be asked for: with an embedder for questions, and the frames that were shown last."""

    def __init__(
        self,
        blocks: Blocks,
        seconds: Seconds = time.monotonic,
        *,
        embedder: Embedder | None = None,
        token_counter: TokenCounter | None = None,
        exploration: float = 0.0,
        top_k: int | None = None,
        inbox_threshold: int | None = None,
        prune_threshold: float | None = None,
    ) -> None:
        self._exploration = finite("exploration", exploration, least=0.0)
        super().__init__(
            blocks,
            seconds,
            top_k=top_k,
            inbox_threshold=inbox_threshold,
            prune_threshold=prune_threshold,
        )
        self.embedder: Embedder = LexicalEmbedder() if embedder is None else check_embedder(embedder)
        self._counter = token_counter
        self._kept = KeptFrames(seconds)

    def recall(
        self,
        query: str | None = None,
        *,
        top_k: int | None = None,
        frame: str = "attention",
        tags: Sequence[str] | None = None,
        tag_patterns: Sequence[str] | None = None,
        categories: Sequence[str] | None = None,
        min_confidence: float | None = None,
        min_score: float | None = None,
        window: float | None = None,
        diversify: bool = False,
        expansion: int | None = None,
        where: Where | None = None,
        now: datetime | None = None,
    ) -> list[ScoredBlock]:
        """Return the blocks that matter here, the best first; nothing is changed by asking.

        A block must have one of the ``tags``, letter by letter, or one that is like one of the
        ``tag_patterns``, in which ``%`` is any text and ``_`` one character; either stands for what the frame
        asks for. What is scored below ``min_score`` is left out. ``where`` says of any field of a block's
        record what it must be, as in ``ChronoStore.query``. ``now`` is what "yesterday" is counted from.
        """
        condition = where_json(where)
        if expansion is not None:
            expansion = count("expansion", expansion, 0, MOST_RESULTS)
        diversify = flag("diversify", diversify)
        narrowed: dict[str, Any] = {}
        very = () if tags is None else tuple(string_list("tags", tags))
        if tags is not None or tag_patterns is not None:
            patterns = () if tag_patterns is None else tag_patterns
            narrowed["tag_patterns"] = tuple(string_list("tag_patterns", patterns))
        if categories is not None:
            narrowed["categories"] = tuple(string_list("categories", categories))
        if min_confidence is not None:
            narrowed["min_confidence"] = within("min_confidence", min_confidence)
        if window is not None:
            narrowed["search_window"] = finite("window", window, least=0.0)
        read = self._read(query)
        with self.blocks.connect() as conn:
            conn.fetch(_looked_at(frame, conn.scope))
            asked = load_frame(conn, frame)
            if narrowed:
                asked = asked.model_copy(update={"filters": asked.filters.model_copy(update=narrowed)})
            question = replace(
                self._question(conn, read, query, top_k, now),
                diversify=diversify,
                expansion=expansion,
                tags=very,
                min_score=None if min_score is None else finite("min_score", min_score),
                condition=condition,
            )
            with timed("a recall"):
                return recall(conn, asked, question)

    def frame(
        self,
        name: str,
        query: str | None = None,
        *,
        top_k: int | None = None,
        token_budget: int | None = None,
        token_counter: TokenCounter | None = None,
        explain: bool = False,
        where: Where | None = None,
        tags: Sequence[str] | None = None,
        min_score: float | None = None,
        dates: bool = False,
        now: datetime | None = None,
    ) -> FrameResult:
        """Return a rendered frame, and reinforce the blocks that are in it.

        ``where`` holds for all of them but those that the frame guarantees; so do ``tags``, of which a block
        must have one letter by letter, and ``min_score``. With ``dates`` each says on which day it came.
        """
        condition = where_json(where)
        very = () if tags is None else tuple(string_list("tags", tags))
        least = None if min_score is None else finite("min_score", min_score)
        dates = flag("dates", dates)
        if query is not None:
            string("query", query)
        with self.blocks.connect() as conn:
            seen = self._look_at(conn, _looked_at(name, conn.scope))
            asked = load_frame(conn, name)
            budget = asked.token_budget if token_budget is None else checked_budget(token_budget)
            counter = self._counter if token_counter is None else token_counter
            named = self._kept.name_of(token_counter)
            key = (name, query, top_k, budget, named, condition, very, least, dates, now)
            known = self._kept.get(key, seen)
            if known is not None:
                return self._told(replace(known, cached=True), explain)
            question = self._question(conn, self._read(query), query, top_k, now)
            question = replace(
                question,
                budget=budget,
                counter=counter,
                condition=condition,
                tags=very,
                min_score=least,
                dates=dates,
            )
            result, shown = frame_of(conn, asked, question)
        written = self._write(lambda batch: self._reinforce(batch, shown, name, conn)) if shown else None
        after = self._seen_after(seen, written)
        if after is not None:
            self._kept.follow(seen, after)
            if asked.cache is not None:
                self._kept.keep(key, result, after, asked.cache.ttl_seconds)
        return self._told(result, explain)

    def _seen_after(self, seen: Edition, written: Connection | None) -> Edition | None:
        """Return what is seen now if nothing changed of it but by a showing, or None."""
        if written is None:
            return seen if self.blocks.store.engine.edition() == seen else None
        return written.seen_after if written.seen_before == seen else None

    def define_frame(self, frame: Frame) -> None:
        """Write a frame of one's own: it works like a built-in one."""
        self._write(lambda conn: define_frame(conn, frame))

    def _told(self, result: FrameResult, explain: bool) -> FrameResult:
        if not explain or result.weights is None:
            return result
        return replace(result, explanation=explained(result.blocks, result.weights))

    def _reinforce(
        self, conn: Connection, shown: list[list[str]], frame: str = "", seen: Connection | None = None
    ) -> Connection:
        """Take note of what was shown; to say that is to look at nothing that others could change.

        How late it is was ``seen`` before, or is looked up.
        """
        passed = self._clock.passing(self.blocks.look() if seen is None else seen)
        note_shown(conn, shown, frame=frame, session_id=self._session, passed=passed)
        return conn

    def _read(self, query: str | None) -> tuple[Vector | None, Matrix | None]:
        """Return the vector and the tokens of a query."""
        if query is None or not string("query", query).strip():
            return None, None
        return SPACES.vector_of(query, self.embedder), READER.query_tokens(query, self.embedder)

    def _question(
        self,
        conn: Connection,
        read: tuple[Vector | None, Matrix | None],
        query: str | None,
        top_k: int | None,
        now: datetime | None,
    ) -> Question:
        return Question(
            hours=self._clock.now(conn),
            k=int(self._setting(conn, "top_k")) if top_k is None else count("top_k", top_k, 1, MOST_RESULTS),
            model=self.embedder.model_name,
            vector=read[0],
            tokens=read[1],
            text=query,
            by_words=isinstance(self.embedder, LexicalEmbedder),
            now_us=time.time_ns() // 1000 if now is None else micros("now", now),
            exploration=self._exploration,
        )
