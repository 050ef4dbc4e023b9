"""What episodes, facts and the books about rules are called in the log.

Every id of this face begins with one of its prefixes, and the kind of a record is its prefix.
"""

from __future__ import annotations

import hashlib

from chronomemory._core import canonical_json

__all__ = [
    "EPISODE",
    "FACE",
    "FACT",
    "RULE",
    "columns_key",
    "episode_key",
    "fact_key",
    "lineage_key",
    "noop_key",
    "plain_id",
    "run_key",
]

FACE = "episodes"

EPISODE = "episode"
FACT = "fact"
RULE = "rule"

_DIGITS = 32


def episode_key(episode_id: str) -> str:
    """Return the record id of an episode."""
    return f"{EPISODE}:{episode_id}"


def fact_key(fact_id: str) -> str:
    """Return the record id of a fact."""
    return f"{FACT}:{fact_id}"


def run_key(runner: str, rule_id: str) -> str:
    """Return the record id of how far a rule of a runner got."""
    return f"{RULE}:run:{_digest([runner, rule_id])}"


def lineage_key(drawn: str) -> str:
    """Return the record id of a piece of lineage that was given these random digits."""
    return f"{RULE}:lineage:{drawn}"


def noop_key(rule_id: str, user: str | None) -> str:
    """Return the record id of what a rule left as it was, for a user."""
    return f"{RULE}:noop:{_digest([rule_id, user])}"


def columns_key(kind: str) -> str:
    """Return the record id of the columns that were added to episodes or facts."""
    return f"{RULE}:columns:{kind}"


def plain_id(record_id: str) -> str:
    """Return an id without the prefix of its kind.

    >>> plain_id(episode_key("turn:7"))
    'turn:7'
    """
    return record_id.partition(":")[2]


def _digest(parts: list[str | None]) -> str:
    return hashlib.sha256(canonical_json(parts)).hexdigest()[:_DIGITS]
