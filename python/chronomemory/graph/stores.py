"""Graph stores: one in memory, one over the chained log of a workspace; the same verbs and answers."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any

from chronomemory.face.arguments import path
from chronomemory.face.moments import Now, utc_now
from chronomemory.graph.changes import Changes, GraphReader, Home, Look, MemoryHome, One
from chronomemory.graph.envelope import envelope_of
from chronomemory.graph.log_home import LogHome, open_home
from chronomemory.graph.models import (
    ActivationPlan,
    Edge,
    MemoryPath,
    Model,
    Node,
    Profile,
    exact,
    moment_of,
    spellings,
)
from chronomemory.graph.replaying import saved_events
from chronomemory.graph.walks import EngineWalker, LookWalker, Walker, Walks, no_past
from chronomemory.scope import Scope


class GraphStore(GraphReader, Walks):
    """A graph store; each save is one batch with the event that describes it."""

    def __init__(self, home: Home, clock: Now) -> None:
        self._home = home
        self._clock = clock

    @property
    def home(self) -> Home:
        """Where it is kept."""
        return self._home

    # Saving.

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

    # Reading.

    def one(self, cls: type[One], item_id: str) -> One | None:
        """Return an item of a kind, or None."""
        return self._look.one(cls, item_id)

    def every(self, cls: type[One]) -> list[One]:
        """Return all items of a kind, sorted by id."""
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


class InMemoryGraphStore(GraphStore):
    """A graph in memory; with the ``home`` of another store, log or sink it is kept together with that."""

    def __init__(self, home: MemoryHome | None = None, *, clock: Now = utc_now) -> None:
        home = MemoryHome() if home is None else home
        home.keeps_graph = True
        super().__init__(home, clock)

    def walker(self, as_of: int | datetime | None) -> Walker:
        """Return who goes from node to node; only now, since there is no past."""
        if as_of is not None:
            raise no_past()
        return LookWalker(self._look)


class FileBackedMemoryGraphStore(GraphStore):
    """The graph of a workspace, which is created if the folder has none."""

    def __init__(self, place: str | os.PathLike[str] | LogHome, *, clock: Now | None = None) -> None:
        owned = not isinstance(place, LogHome)
        home = place if isinstance(place, LogHome) else open_home(path("place", place), Scope(), clock, {})
        super().__init__(home, clock or utc_now)
        self._log_home = home
        if owned:
            home.create()

    def close(self) -> None:
        """Let go of the folder; closing twice is fine."""
        self._log_home.handle.close()

    def __enter__(self) -> FileBackedMemoryGraphStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def walker(self, as_of: int | datetime | None) -> Walker:
        """Return who goes from node to node, now or then."""
        return EngineWalker(self._log_home.handle.store.engine, as_of)


def _once(cls: type[Model], items: Iterable[Any]) -> tuple[Any, ...]:
    """Return items of a kind each once, by id, sorted."""
    last = {item.id: item for item in exact(cls, items)}
    return tuple(last[name] for name in sorted(last))
