"""Makes deltas of episodes: what a rule would add, update, delete or leave. The engine says which it is."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import repeat
from typing import Any

from pydantic import BaseModel

from chronomemory._core import canonical_json
from chronomemory.episodes.facts import check_provenance
from chronomemory.episodes.ids import EPISODE, FACE, episode_key
from chronomemory.episodes.models import AddDelta, DeleteDelta, MemoryDelta, NoopDelta, UpdateDelta
from chronomemory.face.arguments import LAST_SEQ
from chronomemory.filters import Where
from chronomemory.selection import query_terms, walk_terms
from chronomemory.types import HasEngine

_KINDS = (AddDelta, UpdateDelta, DeleteDelta, NoopDelta)
_NAMES = ("source_episode_ids", "confidence", "replaces", "fact_payload")
_MANY = 100_000
#: The fields of each: every one is in each delta, so nobody has anything to add to them.
_FIELDS: dict[type[BaseModel], set[str]] = {model: set(model.model_fields) for model in _KINDS}


def _slot(name: str) -> Callable[[object, object], None]:
    """Return what sets one of the four slots that a model is made of."""
    put: Callable[[object, object], None] = vars(BaseModel)[name].__set__
    return put


_new = object.__new__
_set_fields = _slot("__dict__")
_set_names = _slot("__pydantic_fields_set__")
_set_extra = _slot("__pydantic_extra__")
_set_private = _slot("__pydantic_private__")


@dataclass
class Sorted:
    """What a pass made: deltas in the order of their episodes, whose each is, and what made no sense."""

    deltas: list[MemoryDelta] = field(default_factory=list)
    users: list[str] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)
    #: The places of deltas whose episodes are not new, and that take the place of what is.
    again: set[int] = field(default_factory=set)

    @property
    def matched(self) -> int:
        return len(self.deltas) - len(self.again) + len(self.bad)

    def add(self, delta: MemoryDelta, user: str, *, again: bool = False) -> None:
        if again:
            self.again.add(len(self.deltas))
        self.deltas.append(delta)
        self.users.append(user)


def sort(
    store: HasEngine,
    where: Where,
    rule_id: str,
    promotion_ts: datetime,
    *,
    after: int = -1,
    until: int = LAST_SEQ,
) -> Sorted:
    """Make a delta of each matching episode, by time; with bounds, of those written between two events."""
    # What all deltas of a pass have in common is checked once; the rest is right by the way it is made.
    common: dict[str, Any] = {"rule_id": rule_id, "promotion_ts": promotion_ts}
    check_provenance(NoopDelta(kind="noop", source_episode_ids=["any"], confidence=1.0, **common))
    order = walk_terms(query_terms(kind=EPISODE, where=where or None), "happened")
    # What is None here is filled in for each delta.
    begun: dict[str, Any] = {"source_episode_ids": None, **common, "confidence": 1.0}
    fields = (
        {**begun, "kind": "add", "fact_payload": None},
        {**begun, "kind": "update", "replaces": None, "fact_payload": None},
        {**begun, "kind": "delete", "replaces": None},
        {**begun, "kind": "noop"},
    )
    made = {"kinds": _KINDS, "fields": fields, "names": _NAMES}
    pages = store.engine.deltas(FACE, order, {"after": after, "until": until, **made})
    classified = Sorted()
    with _uncollected(classified.deltas):
        for kinds, users, filled, bad in pages:
            classified.users += users
            classified.bad += bad
            classified.deltas += _made(kinds, filled)
    return classified


def _made(kinds: list[Any], fields: list[dict[str, Any]]) -> list[Any]:
    """Return models of these kinds with these fields, made in bulk: validation takes far longer."""
    made = list(map(_new, kinds))
    _each(map(_set_fields, made, fields))
    _each(map(_set_names, made, map(_FIELDS.__getitem__, kinds)))
    _each(map(_set_extra, made, repeat(None)))
    _each(map(_set_private, made, repeat(None)))
    return made


def _each(steps: Iterable[None]) -> None:
    deque(steps, maxlen=0)


@contextmanager
def _uncollected(grown: list[Any]) -> Iterator[None]:
    """Keep the garbage collector away from a list that grows to millions and has no cycles."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if len(grown) >= _MANY and not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()


_METADATA = ("data", "metadata")
#: Intents that name what they replace: after them nothing speaks of that any more.
_BY_NAME = ("update", "delete")


def users_with_topics(classified: Sorted) -> list[str]:
    """Return whose new episodes speak of something that others may have spoken of."""
    pairs = zip(classified.deltas, classified.users, strict=True)
    return list(dict.fromkeys(user for delta, user in pairs if _topic(delta) is not None))


def _topic(delta: MemoryDelta) -> bytes | None:
    """Return of what a delta makes a fact, and whose; None if that has no subject or no predicate."""
    if not isinstance(delta, AddDelta | UpdateDelta):
        return None
    topic = [delta.fact_payload.get(name) for name in ("user", "agent", "subject", "predicate")]
    return None if None in topic[2:] else canonical_json(topic)


def narrowed(classified: Sorted, users: Iterable[str], most: int) -> dict[str, Any] | None:
    """Return a where for all that bears upon the new episodes of users; None if it would name too much."""
    wanted = set(users)
    ids, subjects = [], {}
    for delta, user in zip(classified.deltas, classified.users, strict=True):
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


def joined(classified: Sorted, users: Iterable[str], passes: Sequence[Sorted]) -> Sorted:
    """Return what is made of new episodes, for users as passes over theirs have it, old ones among them."""
    asked = set(users)
    result = Sorted(bad=classified.bad)
    for delta, user in zip(classified.deltas, classified.users, strict=True):
        if user not in asked:
            result.add(delta, user)
    new = {name for delta in classified.deltas for name in delta.source_episode_ids}
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
