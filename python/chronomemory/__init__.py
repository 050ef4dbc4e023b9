"""What does the package offer? One memory for agents: every belief an event in a chained log."""

from __future__ import annotations

from chronomemory import interrupts as interrupts  # first: what follows takes a moment
from chronomemory import metrics, query
from chronomemory._core import __version__
from chronomemory.bridge import EsdbBridge, EsdbRecord, EsdbStatus
from chronomemory.context_pack import ContextPack, ContextPackCompiler, ContextPackEntry
from chronomemory.deps import DependencyEdge, DepGraph
from chronomemory.errors import (
    Busy,
    CallInProgress,
    ChronoError,
    Conflict,
    EmbeddingMismatch,
    FormatUnsupported,
    HistoryUnavailable,
    IdTaken,
    InvalidArgument,
    InvalidRecord,
    Limit,
    LogCorrupted,
    OutOfMemory,
    OutOfScope,
    RecordTooLarge,
    ScopeRequired,
    StaleCursor,
    StoreClosed,
    StoreLocked,
    StorePoisoned,
    StoreReadOnly,
    UnknownRecord,
    UnknownScope,
    UnknownSpace,
    WriteConflict,
)
from chronomemory.event import WalEvent
from chronomemory.health import Counters, Health
from chronomemory.reasons import Reason, Why
from chronomemory.record import ChronoRecord
from chronomemory.reinstatement import ReinstateReport, Rollback
from chronomemory.rollback import RollbackReport, invalidate
from chronomemory.scope import Scope
from chronomemory.scoped import ScopedStore
from chronomemory.search import Hit
from chronomemory.store import ChronoStore, open_store
from chronomemory.types import VerifyReport
from chronomemory.vectors import Neighbour, Space

__all__ = [
    "Busy",
    "CallInProgress",
    "ChronoError",
    "ChronoRecord",
    "ChronoStore",
    "Conflict",
    "ContextPack",
    "ContextPackCompiler",
    "ContextPackEntry",
    "Counters",
    "DepGraph",
    "DependencyEdge",
    "EmbeddingMismatch",
    "EsdbBridge",
    "EsdbRecord",
    "EsdbStatus",
    "FormatUnsupported",
    "Health",
    "HistoryUnavailable",
    "Hit",
    "IdTaken",
    "InvalidArgument",
    "InvalidRecord",
    "Limit",
    "LogCorrupted",
    "Neighbour",
    "OutOfMemory",
    "OutOfScope",
    "Reason",
    "RecordTooLarge",
    "ReinstateReport",
    "Rollback",
    "RollbackReport",
    "Scope",
    "ScopeRequired",
    "ScopedStore",
    "Space",
    "StaleCursor",
    "StoreClosed",
    "StoreLocked",
    "StorePoisoned",
    "StoreReadOnly",
    "UnknownRecord",
    "UnknownScope",
    "UnknownSpace",
    "VerifyReport",
    "WalEvent",
    "Why",
    "WriteConflict",
    "__version__",
    "invalidate",
    "metrics",
    "open_store",
    "query",
]
