"""A scope: some of three names (user, agent, session) that say whose a record is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from typing import Any, Final, TypeVar

from chronomemory._core import Reader, sha256_hex
from chronomemory.errors import InvalidArgument
from chronomemory.face.arguments import refuse, word

_MOST_BYTES = 256
_UNSEEN = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029\\ud800-\\udfff]")

_LEVELS = ("user", "agent", "session")
_NO_NAMES = (None, None, None)
_DIGITS = 16

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
        given = zip(_LEVELS, (user, agent, session), strict=True)
        return cls(**{level: _name(level, name) for level, name in given if name is not NOT_GIVEN})

    @property
    def names(self) -> tuple[str | None, str | None, str | None]:
        return self.user, self.agent, self.session

    @classmethod
    def carried_by(cls, data: Mapping[str, Any]) -> Scope | None:
        """Return what ``data["@scope"]`` says: nothing is what all share, and None is what is no scope."""
        if "@scope" not in data:
            return SHARED
        given = data["@scope"]
        try:
            return cls.of(**given) if isinstance(given, Mapping) and given else None
        except (InvalidArgument, TypeError):
            return None

    def to_dict(self) -> dict[str, str]:
        """Return what a record carries as ``data["@scope"]``."""
        return {level: name for level, name in zip(_LEVELS, self.names, strict=True) if name is not None}

    def without(self, level: str) -> Scope:
        return replace(self, **{word("level", level, _LEVELS): None})

    @property
    def spelled(self) -> bytes:
        """What a record carries, as canonical JSON."""
        # Python spells names as the engine does, and a first frame looks at up to eight scopes.
        names = json.dumps(self.to_dict(), ensure_ascii=False, separators=(",", ":"), sort_keys=True)
        return names.encode()

    @property
    def digits(self) -> str:
        """The digits that stand for it in ids; nothing for what is shared.

        >>> Scope(user="ann").digits, Scope().digits
        ('574747fc19acac80', '')
        """
        return _digits_of(self)

    @property
    def of_owner(self) -> Scope:
        """Only the name that owns: the user, else the agent, else the session."""
        return Scope(**dict(list(self.to_dict().items())[:1]))

    @property
    def of_clock(self) -> Scope:
        """The scope whose clock runs for it: without its session, unless that is all it has."""
        return self if (self.user, self.agent) == (None, None) else replace(self, session=None)

    def joined(self, other: Scope) -> Scope:
        """Return what joins things of two scopes: the names of both, without a level on which they differ.

        >>> Scope(user="ann", session="s1").joined(Scope(user="ann", agent="a", session="s2"))
        Scope(user='ann', agent='a', session=None)
        """
        named = ({one, another} - {None} for one, another in zip(self.names, other.names, strict=True))
        return Scope(*(names.pop() if len(names) == 1 else None for names in named))

    def narrowest_first(self) -> list[Scope]:
        """Return the scopes that are made of some of its names: itself first, what is shared last.

        >>> [str(scope) for scope in Scope(user="ann", session="s1").narrowest_first()]
        ['user=ann, session=s1', 'user=ann', 'session=s1', 'what is shared']
        """
        names = list(self.to_dict().items())
        return [
            Scope(**dict(some)) for size in range(len(names), -1, -1) for some in combinations(names, size)
        ]

    def __str__(self) -> str:
        return ", ".join(f"{level}={name}" for level, name in self.to_dict().items()) or "what is shared"


@lru_cache(maxsize=4096)
def _digits_of(scope: Scope) -> str:
    """Return the digits of a scope; every question asks for those of its scope several times."""
    return sha256_hex(scope.spelled)[:_DIGITS] if scope.to_dict() else ""


#: No names: what all share.
SHARED: Final = Scope()


def carrying(scope: Scope, data: dict[str, Any]) -> dict[str, Any]:
    """Return what a record says, with its scope if it has names."""
    return data if scope.names == _NO_NAMES else {"@scope": scope.to_dict(), **data}


def _name(level: str, name: object) -> str:
    if not isinstance(name, str) or not name:
        given = repr(name) if name is None or isinstance(name, str) else type(name).__name__
        raise refuse(f"non-empty text expected, got {given}; leave it out for what is shared", level)
    length = len(name.encode("utf-8", "surrogatepass"))
    if length > _MOST_BYTES:
        raise refuse(f"at most {_MOST_BYTES} bytes of UTF-8 expected, got {length}", level)
    if unseen := _UNSEEN.search(name):
        raise refuse(f"no control characters expected, got U+{ord(unseen[0]):04X}", level)
    return name


_Found = TypeVar("_Found")


class Answer(list[_Found]):
    """What was found. ``known`` is False if nothing was ever written for the names in ``scope``."""

    __slots__ = ("known", "scope")

    def __init__(
        self, found: Iterable[_Found] = (), *, scope: Scope | None = None, known: bool = True
    ) -> None:
        super().__init__(found)
        self.scope = scope
        self.known = known


def answered(asked: Reader, found: Iterable[_Found], *, is_any: bool) -> Answer[_Found]:
    """Say of what was found, if it was anything, who asked."""
    names = asked.scope_names()
    if names == SHARED.names:
        # Records found without names are shared, and so one's own: no check is needed.
        return Answer(found, scope=SHARED, known=is_any or asked.is_known())
    return Answer(found, scope=None if names is None else Scope(*names), known=asked.is_known())
