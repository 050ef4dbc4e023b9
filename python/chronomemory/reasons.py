"""Tells why something is believed: a tree of evidence, edges, events and rollbacks."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from chronomemory.deps import edge_of
from chronomemory.face.arguments import count, string
from chronomemory.record import ChronoRecord
from chronomemory.rollback import Rollback, rollbacks_of
from chronomemory.selection import query
from chronomemory.types import HasEngine

#: How an edge is said from where it begins, if its end is a ground of its beginning, or speaks against it.
_OUT = {
    "depends_on": "depends on",
    "derived_from": "derived from",
    "generated_from": "generated from",
    "assumes": "assumes",
    "validated_by": "validated by",
    "contradicts": "contradicts",
    "supersedes": "supersedes",
}
#: And how from where it ends.
_IN = {
    "supports": "supported by",
    "contradicts": "contradicted by",
    "invalidates": "invalidated by",
    "supersedes": "superseded by",
}
#: What speaks against a belief or stood in its place is named, and not followed: it is no ground of it.
_BESIDE = frozenset({"contradicts", "contradicted by", "invalidated by", "supersedes", "superseded by"})

_EVIDENCE = "evidence"

#: How far down a tree may go, and how many places it may have, at most.
DEEPEST, LARGEST = 200, 5_000


def _spelled(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


@dataclass(frozen=True, slots=True)
class Reason:
    """One place in the tree: a record, or a word of evidence that is no record here."""

    record_id: str
    #: How the one above stands to it, such as ``evidence, depends on``; nothing at the top.
    relation: str = ""
    #: The record of the first edge between them, the event that made it, and when; nothing for evidence.
    edge_id: str = ""
    edge_seq: int | None = None
    edge_at: datetime | None = None
    record: ChronoRecord | None = None
    rollbacks: tuple[Rollback, ...] = ()
    grounds: tuple[Reason, ...] = ()
    #: ``circle``: it stands on itself by this way. ``told``: what it stands on is told elsewhere in the tree.
    again: str = ""
    left_out: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return it with all below it as JSON can carry it."""
        record = self.record
        return {
            "id": self.record_id,
            "relation": self.relation,
            "edge": self.edge_id or None,
            "edge_seq": self.edge_seq,
            "edge_at": _spelled(self.edge_at),
            "known": record is not None,
            "kind": record and record.kind,
            "status": record and record.status,
            "confidence": record and record.confidence,
            "label": record and record.label,
            "created_seq": record and record.created_seq,
            "created_at": _spelled(None if record is None else record.created_at),
            "updated_seq": record and record.updated_seq,
            "updated_at": _spelled(None if record is None else record.updated_at),
            "in_doubt": record and record.in_doubt,
            "rollbacks": [each.to_dict() for each in self.rollbacks],
            "again": self.again or None,
            "left_out": self.left_out,
            "grounds": [ground.to_dict() for ground in self.grounds],
        }


@dataclass(frozen=True, slots=True)
class Why:
    """What a belief stands on; ``root`` is the belief itself."""

    root: Reason
    size: int
    circles: tuple[str, ...] = ()
    left_out: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the tree as JSON can carry it."""
        summary = {"size": self.size, "circles": list(self.circles), "left_out": self.left_out}
        return {**self.root.to_dict(), **summary}


def why(store: HasEngine, record_id: str, *, depth: int = 12, limit: int = 500) -> Why:
    """Return what a belief stands on, ``depth`` steps down and ``limit`` places at most.

    >>> import tempfile
    >>> from chronomemory import ChronoStore
    >>> with ChronoStore(tempfile.mkdtemp()) as store:
    ...     _ = store.upsert({"id": "OBS-1", "label": "The street is wet"})
    ...     _ = store.upsert({"id": "FACT-1", "label": "It rained", "evidence": ["OBS-1", "a neighbour"]})
    ...     [(ground.relation, ground.record_id) for ground in store.why("FACT-1").root.grounds]
    [('evidence', 'OBS-1'), ('evidence', 'a neighbour')]
    """
    string("id", record_id, empty=False)
    depth, limit = count("depth", depth, 1, DEEPEST), count("limit", limit, 1, LARGEST)
    return _Tree(store, depth, limit).grown(record_id)


@dataclass(slots=True)
class _Place:
    """A place in a tree that grows; where a record is met first is where it is followed."""

    record_id: str
    above: _Place | None = None
    relation: str = ""
    edge: ChronoRecord | None = None
    beside: bool = False
    below: list[_Place] = field(default_factory=list)
    again: str = ""
    left_out: int = 0

    @property
    def is_followed(self) -> bool:
        return not self.again and not self.beside


class _Tree:
    def __init__(self, store: HasEngine, depth: int, limit: int) -> None:
        self._store = store
        self._depth, self._limit = depth, limit
        self._records: dict[str, ChronoRecord | None] = {}
        self._followed: dict[str, _Place] = {}
        self._size = 1

    def grown(self, record_id: str) -> Why:
        root = _Place(record_id)
        self._followed[record_id] = root
        level = [root]
        for step in range(self._depth + 1):
            # A whole level at once: one look at the edges of a store, however many stand in it.
            self._fetch(place.record_id for place in level)
            # For each id what its edges lead to: in which relation, to which record, and by which edge.
            edges: dict[str, list[tuple[str, str, ChronoRecord]]] = {place.record_id: [] for place in level}
            ends = [{f"data.{end}": {"in": list(edges)}} for end in ("from_id", "to_id")]
            for record in query(self._store, kind="edge", where={"or": ends}):
                edge = edge_of(record)
                if edge is not None and edge.from_id in edges and edge.edge_type in _OUT:
                    edges[edge.from_id].append((_OUT[edge.edge_type], edge.to_id, record))
                if edge is not None and edge.to_id in edges and edge.edge_type in _IN:
                    edges[edge.to_id].append((_IN[edge.edge_type], edge.from_id, record))
            found = [self._below(place, edges, last=step == self._depth) for place in level]
            level = [place for below in found for place in below if place.is_followed]
            if not level:
                break
        self._fetch(place.record_id for place in self._all(root))
        self._find_circles(root)
        return self._built(root)

    def _fetch(self, ids: Iterable[str]) -> None:
        new = [name for name in dict.fromkeys(ids) if name not in self._records]
        self._records.update(zip(new, self._store.engine.get_many(new), strict=True))

    def _below(
        self, place: _Place, edges: dict[str, list[tuple[str, str, ChronoRecord]]], *, last: bool
    ) -> list[_Place]:
        record = self._records.get(place.record_id)
        named = [] if record is None else [name for name in record.evidence if isinstance(name, str) and name]
        # Evidence that an edge leads to as well is one ground, said in both ways.
        ways: dict[tuple[str, bool], tuple[list[str], ChronoRecord | None]] = {}
        for name in named:
            ways.setdefault((name, False), ([_EVIDENCE], None))
        for relation, name, edge in edges[place.record_id]:
            way = (name, relation in _BESIDE)
            relations, by = ways.get(way, ([], None))
            ways[way] = (relations if relation in relations else [*relations, relation]), by or edge
        for (name, beside), (relations, by) in ways.items():
            if last or self._size >= self._limit:
                place.left_out += 1
                continue
            below = _Place(name, place, ", ".join(relations), by, beside=beside)
            self._size += 1
            place.below.append(below)
            if not beside:
                if name in self._followed:
                    below.again = "told"
                else:
                    self._followed[name] = below
        return place.below

    def _all(self, root: _Place) -> list[_Place]:
        found, waiting = [], deque([root])
        while waiting:
            place = waiting.popleft()
            found.append(place)
            waiting.extend(place.below)
        return found

    def _find_circles(self, root: _Place) -> None:
        """Mark where the tree comes back to a record that stands on the one above it."""
        reach: dict[str, set[str]] = {}
        for place in self._all(root):
            if place.again and place.above is not None:
                if place.record_id not in reach:
                    reach[place.record_id] = self._reached(place.record_id)
                if place.above.record_id in reach[place.record_id]:
                    place.again = "circle"

    def _reached(self, start: str) -> set[str]:
        seen, waiting = {start}, deque([start])
        while waiting:
            for below in self._followed[waiting.popleft()].below:
                if not below.beside and below.record_id not in seen:
                    seen.add(below.record_id)
                    waiting.append(below.record_id)
        return seen

    def _built(self, root: _Place) -> Why:
        """Make what is handed out, from the leaves up: a tree may be deeper than calls may go."""
        places = self._all(root)
        touched = rollbacks_of(self._store, self._followed)
        made: dict[int, Reason] = {}
        for place in reversed(places):
            edge = place.edge
            made[id(place)] = Reason(
                record_id=place.record_id,
                relation=place.relation,
                edge_id="" if edge is None else edge.id,
                edge_seq=None if edge is None else edge.created_seq,
                edge_at=None if edge is None else edge.created_at,
                record=self._records.get(place.record_id),
                rollbacks=tuple(touched.get(place.record_id, ())) if place.is_followed else (),
                grounds=tuple(made[id(below)] for below in place.below),
                again=place.again,
                left_out=place.left_out,
            )
        circles = dict.fromkeys(place.record_id for place in places if place.again == "circle")
        left_out = sum(place.left_out for place in places)
        return Why(made[id(root)], len(places), tuple(circles), left_out)
