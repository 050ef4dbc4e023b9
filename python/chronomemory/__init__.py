"""One memory for agents: every belief an event in a chained log."""

from __future__ import annotations

import importlib

# Type checkers take it for true. Importing typing would cost more than the rest of this module.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from chronomemory import metrics, query
    from chronomemory._core import __version__
    from chronomemory.compat.bridge import EsdbBridge, EsdbRecord, EsdbStatus
    from chronomemory.compat.context_pack import ContextPack, ContextPackCompiler, ContextPackEntry
    from chronomemory.deps import DependencyEdge, DepGraph
    from chronomemory.errors import (
        ChronoError,
        Conflict,
        InvalidArgument,
        InvalidRecord,
        LogCorrupted,
        StoreLocked,
        UnknownRecord,
    )
    from chronomemory.event import WalEvent
    from chronomemory.filters import Filter
    from chronomemory.health import Health
    from chronomemory.memory import Memory, MemorySystem
    from chronomemory.reasons import Why
    from chronomemory.record import ChronoRecord
    from chronomemory.rollback import RollbackReport, invalidate
    from chronomemory.scope import Scope
    from chronomemory.search import Hit
    from chronomemory.store import ChronoStore, ScopedStore, open_store
    from chronomemory.types import VerifyReport

__all__ = [
    "ChronoError",
    "ChronoRecord",
    "ChronoStore",
    "Conflict",
    "ContextPack",
    "ContextPackCompiler",
    "ContextPackEntry",
    "DepGraph",
    "DependencyEdge",
    "EsdbBridge",
    "EsdbRecord",
    "EsdbStatus",
    "Filter",
    "Health",
    "Hit",
    "InvalidArgument",
    "InvalidRecord",
    "LogCorrupted",
    "Memory",
    "MemorySystem",
    "RollbackReport",
    "Scope",
    "ScopedStore",
    "StoreLocked",
    "UnknownRecord",
    "VerifyReport",
    "WalEvent",
    "Why",
    "__version__",
    "invalidate",
    "metrics",
    "open_store",
    "query",
]

#: Where each name is defined; a module is imported when the first of its names is used.
_HOMES = {
    "_core": ("__version__",),
    "compat.bridge": ("EsdbBridge", "EsdbRecord", "EsdbStatus"),
    "compat.context_pack": ("ContextPack", "ContextPackCompiler", "ContextPackEntry"),
    "deps": ("DepGraph", "DependencyEdge"),
    "errors": (
        "ChronoError",
        "Conflict",
        "InvalidArgument",
        "InvalidRecord",
        "LogCorrupted",
        "StoreLocked",
        "UnknownRecord",
    ),
    "event": ("WalEvent",),
    "filters": ("Filter",),
    "health": ("Health",),
    "memory": ("Memory", "MemorySystem"),
    "reasons": ("Why",),
    "record": ("ChronoRecord",),
    "rollback": ("RollbackReport", "invalidate"),
    "scope": ("Scope",),
    "search": ("Hit",),
    "store": ("ChronoStore", "ScopedStore", "open_store"),
    "types": ("VerifyReport",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_MODULES = frozenset({"metrics", "query"})

#: The advice if files of this package are missing or were replaced.
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
