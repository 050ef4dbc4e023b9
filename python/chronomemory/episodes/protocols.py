"""What a store of episodes and a store of facts can be asked, whoever provides it."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from chronomemory.episodes.models import (
    ConsolidationRule,
    Episode,
    Fact,
    FactPattern,
    MemoryDelta,
    MigrationPlan,
    StoreHealth,
)


@runtime_checkable
class MemoryStore(Protocol):
    """A store of episodes."""

    async def bootstrap(self) -> None:
        """Make the store ready; doing so twice is fine."""

    async def health(self) -> StoreHealth:
        """Say how the store is."""

    async def migrate(self, plan: MigrationPlan) -> None:
        """Add columns."""

    async def put(self, episode: Episode, *, user: str, session: str, agent: str) -> None:
        """Keep an episode of a user, session and agent."""

    async def recent(
        self, user: str, session: str | None = None, agent: str | None = None, *, limit: int
    ) -> list[Episode]:
        """Return the latest episodes, newest first."""

    async def consolidate(self, rule: ConsolidationRule) -> list[MemoryDelta]:
        """Return what a rule makes of the episodes; nothing is written."""


@runtime_checkable
class FactStore(Protocol):
    """A store of facts."""

    async def bootstrap(self) -> None:
        """Make the store ready; doing so twice is fine."""

    async def health(self) -> StoreHealth:
        """Say how the store is."""

    async def migrate(self, plan: MigrationPlan) -> None:
        """Add columns."""

    async def pin(self, fact: Fact) -> None:
        """Keep a fact, in place of the one with its id."""

    async def query(self, pattern: FactPattern) -> list[Fact]:
        """Return the facts that are like a pattern, the oldest first."""

    async def unpin(self, fact_id: str) -> None:
        """Take a fact away; the log keeps it."""

    async def apply_delta(self, delta: MemoryDelta) -> None:
        """Do what a delta says, all of it or nothing."""
