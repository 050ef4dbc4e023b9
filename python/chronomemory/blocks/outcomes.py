"""What does the memory learn from how things went?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from chronomemory.blocks.checks import check_text, check_within, one_by_one
from chronomemory.blocks.connection import Connection
from chronomemory.blocks.errors import IntegrityError
from chronomemory.blocks.ids import block_key, edge_key
from chronomemory.blocks.storage.blocks import DEFAULT_LAMBDA, known_block, reinforce_blocks
from chronomemory.blocks.storage.edges import FORMING, new_edge, reinforce_edges
from chronomemory.blocks.types import BlockStatus, DecayTier, Edge
from chronomemory.errors import InvalidRecord

__all__ = ["CO_RETRIEVAL_SESSIONS", "OutcomeResult", "connect", "disconnect", "note_together", "outcome"]

#: How much is known of a block before anything was heard of it.
PRIOR_STRENGTH = 2.0
#: Above this an outcome was good, below that it was bad.
_GOOD_ABOVE, _BAD_BELOW = 0.5, 0.2
#: How strongly blocks that helped together are linked, times the signal.
_LINK_WEIGHT = 0.8
#: The first so many blocks are linked to each other: 190 links, where 300 blocks would have 45,000.
_LINKED_BLOCKS = 20
#: Evidence adds up, and must stay a number.
_HEAVIEST_OUTCOME = 1e6

#: Blocks that were shown together in so many sessions are linked, and how strongly.
CO_RETRIEVAL_SESSIONS, CO_RETRIEVAL_WEIGHT = 3, 0.55


@dataclass(frozen=True, slots=True)
class OutcomeResult:
    """Which blocks heard of the outcome, with their confidence now, and which are not there."""

    confidence: dict[str, float]
    unknown: tuple[str, ...] = ()


def outcome(
    conn: Connection, block_ids: Sequence[str], signal: float, weight: float, *, hours: float
) -> OutcomeResult:
    """Tell blocks how it went: 1 is good, 0 is bad; ``weight`` is how much it says."""
    signal = check_within("signal", signal)
    weight = check_within("weight", weight, 0.0, _HEAVIEST_OUTCOME)
    if weight == 0.0:
        raise InvalidRecord("weight: an outcome of weight 0 says nothing", field="weight")
    heard: dict[str, float] = {}
    unknown = []
    for block_id in one_by_one(block_ids):
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
        if signal < _BAD_BELOW:
            fading = record.data.get("decay_lambda", DEFAULT_LAMBDA)
            data["decay_lambda"] = max(fading, min(2.0 * fading, DecayTier.EPHEMERAL.value))
        conn.patch(record.id, {"confidence": heard[block_id], "data": data})
    if signal > _GOOD_ABOVE and heard:
        reinforce_blocks(conn, list(heard), hours)
        for pair in combinations(list(heard)[:_LINKED_BLOCKS], 2):
            connect(conn, *pair, _LINK_WEIGHT * signal, hours=hours)
    return OutcomeResult(heard, tuple(unknown))


def connect(conn: Connection, one: str, other: str, weight: float, *, hours: float) -> bool:
    """Link two blocks, or count one more use if they are linked; say whether the link is new."""
    pair = Edge.canonical(check_text("from_id", one), check_text("to_id", other))
    if pair.from_id == pair.to_id:
        raise InvalidRecord("a block cannot be linked to itself", field="to_id")
    weight = check_within("weight", weight)
    for block_id in pair:
        if known_block(conn, block_id).status == BlockStatus.ARCHIVED:
            raise IntegrityError(f"the block {block_id!r} is archived", recovery="Learn it again first.")
    known = conn.record(edge_key(*pair))
    if known is not None and known.status != FORMING:
        reinforce_edges(conn, [pair], hours)
        return False
    conn.put(new_edge(*pair, weight, last_active_hours=hours))
    return True


def disconnect(conn: Connection, one: str, other: str) -> bool:
    """Take the link of two blocks away; say whether there was one."""
    pair = Edge.canonical(check_text("from_id", one), check_text("to_id", other))
    known = conn.record(edge_key(*pair))
    if known is None or known.status == FORMING:
        return False
    conn.delete(known.id)
    return True


def note_together(
    conn: Connection, block_ids: Sequence[str], session_id: str | None, *, hours: float
) -> None:
    """Take note that the first blocks were shown together: links are used, three sessions make a new one."""
    for pair in combinations(sorted(block_ids[:_LINKED_BLOCKS]), 2):
        key = edge_key(*pair)
        known = conn.record(key)
        if known is not None and known.status != FORMING:
            reinforce_edges(conn, [pair], hours)
            continue
        if session_id is None:
            continue
        sessions = {} if known is None else known.data["sessions"]
        if session_id in sessions:
            continue
        if len(sessions) + 1 >= CO_RETRIEVAL_SESSIONS:
            conn.put(new_edge(*pair, CO_RETRIEVAL_WEIGHT, last_active_hours=hours))
        elif known is None:
            forming = new_edge(*pair, 0.0)
            forming.status = FORMING
            forming.data["sessions"] = {session_id: True}
            conn.put(forming)
        else:
            conn.patch(key, {"data": {"sessions": {session_id: True}}})
