"""What stores of episodes and of facts have in common: they are opened, asked how they are, and let go."""

from __future__ import annotations

import os
from typing import ClassVar, TypeVar

from chronomemory._core import Engine
from chronomemory.episodes.condition import health_of
from chronomemory.episodes.declaration import EpisodesHandle, open_episodes
from chronomemory.episodes.models import MigrationPlan, StoreHealth
from chronomemory.episodes.storage.books import add_columns
from chronomemory.face.arguments import public_names
from chronomemory.store import ChronoStore

__all__ = ["Kept"]

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
