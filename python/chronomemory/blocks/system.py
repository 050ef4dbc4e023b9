"""How does an agent live with a memory of blocks? The verbs of ``Memory``, awaited.

What takes longer than a few microseconds runs in a thread of the loop, so that other tasks go on.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, ParamSpec, TypeVar

from chronomemory.blocks.asking import Analyser, Judge, TokenCounter
from chronomemory.blocks.configuration import Config, Place, configured
from chronomemory.blocks.consolidation import ConsolidateResult, DreamResult
from chronomemory.blocks.curation import CurateResult
from chronomemory.blocks.documents import CHUNK_WORDS, Chunker, LearnDocumentResult
from chronomemory.blocks.engine import Blocks
from chronomemory.blocks.frames import Frame
from chronomemory.blocks.linking import ConnectResult, DisconnectResult, IfExists
from chronomemory.blocks.memory import Memory, MemoryStatus
from chronomemory.blocks.outcomes import OutcomeResult
from chronomemory.blocks.types import ForgetResult, FrameResult, LearnResult, ScoredBlock
from chronomemory.embedders import Embedder
from chronomemory.event import WalEvent

__all__ = ["MemorySystem"]

P = ParamSpec("P")
T = TypeVar("T")
Own = TypeVar("Own", bound="MemorySystem")


class MemorySystem:
    """The friendly face of blocks; the options are those of ``Memory``.

    >>> import asyncio, tempfile
    >>> async def live() -> str:
    ...     async with MemorySystem(tempfile.mkdtemp()) as system:
    ...         await system.remember("Anna prefers short answers", tags=["self/value"])
    ...         return (await system.frame("self")).text
    >>> print(asyncio.run(live()))
    ## Who I am
    - Anna prefers short answers
    """

    def __init__(
        self,
        place: Place,
        *,
        embedder: Embedder | None = None,
        analyser: Analyser | None = None,
        judge: Judge | None = None,
        token_counter: TokenCounter | None = None,
        exploration: float = 0.0,
        top_k: int | None = None,
        inbox_threshold: int | None = None,
        prune_threshold: float | None = None,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self.memory = Memory(
            place,
            embedder=embedder,
            analyser=analyser,
            judge=judge,
            token_counter=token_counter,
            exploration=exploration,
            top_k=top_k,
            inbox_threshold=inbox_threshold,
            prune_threshold=prune_threshold,
            seconds=seconds,
        )

    @classmethod
    async def from_config(
        cls: type[Own],
        place: Place | Config | None = None,
        config: Config | None = None,
        *,
        embedder: Embedder | None = None,
        analyser: Analyser | None = None,
        judge: Judge | None = None,
        token_counter: TokenCounter | None = None,
    ) -> Own:
        """Open a memory as a configuration says; see ``Memory.from_config``."""
        told = configured(place, config)
        return cls(
            told.place,
            embedder=told.embedder if embedder is None else embedder,
            analyser=analyser,
            judge=judge,
            token_counter=token_counter,
            **told.options,
        )

    @property
    def blocks(self) -> Blocks:
        """The blocks behind it, for the storage functions."""
        return self.memory.blocks

    async def close(self) -> None:
        """End an open session and let go."""
        await self._call(self.memory.close)

    async def __aenter__(self) -> MemorySystem:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @staticmethod
    async def _call(verb: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(verb, *args, **kwargs)

    async def learn(
        self,
        content: str,
        tags: Sequence[str] | None = None,
        category: str = "knowledge",
        source: str = "api",
    ) -> LearnResult:
        """Put something into the inbox."""
        return await self._call(self.memory.learn, content, tags, category, source)

    async def remember(
        self,
        content: str,
        tags: Sequence[str] | None = None,
        category: str = "knowledge",
        source: str = "api",
    ) -> LearnResult:
        """Learn something and consolidate at once."""
        return await self._call(self.memory.remember, content, tags, category, source)

    async def learn_document(
        self,
        text: str,
        *,
        chunk_size: int = CHUNK_WORDS,
        chunker: Chunker | None = None,
        tags: Sequence[str] | None = None,
        category: str = "knowledge",
        source: str = "document",
        skip_llm: bool = False,
    ) -> LearnDocumentResult:
        """Learn a long text paragraph by paragraph."""
        return await self._call(
            self.memory.learn_document,
            text,
            chunk_size=chunk_size,
            chunker=chunker,
            tags=tags,
            category=category,
            source=source,
            skip_llm=skip_llm,
        )

    @property
    def last_learned_block_id(self) -> str | None:
        """The block that was learned last in this session, or None."""
        return self.memory.last_learned_block_id

    async def consolidate(self, limit: int | None = None, *, skip_llm: bool = False) -> ConsolidateResult:
        """Bring the inbox into the memory."""
        return await self._call(self.memory.consolidate, limit, skip_llm=skip_llm)

    @property
    def should_dream(self) -> bool:
        """Whether so many blocks wait in the inbox that it is time to dream."""
        return self.memory.should_dream

    async def dream(self, *, skip_llm: bool = False) -> DreamResult:
        """Consolidate and curate."""
        return await self._call(self.memory.dream, skip_llm=skip_llm)

    async def recall(
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
        expansion: int | None = None,
    ) -> list[ScoredBlock]:
        """Return the blocks that matter here, the best first."""
        return await self._call(
            self.memory.recall,
            query,
            top_k=top_k,
            frame=frame,
            tags=tags,
            categories=categories,
            min_confidence=min_confidence,
            window=window,
            diversify=diversify,
            expansion=expansion,
        )

    async def frame(
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
        return await self._call(
            self.memory.frame,
            name,
            query,
            top_k=top_k,
            token_budget=token_budget,
            token_counter=token_counter,
            explain=explain,
        )

    async def define_frame(self, frame: Frame) -> None:
        """Write a frame of one's own."""
        await self._call(self.memory.define_frame, frame)

    async def outcome(
        self, block_ids: Sequence[str], signal: float, weight: float = 1.0, *, source: str = ""
    ) -> OutcomeResult:
        """Tell blocks how it went, and who says so."""
        return await self._call(self.memory.outcome, block_ids, signal, weight, source=source)

    async def connect(
        self,
        source: str,
        target: str,
        relation: str | float | None = None,
        *,
        weight: float | None = None,
        note: str | None = None,
        if_exists: IfExists = "reinforce",
    ) -> ConnectResult:
        """Link two blocks, or count one more use of their link."""
        return await self._call(
            self.memory.connect,
            source,
            target,
            relation,
            weight=weight,
            note=note,
            if_exists=if_exists,
        )

    async def disconnect(self, source: str, target: str) -> DisconnectResult:
        """Take a link away."""
        return await self._call(self.memory.disconnect, source, target)

    async def curate(self) -> CurateResult:
        """Let go of what has faded."""
        return await self._call(self.memory.curate)

    async def edit(self, block_id: str, content: str) -> LearnResult:
        """Say a block in other words."""
        return await self._call(self.memory.edit, block_id, content)

    async def forget(self, block_id: str) -> ForgetResult:
        """Put a block away."""
        return await self._call(self.memory.forget, block_id)

    @property
    def session_id(self) -> str | None:
        """The session that is open here, or None."""
        return self.memory.session_id

    async def begin_session(self, task_type: str = "general") -> str:
        """Open a session and return its id; one that is open here goes on."""
        return await self._call(self.memory.begin_session, task_type)

    async def end_session(self) -> float:
        """End the session and return its hours."""
        return await self._call(self.memory.end_session)

    @asynccontextmanager
    async def session(self: Own, task_type: str = "general") -> AsyncIterator[Own]:
        """Be in a session, in which time passes, for the length of a block; tasks share one."""
        entry = _Entry(self.memory, task_type)
        try:
            await self._call(entry.enter)
            yield self
        finally:
            # Neither a task that is cancelled at the door nor one that is cancelled twice stays inside.
            await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, entry.leave))

    async def ls(
        self,
        *,
        status: str | None = "active",
        tag: str | None = None,
        category: str | None = None,
        limit: int | None = None,
    ) -> list[dict[str, Any]]:
        """Return blocks as dicts with their tags, in the order in which they came."""
        return await self._call(self.memory.ls, status=status, tag=tag, category=category, limit=limit)

    def guide(self, method: str | None = None) -> str:
        """Return how the memory is used, or how one of its verbs is; not awaited."""
        return self.memory.guide(method)

    async def status(self) -> MemoryStatus:
        """Say what there is, and what could be done next."""
        return await self._call(self.memory.status)

    async def history(self, block_id: str) -> list[WalEvent]:
        """Return every event of a block, oldest first."""
        return await self._call(self.memory.history, block_id)


class _Entry:
    """One way into a session: a thread goes on entering when its task has been cancelled."""

    def __init__(self, memory: Memory, task_type: str) -> None:
        self._memory = memory
        self._task_type = task_type
        self._turn = threading.Lock()
        self._inside = self._over = False

    def enter(self) -> str:
        """Enter, unless the task has left already."""
        with self._turn:
            if self._over:
                raise asyncio.CancelledError
            session_id = self._memory.enter_session(self._task_type)
            self._inside = True
            return session_id

    def leave(self) -> None:
        """Leave if it is inside, and let it never come in again."""
        with self._turn:
            self._over = True
            if self._inside:
                self._inside = False
                self._memory.leave_session()
