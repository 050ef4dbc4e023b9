"""One memory for agents: every belief an event in a chained log."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any

from chronomemory import interrupts as interrupts  # first: what follows takes a moment

if TYPE_CHECKING:
    from chronomemory import metrics, query
    from chronomemory._core import __version__
    from chronomemory.blocks import Memory, MemorySystem
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
    "Memory",
    "MemorySystem",
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

#: Where each name lives. A module is imported when the first of its names is asked for: a command that only
#: says its version, or a program that wants one class, should not wait for the others.
_HOMES = {
    "_core": ("__version__",),
    "blocks": (
        "Memory",
        "MemorySystem",
    ),
    "bridge": (
        "EsdbBridge",
        "EsdbRecord",
        "EsdbStatus",
    ),
    "context_pack": (
        "ContextPack",
        "ContextPackCompiler",
        "ContextPackEntry",
    ),
    "deps": (
        "DepGraph",
        "DependencyEdge",
    ),
    "errors": (
        "Busy",
        "CallInProgress",
        "ChronoError",
        "Conflict",
        "EmbeddingMismatch",
        "FormatUnsupported",
        "HistoryUnavailable",
        "IdTaken",
        "InvalidArgument",
        "InvalidRecord",
        "Limit",
        "LogCorrupted",
        "OutOfMemory",
        "OutOfScope",
        "RecordTooLarge",
        "ScopeRequired",
        "StaleCursor",
        "StoreClosed",
        "StoreLocked",
        "StorePoisoned",
        "StoreReadOnly",
        "UnknownRecord",
        "UnknownScope",
        "UnknownSpace",
        "WriteConflict",
    ),
    "event": ("WalEvent",),
    "health": (
        "Counters",
        "Health",
    ),
    "reasons": (
        "Reason",
        "Why",
    ),
    "record": ("ChronoRecord",),
    "reinstatement": (
        "ReinstateReport",
        "Rollback",
    ),
    "rollback": (
        "RollbackReport",
        "invalidate",
    ),
    "scope": ("Scope",),
    "scoped": ("ScopedStore",),
    "search": ("Hit",),
    "store": (
        "ChronoStore",
        "open_store",
    ),
    "types": ("VerifyReport",),
    "vectors": (
        "Neighbour",
        "Space",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_MODULES = frozenset({"metrics", "query"})


#: What to do where files of this package are gone or were replaced.
_OTHER_PACKAGE = (
    "files of chronomemory-rs are missing or not its own: the package that PyPI calls chronomemory is another"
    " one and has the same import name. Take both away and put this one back: pip uninstall chronomemory"
    " chronomemory-rs; pip install chronomemory-rs"
)


def _module(name: str) -> ModuleType:
    try:
        return importlib.import_module(f"chronomemory.{name}")
    except ImportError as error:
        if (error.name or "").partition(".")[0] != __name__:
            raise
        raise ImportError(f"{error}: {_OTHER_PACKAGE}", name=error.name, path=error.path) from error


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return _module(name)
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(_module(_HOME_OF[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
