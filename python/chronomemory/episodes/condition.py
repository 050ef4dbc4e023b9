"""Says how a store of episodes or facts is."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from chronomemory.episodes.declaration import EpisodesHandle
from chronomemory.episodes.models import StoreHealth
from chronomemory.episodes.storage.books import columns_of
from chronomemory.layout import file_system, log_folder, network_file_system

__all__ = ["health_of"]

#: The lock of those who write, in the folder of a store.
_LOCK = "lock"


def health_of(handle: EpisodesHandle, kind: str) -> StoreHealth:
    """Ask the engine and the file system; no log is read for it."""
    store = handle.project
    told = store.health()
    folder = log_folder(store.project_root)
    network = network_file_system(folder)
    warnings = []
    if network is not None:
        warnings.append(f"the store lies on {network}: locks between machines cannot be relied on")
    if told.damaged_places:
        warnings.append(f"{told.damaged_places} places are damaged: verify() names them")
    if told.poisoned is not None:
        warnings.append(f"a sync failed, and nothing is written any more: {told.poisoned}")
    engine = handle.store.engine
    return StoreHealth(
        ok=told.ok,
        version=columns_of(engine, kind).version,
        fragment_count=handle.look().count(kind, "active"),
        node_count=0,
        embedding_hash=None,
        fs_type=file_system(folder) or "unknown",
        lock_state=_lock_state(folder),
        warnings=warnings,
    )


def _lock_state(folder: Path) -> str:
    """Say whether somebody writes at this moment, by trying to share the lock without waiting for it."""
    try:
        file = os.open(folder / _LOCK, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return "none"
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return "held"
    else:
        return "free"
    finally:
        os.close(file)
