"""Episodes of many users, what is consolidated from them, and the facts with all that led to them."""

from __future__ import annotations

from chronomemory.episodes.errors import (
    ConsolidationRuleError,
    FactConflictError,
    MemoryScopeError,
    MigrationNotSupported,
    StoreError,
)
from chronomemory.episodes.facts import Facts
from chronomemory.episodes.memory import Episodes
from chronomemory.episodes.models import (
    AddDelta,
    ConsolidationRule,
    DeleteDelta,
    Episode,
    Fact,
    FactPattern,
    FactStore,
    MemoryDelta,
    MemoryStore,
    MigrationPlan,
    NoopDelta,
    StoreHealth,
    UpdateDelta,
)
from chronomemory.episodes.runner import ConsolidationRunner, RuleRun, RunReport
from chronomemory.episodes.stores import ChronoFactStore, ChronoMemoryStore, ChronoSession, open_memory_store

__all__ = [
    "AddDelta",
    "ChronoFactStore",
    "ChronoMemoryStore",
    "ChronoSession",
    "ConsolidationRule",
    "ConsolidationRuleError",
    "ConsolidationRunner",
    "DeleteDelta",
    "Episode",
    "Episodes",
    "Fact",
    "FactConflictError",
    "FactPattern",
    "FactStore",
    "Facts",
    "MemoryDelta",
    "MemoryScopeError",
    "MemoryStore",
    "MigrationNotSupported",
    "MigrationPlan",
    "NoopDelta",
    "RuleRun",
    "RunReport",
    "StoreError",
    "StoreHealth",
    "UpdateDelta",
    "open_memory_store",
]
