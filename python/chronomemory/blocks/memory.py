"""How does a script live with a memory of blocks? Learn, consolidate, recall, and tell how it went."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from chronomemory.asked import flag
from chronomemory.blocks import embeddings
from chronomemory.blocks.asking import Analyser, Answers, Judge, KeptAnswers, TokenCounter
from chronomemory.blocks.checks import (
    check_budget,
    check_count,
    check_finite,
    check_list,
    check_text,
    check_within,
)
from chronomemory.blocks.connection import Connection
from chronomemory.blocks.consolidation import ConsolidateResult, Consolidation
from chronomemory.blocks.curation import CurateResult, curate
from chronomemory.blocks.engine import Blocks, open_blocks
from chronomemory.blocks.explain import explained
from chronomemory.blocks.frames import Frame, define_frame, load_frame
from chronomemory.blocks.ids import block_key, plain_id
from chronomemory.blocks.kept import KeptFrames
from chronomemory.blocks.learning import EDITED, drafted, edit, forget, learn
from chronomemory.blocks.outcomes import OutcomeResult, connect, disconnect, note_together, outcome
from chronomemory.blocks.retrieval import EXPANSION, Question, frame_of, recall
from chronomemory.blocks.storage.blocks import reinforce_blocks, tags_of
from chronomemory.blocks.storage.config import MOST_RESULTS, get_number
from chronomemory.blocks.storage.seed import SIMULATE, seed_builtin_data, seed_frame
from chronomemory.blocks.survey import MemoryStatus, listed, survey
from chronomemory.blocks.timed import Timed
from chronomemory.blocks.types import BlockStatus, FrameResult, LearnResult, ScoredBlock
from chronomemory.embedders import Embedder, LexicalEmbedder, Vector
from chronomemory.event import WalEvent
from chronomemory.store import ChronoStore

__all__ = ["Memory", "MemoryStatus"]

#: How strongly blocks are linked that someone linked by hand.
_LINK_WEIGHT = 0.65


class Memory(Timed):
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
        self._exploration = check_finite("exploration", exploration, least=0.0)
        super().__init__(place if isinstance(place, Blocks) else open_blocks(place), seconds)
        self.embedder: Embedder = embedder if embedder is not None else LexicalEmbedder()
        self._analyser = analyser
        self._judge = judge
        self._counter = token_counter
        self._answers = KeptAnswers()
        self._kept = KeptFrames(seconds)
        self.blocks.run(_seed)

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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
        if limit is not None:
            limit = check_count("limit", limit, 0)
        return self._consolidation().run(limit)

    def _consolidation(self) -> Consolidation:
        answers = Answers(self._analyser, self._judge, self._counter, self._answers)
        return Consolidation(self.blocks, self.embedder, answers, self._write, self._hour)

    def dream(self) -> tuple[ConsolidateResult, CurateResult]:
        """Consolidate and curate: what to do when nothing else is to be done."""
        return self.consolidate(), self.curate()

    def edit(self, block_id: str, content: str) -> LearnResult:
        """Say a block in other words; the new one takes over tags and links, and waits in the inbox.

        A constitutional block never falls out of ``self``: its new words are consolidated at once.
        """

        def change(conn: Connection, hours: float) -> LearnResult:
            return edit(conn, block_id, content, hours=hours, session_id=self._session)

        with self.blocks.connect() as conn:
            old = conn.record(block_key(check_text("block_id", block_id)))
        if old is None or old.status != BlockStatus.ACTIVE or "self/constitutional" not in tags_of(old):
            return self._write(lambda conn: change(conn, self._clock.tick(conn)))
        category, source = old.data["category"], old.data["source"]
        new = drafted(content, tags_of(old), category, source, hours=0.0, session_id=None)
        self._consolidation().take_at_once(new, change)
        return LearnResult(plain_id(new.id), EDITED)

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
        expansion = check_count("expansion", expansion, 0, MOST_RESULTS)
        diversify = flag("diversify", diversify)
        narrowed: dict[str, Any] = {}
        if tags is not None:
            narrowed["tag_patterns"] = tuple(check_list("tags", tags))
        if categories is not None:
            narrowed["categories"] = tuple(check_list("categories", categories))
        if min_confidence is not None:
            narrowed["min_confidence"] = check_within("min_confidence", min_confidence)
        if window is not None:
            narrowed["search_window"] = check_finite("window", window, least=0.0)
        vector = self._vector(query)
        with self.blocks.connect() as conn:
            asked = load_frame(conn, frame)
            asked = asked.model_copy(update={"filters": asked.filters.model_copy(update=narrowed)})
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
        if query is not None:
            check_text("query", query)
        head, seq = self.blocks.store.head(), self.blocks.store.wal_seq()
        with self.blocks.connect() as conn:
            asked = load_frame(conn, name)
        budget = asked.token_budget if token_budget is None else check_budget(token_budget)
        counter = self._counter if token_counter is None else token_counter
        key = (name, query, top_k, budget, self._kept.name_of(token_counter))
        known = self._kept.get(key, head)
        if known is not None:
            return self._told(replace(known, cached=True), explain)
        vector = self._vector(query)
        with self.blocks.connect() as conn:
            question = self._question(conn, vector, query, top_k)
            result = frame_of(conn, asked, replace(question, budget=budget, counter=counter))
        shown = [block.id for block in result.blocks]
        written = self._write(lambda conn: self._reinforce(conn, shown)) if shown else 0
        after = self._head_after(head, seq, written)
        if after is not None:
            self._kept.follow(head, after)
            if asked.cache is not None:
                self._kept.keep(key, result, after, asked.cache.ttl_seconds)
        return self._told(result, explain)

    def _head_after(self, head: str, seq: int, events: int) -> str | None:
        """Return the head if nothing but these events followed the former one, or None."""
        store = self.blocks.store
        if not events:
            return head if store.head() == head else None
        if store.wal_seq() != seq + events:
            return None
        # Numbers alone prove nothing: a restore sets them back.
        own = store.replay(from_seq=seq + 1)
        return own[-1].hash if len(own) == events and own[0].prev_hash == head else None

    def define_frame(self, frame: Frame) -> None:
        """Write a frame of one's own: it works like a built-in one."""
        self._write(lambda conn: define_frame(conn, frame))

    def _told(self, result: FrameResult, explain: bool) -> FrameResult:
        if not explain or result.weights is None:
            return result
        return replace(result, explanation=explained(result.blocks, result.weights))

    def _reinforce(self, conn: Connection, shown: list[str]) -> int:
        """Take note of what was shown, and return how many events that is."""
        hours = self._clock.tick(conn)
        reinforce_blocks(conn, shown, hours)
        note_together(conn, shown, self._session, hours=hours)
        return conn.events()

    def _vector(self, query: str | None) -> Vector | None:
        if query is None or not check_text("query", query).strip():
            return None
        return embeddings.of_query(self.blocks.store, query, self.embedder)

    def _question(
        self, conn: Connection, vector: Vector | None, query: str | None, top_k: int | None
    ) -> Question:
        return Question(
            hours=self._clock.now(conn),
            k=int(get_number(conn, "top_k"))
            if top_k is None
            else check_count("top_k", top_k, 1, MOST_RESULTS),
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
        return self._write(lambda conn: connect(conn, one, other, weight, hours=self._clock.tick(conn)))

    def disconnect(self, one: str, other: str) -> bool:
        """Take a link away; say whether there was one."""
        return self._write(lambda conn: disconnect(conn, one, other))

    def curate(self) -> CurateResult:
        """Archive what has faded, let links fade and take weak ones away."""
        with self.blocks.connect() as conn:
            return curate(conn, self._write, hours=self._hour())

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
            return listed(conn, status=status, tag=tag, category=category, limit=limit)

    def status(self) -> MemoryStatus:
        """Say what there is, and what could be done next."""
        with self.blocks.connect() as conn:
            hours, model = self._clock.now(conn), self.embedder.model_name
            return survey(conn, hours=hours, model=model, session_id=self._session)

    def history(self, block_id: str) -> list[WalEvent]:
        """Return every event of a block, oldest first."""
        return self.blocks.store.history(block_key(check_text("block_id", block_id)))


def _seed(conn: Connection) -> None:
    seed_builtin_data(conn)
    seed_frame(conn, "simulate", SIMULATE)
