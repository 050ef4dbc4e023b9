"""What the memory learns from how things went."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from chronomemory.blocks.ids import block_key
from chronomemory.blocks.storage.acts import note_outcome
from chronomemory.blocks.storage.blocks import by_scope
from chronomemory.blocks.storage.config import TOTAL_ACTIVE_HOURS, config_keys
from chronomemory.blocks.types import BlockStatus
from chronomemory.errors import InvalidRecord
from chronomemory.face.arguments import contents, string, unique_strings, within
from chronomemory.face.batch import Connection
from chronomemory.face.results import Result, counted

__all__ = ["OutcomeResult", "heard_of", "tell_outcome"]

#: Evidence adds up, and must stay a number.
_HEAVIEST_OUTCOME = 1e6


@dataclass(frozen=True, slots=True)
class OutcomeResult(Result):
    """Which blocks heard of the outcome, with their confidence now, and which are not there."""

    confidence: dict[str, float]
    unknown: tuple[str, ...] = ()
    #: What is wider than the handle: it is read here, and learns from those whose it is.
    wider: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """How many heard of it."""
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
