"""Takes the names of a user, a session and an agent, which every call of this face gives."""

from __future__ import annotations

from chronomemory.episodes.errors import MemoryScopeError
from chronomemory.errors import InvalidArgument
from chronomemory.scope import Scope

__all__ = ["scope_key", "taken"]


def taken(operation: str, *, user: object, session: object = None, agent: object = None) -> Scope:
    """Return the scope of the names that are not None, or say what is wrong with one of them.

    A name is compared as it is: no case folding, no pattern, no normal form.
    """
    given = {"user": user, "session": session, "agent": agent}
    names = {level: name for level, name in given.items() if name is not None or level == "user"}
    try:
        scope = Scope.of(**names)  # type: ignore[arg-type]
    except InvalidArgument as error:
        violation = str(error).partition(";")[0]
        raise MemoryScopeError(scope=_shown(given), operation=operation, violation=violation) from None
    for level, name in scope.to_dict().items():
        if "/" in name:
            raise MemoryScopeError(
                scope=_shown(given), operation=operation, violation=f"{level}: no / expected, got {name!r}"
            )
    return scope


def scope_key(scope: Scope) -> str:
    """Return the key of a whole scope; no name in it has a slash.

    >>> scope_key(Scope(user="ann", session="s1", agent="helper"))
    '/user/ann/session/s1/agent/helper/'
    """
    return f"/user/{scope.user}/session/{scope.session}/agent/{scope.agent}/"


def _shown(given: dict[str, object]) -> str:
    return ", ".join(f"{level}={name!r}" for level, name in given.items() if name is not None)
