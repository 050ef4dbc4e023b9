"""Reads and changes what joins two blocks: links and contradictions."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from chronomemory.blocks.errors import IntegrityError
from chronomemory.blocks.ids import CONTRADICTION, EDGE, block_key, contradiction_key, edge_key
from chronomemory.blocks.storage.blocks import known_block
from chronomemory.blocks.storage.forming import FORMING
from chronomemory.blocks.types import BlockStatus, Edge
from chronomemory.errors import InvalidRecord, OutOfScope
from chronomemory.face.arguments import contents, finite, must, string, string_list, unique_strings, within
from chronomemory.face.batch import Connection
from chronomemory.face.moments import now
from chronomemory.record import ChronoRecord
from chronomemory.scope import Scope, carrying

#: What a link gains by being used.
USE_BONUS = 0.10
#: What someone may have said of a link.
SAID = ("relation", "note")
#: Who made a link that says only that two blocks are alike: it counts, but lifts nothing in a search.
LIKENESS = "likeness"


def scope_of_pair(conn: Connection, one: str, other: str) -> Scope:
    """Return whose the link of two blocks is: it carries the names of both."""
    ends = (conn.glimpse(block_key(block_id)) for block_id in (one, other))
    first, second = (Scope() if end is None else end.scope or Scope() for end in ends)
    return first.joined(second)


def check_joinable(conn: Connection, one: str, other: str) -> None:
    """Refuse to join two blocks of which neither is one's own."""
    if conn.scope.to_dict() and not any(conn.store.engine.are_own([block_key(one), block_key(other)])):
        raise OutOfScope(
            f"{one!r} and {other!r} are wider than {conn.scope}: what joins them is not yours to say",
            recovery="Ask for it with the handle whose blocks they are.",
        )


@contents
def check_pair(conn: Connection, one: str, other: str, names: tuple[str, str]) -> None:
    """Refuse a pair in the wrong order, or of blocks that are not there."""
    if not string(names[0], one) < string(names[1], other):
        raise InvalidRecord(
            f"{names[0]}: {one!r} must sort before {other!r}",
            field=names[0],
            recovery="Use Edge.canonical(a, b).",
        )
    known_block(conn, one)
    known_block(conn, other)
    check_joinable(conn, one, other)


def insert_edge(conn: Connection, *, from_id: str, to_id: str, weight: float) -> None:
    """Link two blocks, the smaller id first; IntegrityError if they are linked already."""
    check_pair(conn, from_id, to_id, ("from_id", "to_id"))
    known = conn.record(edge_key(from_id, to_id))
    if known is not None and known.status != FORMING:
        raise IntegrityError(f"{from_id!r} and {to_id!r} are linked already", recovery="Reinforce the link.")
    conn.put(new_edge(from_id, to_id, weight, scope=scope_of_pair(conn, from_id, to_id)))


@contents
def new_edge(
    from_id: str, to_id: str, weight: float, *, scope: Scope, last_active_hours: float | None = None
) -> ChronoRecord:
    """Return the record of a link that was never used; a weight beyond one could outweigh all others."""
    weight = within("weight", weight)
    data: dict[str, Any] = {"from_id": from_id, "to_id": to_id, "weight": weight, "created_at": now()}
    data = carrying(scope, data)
    if last_active_hours is not None:
        data["last_active_hours"] = last_active_hours
    return ChronoRecord(id=edge_key(from_id, to_id), kind=EDGE, data=data)


def edge_dict(record: ChronoRecord) -> dict[str, Any]:
    """Return a link with every column of the table, and with what was said of it."""
    data = record.data
    return {
        "from_id": data["from_id"],
        "to_id": data["to_id"],
        "weight": data["weight"],
        "reinforcement_count": data.get("reinforcement_count", 0),
        "created_at": data["created_at"],
        **{name: data[name] for name in SAID if name in data},
    }


def shown_edges(conn: Connection, block_ids: list[str]) -> list[ChronoRecord]:
    """Return the links of these blocks whose ends are not archived, each once, in order of their ids."""
    wanted = set(unique_strings("ids", block_ids))
    keys = {edge_key(*pair) for pair in conn.store.engine.blocks.links(list(wanted))}
    keys |= {
        record.id
        for record in conn.pending(EDGE)
        if record.data["from_id"] in wanted or record.data["to_id"] in wanted
    }
    found = (conn.record(key) for key in sorted(keys))
    return [record for record in found if record is not None and is_shown(conn, record)]


def is_shown(conn: Connection, record: ChronoRecord) -> bool:
    """Say whether a link counts: it is formed, and neither end is archived."""
    ends = (conn.record(block_key(record.data[name])) for name in ("from_id", "to_id"))
    return record.status != FORMING and all(
        end is not None and end.status != BlockStatus.ARCHIVED for end in ends
    )


def get_edges_for_block(conn: Connection, block_id: str) -> list[dict[str, Any]]:
    """Return the links of a block, whichever end it is."""
    return [edge_dict(record) for record in shown_edges(conn, [block_id])]


def get_neighbours(conn: Connection, block_ids: list[str]) -> list[str]:
    """Return the blocks that are linked to these, without these themselves, sorted."""
    ends = {record.data[name] for record in shown_edges(conn, block_ids) for name in ("from_id", "to_id")}
    return sorted(ends - set(block_ids))


def reinforce_edges(
    conn: Connection, edge_pairs: list[tuple[str, str]], current_active_hours: float | None = None
) -> None:
    """Count one more use of each link, given in canonical order; links that are not there are passed over."""
    for pair in _checked_pairs(edge_pairs):
        record = conn.record(edge_key(*pair))
        if record is None or record.status == FORMING:
            continue
        data: dict[str, Any] = {"reinforcement_count": record.data.get("reinforcement_count", 0) + 1}
        if current_active_hours is not None:
            data["last_active_hours"] = finite("current_active_hours", current_active_hours)
        conn.patch(record.id, {"data": data})


def _checked_pairs(edge_pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return pairs of ids each once, or refuse what is none."""
    if isinstance(edge_pairs, str | bytes) or not isinstance(edge_pairs, Iterable):
        raise must("edge_pairs", "be a list of pairs of ids", edge_pairs)
    pairs = [string_list("edge_pairs", pair) for pair in edge_pairs]
    for pair in pairs:
        if len(pair) != 2:
            raise must("edge_pairs", "be a list of pairs of ids", str(pair))
    return list(dict.fromkeys((one, other) for one, other in pairs))


def edge_strength(record: ChronoRecord) -> float:
    """Return what a link adds to the degree of its ends."""
    return float(record.data["weight"] + USE_BONUS * math.log1p(record.data.get("reinforcement_count", 0)))


def get_weighted_degree(conn: Connection, block_ids: list[str]) -> dict[str, float]:
    """Return how strongly each block is linked; 0.0 for one without links."""
    degrees = dict.fromkeys(unique_strings("ids", block_ids), 0.0)
    for record in shown_edges(conn, list(degrees)):
        for name in ("from_id", "to_id"):
            end = record.data[name]
            if end in degrees:
                degrees[end] += edge_strength(record)
    return degrees


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
    pairs = conn.store.engine.blocks.contradictions(list(wanted))
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
