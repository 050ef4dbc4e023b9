"""The base of the stores of episodes and of facts: opening, health, migration, closing."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import ClassVar, TypeVar

from chronomemory._core import Engine
from chronomemory.episodes.ids import FACE
from chronomemory.episodes.models import MigrationPlan, StoreHealth
from chronomemory.episodes.storage.books import add_columns, columns_of
from chronomemory.face.arguments import public_names
from chronomemory.face.batch import Face
from chronomemory.face.handle import Handle, open_handle
from chronomemory.layout import file_system, log_folder, network_file_system
from chronomemory.store import ChronoStore

EPISODES = Face(name=FACE)


class EpisodesHandle(Handle):
    """Episodes and facts of one project, whosever they are: every call above names a user."""

    face = EPISODES


def open_episodes(place: str | os.PathLike[str] | ChronoStore) -> EpisodesHandle:
    """Stand on a project folder or on a store that is there; nothing is opened before it is asked."""
    return open_handle(EpisodesHandle, place, everyone=True)


#: The lock of those who write, in the folder of a store.
_LOCK = "lock"


def health_of(handle: EpisodesHandle, kind: str) -> StoreHealth:
    """Ask the engine and the file system; no log is read for it."""
    store = handle.project
    health = store.health()
    folder = log_folder(store.project_root)
    network = network_file_system(folder)
    warnings = []
    if network is not None:
        warnings.append(f"the store lies on {network}: locks between machines cannot be relied on")
    if health.damaged_places:
        warnings.append(f"{health.damaged_places} places are damaged: verify() names them")
    if health.poisoned is not None:
        warnings.append(f"a sync failed, and nothing is written any more: {health.poisoned}")
    engine = handle.store.engine
    return StoreHealth(
        ok=health.ok,
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


Own = TypeVar("Own", bound="Kept")


@public_names
class Kept:
    """Records of one kind of this face, whosever they are."""

    #: The kind, and what a migration calls the store.
    kind: ClassVar[str]
    called: ClassVar[str]

    def __init__(self, path: str | os.PathLike[str] | ChronoStore) -> None:
        self.handle: EpisodesHandle = open_episodes(path)

    @property
    def store(self) -> ChronoStore:
        """The project behind it: its log, its search, its evidence."""
        return self.handle.project

    @property
    def _engine(self) -> Engine:
        return self.handle.store.engine

    @property
    def _open_engine(self) -> Engine | None:
        """The engine, if the store is open already: to open it may take a while."""
        return self.handle.store._engine

    def close(self) -> None:
        """Let go of the store, if it was opened here; closing twice is fine."""
        self.handle.close()

    def __enter__(self: Own) -> Own:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def bootstrap(self) -> None:
        """Make the folder, with those above it, and open the store; doing so twice is fine."""
        self.store.project_root.mkdir(parents=True, exist_ok=True)
        self.store.open()

    def health(self) -> StoreHealth:
        """Say how the store is, and how many records of this kind it has."""
        return health_of(self.handle, self.kind)

    def migrate(self, plan: MigrationPlan) -> None:
        """Add columns: they live in the metadata, where each reads as None until it is filled."""
        self.handle.run(lambda conn: add_columns(conn, self.called, self.kind, plan))
