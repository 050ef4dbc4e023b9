"""Classifies episodes: the delta that a rule makes of each, by what its metadata states."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from chronomemory._core import canonical_json
from chronomemory.episodes.facts import check_provenance
from chronomemory.episodes.ids import EPISODE, episode_key, has_all_names, plain_id
from chronomemory.episodes.models import AddDelta, DeleteDelta, MemoryDelta, NoopDelta, UpdateDelta
from chronomemory.face.arguments import LAST_SEQ
from chronomemory.face.moments import is_instant
from chronomemory.filters import Where
from chronomemory.record import ChronoRecord
from chronomemory.selection import query_terms, walk_terms
from chronomemory.types import HasEngine

#: The fields of the metadata that a fact keeps.
_STATEMENT = ("subject", "predicate", "object")


@dataclass
class Sorted:
    """The result of a pass: deltas in the order of their episodes, their users, ids of bad episodes."""

    deltas: list[MemoryDelta] = field(default_factory=list)
    users: list[str] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)
    #: The places of deltas whose episodes are not new, and that replace new ones.
    again: set[int] = field(default_factory=set)

    @property
    def matched(self) -> int:
        return len(self.deltas) - len(self.again) + len(self.bad)

    def add(self, delta: MemoryDelta, user: str, *, again: bool = False) -> None:
        if again:
            self.again.add(len(self.deltas))
        self.deltas.append(delta)
        self.users.append(user)


def is_episode(record: ChronoRecord) -> bool:
    """Say whether a record has the id and the fields of an episode; plain and foreign records have not."""
    data = record.data
    prefix, _, name = record.id.partition(":")
    return (
        prefix == EPISODE
        and bool(name.strip())
        and has_all_names(data.get("@scope"))
        and isinstance(data.get("metadata"), dict)
        and isinstance(data.get("content"), str)
        and isinstance(data.get("source_node"), str)
        and is_instant(data.get("timestamp"))
    )


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
    common: dict[str, Any] = {"rule_id": rule_id, "promotion_ts": promotion_ts}
    check_provenance(NoopDelta(kind="noop", source_episode_ids=["any"], confidence=1.0, **common))
    order = walk_terms(query_terms(kind=EPISODE, where=where or None), "happened")
    classified, topics = Sorted(), _Topics()
    for record in store.engine.walk(order):
        if is_episode(record) and after < (record.updated_seq or 0) <= until:
            delta = _delta_of(record, topics, common)
            if delta is None:
                classified.bad.append(plain_id(record.id))
            else:
                classified.add(delta, record.data["@scope"]["user"])
    return classified


def _delta_of(record: ChronoRecord, topics: _Topics, common: dict[str, Any]) -> MemoryDelta | None:
    """Return the delta of an episode by the table in the guide; None if it does not name what it replaces."""
    data, name = record.data, plain_id(record.id)
    metadata, scope = data["metadata"], data["@scope"]
    owner = (scope["user"], scope["agent"])
    fields = {**common, "source_episode_ids": [name], "confidence": _confidence(metadata.get("confidence"))}
    intent, topic = metadata.get("intent"), _topic_of(owner, metadata)
    if intent == "noop":
        return NoopDelta(kind="noop", **fields)
    if intent in _BY_NAME:
        replaces = _names(metadata.get("replaces"))
        topics.forget(owner, replaces)
        if not replaces:
            return None
        if intent == "delete":
            topics.end(topic)
            return DeleteDelta(kind="delete", replaces=replaces, **fields)
        topics.note(topic, name)
    else:
        earlier = topics.note(topic, name)
        replaces = [] if earlier is None else [earlier]
    stated = {key: metadata[key] for key in _STATEMENT if metadata.get(key) is not None}
    payload = {"id": name, "user": owner[0], "agent": owner[1], "content": data["content"], **stated}
    fields["fact_payload"] = {**payload, "source_node": data["source_node"]}
    if replaces:
        return UpdateDelta(kind="update", replaces=replaces, **fields)
    return AddDelta(kind="add", **fields)


def _confidence(stated: object) -> float:
    if isinstance(stated, int | float) and not isinstance(stated, bool) and 0 <= stated <= 1:
        return float(stated)
    return 1.0


def _names(replaces: object) -> list[str]:
    """Return the distinct names that an episode replaces; none if one of them is not a name."""
    names = [replaces] if isinstance(replaces, str) else replaces
    if not isinstance(names, list) or not all(isinstance(name, str) and name.strip() for name in names):
        return []
    return list(dict.fromkeys(names))


_Owner = tuple[str, str]
#: A user and an agent, and the canonical JSON of a subject and a predicate.
_Topic = tuple[_Owner, bytes]


def _topic_of(owner: _Owner, metadata: dict[str, Any]) -> _Topic | None:
    about = [metadata.get("subject"), metadata.get("predicate")]
    return None if None in about else (owner, canonical_json(about))


class _Topics:
    """The last episode about each topic, in one pass."""

    def __init__(self) -> None:
        self._latest: dict[_Topic, str] = {}
        self._topic: dict[str, _Topic] = {}

    def note(self, topic: _Topic | None, name: str) -> str | None:
        """Note an episode about a topic; return the earlier one, which it replaces."""
        if topic is None:
            return None
        earlier = self._latest.get(topic)
        if earlier is not None:
            del self._topic[earlier]
        self._latest[topic], self._topic[name] = name, topic
        return earlier

    def end(self, topic: _Topic | None) -> None:
        """Forget the last episode about a topic."""
        if topic in self._latest:
            del self._topic[self._latest.pop(topic)]

    def forget(self, owner: _Owner, names: Iterable[str]) -> None:
        """Forget episodes of an owner that are replaced by name, so that nothing replaces them again."""
        for name in names:
            topic = self._topic.get(name)
            if topic is not None and topic[0] == owner:
                self.end(topic)


_METADATA = ("data", "metadata")
#: Intents that name what they replace: after them nothing speaks of that any more.
_BY_NAME = ("update", "delete")


def users_with_topics(classified: Sorted) -> list[str]:
    """Return whose new episodes speak of something that others may have spoken of."""
    pairs = zip(classified.deltas, classified.users, strict=True)
    return list(dict.fromkeys(user for delta, user in pairs if _topic(delta) is not None))


def _topic(delta: MemoryDelta) -> _Topic | None:
    """Return the topic of the fact that a delta makes, if it makes one and the fact has a topic."""
    if not isinstance(delta, AddDelta | UpdateDelta):
        return None
    payload = delta.fact_payload
    return _topic_of((payload["user"], payload["agent"]), payload)


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
