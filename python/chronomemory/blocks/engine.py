"""How is a store of blocks opened, written to and let go?"""

from __future__ import annotations

import os
import tempfile
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from chronomemory.blocks.connection import Batch, Connection
from chronomemory.store import ChronoStore
from chronomemory.updates import CONFLICT_SECONDS, again_if_changed

__all__ = ["Blocks", "create_engine", "create_test_engine", "open_blocks", "open_test_blocks"]

#: Where a folder is memory, on systems that have such a place.
_MEMORY_FOLDER = Path("/dev/shm")

T = TypeVar("T")


class Blocks:
    """The blocks of one project. ``begin`` and ``connect`` work with ``with`` and with ``async with``.

    >>> from chronomemory.blocks import sync
    >>> with open_test_blocks() as blocks:
    ...     with blocks.begin() as conn:
    ...         sync.insert_block(conn, block_id="a", content="Ice is cold", category="fact", source="me")
    ...     with blocks.connect() as conn:
    ...         sync.get_block(conn, "a")["status"]
    'inbox'
    """

    def __init__(self, store: ChronoStore, *, owned: bool, echo: bool = False) -> None:
        self.store = store
        self._owned = owned
        self._echo = echo
        self._turn = threading.Lock()
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def begin(self) -> Batch:
        """Return one atomic batch: all of it is written when its block ends, or nothing if it raises."""
        return Batch(self.store, self._turn, writable=True, echo=self._echo)

    def connect(self) -> Batch:
        """Return a look at the store."""
        return Batch(self.store, self._turn, writable=False, echo=False)

    def run(self, work: Callable[[Connection], T], *, patience: float = CONFLICT_SECONDS) -> T:
        """Run a batch, again if another writer came in between, and return what it returned."""

        def attempt() -> T:
            with self.begin() as conn:
                return work(conn)

        return again_if_changed(attempt, patience=patience)

    def close(self) -> None:
        """Let go of the store, if it was opened here; closing twice is fine."""
        if self._owned:
            self.store.close()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    async def dispose(self) -> None:
        """Let go of the store, as ``close`` does."""
        self.close()

    def __enter__(self) -> Blocks:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Blocks:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Blocks of {self.store!r}>"


def open_blocks(place: str | os.PathLike[str] | ChronoStore, *, echo: bool = False, **options: Any) -> Blocks:
    """Open the blocks of a project folder or of a store; the options are those of ``ChronoStore``."""
    if isinstance(place, ChronoStore):
        return Blocks(place, owned=False, echo=echo)
    return Blocks(ChronoStore(place, **options), owned=True, echo=echo)


def open_test_blocks() -> Blocks:
    """Open blocks that are gone when they are closed, in memory where the system has a folder for that."""
    memory = _MEMORY_FOLDER if _MEMORY_FOLDER.is_dir() and os.access(_MEMORY_FOLDER, os.W_OK) else None
    folder = tempfile.TemporaryDirectory(prefix="chronomemory-", dir=memory)
    head_file = Path(folder.name) / "head"
    blocks = Blocks(ChronoStore(folder.name, durability="off", head_file=head_file), owned=True)
    blocks._folder = folder
    # At exit the latest comes first: the store is let go before its folder is taken away.
    weakref.finalize(blocks, blocks.store.close)
    return blocks


async def create_engine(db_path: str | os.PathLike[str], *, echo: bool = False) -> Blocks:
    """Open the blocks of a project folder; with ``echo`` every change is logged."""
    return open_blocks(db_path, echo=echo)


async def create_test_engine() -> Blocks:
    """Open blocks in memory, without any built-in data."""
    return open_test_blocks()
