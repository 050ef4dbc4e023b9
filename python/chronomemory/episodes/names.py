"""Takes the names of a user, a session and an agent, which every call of this face gives."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from chronomemory.episodes.errors import MemoryScopeError
from chronomemory.errors import InvalidArgument
from chronomemory.scope import Scope

__all__ = ["has_all_names", "scope_key", "taken"]

_LEVELS = ("user", "session", "agent")


def taken(operation: str, *, user: object, session: object = None, agent: object = None) -> Scope:
    """Return the scope of the names that are not None, or say what is wrong with one of them.

    A name is compared as it is: no case folding, no pattern, no normal form.
    """
    try:
        if all(name is None or type(name) is str for name in (user, session, agent)):
            return _kept_scope(user, session, agent)
        return _scope_of(user, session, agent)
    except InvalidArgument as error:
        given = {"user": user, "session": session, "agent": agent}
        violation = str(error).partition(";")[0]
        raise MemoryScopeError(scope=_shown(given), operation=operation, violation=violation) from None


def _scope_of(user: Any, session: Any, agent: Any) -> Scope:
    given = {"user": user, "session": session, "agent": agent}
    scope = Scope.of(**{level: name for level, name in given.items() if name is not None or level == "user"})
    for level, name in scope.to_dict().items():
        if "/" in name:
            raise InvalidArgument(f"{level} must be without /, got {name!r}", field=level)
    return scope


#: The same few names come again and again; only good ones are kept.
_kept_scope = lru_cache(maxsize=4096)(_scope_of)


def has_all_names(carried: object) -> bool:
    """Say whether what a record carries is a name on each level."""
    return (
        isinstance(carried, dict)
        and len(carried) == len(_LEVELS)
        and all(isinstance(carried.get(level), str) for level in _LEVELS)
    )


def scope_key(scope: Scope) -> str:
    """Return the key of a whole scope; no name in it has a slash.

    >>> scope_key(Scope(user="ann", session="s1", agent="helper"))
    '/user/ann/session/s1/agent/helper/'
    """
    return f"/user/{scope.user}/session/{scope.session}/agent/{scope.agent}/"


def _shown(given: dict[str, object]) -> str:
    return ", ".join(f"{level}={name!r}" for level, name in given.items() if name is not None)
