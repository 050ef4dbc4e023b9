"""How does an agent live with a memory of blocks? The verbs of ``Memory``, awaited.

What takes longer than a few microseconds runs in a thread of the loop, so that other tasks go on.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, ParamSpec, TypeVar

from chronomemory.blocks.asking import TokenCounter
from chronomemory.blocks.consolidation import ConsolidateResult
from chronomemory.blocks.curation import CurateResult
from chronomemory.blocks.engine import Blocks
from chronomemory.blocks.frames import Frame
from chronomemory.blocks.memory import Memory, MemoryStatus
from chronomemory.blocks.outcomes import OutcomeResult
from chronomemory.blocks.types import FrameResult, LearnResult, ScoredBlock
from chronomemory.event import WalEvent
from chronomemory.store import ChronoStore

__all__ = ["MemorySystem"]

P = ParamSpec("P")
T = TypeVar("T")


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

    def __init__(self, place: str | os.PathLike[str] | ChronoStore | Blocks, **options: Any) -> None:
        self.memory = Memory(place, **options)

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
        self, content: str, tags: Sequence[str] = (), category: str = "knowledge", source: str = "api"
    ) -> LearnResult:
        """Put something into the inbox."""
        return await self._call(self.memory.learn, content, tags, category, source)

    async def remember(
        self, content: str, tags: Sequence[str] = (), category: str = "knowledge", source: str = "api"
    ) -> LearnResult:
        """Learn something and consolidate at once."""
        return await self._call(self.memory.remember, content, tags, category, source)

    async def consolidate(self, limit: int | None = None) -> ConsolidateResult:
        """Bring the inbox into the memory."""
        return await self._call(self.memory.consolidate, limit)

    async def dream(self) -> tuple[ConsolidateResult, CurateResult]:
        """Consolidate and curate."""
        return await self._call(self.memory.dream)

    async def recall(self, query: str | None = None, **options: Any) -> list[ScoredBlock]:
        """Return the blocks that matter here; the options are those of ``Memory.recall``."""
        return await self._call(self.memory.recall, query, **options)

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

    async def outcome(self, block_ids: Sequence[str], signal: float, weight: float = 1.0) -> OutcomeResult:
        """Tell blocks how it went."""
        return await self._call(self.memory.outcome, block_ids, signal, weight)

    async def connect(self, one: str, other: str, weight: float = 0.65) -> bool:
        """Link two blocks."""
        return await self._call(self.memory.connect, one, other, weight)

    async def disconnect(self, one: str, other: str) -> bool:
        """Take a link away."""
        return await self._call(self.memory.disconnect, one, other)

    async def curate(self) -> CurateResult:
        """Let go of what has faded."""
        return await self._call(self.memory.curate)

    async def edit(self, block_id: str, content: str) -> LearnResult:
        """Say a block in other words."""
        return await self._call(self.memory.edit, block_id, content)

    async def forget(self, block_id: str) -> None:
        """Put a block away."""
        await self._call(self.memory.forget, block_id)

    @asynccontextmanager
    async def session(self, task_type: str = "general") -> AsyncIterator[str]:
        """Be in a session, in which time passes, for the length of a block; tasks share one."""
        entry = _Entry(self.memory, task_type)
        try:
            session_id = await self._call(entry.enter)
            yield session_id
        finally:
            # Neither a task that is cancelled at the door nor one that is cancelled twice stays inside.
            await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, entry.leave))

    async def ls(self, **options: Any) -> list[dict[str, Any]]:
        """Return blocks as dicts; the options are those of ``Memory.ls``."""
        return await self._call(self.memory.ls, **options)

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
