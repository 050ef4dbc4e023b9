"""Record ids of episodes, facts and rules: the prefix of an id is the kind of the record."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any

from chronomemory._core import canonical_json
from chronomemory.episodes.errors import MemoryScopeError
from chronomemory.errors import InvalidArgument
from chronomemory.scope import Scope

FACE = "episodes"

EPISODE = "episode"
FACT = "fact"
RULE = "rule"

_DIGITS = 32


def episode_key(episode_id: str) -> str:
    return f"{EPISODE}:{episode_id}"


def fact_key(fact_id: str) -> str:
    return f"{FACT}:{fact_id}"


def run_key(runner: str, rule_id: str) -> str:
    return f"{RULE}:run:{_digest([runner, rule_id])}"


def lineage_key(drawn: str) -> str:
    return f"{RULE}:lineage:{drawn}"


def noop_key(rule_id: str, user: str | None) -> str:
    return f"{RULE}:noop:{_digest([rule_id, user])}"


def columns_key(kind: str) -> str:
    return f"{RULE}:columns:{kind}"


def plain_id(record_id: str) -> str:
    """Return an id without the prefix of its kind, such as ``turn:7`` of ``episode:turn:7``."""
    return record_id.partition(":")[2]


def _digest(parts: list[str | None]) -> str:
    return hashlib.sha256(canonical_json(parts)).hexdigest()[:_DIGITS]


_LEVELS = ("user", "session", "agent")


def taken(operation: str, *, user: object, session: object = None, agent: object = None) -> Scope:
    """Return the scope of the names that are not None, as they are, or say what is wrong with one."""
    try:
        if all(name is None or type(name) is str for name in (user, session, agent)):
            return _kept_scope(user, session, agent)
        return _scope_of(user, session, agent)
    except InvalidArgument as error:
        given = {"user": user, "session": session, "agent": agent}
        scope = ", ".join(f"{level}={name!r}" for level, name in given.items() if name is not None)
        violation = str(error).partition(";")[0]
        raise MemoryScopeError(scope=scope, operation=operation, violation=violation) from None


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
        and all(isinstance(carried.get(level), str) and carried[level] for level in _LEVELS)
    )


def scope_key(scope: Scope) -> str:
    """Return the key of a whole scope; no name in it has a slash.

    >>> scope_key(Scope(user="ann", session="s1", agent="helper"))
    '/user/ann/session/s1/agent/helper/'
    """
    return f"/user/{scope.user}/session/{scope.session}/agent/{scope.agent}/"
