"""Handles that ask and write for one scope, or for everyone.

A *scope* is some of three names: user, agent, session. A handle of a scope sees the records that carry it and
what is wider, and whatever it makes carries it. Scopes separate, they do not protect: whoever may choose the
names given to a handle may read what is written under them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn, Protocol

from chronomemory._core import Engine
from chronomemory.errors import InvalidArgument
from chronomemory.face.arguments import flag, string
from chronomemory.records import Records
from chronomemory.scope import Scope

__all__ = ["Everyone", "ScopeCount", "ScopedStore"]


@dataclass(frozen=True, slots=True)
class ScopeCount:
    """A scope that records carry, and how many do; tombstones count."""

    scope: Scope
    records: int


class Opener(Protocol):
    """Whoever opens the engine: a store."""

    project_root: Path

    @property
    def engine(self) -> Engine:
        """The open engine."""

    def _lend_to(self, handle: Records) -> None:
        """Note who holds the engine, and must let go of it when the store closes."""


class _Handle(Records):
    """A handle on a store that somebody else opens and closes."""

    def __init__(self, store: Opener) -> None:
        self._engine = None
        self._store = store
        self.project_root = store.project_root
        store._lend_to(self)

    def _view(self, engine: Engine) -> Engine:
        raise NotImplementedError

    @property
    def engine(self) -> Engine:
        """The open engine, for whom this handle asks and writes."""
        # The store forgets what its handles hold when it closes.
        engine = self._engine
        if engine is None:
            engine = self._view(self._store.engine)
            self._engine = engine
        return engine

    def __reduce__(self) -> NoReturn:
        raise TypeError("a handle cannot be pickled: open the project again")


class ScopedStore(_Handle):
    """The records of a scope and what is wider; made by ``store.scoped(…)``.

    >>> import tempfile
    >>> from chronomemory import ChronoStore
    >>> with ChronoStore(tempfile.mkdtemp()) as store:
    ...     ann, bob = store.scoped(user="ann"), store.scoped(user="bob")
    ...     _ = ann.upsert({"id": ann.id("TEA"), "label": "Ann likes green tea"})
    ...     [hit.record.label for hit in ann.search("tea")], bob.search("tea")
    (['Ann likes green tea'], [])
    """

    def __init__(self, store: Opener, scope: Scope, *, shared: bool = True, public: bool = False) -> None:
        super().__init__(store)
        self._scope = scope
        self._public = public
        self.shared: Final = flag("shared", shared)
        if not self.shared and scope == Scope():
            raise InvalidArgument("shared must be True without names, got False", field="shared")

    def _view(self, engine: Engine) -> Engine:
        if self._public:
            return engine.public()
        return engine.scoped(*self.scope.names, shared=self.shared)

    @property
    def scope(self) -> Scope:
        """The names that were given."""
        return self._scope

    @property
    def known(self) -> bool:
        """Whether anything of one's own is there, tombstones too."""
        return self.engine.is_known()

    def id(self, name: str) -> str:
        """Return an id that no other scope can take: the name, and digits that stand for the scope."""
        digits = self.engine.scope_digits()
        return f"{string('name', name)}@{digits}" if digits else string("name", name)

    def without(self, level: str) -> ScopedStore:
        """Return the handle without one of its names, for what should outlive a session."""
        return ScopedStore(self._store, self.scope.without(level), shared=self.shared)

    def __repr__(self) -> str:
        return f"<ScopedStore of {self.scope}>"


class Everyone(_Handle):
    """Every record of a store, whosever it is; made by ``store.everyone()``."""

    def _view(self, engine: Engine) -> Engine:
        return engine.everyone()

    def __repr__(self) -> str:
        return "<Everyone>"
