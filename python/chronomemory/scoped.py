"""Who asks, and what is one's own?

A *scope* is some of three names: user, agent, session. A handle of a scope sees the records that carry it and
what is wider, and whatever it makes carries it. Scopes separate, they do not protect: whoever may choose the
names given to a handle may read what is written under them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, NoReturn, Protocol

from chronomemory._core import Engine
from chronomemory.errors import InvalidArgument
from chronomemory.face.arguments import flag, string, word
from chronomemory.records import Records

__all__ = ["NOT_GIVEN", "Everyone", "Scope", "ScopeCount", "ScopedStore"]

_LEVELS = ("user", "agent", "session")

#: Stands for a name that was left out: ``None`` and ``""`` are mistakes that would widen what is seen.
NOT_GIVEN: Final[Any] = type("NotGiven", (), {"__repr__": lambda _: "<not given>"})()


@dataclass(frozen=True, slots=True)
class Scope:
    """Some of three names; without any of them it is what all share."""

    user: str | None = None
    agent: str | None = None
    session: str | None = None

    @classmethod
    def of(cls, *, user: str = NOT_GIVEN, agent: str = NOT_GIVEN, session: str = NOT_GIVEN) -> Scope:
        """Return the scope of the names that were given."""
        given = zip(_LEVELS, (user, agent, session), strict=True)
        return cls(**{level: _name(level, name) for level, name in given if name is not NOT_GIVEN})

    @property
    def names(self) -> tuple[str | None, str | None, str | None]:
        """Its user, agent and session."""
        return self.user, self.agent, self.session

    def to_dict(self) -> dict[str, str]:
        """Return what a record carries as ``data["@scope"]``."""
        return {level: name for level, name in zip(_LEVELS, self.names, strict=True) if name is not None}

    def without(self, level: str) -> Scope:
        """Return the scope without one of its names."""
        return replace(self, **{word("level", level, _LEVELS): None})

    def __str__(self) -> str:
        return ", ".join(f"{level}={name}" for level, name in self.to_dict().items()) or "what is shared"


@dataclass(frozen=True, slots=True)
class ScopeCount:
    """A scope that records carry, and how many do; tombstones count."""

    scope: Scope
    records: int


class Opener(Protocol):
    """Whoever opens the engine: a store."""

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

    def __init__(self, store: Opener, scope: Scope, *, shared: bool = True) -> None:
        super().__init__(store)
        self.scope: Final = scope
        self.shared: Final = flag("shared", shared)
        if not self.shared and scope == Scope():
            raise InvalidArgument("shared: must be True without names: nothing would be seen", field="shared")

    def _view(self, engine: Engine) -> Engine:
        return engine.scoped(*self.scope.names, shared=self.shared)

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


def _name(level: str, name: object) -> str:
    """Return a name if it can be one; what is wrong with its letters the engine says."""
    if not isinstance(name, str) or not name:
        given = repr(name) if name is None or isinstance(name, str) else type(name).__name__
        raise InvalidArgument(
            f"{level}: non-empty text expected, got {given}; leave it out for what is shared", field=level
        )
    return name
