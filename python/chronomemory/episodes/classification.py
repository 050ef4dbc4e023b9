"""Makes deltas of episodes: what a rule would add, update, delete or leave. The engine says which it is."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import repeat
from typing import Any

from pydantic import BaseModel

from chronomemory.episodes.ids import EPISODE, FACE
from chronomemory.episodes.models import AddDelta, DeleteDelta, MemoryDelta, NoopDelta, UpdateDelta
from chronomemory.episodes.provenance import check_provenance
from chronomemory.face.arguments import LAST_SEQ
from chronomemory.filters import Where
from chronomemory.selection import query_terms, walk_terms
from chronomemory.types import HasEngine

__all__ = ["Sorted", "sort"]

#: The model of each kind.
_KINDS = (AddDelta, UpdateDelta, DeleteDelta, NoopDelta)
#: What the fields are called that the engine fills in.
_NAMES = {
    "sources": "source_episode_ids",
    "confidence": "confidence",
    "replaces": "replaces",
    "payload": "fact_payload",
}
#: Of fewer deltas the collector is soon done.
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
    #: The user of each delta.
    users: list[str] = field(default_factory=list)
    #: Episodes that want to update or delete, and do not say what.
    bad: list[str] = field(default_factory=list)
    #: The places of deltas whose episodes are not new, and that take the place of what is.
    again: set[int] = field(default_factory=set)

    @property
    def matched(self) -> int:
        """How many episodes there were."""
        return len(self.deltas) - len(self.again) + len(self.bad)

    def add(self, delta: MemoryDelta, user: str, *, again: bool = False) -> None:
        """Put a delta behind those that are there."""
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
    """Make a delta of each episode for which a where holds, in the order of their time.

    With ``after`` and ``until`` only of those that an event behind the one and up to the other wrote.
    """
    # What all deltas of a pass have in common is checked once; the rest is right by the way it is made.
    common: dict[str, Any] = {"rule_id": rule_id, "promotion_ts": promotion_ts}
    check_provenance(NoopDelta(kind="noop", source_episode_ids=["any"], confidence=1.0, **common))
    terms = query_terms(
        kind=EPISODE,
        status="active",
        rag_filter=False,
        min_confidence=0.0,
        limit=None,
        faces=False,
        where=where or None,
    )
    order = walk_terms(terms, "happened")
    made = {"kinds": _KINDS, "fields": _begun(**common), "names": _NAMES}
    pages = store.engine.deltas(FACE, order, {"after": after, "until": until, **made})
    told = Sorted()
    with _uncollected(told.deltas):
        for kinds, users, fields, bad in pages:
            told.users += users
            told.bad += bad
            told.deltas += _made(kinds, fields)
    return told


def _begun(rule_id: str, promotion_ts: datetime) -> tuple[dict[str, Any], ...]:
    """Return what the fields of each kind begin as: what is None there is filled in for each delta."""
    given = {"promotion_ts": promotion_ts, "rule_id": rule_id, "confidence": 1.0}
    common: dict[str, Any] = {"source_episode_ids": None, **given}
    return (
        {**common, "kind": "add", "fact_payload": None},
        {**common, "kind": "update", "replaces": None, "fact_payload": None},
        {**common, "kind": "delete", "replaces": None},
        {**common, "kind": "noop"},
    )


def _made(kinds: list[Any], fields: list[dict[str, Any]]) -> list[Any]:
    """Return models of these kinds with these fields.

    Validation would take longer than all else, ``model_construct`` not much less, and a loop in Python half
    as long as the engine for everything before it: so each step is taken for all of them at once.
    """
    made = list(map(_new, kinds))
    _each(map(_set_fields, made, fields))
    _each(map(_set_names, made, map(_FIELDS.__getitem__, kinds)))
    _each(map(_set_extra, made, repeat(None)))
    _each(map(_set_private, made, repeat(None)))
    return made


def _each(steps: Iterable[None]) -> None:
    """Take all steps."""
    deque(steps, maxlen=0)


@contextmanager
def _uncollected(grown: list[Any]) -> Iterator[None]:
    """Keep the collector of circles away from a list that grows to millions and has none.

    It would go through all of it again and again, and once more at the end, because all of it is new. So if
    it is long, what is there then is called old, unless somebody else has set objects aside, whom that would
    disturb.
    """
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
