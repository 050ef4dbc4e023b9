"""Writes acts: blocks were shown together, or blocks heard how it went.

An act is one event; what follows from it is a rule of the engine (docs/format.md, section 7). The rule
depends on nothing but the event and the records that are there when it counts, so two processes never
conflict. An act never mixes scopes: else the history of a block would name blocks that not everyone sees who
sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chronomemory.blocks.ids import BLOCK, CONFIG, block_key
from chronomemory.blocks.storage.blocks import by_scope
from chronomemory.blocks.storage.config import TOTAL_ACTIVE_HOURS, config_keys
from chronomemory.blocks.types import BlockStatus
from chronomemory.errors import InvalidRecord
from chronomemory.face.arguments import contents, string, unique_strings, within
from chronomemory.face.batch import Connection
from chronomemory.face.moments import now
from chronomemory.face.results import Result, counted

#: The number behind the name is the version of the rule: the second is that of a scope.
_SHOWN, _SHOWN_IN_SCOPE = "shown/1", "shown/2"
_OUTCOME, _OUTCOME_IN_SCOPE = "outcome/1", "outcome/2"


def note_shown(
    conn: Connection,
    block_ids: Iterable[Sequence[str]],
    *,
    frame: str,
    session_id: str | None,
    passed: float,
) -> None:
    """Take note that blocks, those of one scope together, were shown together, the first of them first."""
    fields: dict[str, Any] = {"act": _SHOWN_IN_SCOPE if conn.scope.to_dict() else _SHOWN}
    if session_id:
        fields["session"] = session_id
    _act(conn, fields, block_ids, passed, frame=frame)


def note_outcome(
    conn: Connection,
    block_ids: Iterable[Sequence[str]],
    signal: float,
    weight: float,
    *,
    source: str,
    passed: float,
) -> None:
    """Take note that blocks, those of one scope together, heard how it went."""
    act = _OUTCOME_IN_SCOPE if conn.scope.to_dict() else _OUTCOME
    _act(conn, {"act": act, "signal": signal, "weight": weight}, block_ids, passed, source=source)


def _act(
    conn: Connection, fields: dict[str, Any], block_ids: Iterable[Sequence[str]], passed: float, **words: str
) -> None:
    fields = {**fields, "at": now(), **{name: word for name, word in words.items() if word}}
    if names := conn.scope.to_dict():
        fields["scope"] = names
    for together in block_ids:
        # The clock goes on once.
        conn.act({**fields, "ids": list(together), **({"passed": passed} if passed > 0.0 else {})})
        passed = 0.0


def in_words(fields: Mapping[str, Any], record_id: str) -> str:
    """Tell what an act says of a record, for people.

    >>> in_words({"act": "shown/1", "frame": "task", "ids": ["a", "b", "c"]}, "block:a")
    'shown in frame task with 2 others'
    >>> in_words({"act": "outcome/1", "ids": ["a", "b"], "signal": 1.0, "source": "tests"}, "bedge:a:b")
    'both ends: outcome 1.0 from tests'
    """
    act, kind = fields.get("act"), record_id.partition(":")[0]
    if kind == CONFIG:
        return f"{fields.get('passed', 0.0)} hours passed"
    if act in (_SHOWN, _SHOWN_IN_SCOPE):
        words = _where("shown", " in frame ", fields.get("frame"))
    elif act in (_OUTCOME, _OUTCOME_IN_SCOPE):
        words = _where(f"outcome {fields.get('signal')}", " from ", fields.get("source"))
        if fields.get("weight", 1.0) != 1.0:
            words += f", weight {fields['weight']}"
    else:
        return f"{act}, which this version does not know"
    if kind != BLOCK:
        return f"both ends: {words}"
    ids = fields.get("ids")
    others = len(ids) - 1 if isinstance(ids, list) else 0
    return words + (f" with {others} other{'s' * (others != 1)}" if others > 0 else "")


def _where(words: str, link: str, name: object) -> str:
    return f"{words}{link}{name}" if name else words


#: Evidence adds up, and must stay a number.
_HEAVIEST_OUTCOME = 1e6


@dataclass(frozen=True, slots=True)
class OutcomeResult(Result):
    """Which blocks heard of the outcome, with their confidence now, and which are not there."""

    confidence: dict[str, float]
    unknown: tuple[str, ...] = ()
    #: What is wider than the handle: it is read here, and learns from those whose it is.
    wider: tuple[str, ...] = ()
    #: Blocks that were shown although they were not relevant to the query: they get no credit.
    not_relevant: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        missing = f", {len(self.unknown)} not active" if self.unknown else ""
        wider = f", {len(self.wider)} not yours to change" if self.wider else ""
        return f"{counted(len(self.confidence), 'block')} heard of the outcome{missing}{wider}."


def tell_outcome(
    conn: Connection,
    block_ids: Sequence[str],
    signal: float,
    weight: float,
    *,
    source: str,
    passing: Callable[[Connection], float],
) -> list[str]:
    """Tell active blocks how it went: 1 is good, 0 is bad; ``weight`` is how much that says, ``source`` who.

    Return all blocks that were to hear of it, each once.
    """
    with contents:
        string("source", source)
        signal = within("signal", signal)
        weight = within("weight", weight, 0.0, _HEAVIEST_OUTCOME)
    if weight == 0.0:
        raise InvalidRecord(
            "weight: an outcome of weight 0 says nothing",
            field="weight",
            recovery="Leave the blocks out that it says nothing about.",
        )
    asked = list(unique_strings("ids", block_ids))
    conn.fetch([*map(block_key, asked), *config_keys(TOTAL_ACTIVE_HOURS, conn.scope)])
    active = [block_id for block_id in asked if active_confidence(conn, block_id) is not None]
    heard = by_scope({block_id: conn.own_scope(block_key(block_id)) for block_id in active})
    if heard:
        note_outcome(conn, heard, signal, weight, source=source, passed=passing(conn))
    return asked


def heard_of(conn: Connection, block_ids: Sequence[str]) -> OutcomeResult:
    """Return what these blocks believe now that they have heard of an outcome."""
    conn.fetch(map(block_key, block_ids))
    now = {block_id: active_confidence(conn, block_id) for block_id in block_ids}
    own = {block_id for block_id in now if conn.own_scope(block_key(block_id)) is not None}
    known = {block_id: confidence for block_id, confidence in now.items() if confidence is not None}
    return OutcomeResult(
        {block_id: confidence for block_id, confidence in known.items() if block_id in own},
        tuple(block_id for block_id in now if block_id not in known),
        tuple(block_id for block_id in known if block_id not in own),
    )


def active_confidence(conn: Connection, block_id: str) -> float | None:
    """Return how sure a block is, or None if it is not active."""
    record = conn.glimpse(block_key(block_id))
    return None if record is None or record.status != BlockStatus.ACTIVE else record.confidence
