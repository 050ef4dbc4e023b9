"""What a graph store, an event log and an audit sink can be asked, whoever provides them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

from chronomemory.graph.changes import Home
from chronomemory.graph.models import AuditRecord, Diagnostic, Edge, MemoryEvent, MemoryPath, Node, Profile
from chronomemory.graph.replaying import GraphSnapshot


@runtime_checkable
class MemoryGraphStore(Protocol):
    """Profiles, nodes, edges and paths; every list is sorted by id."""

    @property
    def home(self) -> Home:
        """Where it is kept: stores, logs and sinks of one home are changed together."""

    def save_profile(self, profile: Profile) -> None: ...
    def save_node(self, node: Node) -> None: ...
    def save_edge(self, edge: Edge) -> None: ...
    def save_path(self, path: MemoryPath) -> None: ...
    def profile(self, profile_id: str) -> Profile | None: ...
    def node(self, node_id: str) -> Node | None: ...
    def edge(self, edge_id: str) -> Edge | None: ...
    def path(self, path_id: str) -> MemoryPath | None: ...
    def profiles(self) -> list[Profile]: ...
    def nodes(self, kind: str | None = None) -> list[Node]: ...
    def edges(
        self, *, source: str | None = None, target: str | None = None, kind: str | None = None
    ) -> list[Edge]: ...
    def paths(self) -> list[MemoryPath]: ...
    def export(self) -> dict[str, Any]:
        """Return all of it as one envelope."""


@runtime_checkable
class MemoryEventLog(Protocol):
    """Events in the order in which they were appended; none of them ever changes."""

    def append(self, event: MemoryEvent) -> MemoryEvent:
        """Append an event and return it, with the id that it was given if it had none."""

    def append_many(self, events: Iterable[MemoryEvent]) -> list[MemoryEvent]:
        """Append several, all of them or none."""

    def event(self, event_id: str) -> MemoryEvent | None: ...
    def events(self, kind: str | None = None) -> list[MemoryEvent]: ...
    def replay(self) -> GraphSnapshot:
        """Return the graph that the events lead to."""

    def diagnose(self) -> list[Diagnostic]:
        """Return the problems of the log; nothing is written."""


@runtime_checkable
class AuditSink(Protocol):
    """Stores audit records of applied and denied actions."""

    def record(self, entry: AuditRecord) -> AuditRecord:
        """Put something down, and return it with the id that it was given."""

    def records(self) -> Sequence[AuditRecord]: ...
