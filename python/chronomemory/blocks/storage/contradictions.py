"""Reads and changes contradictions between blocks."""

from __future__ import annotations

from typing import Any

from chronomemory.blocks.errors import IntegrityError
from chronomemory.blocks.ids import CONTRADICTION, block_key, contradiction_key
from chronomemory.blocks.storage.edges import check_pair, scope_of_pair
from chronomemory.blocks.types import BlockStatus, Edge
from chronomemory.face.arguments import contents, string, unique_strings, within
from chronomemory.face.batch import Connection
from chronomemory.face.moments import now
from chronomemory.record import ChronoRecord
from chronomemory.scope import Scope, carrying

__all__ = ["get_contradictions_for_blocks", "insert_contradiction", "resolve_contradiction"]

#: The status of a contradiction that was settled.
RESOLVED = "resolved"
_NAMES = ("block_a_id", "block_b_id")


def insert_contradiction(conn: Connection, *, block_a_id: str, block_b_id: str, score: float) -> None:
    """Say that two blocks contradict each other, the smaller id first; IntegrityError if that is known."""
    check_pair(conn, block_a_id, block_b_id, _NAMES)
    key = contradiction_key(block_a_id, block_b_id)
    if conn.record(key) is not None:
        raise IntegrityError(
            f"{block_a_id!r} and {block_b_id!r} are known to contradict each other",
            recovery="Resolve the contradiction, or leave it.",
        )
    scope = scope_of_pair(conn, block_a_id, block_b_id)
    conn.put(new_contradiction(block_a_id, block_b_id, score, scope=scope))


@contents
def new_contradiction(block_a_id: str, block_b_id: str, score: float, *, scope: Scope) -> ChronoRecord:
    """Return the record of a contradiction that nobody has settled."""
    data = {
        "block_a_id": block_a_id,
        "block_b_id": block_b_id,
        "score": within("score", score),
        "created_at": now(),
    }
    key = contradiction_key(block_a_id, block_b_id)
    return ChronoRecord(id=key, kind=CONTRADICTION, data=carrying(scope, data))


def contradiction_dict(record: ChronoRecord) -> dict[str, Any]:
    """Return a contradiction with every column of the table."""
    data = record.data
    return {
        "block_a_id": data["block_a_id"],
        "block_b_id": data["block_b_id"],
        "score": data["score"],
        "resolved": int(record.status == RESOLVED),
        "created_at": data["created_at"],
    }


def get_contradictions_for_blocks(conn: Connection, block_ids: list[str]) -> list[dict[str, Any]]:
    """Return the unresolved contradictions that speak of any of these blocks, in order of their ids."""
    return [contradiction_dict(record) for record in open_contradictions(conn, block_ids)]


def open_contradictions(conn: Connection, block_ids: list[str]) -> list[ChronoRecord]:
    """Return the records behind them; those of archived blocks are hidden."""
    wanted = set(unique_strings("ids", block_ids))
    pairs = conn.store.engine.block_contradictions(list(wanted))
    keys = {contradiction_key(*pair) for pair in pairs}
    keys |= {
        record.id for record in conn.pending(CONTRADICTION) if wanted & {record.data[name] for name in _NAMES}
    }
    found = (conn.record(key) for key in sorted(keys))
    return [record for record in found if record is not None and _is_open(conn, record)]


def _is_open(conn: Connection, record: ChronoRecord) -> bool:
    ends = (conn.record(block_key(record.data[name])) for name in _NAMES)
    return record.status != RESOLVED and all(
        end is not None and end.status != BlockStatus.ARCHIVED for end in ends
    )


def resolve_contradiction(conn: Connection, block_a_id: str, block_b_id: str) -> None:
    """Settle a contradiction, its blocks in either order; IntegrityError if there is none."""
    pair = Edge.canonical(string("block_a_id", block_a_id), string("block_b_id", block_b_id))
    key = contradiction_key(*pair)
    if conn.record(key) is None:
        raise IntegrityError(
            f"{block_a_id!r} and {block_b_id!r} are not known to contradict each other",
            recovery="Check the ids.",
        )
    conn.patch(key, {"status": RESOLVED})
