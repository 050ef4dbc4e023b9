"""Takes graphs in and out: one envelope out, envelopes and fixtures of others in, by a key map."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from chronomemory.face.results import Result, counted
from chronomemory.graph.changes import (
    FAMILIES,
    Changes,
    Look,
    misnamed,
    replayed,
    reserved,
    saved_events,
    snapshot_of,
)
from chronomemory.graph.errors import DuplicateEventError, EnvelopeError, ModelError
from chronomemory.graph.models import ActivationPlan, MemoryEvent, Model
from chronomemory.graph.view import ENVELOPE, page_of
from chronomemory.record import is_same

#: For each array of an envelope: which field of ours is called how there. ``"nodes": {"kind": "type"}`` reads
#: a node's kind from ``type``; ``"arrays": {"nodes": "vertices"}`` finds the nodes under another name.
KeyMap = Mapping[str, Mapping[str, str]]

One = TypeVar("One", bound=Model)

_ARRAYS: dict[str, type[Model]] = {
    **{name: cls for name, (cls, _) in FAMILIES.items()},
    "plans": ActivationPlan,
    "events": MemoryEvent,
}


@dataclass(frozen=True, slots=True)
class Imported(Result):
    """The counts of an import."""

    profiles: int
    nodes: int
    edges: int
    paths: int
    plans: int
    events: int

    @classmethod
    def of(cls, changes: Changes) -> Imported:
        return cls(**{name: len(getattr(changes, name)) for name in _ARRAYS})

    @property
    def summary(self) -> str:
        counts = {name.removesuffix("s"): number for name, number in self.to_dict().items()}
        return "imported " + ", ".join(counted(number, noun) for noun, number in counts.items())


def envelope_of(look: Look) -> dict[str, Any]:
    """Return a graph as one envelope: events in the order of their appending, all else sorted by id."""
    arrays = {name: [item.to_dict() for item in getattr(look, name)()] for name in _ARRAYS}
    return {"schema": ENVELOPE, **arrays}


def envelope_page(look: Look) -> bytes:
    """Return the same as bytes, which depend on nothing else."""
    arrays = {name: [item.shown() for item in getattr(look, name)()] for name in _ARRAYS}
    return page_of({"schema": ENVELOPE, **arrays})


def read_envelope(given: Mapping[str, Any], keys: KeyMap | None = None) -> Changes:
    """Parse an envelope, or a fixture of another tool by a key map; errors name the place."""
    if not isinstance(given, Mapping):
        raise EnvelopeError(f"an object expected, got {type(given).__name__}")
    schema = given.get("schema", ENVELOPE)
    if schema != ENVELOPE and keys is None:
        raise EnvelopeError(
            f"schema: {schema!r} is not known",
            path="schema",
            recovery=f"Import {ENVELOPE!r}, or give a key map that says how this one is to be read.",
        )
    keys = {} if keys is None else keys
    if not isinstance(keys, Mapping):
        raise EnvelopeError(f"keys: an object expected, got {type(keys).__name__}", path="keys")
    known: dict[str, Iterable[str]] = {name: cls.__dataclass_fields__ for name, cls in _ARRAYS.items()}  # type: ignore[attr-defined]
    known["arrays"] = _ARRAYS
    for name, fields in keys.items():
        if name not in known or not isinstance(fields, Mapping):
            raise EnvelopeError(f"keys: {name!r} is no array of an envelope", path=f"keys.{name}")
        for field in fields:
            if field not in known[name]:
                raise EnvelopeError(f"keys.{name}: there is no field {field!r}", path=f"keys.{name}.{field}")
            if not isinstance(fields[field], str):
                raise EnvelopeError(f"keys.{name}.{field}: a name expected", path=f"keys.{name}.{field}")
    arrays: dict[str, Any] = {name: _array(cls, name, given, keys) for name, cls in _ARRAYS.items()}
    return Changes(**arrays)


def _array(cls: type[One], name: str, given: Mapping[str, Any], keys: KeyMap) -> tuple[One, ...]:
    called = keys.get("arrays", {}).get(name, name)
    items = given.get(called)
    if items is None and name == "profiles" and "profile" in given:
        items = [given["profile"]]
    if isinstance(items, Mapping):  # by id, as some keep them
        items = [{"id": key, **item} if isinstance(item, Mapping) else item for key, item in items.items()]
    if not isinstance(items, list | tuple | None):
        raise EnvelopeError(f"{called}: a list expected, got {type(items).__name__}", path=called)
    read: dict[str, One] = {}
    for place, item in enumerate(items or ()):
        try:
            one = cls.from_dict(_renamed(cls, item, keys.get(name)))
            item_id: str = one.id  # type: ignore[attr-defined]
            if not item_id:
                raise ModelError(f"{cls.called}.id must not be empty", field="id")
        except ModelError as error:
            path = f"{called}[{place}]"
            raise EnvelopeError(f"{path}: {error}", path=f"{path}.{error.field}".rstrip(".")) from None
        if item_id in read:
            raise EnvelopeError(
                f"{called}[{place}]: the id {item_id!r} is there twice", path=f"{called}[{place}].id"
            )
        read[item_id] = one
    return tuple(read.values())


def _renamed(cls: type[Model], item: Any, names: Mapping[str, str] | None) -> Any:
    """Return an item under our field names; other fields become part of ``data``."""
    if names is None or not isinstance(item, Mapping):
        return item
    fields: set[str] = set(cls.__dataclass_fields__)  # type: ignore[attr-defined]
    theirs = {called: field for field, called in names.items()}
    renamed = {theirs[key]: value for key, value in item.items() if key in theirs}
    rest = {key: value for key, value in item.items() if key not in theirs}
    # What is called as a field of ours, which another name stands for here, is none of ours.
    beyond = {key: value for key, value in rest.items() if key not in fields or key in renamed}
    renamed = {**{key: value for key, value in rest.items() if key not in beyond}, **renamed}
    data = renamed.get("data", {})
    if not beyond or "data" not in fields or not isinstance(data, Mapping):
        return {**beyond, **renamed}
    if clash := sorted(str(key) for key in beyond.keys() & data.keys()):
        raise ModelError(f"{cls.called}: {clash[0]!r} stands beside data and in it", field=clash[0])
    return {**renamed, "data": {**beyond, **data}}


def changes_of(envelope: Changes, look: Look, ts: str) -> Changes:
    """Return the items and events an import adds, such that replaying all events gives the graph."""
    there = snapshot_of(look)
    events, past = [], look.events()
    has_history = any(map(reserved, past))
    for place, event in enumerate(envelope.events):
        known = look.event(event.id)
        if known is None:
            reason = reserved(event) if has_history else misnamed(event)
            if reason:
                raise EnvelopeError(
                    f"events[{place}]: {reason}",
                    path=f"events[{place}]",
                    recovery="Import a whole history into an empty workspace, or leave such events out.",
                )
            events.append(event)
        elif not _is_same(known, event):
            raise DuplicateEventError(event_id=event.id)
    lead_to = replayed([*past, *events])
    new: dict[str, Any] = {}
    untold: dict[str, Any] = {}
    for name in FAMILIES:
        mine, theirs, listed = (getattr(part, name) for part in (there, lead_to, envelope))
        wanted = {**mine, **{item.id: item for item in listed}}
        if strange := set(theirs) - set(wanted):
            raise EnvelopeError(
                f"events: they lead to {min(strange)!r}, which the envelope does not list", path="events"
            )
        new[name] = tuple(item for item in listed if not _is_same(mine.get(item.id), item))
        untold[name] = [wanted[key] for key in sorted(wanted) if not _is_same(theirs.get(key), wanted[key])]
    plans = tuple(item for item in envelope.plans if not _is_same(look.plan(item.id), item))
    return Changes(**new, plans=plans, events=(*events, *saved_events(Changes(**untold), ts)))


def _is_same(one: Model | None, other: Model) -> bool:
    return one is not None and is_same(one.shown(), other.shown())
