"""Does this face keep its word to those who try to break it?"""

from __future__ import annotations

import pytest
from chronomemory.episodes import (
    DeleteDelta,
    Episodes,
    FactPattern,
    Facts,
    MemoryScopeError,
    NoopDelta,
)
from conversing import START, episode, put, rule


def ids(facts: Facts) -> list[str]:
    return [fact.id for fact in facts.query(FactPattern())]


@pytest.mark.parametrize("user", ["", "a/b", "a\nb"])
def test_a_delta_is_of_a_name_that_is_one(episodes: Episodes, facts: Facts, user: str) -> None:
    put(episodes, episode("a"))
    facts.apply_delta(episodes.consolidate(rule())[0])
    told = {"source_episode_ids": ["elsewhere"], "promotion_ts": START, "rule_id": "r", "confidence": 1.0}
    for delta in (DeleteDelta(kind="delete", replaces=["a"], **told), NoopDelta(kind="noop", **told)):
        with pytest.raises(MemoryScopeError):
            facts.apply_delta(delta, user=user)
    assert ids(facts) == ["a"]
