"""Says what happened to several blocks at once, as one event; what follows from it is a rule of the engine.

The rules are those of docs/format.md, section 7. They depend on nothing but what is said here and the records
that are there when the event counts, so two processes never get in each other's way.

An event never mixes scopes: else the history of a block, and its list of links that are forming, would name
blocks that not everyone sees who sees it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from chronomemory.blocks.ids import BLOCK, CONFIG
from chronomemory.face.batch import Connection
from chronomemory.face.moments import now

__all__ = ["in_words", "note_outcome", "note_shown"]

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
    said: dict[str, Any] = {"act": _SHOWN_IN_SCOPE if conn.scope.to_dict() else _SHOWN}
    if session_id:
        said["session"] = session_id
    _act(conn, said, block_ids, passed, frame=frame)


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
    conn: Connection, said: dict[str, Any], block_ids: Iterable[Sequence[str]], passed: float, **words: str
) -> None:
    said = {**said, "at": now(), **{name: word for name, word in words.items() if word}}
    if names := conn.scope.to_dict():
        said["scope"] = names
    for together in block_ids:
        # The clock goes on once.
        conn.act({**said, "ids": list(together), **({"passed": passed} if passed > 0.0 else {})})
        passed = 0.0


def in_words(said: Mapping[str, Any], record_id: str) -> str:
    """Tell what an act says of a record, for people.

    >>> in_words({"act": "shown/1", "frame": "task", "ids": ["a", "b", "c"]}, "block:a")
    'shown in frame task with 2 others'
    >>> in_words({"act": "outcome/1", "ids": ["a", "b"], "signal": 1.0, "source": "tests"}, "bedge:a:b")
    'both ends: outcome 1.0 from tests'
    """
    act, kind = said.get("act"), record_id.partition(":")[0]
    if kind == CONFIG:
        return f"{said.get('passed', 0.0)} hours passed"
    if act in (_SHOWN, _SHOWN_IN_SCOPE):
        words = _where("shown", " in frame ", said.get("frame"))
    elif act in (_OUTCOME, _OUTCOME_IN_SCOPE):
        words = _where(f"outcome {said.get('signal')}", " from ", said.get("source"))
        if said.get("weight", 1.0) != 1.0:
            words += f", weight {said['weight']}"
    else:
        return f"{act}, which this version does not know"
    if kind != BLOCK:
        return f"both ends: {words}"
    ids = said.get("ids")
    others = len(ids) - 1 if isinstance(ids, list) else 0
    return words + (f" with {others} other{'s' * (others != 1)}" if others > 0 else "")


def _where(words: str, link: str, name: object) -> str:
    return f"{words}{link}{name}" if name else words
