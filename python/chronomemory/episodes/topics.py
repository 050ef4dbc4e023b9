"""Goes through what was said before, and since, of what new episodes speak of.

A runner takes in new episodes only, and what is made of one depends on those that spoke of the same thing
before. So these are gone through again beside the new ones, and what is made of the new is what one pass over
all would make of them: facts do not depend on when a runner ran.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from chronomemory._core import canonical_json
from chronomemory.episodes.classification import Sorted
from chronomemory.episodes.ids import episode_key
from chronomemory.episodes.models import AddDelta, MemoryDelta, UpdateDelta

__all__ = ["joined", "narrowed", "users_with_topics"]

#: Where an episode says what it means.
_METADATA = ("data", "metadata")
#: Intents that name what they replace: after them nothing speaks of that any more.
_BY_NAME = ("update", "delete")


def users_with_topics(told: Sorted) -> list[str]:
    """Return whose new episodes speak of something that others may have spoken of."""
    pairs = zip(told.deltas, told.users, strict=True)
    return list(dict.fromkeys(user for delta, user in pairs if _topic(delta) is not None))


def _topic(delta: MemoryDelta) -> bytes | None:
    """Return of what a delta makes a fact, and whose; None if that has no subject or no predicate."""
    if not isinstance(delta, AddDelta | UpdateDelta):
        return None
    said = [delta.fact_payload.get(name) for name in ("user", "agent", "subject", "predicate")]
    return None if None in said[2:] else canonical_json(said)


def narrowed(told: Sorted, users: Iterable[str], most: int) -> dict[str, Any] | None:
    """Return a where for all that bears upon the new episodes of users; None if it would name too much."""
    wanted = set(users)
    ids, subjects = [], {}
    for delta, user in zip(told.deltas, told.users, strict=True):
        if user in wanted:
            ids += [episode_key(name) for name in delta.source_episode_ids]
            if isinstance(delta, AddDelta | UpdateDelta) and _topic(delta) is not None:
                subject = delta.fact_payload["subject"]
                subjects[canonical_json(subject)] = subject
    if len(ids) + len(subjects) + len(_BY_NAME) > most:
        return None
    return {
        "or": [
            {"id": {"in": ids}},
            {"path": [*_METADATA, "subject"], "in": list(subjects.values())},
            {"path": [*_METADATA, "intent"], "in": list(_BY_NAME)},
        ]
    }


def joined(told: Sorted, users: Iterable[str], passes: Sequence[Sorted]) -> Sorted:
    """Return what is made of new episodes, for users as passes over theirs have it, old ones among them."""
    asked = set(users)
    # What is bad is so whatever was said before.
    result = Sorted(bad=told.bad)
    for delta, user in zip(told.deltas, told.users, strict=True):
        if user not in asked:
            result.add(delta, user)
    new = {name for delta in told.deltas for name in delta.source_episode_ids}
    passed: dict[str, MemoryDelta] = {}
    for one in passes:
        for delta, user in zip(one.deltas, one.users, strict=True):
            if user not in asked:
                continue
            if any(name in new for name in delta.source_episode_ids):
                result.add(delta, user)
                passed.update(dict.fromkeys(delta.source_episode_ids, delta))
            elif _follows(delta, passed):
                # It was said later than what is new, and heard earlier: it takes its place all the same.
                result.add(delta, user, again=True)
    return result


def _follows(delta: MemoryDelta, new: dict[str, MemoryDelta]) -> bool:
    """Say whether a delta takes the place of one of the new ones before it because it speaks of the same."""
    topic = _topic(delta)
    if topic is None or not isinstance(delta, UpdateDelta):
        return False
    return any(_topic(new[name]) == topic for name in delta.replaces if name in new)
