"""How does a script live with a memory of blocks? Learn, consolidate, recall, and tell how it went."""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from chronomemory.blocks.clock import Clock
from chronomemory.blocks.connection import Connection
from chronomemory.blocks.consolidation import (
    Analyser,
    ConsolidateResult,
    Judge,
    consolidate_batch,
    embedded,
)
from chronomemory.blocks.curation import CurateResult, curate
from chronomemory.blocks.engine import Blocks, open_blocks
from chronomemory.blocks.explain import explained
from chronomemory.blocks.frames import Frame, define_frame, load_frame
from chronomemory.blocks.ids import BLOCK, CONTRADICTION, EDGE, block_key
from chronomemory.blocks.learning import drafted, edit, forget, learn
from chronomemory.blocks.outcomes import OutcomeResult, connect, disconnect, note_together, outcome
from chronomemory.blocks.retrieval import EXPANSION, Question, TokenCounter, frame_of, recall
from chronomemory.blocks.storage.blocks import block_dict, known_block, reinforce_blocks, tags_of
from chronomemory.blocks.storage.config import get_config
from chronomemory.blocks.storage.seed import DEFAULT_CONFIG, SIMULATE, seed_builtin_data, seed_frame
from chronomemory.blocks.storage.sessions import end_session, get_active_session, start_session
from chronomemory.blocks.storage.tags import like
from chronomemory.blocks.types import FrameResult, LearnResult, ScoredBlock
from chronomemory.embedders import Embedder, LexicalEmbedder, Vector
from chronomemory.event import WalEvent
from chronomemory.store import ChronoStore

__all__ = ["Memory", "MemoryStatus"]

#: How many blocks of the inbox become part of the memory at once.
_CONSOLIDATED_BLOCKS = 500
#: So many blocks in the inbox are worth a consolidation.
_FULL_INBOX = 10
#: How strongly blocks are linked that someone linked by hand.
_LINK_WEIGHT = 0.65

#: No recall gives more.
_MOST_RESULTS = 10_000

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class MemoryStatus:
    """What there is, how late it is, and what could be done next."""

    inbox: int
    active: int
    archived: int
    edges: int
    contradictions: int
    active_hours: float
    session: str | None
    embedding_model: str
    suggestion: str


class Memory:
    """A memory that works without any model or network; the asynchronous twin is ``MemorySystem``.

    >>> import tempfile
    >>> with Memory(tempfile.mkdtemp()) as memory:
    ...     _ = memory.remember("The deploy key lives in the vault")
    ...     memory.recall("where is the deploy key?")[0].content
    'The deploy key lives in the vault'
    """

    def __init__(
        self,
        place: str | os.PathLike[str] | ChronoStore | Blocks,
        *,
        embedder: Embedder | None = None,
        analyser: Analyser | None = None,
        judge: Judge | None = None,
        token_counter: TokenCounter | None = None,
        exploration: float = 0.0,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self.blocks = place if isinstance(place, Blocks) else open_blocks(place)
        self.embedder: Embedder = embedder if embedder is not None else LexicalEmbedder()
        self._analyser = analyser
        self._judge = judge
        self._counter = token_counter
        self._exploration = exploration
        self._seconds = seconds
        self._clock = Clock(seconds)
        self._session: str | None = None
        self._turn = threading.RLock()
        self._cached: dict[tuple[Any, ...], tuple[float, FrameResult]] = {}
        self.blocks.run(_seed)

    def close(self) -> None:
        """End an open session and let go."""
        if self._session is not None:
            self.end_session()
        self.blocks.close()

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Time.

    def begin_session(self, task_type: str = "general") -> str:
        """Open a session, in which time passes, and return its id; an open one is ended first."""
        if self._session is not None:
            self.end_session()
        session_id = uuid.uuid4().hex

        def work(conn: Connection) -> None:
            hours = self._clock.now(conn)
            start_session(conn, session_id=session_id, task_type=task_type, start_active_hours=hours)

        self.blocks.run(work)
        self._clock.start()
        self._session = session_id
        return session_id

    def end_session(self) -> None:
        """End the session; its hours are added to the clock."""
        session_id = self._session
        if session_id is None:
            return

        def work(conn: Connection) -> None:
            self._clock.tick(conn)
            end_session(conn, session_id)

        self._write(work)
        self._clock.stop()
        self._session = None

    @contextmanager
    def session(self, task_type: str = "general") -> Iterator[str]:
        """Open a session for the length of a block."""
        session_id = self.begin_session(task_type)
        try:
            yield session_id
        finally:
            self.end_session()

    def active_hours(self) -> float:
        """Return how late it is."""
        return self._clock.now(Connection(self.blocks.store, writable=False))

    def _write(self, work: Callable[[Connection], T], *, keeps_cache: bool = False) -> T:
        with self._turn:
            self._clock.begin()
            done = self.blocks.run(work)
            self._clock.ticked()
            if not keeps_cache:
                self._cached.clear()
            return done

    # Learning.

    def learn(
        self, content: str, tags: Sequence[str] = (), category: str = "knowledge", source: str = "api"
    ) -> LearnResult:
        """Put something into the inbox: one small event, no embedding, no model."""
        record = drafted(content, tags, category, source, hours=self.active_hours(), session_id=self._session)
        return learn(self.blocks, record)

    def remember(
        self, content: str, tags: Sequence[str] = (), category: str = "knowledge", source: str = "api"
    ) -> LearnResult:
        """Learn something and consolidate at once, so that it can be recalled."""
        learned = self.learn(content, tags, category, source)
        self.consolidate()
        return learned

    def consolidate(self, limit: int | None = None) -> ConsolidateResult:
        """Embed what waits in the inbox, compare it with what is known, link it and make it active."""
        total = ConsolidateResult()
        engine = self.blocks.store.engine
        while limit is None or total.processed < limit:
            most = (
                _CONSOLIDATED_BLOCKS if limit is None else min(_CONSOLIDATED_BLOCKS, limit - total.processed)
            )
            records = engine.query(kind=BLOCK, status="inbox", limit=most)
            if not records:
                break
            with self.blocks.connect() as conn:
                vectors = embedded(conn, records, self.embedder)

            def work(conn: Connection, records: Any = records, vectors: Any = vectors) -> ConsolidateResult:
                return consolidate_batch(
                    conn,
                    records,
                    vectors,
                    model=self.embedder.model_name,
                    hours=self._clock.tick(conn),
                    analyser=self._analyser,
                    judge=self._judge,
                    counter=self._counter,
                )

            total.add(self._write(work))
        return total

    def dream(self) -> tuple[ConsolidateResult, CurateResult]:
        """Consolidate and curate: what to do when nothing else is to be done."""
        return self.consolidate(), self.curate()

    def edit(self, block_id: str, content: str) -> LearnResult:
        """Say a block in other words; the new one waits in the inbox and takes over tags and links."""
        return self._write(
            lambda conn: edit(conn, block_id, content, hours=self._clock.tick(conn), session_id=self._session)
        )

    def forget(self, block_id: str) -> None:
        """Put a block away."""
        self._write(lambda conn: forget(conn, block_id))

    # Finding.

    def recall(
        self,
        query: str | None = None,
        *,
        top_k: int | None = None,
        frame: str = "attention",
        tags: Sequence[str] | None = None,
        categories: Sequence[str] | None = None,
        min_confidence: float | None = None,
        window: float | None = None,
        diversify: bool = False,
        expansion: int = EXPANSION,
    ) -> list[ScoredBlock]:
        """Return the blocks that matter here, the best first; nothing is changed by asking."""
        vector = self._vector(query)
        with self.blocks.connect() as conn:
            asked = load_frame(conn, frame)
            given = {
                "tag_patterns": None if tags is None else tuple(tags),
                "categories": None if categories is None else tuple(categories),
                "min_confidence": min_confidence,
                "search_window": window,
            }
            changed = {name: value for name, value in given.items() if value is not None}
            asked = asked.model_copy(update={"filters": asked.filters.model_copy(update=changed)})
            question = self._question(conn, vector, query, top_k)
            return recall(conn, asked, replace(question, diversify=diversify, expansion=expansion))

    def frame(
        self,
        name: str,
        query: str | None = None,
        *,
        top_k: int | None = None,
        token_budget: int | None = None,
        token_counter: TokenCounter | None = None,
        explain: bool = False,
    ) -> FrameResult:
        """Return a rendered frame, and reinforce the blocks that are in it."""
        with self.blocks.connect() as conn:
            asked = load_frame(conn, name)
        key = (name, query, top_k, token_budget, token_counter)
        known = self._cached.get(key)
        if known is not None and self._seconds() < known[0]:
            return self._told(replace(known[1], cached=True), explain)
        vector = self._vector(query)
        with self.blocks.connect() as conn:
            question = self._question(conn, vector, query, top_k)
            budget = asked.token_budget if token_budget is None else token_budget
            result = frame_of(
                conn, asked, replace(question, budget=budget, counter=token_counter or self._counter)
            )
        shown = [block.id for block in result.blocks]
        if shown:
            self._write(lambda conn: self._reinforce(conn, shown), keeps_cache=True)
        if asked.cache is not None and asked.cache.ttl_seconds > 0:
            self._cached[key] = (self._seconds() + asked.cache.ttl_seconds, result)
        return self._told(result, explain)

    def define_frame(self, frame: Frame) -> None:
        """Write a frame of one's own: it works like a built-in one."""
        self._write(lambda conn: define_frame(conn, frame))

    def _told(self, result: FrameResult, explain: bool) -> FrameResult:
        if not explain or result.weights is None:
            return result
        return replace(result, explanation=explained(result.blocks, result.weights))

    def _reinforce(self, conn: Connection, shown: list[str]) -> None:
        hours = self._clock.tick(conn)
        reinforce_blocks(conn, shown, hours)
        note_together(conn, shown, self._session, hours=hours)

    def _vector(self, query: str | None) -> Vector | None:
        return None if query is None or not query.strip() else self.embedder.embed(query)

    def _question(
        self, conn: Connection, vector: Vector | None, query: str | None, top_k: int | None
    ) -> Question:
        most = int(get_config(conn, "top_k") or DEFAULT_CONFIG["top_k"]) if top_k is None else top_k
        if not 1 <= most <= _MOST_RESULTS:
            raise ValueError(f"top_k: {most} is not within 1 and {_MOST_RESULTS:,}")
        hours = self._clock.now(conn)
        return Question(
            hours=hours,
            k=most,
            model=self.embedder.model_name,
            vector=vector,
            text=query,
            exploration=self._exploration,
        )

    # What comes back.

    def outcome(self, block_ids: Sequence[str], signal: float, weight: float = 1.0) -> OutcomeResult:
        """Tell blocks how it went, from 0 (bad) to 1 (good)."""
        return self._write(
            lambda conn: outcome(conn, block_ids, signal, weight, hours=self._clock.tick(conn))
        )

    def connect(self, one: str, other: str, weight: float = _LINK_WEIGHT) -> bool:
        """Link two blocks, or count one more use; say whether the link is new."""

        def work(conn: Connection) -> bool:
            for block_id in (one, other):
                known_block(conn, block_id)
            return connect(conn, one, other, weight, hours=self._clock.tick(conn))

        return self._write(work)

    def disconnect(self, one: str, other: str) -> bool:
        """Take a link away; say whether there was one."""
        return self._write(lambda conn: disconnect(conn, one, other))

    def curate(self) -> CurateResult:
        """Archive what has faded, let links fade and take weak ones away."""
        return self._write(lambda conn: curate(conn, hours=self._clock.tick(conn)))

    # Looking around.

    def ls(
        self,
        *,
        status: str | None = "active",
        tag: str | None = None,
        category: str | None = None,
        limit: int | None = None,
    ) -> list[dict[str, Any]]:
        """Return blocks as dicts with their tags, in the order in which they came."""
        with self.blocks.connect() as conn:
            found = conn.records(BLOCK, *((status,) if status else ()))
        rows = [
            {**block_dict(record), "tags": list(tags_of(record))}
            for record in found
            if (category is None or record.data["category"] == category)
            and (tag is None or any(like(tag, own) for own in tags_of(record)))
        ]
        return rows[:limit]

    def status(self) -> MemoryStatus:
        """Say what there is, and what could be done next."""
        with self.blocks.connect() as conn:
            inbox, active, archived = (
                conn.count(BLOCK, status) for status in ("inbox", "active", "archived")
            )
            session = get_active_session(conn)
            return MemoryStatus(
                inbox=inbox,
                active=active,
                archived=archived,
                edges=conn.count(EDGE, "active"),
                contradictions=conn.count(CONTRADICTION, "active"),
                active_hours=self._clock.now(conn),
                session=None if session is None else str(session["id"]),
                embedding_model=self.embedder.model_name,
                suggestion=_suggestion(inbox, active),
            )

    def history(self, block_id: str) -> list[WalEvent]:
        """Return every event of a block, oldest first."""
        return self.blocks.store.history(block_key(block_id))


def _seed(conn: Connection) -> None:
    seed_builtin_data(conn)
    seed_frame(conn, "simulate", SIMULATE)


def _suggestion(inbox: int, active: int) -> str:
    if not inbox and not active:
        return "Nothing is known yet: learn something."
    if inbox >= _FULL_INBOX or (inbox and not active):
        return f"{inbox} blocks wait in the inbox: dream, so that they can be recalled."
    return "All is well."
