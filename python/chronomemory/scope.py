"""Whose is a record?

A *scope* is some of three names: user, agent, session. Who sees what is decided by the engine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from chronomemory.errors import InvalidArgument
from chronomemory.face.arguments import word

__all__ = ["NOT_GIVEN", "Scope"]

#: How long a name may be, and what may not stand in it.
_MOST_BYTES = 256
_UNSEEN = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029\\ud800-\\udfff]")

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

    @classmethod
    def carried_by(cls, data: Mapping[str, Any]) -> Scope | None:
        """Return what ``data["@scope"]`` says: nothing is what all share, and None is what is no scope."""
        if "@scope" not in data:
            return cls()
        given = data["@scope"]
        try:
            return cls.of(**given) if isinstance(given, Mapping) and given else None
        except (InvalidArgument, TypeError):
            return None

    def to_dict(self) -> dict[str, str]:
        """Return what a record carries as ``data["@scope"]``."""
        return {level: name for level, name in zip(_LEVELS, self.names, strict=True) if name is not None}

    def without(self, level: str) -> Scope:
        """Return the scope without one of its names."""
        return replace(self, **{word("level", level, _LEVELS): None})

    def __str__(self) -> str:
        return ", ".join(f"{level}={name}" for level, name in self.to_dict().items()) or "what is shared"


def _name(level: str, name: object) -> str:
    """Return a name if it can be one."""
    if not isinstance(name, str) or not name:
        given = repr(name) if name is None or isinstance(name, str) else type(name).__name__
        raise _refused(level, f"non-empty text expected, got {given}; leave it out for what is shared")
    length = len(name.encode("utf-8", "surrogatepass"))
    if length > _MOST_BYTES:
        raise _refused(level, f"at most {_MOST_BYTES} bytes of UTF-8 expected, got {length}")
    if unseen := _UNSEEN.search(name):
        raise _refused(level, f"no control characters expected, got U+{ord(unseen[0]):04X}")
    return name


def _refused(level: str, reason: str) -> InvalidArgument:
    return InvalidArgument(f"{level}: {reason}", field=level)
