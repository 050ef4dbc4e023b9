"""A memory of blocks for agents: the verbs of ``Memory``, awaited.

What takes longer than a few microseconds runs in a thread of the loop, so that other tasks go on.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

from chronomemory.blocks.configuration import Config, Place, configured
from chronomemory.blocks.engine import Blocks
from chronomemory.blocks.memory import Memory, MemoryModels, MemoryOptions
from chronomemory.face.awaited import Awaited, awaited_verb, entered
from chronomemory.types import Unpack

Own = TypeVar("Own", bound="MemorySystem")


class MemorySystem(Awaited[Memory]):
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

    def __init__(self, place: Place, **options: Unpack[MemoryOptions]) -> None:
        super().__init__(Memory(place, **options))

    @classmethod
    async def from_config(
        cls: type[Own],
        place: Place | Config | None = None,
        config: Config | None = None,
        **options: Unpack[MemoryModels],
    ) -> Own:
        """Open a memory as a configuration says; see ``Memory.from_config``."""
        place, settings = configured(place, config)
        if options.get("embedder") is None:
            options["embedder"] = settings.pop("embedder")
        return cls(place, **{**settings, **options})

    @property
    def memory(self) -> Memory:
        """The memory behind it, with the plain verbs."""
        return self._plain

    @property
    def blocks(self) -> Blocks:
        """The blocks behind it, for the storage functions."""
        return self.memory.blocks

    close = awaited_verb(Memory.close)

    async def __aenter__(self: Own) -> Own:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # Learning.

    learn = awaited_verb(Memory.learn)
    remember = awaited_verb(Memory.remember)
    learn_document = awaited_verb(Memory.learn_document)
    consolidate = awaited_verb(Memory.consolidate)
    dream = awaited_verb(Memory.dream)
    edit = awaited_verb(Memory.edit)
    forget = awaited_verb(Memory.forget)
    restore = awaited_verb(Memory.restore)
    keep = awaited_verb(Memory.keep)
    reembed = awaited_verb(Memory.reembed)

    @property
    def last_learned_block_id(self) -> str | None:
        """The block that was learned last in this session, or None."""
        return self.memory.last_learned_block_id

    @property
    def should_dream(self) -> bool:
        """Whether so many blocks wait in the inbox that it is time to dream."""
        return self.memory.should_dream

    # What comes back.

    recall = awaited_verb(Memory.recall)
    frame = awaited_verb(Memory.frame)
    define_frame = awaited_verb(Memory.define_frame)
    outcome = awaited_verb(Memory.outcome)
    connect = awaited_verb(Memory.connect)
    disconnect = awaited_verb(Memory.disconnect)
    curate = awaited_verb(Memory.curate)

    # Sessions.

    begin_session = awaited_verb(Memory.begin_session)
    end_session = awaited_verb(Memory.end_session)

    @property
    def session_id(self) -> str | None:
        """The session that is open here, or None."""
        return self.memory.session_id

    @asynccontextmanager
    async def session(self: Own, task_type: str = "general") -> AsyncIterator[Own]:
        """Be in a session, in which time passes, for the length of a block; tasks share one."""
        memory = self.memory
        async with entered(lambda: memory._enter_session(task_type), memory._leave_session):
            yield self

    # Looking around.

    get = awaited_verb(Memory.get)
    list = awaited_verb(Memory.list)
    status = awaited_verb(Memory.status)
    history = awaited_verb(Memory.history)

    def guide(self, method: str | None = None) -> str:
        """Return how the memory is used, or how one of its verbs is; not awaited."""
        return self.memory.guide(method)
