"""What the memory learns from how things went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from chronomemory.blocks.ids import block_key
from chronomemory.blocks.life.linking import LINKED_BLOCKS, join
from chronomemory.blocks.storage.blocks import DEFAULT_LAMBDA, reinforce_blocks, tags_of
from chronomemory.blocks.types import BlockStatus, DecayTier
from chronomemory.errors import InvalidRecord
from chronomemory.face.arguments import contents, string, unique_strings, within
from chronomemory.face.batch import Connection
from chronomemory.face.results import Result, counted

__all__ = ["OutcomeResult", "outcome"]

#: How much is known of a block before anything was heard of it.
PRIOR_STRENGTH = 2.0
#: Above this an outcome was good, below that it was bad.
_GOOD_ABOVE, _BAD_BELOW = 0.5, 0.2
#: How strongly blocks that helped together are linked, times the signal.
_LINK_WEIGHT = 0.8
#: What a block with this tag says is not worn away by how things went.
_CONSTITUTIONAL = "self/constitutional"
#: Evidence adds up, and must stay a number.
_HEAVIEST_OUTCOME = 1e6


@dataclass(frozen=True, slots=True)
class OutcomeResult(Result):
    """Which blocks heard of the outcome, with their confidence now, and which are not there."""

    confidence: dict[str, float]
    unknown: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """How many heard of it."""
        missing = f", {len(self.unknown)} not active" if self.unknown else ""
        return f"{counted(len(self.confidence), 'block')} heard of the outcome{missing}."


def outcome(
    conn: Connection, block_ids: Sequence[str], signal: float, weight: float, *, source: str, hours: float
) -> OutcomeResult:
    """Tell blocks how it went: 1 is good, 0 is bad; ``weight`` is how much that says, ``source`` who."""
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
    heard: dict[str, float] = {}
    unknown = []
    for block_id in unique_strings("ids", block_ids):
        record = conn.record(block_key(block_id))
        if record is None or record.status != BlockStatus.ACTIVE:
            unknown.append(block_id)
            continue
        evidence = record.data.get("evidence", 0.0)
        strength = PRIOR_STRENGTH + evidence
        alpha = record.confidence * strength + signal * weight
        beta = (1.0 - record.confidence) * strength + (1.0 - signal) * weight
        heard[block_id] = min(1.0, max(0.0, alpha / (alpha + beta)))
        data: dict[str, Any] = {"evidence": evidence + weight}
        if source or "outcome_source" in record.data:
            data["outcome_source"] = source or None
        if signal < _BAD_BELOW and _CONSTITUTIONAL not in tags_of(record):
            fading = record.data.get("decay_lambda", DEFAULT_LAMBDA)
            data["decay_lambda"] = max(fading, min(2.0 * fading, DecayTier.EPHEMERAL.value))
        conn.patch(record.id, {"confidence": heard[block_id], "data": data})
    if signal > _GOOD_ABOVE and heard:
        reinforce_blocks(conn, list(heard), hours)
        for pair in combinations(list(heard)[:LINKED_BLOCKS], 2):
            join(conn, *pair, _LINK_WEIGHT * signal, hours=hours)
    return OutcomeResult(heard, tuple(unknown))
