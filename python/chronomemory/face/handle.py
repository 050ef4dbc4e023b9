"""A face's hold on a store: it begins batches, runs them again after a conflict, and lets go."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from chronomemory.face.arguments import public_names
from chronomemory.face.batch import Batch, Connection, Face
from chronomemory.face.moments import Now
from chronomemory.scope import SHARED, Scope
from chronomemory.store import ChronoStore, Everyone, ScopedStore

_MEMORY_FOLDER = Path("/dev/shm")

T = TypeVar("T")
Own = TypeVar("Own", bound="Handle")
Closed = TypeVar("Closed", bound="Closing")


class Closing:
    """Closes itself at the end of a ``with`` block."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self: Closed) -> Closed:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@public_names
class Handle(Closing):
    """The records of one face in one project; a face subclasses it and sets ``face``."""

    face: ClassVar[Face]

    def __init__(
        self,
        store: ChronoStore,
        *,
        owned: bool,
        echo: bool = False,
        scope: Scope = SHARED,
        shared: bool = True,
        everyone: bool = False,
        clock: Now | None = None,
    ) -> None:
        #: The project, and below what of it is seen and written here.
        self.project = store
        self.scope = scope
        self.store: ChronoStore | ScopedStore | Everyone
        if everyone:
            self.store = store.everyone()
        elif scope == SHARED and shared:
            self.store = store
        else:
            self.store = ScopedStore(store, scope, shared=shared)
        self._owned = owned
        self._echo = echo
        #: Says when a batch happened, for runs that are to be repeated; without it the engine does.
        self._clock = clock
        self._turn = threading.Lock()
        #: Removes a temporary store.
        self._discard: Callable[[], object] | None = None

    def begin(self) -> Batch:
        """Return one atomic batch: all of it is written when its block ends, or nothing if it raises."""

        def writer() -> Connection:
            return Connection(
                self.face, self.store, writable=True, echo=self._echo, scope=self.scope, clock=self._clock
            )

        return Batch(writer, self.store, self._turn, writable=True)

    def connect(self) -> Batch:
        return Batch(self.look, self.store, self._turn, writable=False)

    def look(self) -> Connection:
        """Return a look at the store that needs no block around it."""
        return Connection(self.face, self.store, writable=False, scope=self.scope)

    def run(self, work: Callable[[Connection], T]) -> T:
        """Run a batch and return what it returned; after a lost race again, while no one else writes."""
        return self.begin().run(work)

    def rehearse(self, work: Callable[[Connection], T]) -> T:
        """Run a batch that is never written, and return what it returned; no lock is held meanwhile."""
        return work(Connection(self.face, self.store, writable=True, scope=self.scope))

    def close(self) -> None:
        """Let go of the store, if it was opened here; closing twice is fine."""
        if self._owned:
            self.project.close()
        if self._discard is not None:
            self._discard()

    async def dispose(self) -> None:
        self.close()

    async def __aenter__(self: Own) -> Own:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.project!r}, {self.scope}>"


def open_handle(
    kind: type[Own],
    place: str | os.PathLike[str] | ChronoStore,
    *,
    echo: bool = False,
    scope: Scope = SHARED,
    shared: bool = True,
    everyone: bool = False,
    clock: Now | None = None,
    **options: Any,
) -> Own:
    """Open a project folder, with options of ``ChronoStore``, or stand on a store that is there."""
    owned = not isinstance(place, ChronoStore)
    store = place if isinstance(place, ChronoStore) else ChronoStore(place, **options)
    return kind(store, owned=owned, echo=echo, scope=scope, shared=shared, everyone=everyone, clock=clock)


def open_test_handle(kind: type[Own]) -> Own:
    """Open one that is gone when it is closed, in memory where the system has a folder for that."""
    memory = _MEMORY_FOLDER if _MEMORY_FOLDER.is_dir() and os.access(_MEMORY_FOLDER, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="chronomemory-", dir=memory))
    handle = kind(ChronoStore(folder, durability="off", head_file=folder / "head"), owned=True)
    handle._discard = weakref.finalize(handle, _discard, handle.project, folder)
    return handle


def _discard(project: ChronoStore, folder: Path) -> None:
    project.close()
    shutil.rmtree(folder)
