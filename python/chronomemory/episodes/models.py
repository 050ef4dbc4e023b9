"""The data shapes of episodes, rules, deltas and facts, and the protocols of their stores."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field


class _Model(BaseModel):
    """A value of this face; a field that it does not have is a mistake."""

    model_config = ConfigDict(extra="forbid")


class Episode(_Model):
    """Something that happened, as it was said: one turn of a conversation, one observation."""

    id: str
    content: str
    timestamp: datetime
    source_node: str
    agent: str
    user: str
    session: str
    #: ``intent``, ``replaces``, ``subject``, ``predicate``, ``object`` and ``confidence`` are honoured.
    metadata: dict[str, Any] = Field(default_factory=dict)


class ConsolidationRule(_Model):
    """Which episodes become facts, and when: ``cadence`` is ``{"every": N}`` or ``{"cron": "…"}``."""

    id: str
    cadence: dict[str, Any]
    when_filter: str
    then_emits: list[str]


class _Provenance(_Model):
    """Where a delta comes from; no field has a default, so that none is forgotten."""

    source_episode_ids: list[str]
    promotion_ts: datetime
    rule_id: str
    confidence: float


class AddDelta(_Provenance):
    """A fact is new."""

    kind: Literal["add"]
    fact_payload: dict[str, Any]


class UpdateDelta(_Provenance):
    """A fact takes the place of others."""

    kind: Literal["update"]
    replaces: list[str]
    fact_payload: dict[str, Any]


class DeleteDelta(_Provenance):
    """Facts are no longer believed."""

    kind: Literal["delete"]
    replaces: list[str]


class NoopDelta(_Provenance):
    """Nothing changes; that it was looked at is on record."""

    kind: Literal["noop"]


MemoryDelta = Annotated[AddDelta | UpdateDelta | DeleteDelta | NoopDelta, Field(discriminator="kind")]


class Fact(_Model):
    """What is believed of a user, and where it comes from."""

    id: str
    user: str
    agent: str
    payload: dict[str, Any]
    #: ``rule_id``, ``source_episode_ids`` and ``promotion_ts`` of each step that led here, the oldest first.
    lineage: list[dict[str, Any]]
    confidence: float
    pinned_at: datetime
    metadata: dict[str, Any] = Field(default_factory=dict)


class FactPattern(_Model):
    """What facts must be like; None is anything."""

    subject: str | None = None
    predicate: str | None = None
    object: str | None = None
    user: str | None = None
    agent: str | None = None
    channel: str | None = None


class StoreHealth(_Model):
    """How a store is."""

    ok: bool
    version: int
    fragment_count: int
    node_count: int
    embedding_hash: str | None
    fs_type: str
    #: ``free``, ``held`` by a writer at this moment, or ``none`` where nothing was written yet.
    lock_state: str
    warnings: list[str]


class MigrationPlan(_Model):
    """Columns that are added: each ``{"op": "add_column", "name": "mood", "nullable": True}``."""

    target_version: int
    operations: list[dict[str, Any]]


@runtime_checkable
class MemoryStore(Protocol):
    """A store of episodes; ``ChronoMemoryStore`` documents the methods."""

    async def bootstrap(self) -> None: ...
    async def health(self) -> StoreHealth: ...
    async def migrate(self, plan: MigrationPlan) -> None: ...
    async def put(self, episode: Episode, *, user: str, session: str, agent: str) -> None: ...
    async def recent(
        self, user: str, session: str | None = None, agent: str | None = None, *, limit: int
    ) -> list[Episode]: ...
    async def consolidate(self, rule: ConsolidationRule) -> list[MemoryDelta]: ...


@runtime_checkable
class FactStore(Protocol):
    """A store of facts; ``ChronoFactStore`` documents the methods."""

    async def bootstrap(self) -> None: ...
    async def health(self) -> StoreHealth: ...
    async def migrate(self, plan: MigrationPlan) -> None: ...
    async def pin(self, fact: Fact) -> None: ...
    async def query(self, pattern: FactPattern) -> list[Fact]: ...
    async def unpin(self, fact_id: str) -> None: ...
    async def apply_delta(self, delta: MemoryDelta) -> None: ...
