"""Makes deltas of episodes: what a rule would add, update, delete or leave."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias, TypeVar

from chronomemory._core import canonical_json
from chronomemory.episodes.ids import plain_id
from chronomemory.episodes.models import AddDelta, DeleteDelta, MemoryDelta, NoopDelta, UpdateDelta
from chronomemory.episodes.provenance import check_provenance
from chronomemory.episodes.storage.episodes import is_episode
from chronomemory.record import ChronoRecord

__all__ = ["Sorted", "sort"]

_Delta = TypeVar("_Delta", AddDelta, UpdateDelta, DeleteDelta, NoopDelta)

#: User, agent, subject and predicate of a fact.
_Key: TypeAlias = tuple[str, str, object, object]


@dataclass
class Sorted:
    """What a pass made: deltas in the order of their episodes, whose each is, and what made no sense."""

    deltas: list[MemoryDelta] = field(default_factory=list)
    #: The user of each delta.
    users: list[str] = field(default_factory=list)
    #: Episodes that want to update or delete, and do not say what.
    bad: list[str] = field(default_factory=list)


def sort(records: Iterable[ChronoRecord], rule_id: str, promotion_ts: datetime) -> Sorted:
    """Make a delta of each episode, by the first row of the table that fits."""
    told, seen = Sorted(), _Seen()
    # What all deltas of a pass have in common is checked once; the rest is right by the way it is made.
    check_provenance(
        NoopDelta(
            kind="noop",
            source_episode_ids=["any"],
            promotion_ts=promotion_ts,
            rule_id=rule_id,
            confidence=1.0,
        )
    )
    delta: MemoryDelta
    for record in records:
        if not is_episode(record):
            continue
        data = record.data
        names, metadata, episode_id = data["@scope"], data["metadata"], plain_id(record.id)
        fields: dict[str, Any] = {
            "source_episode_ids": [episode_id],
            "promotion_ts": promotion_ts,
            "rule_id": rule_id,
            "confidence": _confidence(metadata),
        }
        intent = metadata.get("intent")
        if intent == "noop":
            delta = _made(NoopDelta, "noop", fields)
        else:
            key = _key(names, metadata)
            if intent in ("update", "delete"):
                replaces = _replaces(metadata)
                if not replaces:
                    told.bad.append(episode_id)
                    continue
            else:
                replaces = seen.before(key)
            if replaces:
                fields["replaces"] = replaces
                seen.clear(key if intent == "delete" else None, replaces)
            if intent == "delete":
                delta = _made(DeleteDelta, "delete", fields)
            else:
                fields["fact_payload"] = _payload(episode_id, data, names, metadata)
                delta = _made(UpdateDelta, "update", fields) if replaces else _made(AddDelta, "add", fields)
                seen.note(key, episode_id)
        told.deltas.append(delta)
        told.users.append(names["user"])
    return told


def _made(model: type[_Delta], kind: str, fields: dict[str, Any]) -> _Delta:
    """Return a delta of fields that are what they must be.

    Validation would take longer than all else, and ``model_construct`` not much less: there may be a million.
    """
    fields["kind"] = kind
    made = model.__new__(model)
    _set(made, "__dict__", fields)
    # One for all of a kind: every field is in it, so nobody has anything to add.
    _set(made, "__pydantic_fields_set__", _FIELDS[kind])
    _set(made, "__pydantic_extra__", None)
    _set(made, "__pydantic_private__", None)
    return made


_set = object.__setattr__
_FIELDS = {
    "add": set(AddDelta.model_fields),
    "update": set(UpdateDelta.model_fields),
    "delete": set(DeleteDelta.model_fields),
    "noop": set(NoopDelta.model_fields),
}


class _Seen:
    """Which episode spoke last of a subject and predicate of somebody, in this pass."""

    def __init__(self) -> None:
        self._latest: dict[_Key, str] = {}
        self._keys: dict[str, _Key] = {}

    def before(self, key: _Key | None) -> list[str]:
        latest = None if key is None else self._latest.get(key)
        return [] if latest is None else [latest]

    def note(self, key: _Key | None, episode_id: str) -> None:
        if key is not None:
            self._latest[key] = episode_id
            self._keys[episode_id] = key

    def clear(self, key: _Key | None, replaced: list[str]) -> None:
        """Forget what was deleted or replaced, so that nothing replaces it once more."""
        gone = [self._keys.pop(name, None) for name in replaced]
        for one, name in zip(gone, replaced, strict=True):
            if one is not None and self._latest.get(one) == name:
                del self._latest[one]
        if key is not None:
            self._latest.pop(key, None)


def _key(names: dict[str, str], metadata: dict[str, Any]) -> _Key | None:
    subject, predicate = metadata.get("subject"), metadata.get("predicate")
    if subject is None or predicate is None:
        return None
    return names["user"], names["agent"], _comparable(subject), _comparable(predicate)


def _comparable(value: object) -> object:
    """Return what tells a value from others: a text itself, anything else as it would be written."""
    return value if isinstance(value, str) else canonical_json(value)


def _confidence(metadata: dict[str, Any]) -> float:
    given = metadata.get("confidence")
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= 1:
        return 1.0
    return float(given)


def _replaces(metadata: dict[str, Any]) -> list[str]:
    """Return which facts an episode says it replaces; none if it does not say so in words."""
    given = metadata.get("replaces")
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, list) or not all(isinstance(one, str) and one.strip() for one in listed):
        return []
    return list(dict.fromkeys(listed))


def _payload(
    episode_id: str, data: dict[str, Any], names: dict[str, str], metadata: dict[str, Any]
) -> dict[str, Any]:
    payload = {
        "id": episode_id,
        "user": names["user"],
        "agent": names["agent"],
        "content": data["content"],
        "source_node": data["source_node"],
    }
    for name in ("subject", "predicate", "object"):
        if metadata.get(name) is not None:
            payload[name] = metadata[name]
    return payload
