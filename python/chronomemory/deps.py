"""The graph of which belief rests on which other."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from chronomemory._core import Engine
from chronomemory.errors import InvalidArgument
from chronomemory.face.arguments import LAST_SEQ, contents, string
from chronomemory.record import ChronoRecord
from chronomemory.types import Linked
from chronomemory.updates import Look, numbered, run

EDGE_TYPES = frozenset(
    {
        "assumes",
        "contradicts",
        "depends_on",
        "derived_from",
        "generated_from",
        "invalidates",
        "supports",
        "supersedes",
        "validated_by",
    }
)

#: id -> edge type -> the ids at the other end, in order of arrival.
_Adjacency = dict[str, dict[str, dict[str, None]]]


@dataclass(frozen=True, slots=True)
class DependencyEdge:
    """``from_id`` stands in this relation to ``to_id``."""

    from_id: str
    to_id: str
    edge_type: str


class DepGraph:
    """Typed edges between records; with a store, each edge is also a record of kind ``edge``.

    >>> graph = DepGraph()
    >>> edge = graph.add_edge("REPORT", "FACT-1", "depends_on")
    >>> graph.what_depends_on("FACT-1")
    ['REPORT']
    """

    def __init__(self, store: Linked | None = None) -> None:
        self._store = store
        self._edges: dict[DependencyEdge, None] = {}
        self._out: _Adjacency = {}
        self._in: _Adjacency = {}

    @classmethod
    def from_store(cls, store: Linked) -> DepGraph:
        """Load every active edge of a store; what is added later is written to it."""
        graph = cls(store)
        for record in store.query(kind="edge"):
            edge = edge_of(record)
            if edge is not None:
                graph._link(edge)
        return graph

    def add_edge(self, from_id: str, to_id: str, edge_type: str) -> DependencyEdge:
        """Add an edge; one that is already there, here and in the store, changes nothing."""
        _check_types((edge_type,))
        for name, value in (("from_id", from_id), ("to_id", to_id)):
            with contents:
                string(name, value, empty=False)
        edge = DependencyEdge(from_id, to_id, edge_type)
        if self._store is not None:
            run(self._store, lambda look: (new := edge_in(look, edge)) and look.upsert(new))
        self._link(edge)
        return edge

    def remove_edge(self, from_id: str, to_id: str, edge_type: str) -> bool:
        """Remove an edge, tombstoning its record; say whether there was one."""
        _check_types((edge_type,))
        edge = DependencyEdge(from_id, to_id, edge_type)
        held = False
        if self._store is not None:
            held = run(self._store, lambda look: _remove(look, edge))
        if edge not in self._edges:
            return held
        del self._edges[edge]
        _unlink(self._out, from_id, edge_type, to_id)
        _unlink(self._in, to_id, edge_type, from_id)
        return True

    def what_depends_on(self, record_id: str) -> list[str]:
        """Return what points to this record with ``depends_on``."""
        return self.predecessors(record_id, ("depends_on",))

    def what_contradicts(self, record_id: str) -> list[str]:
        """Return what contradicts this record or is contradicted by it."""
        forth = self.successors(record_id, ("contradicts",))
        return list(dict.fromkeys((*forth, *self.predecessors(record_id, ("contradicts",)))))

    def what_assumes(self, record_id: str) -> list[str]:
        """Return what this record assumes."""
        return self.successors(record_id, ("assumes",))

    def successors(self, record_id: str, types: Collection[str] | None = None) -> list[str]:
        """Return where this record's edges lead, each once."""
        return _neighbours(self._out, record_id, _check_types(types))

    def predecessors(self, record_id: str, types: Collection[str] | None = None) -> list[str]:
        """Return where the edges that lead here come from, each once."""
        return _neighbours(self._in, record_id, _check_types(types))

    def transitive_successors(self, record_id: str, types: Collection[str] | None = None) -> set[str]:
        """Return everything this record leads to, itself left out, cycles or not."""
        return set(_reached(record_id, lambda here: self.successors(here, types)))

    def transitive_predecessors(self, record_id: str, types: Collection[str] | None = None) -> set[str]:
        """Return everything that leads to this record, itself left out, cycles or not."""
        return set(self.dependents_in_order(record_id, types))

    def dependents_in_order(self, record_id: str, types: Collection[str] | None = None) -> list[str]:
        """Return the transitive predecessors, nearest first."""
        return list(_reached(record_id, lambda here: self.predecessors(here, types)))

    def edges(self) -> list[DependencyEdge]:
        """Return every edge in order of arrival."""
        return list(self._edges)

    def edge_count(self) -> int:
        """Return how many edges there are."""
        return len(self._edges)

    def _link(self, edge: DependencyEdge) -> None:
        self._edges[edge] = None
        self._out.setdefault(edge.from_id, {}).setdefault(edge.edge_type, {})[edge.to_id] = None
        self._in.setdefault(edge.to_id, {}).setdefault(edge.edge_type, {})[edge.from_id] = None


def _check_types(types: Collection[str] | None) -> Collection[str] | None:
    if types is None:
        return None
    asked = (types,) if isinstance(types, str) else types
    for name in asked:
        if name not in EDGE_TYPES:
            known = ", ".join(sorted(EDGE_TYPES))
            raise InvalidArgument(
                f"edge_type must be one of {known}. Unknown edge type, got {name!r}", field="edge_type"
            )
    return asked


def _unlink(adjacency: _Adjacency, here: str, edge_type: str, there: str) -> None:
    del adjacency[here][edge_type][there]
    if not adjacency[here][edge_type]:
        del adjacency[here][edge_type]
    if not adjacency[here]:
        del adjacency[here]


def _neighbours(adjacency: _Adjacency, here: str, types: Collection[str] | None) -> list[str]:
    by_type = adjacency.get(here)
    if not by_type:
        return []
    asked = by_type if types is None else types
    return list(dict.fromkeys(there for name in asked for there in by_type.get(name, ())))


def _reached(start: str, neighbours: Callable[[str], Iterable[str]]) -> Iterator[str]:
    seen = {start}
    waiting = deque([start])
    while waiting:
        for there in neighbours(waiting.popleft()):
            if there not in seen:
                seen.add(there)
                waiting.append(there)
                yield there


def edge_of(record: ChronoRecord) -> DependencyEdge | None:
    data = record.data
    ends = data.get("from_id"), data.get("to_id"), data.get("edge_type")
    if record.kind != "edge" or ends[2] not in EDGE_TYPES:
        return None
    if not isinstance(ends[0], str) or not isinstance(ends[1], str):
        return None
    return DependencyEdge(ends[0], ends[1], str(ends[2]))


def edges_to(
    engine: Engine, record_id: str, types: Sequence[str]
) -> list[tuple[DependencyEdge, ChronoRecord]]:
    """Return the active edges of these types that lead to a record, in the order of the types."""
    records = engine.find("edges.by_target", [record_id], limit=LAST_SEQ)
    found = [(edge, record) for record in records if (edge := edge_of(record)) and edge.edge_type in types]
    return sorted(found, key=lambda each: types.index(each[0].edge_type))


def resting_on(engine: Engine, record_id: str, types: Sequence[str]) -> Iterator[str]:
    """Yield all that leads to a record by edges of these types, nearest first, itself left out."""
    return _reached(record_id, lambda here: [edge.from_id for edge, _ in edges_to(engine, here, types)])


def edge_in(look: Look, edge: DependencyEdge) -> list[ChronoRecord]:
    """Return the record by which an edge comes into a batch; nothing if it is there already."""
    record_id, held = _place(edge, look)
    record = ChronoRecord(
        id=record_id,
        kind="edge",
        label=f"{edge.from_id} --{edge.edge_type}--> {edge.to_id}",
        confidence=1.0,
        data={"from_id": edge.from_id, "to_id": edge.to_id, "edge_type": edge.edge_type},
    )
    return [] if held else [record]


def _remove(look: Look, edge: DependencyEdge) -> bool:
    record_id, held = _place(edge, look)
    if held:
        look.write(("delete", record_id))
    return held


def _place(edge: DependencyEdge, look: Look) -> tuple[str, bool]:
    """Find the record id of an edge, and whether the store already holds it there.

    Ids may contain ``-``, so two edges may ask for one id: the first has it, the next takes it with ``-2``.
    """
    free: str | None = None
    wanted = f"EDGE-{edge.from_id}-{edge.to_id}-{edge.edge_type}"
    for candidate in map(look.own_id, numbered(wanted)):
        record = look.get(candidate)
        if record is None:
            break
        own = edge_of(record) == edge
        if own and record.status == "active":
            return candidate, True
        if free is None and (own or record.status == "tombstone"):
            free = candidate
    return free or candidate, False
