"""How two blocks become linked, more strongly linked, and parted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from chronomemory.blocks.errors import IntegrityError
from chronomemory.blocks.ids import edge_key, given_id
from chronomemory.blocks.storage.blocks import known_block
from chronomemory.blocks.storage.config import hours_for
from chronomemory.blocks.storage.edges import check_joinable, new_edge, reinforce_edges, scope_of_pair
from chronomemory.blocks.storage.forming import FORMING
from chronomemory.blocks.types import BlockStatus, Edge
from chronomemory.errors import InvalidRecord
from chronomemory.face.arguments import contents, string, within, word
from chronomemory.face.batch import Connection
from chronomemory.face.results import Result
from chronomemory.record import ChronoRecord

#: What to do if two blocks are linked already.
IfExists = Literal["reinforce", "update", "skip", "error"]

#: How strongly blocks are linked that someone linked by hand.
_LINK_WEIGHT = 0.65


@dataclass(frozen=True, slots=True)
class ConnectResult(Result):
    """A link as it is now, and what was done: created, reinforced, updated or skipped. True if it is new."""

    source_id: str
    target_id: str
    weight: float
    action: str
    relation: str | None = None
    note: str | None = None

    def __bool__(self) -> bool:
        return self.action == "created"

    @property
    def summary(self) -> str:
        how = "" if self.relation is None else f" ({self.relation})"
        return f"Link {self.source_id} – {self.target_id}{how}: {self.action}, weight {self.weight:.2f}."


@dataclass(frozen=True, slots=True)
class DisconnectResult(Result):
    """What became of a link: removed, or not_found. True if there was one."""

    source_id: str
    target_id: str
    action: str

    def __bool__(self) -> bool:
        return self.action == "removed"

    @property
    def summary(self) -> str:
        return f"Link {self.source_id} – {self.target_id}: {self.action.replace('_', ' ')}."


def connect(
    conn: Connection,
    source: str,
    target: str,
    relation: str | float | None = None,
    *,
    weight: float | None = None,
    note: str | None = None,
    if_exists: IfExists = "reinforce",
    hours: float,
) -> ConnectResult:
    """Link two blocks; a link that is there is used once more, unless ``if_exists`` says otherwise."""
    pair = Edge.canonical(given_id(source), given_id(target))
    if pair.from_id == pair.to_id:
        raise InvalidRecord(
            f"target: a block cannot be linked to itself, and {source!r} is both ends",
            field="target",
            recovery="Name two different blocks.",
        )
    details: dict[str, Any] = {}
    if not isinstance(relation, str | None):  # as it was called before there were relations
        relation, weight = None, relation if weight is None else weight
    with contents:
        if relation is not None:
            details["relation"] = string("relation", relation, empty=False)
        if note is not None:
            details["note"] = string("note", note)
        if weight is not None:
            weight = within("weight", weight)
    word("if_exists", if_exists, get_args(IfExists))
    for block_id in pair:
        if known_block(conn, block_id).status == BlockStatus.ARCHIVED:
            raise IntegrityError(f"the block {block_id!r} is archived", recovery="Learn it again first.")
    check_joinable(conn, *pair)
    known = conn.record(edge_key(*pair))
    if known is None or known.status == FORMING:
        scope = scope_of_pair(conn, *pair)
        link = new_edge(*pair, _LINK_WEIGHT if weight is None else weight, scope=scope)
        link.data["last_active_hours"] = hours_for(conn, link, hours)
        link.data |= details
        conn.put(link)
        return _result(link, "created")
    if if_exists == "skip":
        return _result(known, "skipped")
    if if_exists == "error":
        raise IntegrityError(
            f"{source!r} and {target!r} are linked already",
            recovery='Give if_exists="reinforce", "update" or "skip".',
        )
    hours = hours_for(conn, known, hours)
    if if_exists == "update":
        changed = details if weight is None else {**details, "weight": weight}
        conn.patch(known.id, {"data": {**changed, "last_active_hours": hours, "made_by": None}})
        return _result(conn.record(known.id) or known, "updated")
    known_relation = known.data.get("relation")
    if relation is not None and known_relation is not None and known_relation != relation:
        raise IntegrityError(
            f"{source!r} and {target!r} are linked as {known_relation!r}, not as {relation!r}",
            recovery='Give if_exists="update" to call the link otherwise, or leave relation out.',
        )
    reinforce_edges(conn, [pair], hours)
    if details or "made_by" in known.data:
        conn.patch(known.id, {"data": {**details, "made_by": None}})
    return _result(conn.record(known.id) or known, "reinforced")


def _result(link: ChronoRecord, action: str) -> ConnectResult:
    data = link.data
    return ConnectResult(
        data["from_id"], data["to_id"], data["weight"], action, data.get("relation"), data.get("note")
    )


def disconnect(conn: Connection, source: str, target: str) -> DisconnectResult:
    """Take the link of two blocks away, also one that is still forming; say whether there was one."""
    pair = Edge.canonical(given_id(source), given_id(target))
    known = conn.record(edge_key(*pair))
    if known is not None:
        conn.delete(known.id)
    was_shown = known is not None and known.status != FORMING
    return DisconnectResult(*pair, "removed" if was_shown else "not_found")
