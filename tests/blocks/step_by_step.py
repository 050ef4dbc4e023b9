"""What becomes of blocks that are shown or hear of an outcome, with one event for each record.

So it was before there were acts, and the rules of the engine were written from this: they must come to the
same records.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from chronomemory.blocks.ids import block_key, edge_key, plain_id
from chronomemory.blocks.storage.blocks import DEFAULT_LAMBDA, reinforce_blocks, tags_of
from chronomemory.blocks.storage.edges import new_edge, reinforce_edges
from chronomemory.blocks.storage.forming import FORMING, _names, _promise, forming_links
from chronomemory.blocks.types import BlockStatus, DecayTier, Edge
from chronomemory.face.batch import Connection
from chronomemory.record import ChronoRecord
from chronomemory.scope import Scope

MOST_OF_A_BLOCK = 20
LINKED_BLOCKS = 20
CO_RETRIEVAL_SESSIONS, CO_RETRIEVAL_WEIGHT = 3, 0.55
_STRENGTHENED = 0.1
PRIOR_STRENGTH = 2.0
_GOOD_ABOVE, _BAD_BELOW = 0.5, 0.2
_LINK_WEIGHT = 0.8
_CONSTITUTIONAL = "self/constitutional"


class Room:
    """Room for more of these links in a session: looks once at each block, then goes along with the batch."""

    def __init__(self, conn: Connection, session_id: str) -> None:
        self._conn = conn
        self._session = session_id
        self._known: dict[str, dict[str, ChronoRecord]] = {}

    def make(self, pair: Edge) -> bool:
        """See to it that two blocks may have one more; say whether they may.

        What was seen least, and longest ago, gives way; but not what was seen in this session.
        """
        giving_way = []
        for links in map(self._links, pair):
            if len(links) < MOST_OF_A_BLOCK:
                continue
            others = [link for link in links.values() if self._session not in link.data["sessions"]]
            if not others:
                return False
            giving_way.append(min(others, key=lambda link: _promise(self._conn, link)))
        for link in giving_way:
            self._conn.delete(link.id)
            self.left(link)
        return True

    def taken(self, link: ChronoRecord) -> None:
        """Take note of a new one, or of one that was seen again."""
        for end in _names(link):
            if end in self._known:
                self._known[end][link.id] = link

    def left(self, link: ChronoRecord) -> None:
        """Take note that one is gone, or counts from now on."""
        for end in _names(link):
            self._known.get(end, {}).pop(link.id, None)

    def _links(self, block_id: str) -> dict[str, ChronoRecord]:
        if block_id not in self._known:
            self._known[block_id] = {link.id: link for link in forming_links(self._conn, block_id)}
        return self._known[block_id]


def join(conn: Connection, one: str, other: str, weight: float, *, hours: float) -> None:
    """Link two active blocks that proved right together, or strengthen their link."""
    pair = Edge.canonical(one, other)
    known = conn.record(edge_key(*pair))
    if known is None or known.status == FORMING:
        conn.put(new_edge(*pair, weight, scope=Scope(), last_active_hours=hours))
        return
    held = known.data["weight"]
    data = {
        "weight": min(1.0, held + _STRENGTHENED * (1.0 - held)),
        "reinforcement_count": known.data.get("reinforcement_count", 0) + 1,
        "last_active_hours": hours,
    }
    conn.patch(known.id, {"data": data})


def note_together(
    conn: Connection, block_ids: Sequence[str], session_id: str | None, *, hours: float
) -> None:
    """Take note that the first blocks were shown together: links are used, three sessions make a new one."""
    shown = (conn.record(block_key(block_id)) for block_id in block_ids[:LINKED_BLOCKS])
    # One that was put away since has no links any more, and gets none.
    active = {plain_id(block.id) for block in shown if block and block.status == BlockStatus.ACTIVE}
    room = None if session_id is None else Room(conn, session_id)
    for pair in combinations(sorted(active), 2):
        known = conn.record(edge_key(*pair))
        if known is not None and known.status != FORMING:
            reinforce_edges(conn, [pair], hours)
        elif room is not None and session_id is not None:
            _form(conn, Edge(*pair), known, room, session_id, hours)


def _form(
    conn: Connection, pair: Edge, known: ChronoRecord | None, room: Room, session_id: str, hours: float
) -> None:
    """Count a session in which two blocks were shown together."""
    sessions = {} if known is None else known.data["sessions"]
    if session_id in sessions:
        return
    if known is not None and len(sessions) + 1 >= CO_RETRIEVAL_SESSIONS:
        conn.put(new_edge(*pair, CO_RETRIEVAL_WEIGHT, scope=Scope(), last_active_hours=hours))
        room.left(known)
    elif known is not None:
        conn.patch(known.id, {"data": {"sessions": {session_id: True}, "last_active_hours": hours}})
        room.taken(conn.record(known.id) or known)
    elif room.make(pair):
        forming = new_edge(*pair, 0.0, scope=Scope(), last_active_hours=hours)
        forming.status = FORMING
        forming.data["sessions"] = {session_id: True}
        conn.put(forming)
        room.taken(forming)


def shown(conn: Connection, block_ids: list[str], session_id: str | None, hours: float) -> None:
    """Take note of what was shown."""
    reinforce_blocks(conn, block_ids, hours)
    note_together(conn, block_ids, session_id, hours=hours)


def outcome(
    conn: Connection, block_ids: Sequence[str], signal: float, weight: float, *, source: str, hours: float
) -> dict[str, float]:
    """Tell blocks how it went."""
    heard: dict[str, float] = {}
    for block_id in dict.fromkeys(block_ids):
        record = conn.record(block_key(block_id))
        if record is None or record.status != BlockStatus.ACTIVE:
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
    return heard
