"""Graph stores, event logs and audit sinks, in memory, in files and over the log of a workspace."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypedDict

from chronomemory._core import Engine, Reader
from chronomemory.face.arguments import count, path, string, strings, word
from chronomemory.face.files import Folder
from chronomemory.face.handle import Closing
from chronomemory.face.moments import Now, utc_now
from chronomemory.graph.changes import (
    Changes,
    GraphReader,
    GraphSnapshot,
    Home,
    Look,
    One,
    free_id,
    own_events,
    replayed,
    saved_events,
)
from chronomemory.graph.envelope import envelope_of
from chronomemory.graph.errors import DuplicateEventError, UnknownNode
from chronomemory.graph.log_home import NODE, LogHome, MemoryHome, key_of, open_home
from chronomemory.graph.models import (
    ActivationPlan,
    AuditRecord,
    Diagnostic,
    Edge,
    MemoryEvent,
    MemoryPath,
    Model,
    Node,
    Profile,
    exact,
    moment_of,
    spellings,
)
from chronomemory.graph.runtime import MemoryEventLog
from chronomemory.graph.view import (
    AUDIT_FILE,
    EVENTS_FILE,
    SCHEMAS,
    hanging,
    line_findings,
    lines,
    read_lines,
    replay_findings,
)
from chronomemory.scope import Scope
from chronomemory.selection import view_of
from chronomemory.types import Unpack

_DIRECTIONS = ("out", "in", "both")
_NETWORK = "graph.edges"
_MOST_HOPS = 256


class Steps(TypedDict, total=False):
    """Which edges a walk follows: direction (out, in or both), kinds of edges and nodes, ``as_of``."""

    direction: str
    edge_kinds: Iterable[str] | None
    node_kinds: Iterable[str] | None
    as_of: int | datetime | None


@dataclass(frozen=True, slots=True)
class Route:
    """A way from one node to another: the nodes on it, and the edges between them."""

    node_ids: tuple[str, ...]
    edges: tuple[Edge, ...]

    def __len__(self) -> int:
        return len(self.edges)


@dataclass(frozen=True, slots=True)
class Subgraph:
    """Some nodes and the edges between them, both sorted by id; ``hops`` says how far each node is."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    hops: dict[str, int]


class _Walk:
    """A walk along the edges that the engine has indexed."""

    def __init__(
        self,
        engine: Engine,
        direction: str = "both",
        edge_kinds: Iterable[str] | None = None,
        node_kinds: Iterable[str] | None = None,
        as_of: int | datetime | None = None,
    ) -> None:
        self._engine: Reader = engine if as_of is None else view_of(engine, as_of)
        self._steps = {
            "direction": word("direction", direction, _DIRECTIONS),
            "kinds": None if edge_kinds is None else strings("edge_kinds", edge_kinds),
            "end_kinds": None if node_kinds is None else strings("node_kinds", node_kinds),
        }

    def start(self, node_id: str) -> str:
        """Return the id of a node that must be there, as it is spelled in the graph."""
        found = self.nodes(spellings(string("node_id", node_id)))
        if not found:
            raise UnknownNode(node_id=node_id)
        return found[0].id

    def nodes(self, node_ids: Iterable[str]) -> list[Node]:
        keys = [key_of(NODE, name) for name in node_ids]
        return [Node.known(record.data) for record in self._records(keys)]

    def reach(self, node_ids: Iterable[str], hops: int, *, joints: bool) -> tuple[dict[str, int], list[Edge]]:
        """Return the nodes within some hops with their distance, and with ``joints`` the edges between."""
        starts = [self.start(name) for name in dict.fromkeys(node_ids)]
        request = {"starts": starts, "hops": count("hops", hops, 0, 2**32 - 1), "joints": joints}
        ends, keys = self._engine.reach(_NETWORK, {**self._steps, **request})
        return dict(ends), [Edge.known(record.data) for record in self._records(keys)]

    def routes(self, source: str, target: str, hops: int, limit: int) -> list[Route]:
        """Return the routes between two nodes, the shortest first."""
        start, end = self.start(source), self.start(target)
        request = {"source": start, "target": end, "hops": count("hops", hops, 0, _MOST_HOPS)}
        request["limit"] = count("limit", limit, 1)
        found = self._engine.routes(_NETWORK, {**self._steps, **request})
        keys = list(dict.fromkeys(key for route in found for key in route))
        edges = {record.id: Edge.known(record.data) for record in self._records(keys)}
        routes = []
        for keys in found:
            nodes = [start]
            for key in keys:
                edge = edges[key]
                nodes.append(edge.target if edge.source == nodes[-1] else edge.source)
            routes.append(Route(tuple(nodes), tuple(edges[key] for key in keys)))
        return routes

    def components(self) -> list[list[str]]:
        return self._engine.islands(_NETWORK, self._steps)

    def _records(self, keys: list[str]) -> Iterator[Any]:
        found = self._engine.get_many(keys)
        return (record for record in found if record is not None and record.status == "active")


class GraphStore(Closing, GraphReader):
    """A graph store; each save is one batch with the event that describes it."""

    def __init__(self, home: MemoryHome | LogHome, clock: Now) -> None:
        self._home = home
        self._clock = clock

    @property
    def home(self) -> MemoryHome | LogHome:
        """Where it is kept."""
        return self._home

    def save_profile(self, profile: Profile) -> None:
        """Write a profile, in place of the one with its id."""
        self.save(profiles=[profile])

    def save_node(self, node: Node) -> None:
        """Write a node, in place of the one with its id."""
        self.save(nodes=[node])

    def save_edge(self, edge: Edge) -> None:
        """Write an edge, in place of the one with its id; its ends may come later."""
        self.save(edges=[edge])

    def save_path(self, path: MemoryPath) -> None:
        """Write a path as it is, in place of the one with its id; the verbs of paths keep their rules."""
        self.save(paths=[path])

    def save(
        self,
        *,
        profiles: Iterable[Profile] = (),
        nodes: Iterable[Node] = (),
        edges: Iterable[Edge] = (),
        paths: Iterable[MemoryPath] = (),
    ) -> None:
        """Write several things, all of them or none; of two with the same id the last one counts."""
        given = Changes(
            _once(Profile, profiles), _once(Node, nodes), _once(Edge, edges), _once(MemoryPath, paths)
        )

        def work(look: Look) -> Changes:
            return replace(given, events=saved_events(given, moment_of(self._clock())))

        if given != Changes():
            self._home.run(work)

    def save_plan(self, plan: ActivationPlan) -> None:
        """Write an activation plan, in place of the one with its id; it is no part of the graph."""
        given = _once(ActivationPlan, [plan])
        self._home.run(lambda look: Changes(plans=given))

    def one(self, cls: type[One], item_id: str) -> One | None:
        return self._look.one(cls, item_id)

    def every(self, cls: type[One]) -> list[One]:
        return self._look.every(cls)

    def nodes(self, kind: str | None = None) -> list[Node]:
        """Return the nodes of a kind, or all, sorted by id."""
        return self._look.nodes(kind)

    def edges(
        self, *, source: str | None = None, target: str | None = None, kind: str | None = None
    ) -> list[Edge]:
        """Return the edges with this source, target and kind, or with any, sorted by id."""
        ends = [None if end is None else spellings(end)[-1] for end in (source, target)]
        return self._look.edges(source=ends[0], target=ends[1], kind=kind)

    def export(self) -> dict[str, Any]:
        """Return all of it as one envelope: no timestamp, arrays sorted by id."""
        return envelope_of(self._look)

    @property
    def _look(self) -> Look:
        return self._home.look()

    def neighbours(self, node_id: str, **steps: Unpack[Steps]) -> list[Node]:
        """Return the nodes joined to one, sorted by id."""
        walk = self._walk(**steps)
        hops, _ = walk.reach([node_id], 1, joints=False)
        return walk.nodes(sorted(name for name, distance in hops.items() if distance == 1))

    def within(self, node_id: str, hops: int, **steps: Unpack[Steps]) -> dict[str, int]:
        """Return the distance of every node within some hops, itself included."""
        return self._walk(**steps).reach([node_id], hops, joints=False)[0]

    def subgraph(self, node_ids: str | Iterable[str], hops: int = 1, **steps: Unpack[Steps]) -> Subgraph:
        """Return the nodes within some hops of some nodes, and all edges between them."""
        walk = self._walk(**steps)
        found, edges = walk.reach(strings("node_ids", node_ids), hops, joints=True)
        nodes = walk.nodes(sorted(found))
        return Subgraph(tuple(nodes), tuple(sorted(edges, key=lambda edge: edge.id)), found)

    def routes(
        self, source: str, target: str, *, hops: int = 6, limit: int = 10, **steps: Unpack[Steps]
    ) -> list[Route]:
        """Return the ways between two nodes, the shortest first, without loops; along edges by default."""
        steps.setdefault("direction", "out")
        return self._walk(**steps).routes(source, target, hops, limit)

    def components(
        self,
        *,
        edge_kinds: Iterable[str] | None = None,
        node_kinds: Iterable[str] | None = None,
        as_of: int | datetime | None = None,
    ) -> list[list[str]]:
        """Return the ids of each connected component, the largest first."""
        groups = self._walk(edge_kinds=edge_kinds, node_kinds=node_kinds, as_of=as_of).components()
        return sorted((sorted(group) for group in groups), key=lambda group: (-len(group), group))

    def _walk(self, **steps: Unpack[Steps]) -> _Walk:
        return _Walk(self._home.handle.store.engine, **steps)

    def close(self) -> None:
        """Close the log; closing twice is fine."""
        self._home.handle.close()


class InMemoryGraphStore(GraphStore):
    """A graph in memory; with the ``home`` of another store, log or sink it is kept together with that."""

    def __init__(self, home: MemoryHome | None = None, *, clock: Now = utc_now) -> None:
        home = MemoryHome() if home is None else home
        home.keeps_graph = True
        super().__init__(home, clock)


class FileBackedMemoryGraphStore(GraphStore):
    """The graph of a workspace, which is created if the folder has none."""

    def __init__(self, place: str | os.PathLike[str] | LogHome, *, clock: Now | None = None) -> None:
        is_open = isinstance(place, LogHome)
        home = place if isinstance(place, LogHome) else open_home(path("place", place), Scope(), clock, {})
        super().__init__(home, clock or utc_now)
        if not is_open:
            home.create()


def _once(cls: type[Model], items: Iterable[Any]) -> tuple[Any, ...]:
    last = {item.id: item for item in exact(cls, items)}
    return tuple(last[name] for name in sorted(last))


class _EventLog(MemoryEventLog):
    def append(self, event: MemoryEvent) -> MemoryEvent:
        return self.append_many([event])[0]

    def replay(self) -> GraphSnapshot:
        return replayed(self.events())


class HomeEventLog(_EventLog):
    """The events of a home; beside a graph, only its operations write events that describe it."""

    def __init__(self, home: MemoryHome | LogHome | None = None) -> None:
        self.home = MemoryHome() if home is None else home

    def append_many(self, events: Iterable[MemoryEvent]) -> list[MemoryEvent]:
        given = own_events(events) if self.home.keeps_graph else tuple(exact(MemoryEvent, events))
        return list(self.home.run(lambda look: Changes(events=given)).events) if given else []

    def event(self, event_id: str) -> MemoryEvent | None:
        return self.home.look().event(event_id)

    def events(self, kind: str | None = None) -> list[MemoryEvent]:
        return self.home.look().events(kind)

    def diagnose(self) -> list[Diagnostic]:
        """Return the events that name something missing; nothing is written."""
        look = self.home.look()
        return [*hanging(look), *replay_findings(look)] if self.home.keeps_graph else []


class InMemoryEventLog(HomeEventLog):
    """Events in memory; with the ``home`` of a graph store they are kept together with it."""


class _JsonlFile:
    def __init__(self, path: str | os.PathLike[str]) -> None:
        place = Path(path).absolute()
        self._folder = Folder(place.parent)
        self._name = place.name

    def _content(self) -> bytes:
        try:
            return self._folder.read(self._name)
        except FileNotFoundError:
            return b""


class JsonlMemoryEventLog(_JsonlFile, _EventLog):
    """Events as JSON lines in a file of their own; lines are only added, and a bad one is skipped."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        #: The ids in use and whether the last line is whole, as of some state of the file.
        self._known: set[str] = set()
        self._whole = True
        self._stamp: tuple[int, int, int] | None = None

    def append_many(self, events: Iterable[MemoryEvent]) -> list[MemoryEvent]:
        given = exact(MemoryEvent, events)
        if not given:
            return []
        self._folder.make()
        with self._folder.locked():
            stamp = self._folder.stamp(self._name)
            if stamp is None or stamp != self._stamp:  # another program changed the file
                content = self._content()
                self._known = {event.id for event in _good(content)}
                self._whole = not content or content.endswith(b"\n")
            known = self._known
            appended: dict[str, MemoryEvent] = {}
            for number, event in enumerate(given, len(known) + 1):
                if not event.id:
                    name = free_id(event.kind, number, lambda name: name in known or name in appended)
                    event = replace(event, id=name)
                elif event.id in known or event.id in appended:
                    raise DuplicateEventError(event_id=event.id)
                appended[event.id] = event
            # A torn line stays on a line of its own: existing bytes never change.
            torn = b"" if self._whole else b"\n"
            self._folder.append(self._name, torn + b"".join(lines(EVENTS_FILE, appended.values())))
            known.update(appended)
            self._whole, self._stamp = True, self._folder.stamp(self._name)
        return list(appended.values())

    def event(self, event_id: str) -> MemoryEvent | None:
        return next((event for event in self.events() if event.id == event_id), None)

    def events(self, kind: str | None = None) -> list[MemoryEvent]:
        return [event for event in _good(self._content()) if kind is None or event.kind == kind]

    def diagnose(self) -> list[Diagnostic]:
        """Return the lines that cannot be read, and duplicate ids; nothing is written."""
        read = read_lines(self._content(), MemoryEvent, SCHEMAS["events"])
        return list(line_findings(self._name, read))


def _good(content: bytes) -> list[MemoryEvent]:
    found: dict[str, MemoryEvent] = {}
    for line in read_lines(content, MemoryEvent, SCHEMAS["events"]):
        if line.item is not None:
            found.setdefault(line.item.id, line.item)
    return list(found.values())


class HomeAuditSink:
    """The audit records of a home."""

    def __init__(self, home: Home | None = None) -> None:
        self.home: Home = MemoryHome() if home is None else home

    def record(self, entry: AuditRecord) -> AuditRecord:
        exact(AuditRecord, [entry])
        return self.home.run(lambda look: Changes(audits=(entry,))).audits[0]

    def records(self) -> list[AuditRecord]:
        return self.home.look().audits()


class InMemoryAuditSink(HomeAuditSink):
    """Audit records in memory."""


class JsonlAuditSink(_JsonlFile):
    """Audit records as JSON lines in a file of their own."""

    def record(self, entry: AuditRecord) -> AuditRecord:
        self._folder.make()
        with self._folder.locked():
            content = self._content()
            number = content.count(b"\n") + 1
            kept = replace(entry, id=f"{number:012d}")
            torn = b"\n" if content and not content.endswith(b"\n") else b""
            self._folder.append(self._name, torn + b"".join(lines(AUDIT_FILE, [kept])))
        return kept

    def records(self) -> list[AuditRecord]:
        read = read_lines(self._content(), AuditRecord, SCHEMAS["audit"])
        return [line.item for line in read if line.item is not None]
