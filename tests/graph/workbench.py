"""What tests of this face work with: a graph, its events and its audit, in memory or in a folder."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

from chronomemory.face.moments import Now
from chronomemory.graph import (
    AuditSink,
    Edge,
    InMemoryAuditSink,
    InMemoryEventLog,
    InMemoryGraphStore,
    MemoryEvent,
    MemoryEventLog,
    MemoryHome,
    Node,
    PhaseMemoryRuntime,
    Profile,
    Workspace,
)
from chronomemory.graph.stores import GraphStore

START = datetime(2026, 5, 18, 9, tzinfo=timezone.utc)
TS = "2026-05-18T09:00:00.000000Z"


class Clock:
    """Tells a second more each time it is asked."""

    def __init__(self) -> None:
        self.ticks = 0

    def __call__(self) -> datetime:
        self.ticks += 1
        return START + timedelta(seconds=self.ticks)


@dataclass
class Bench:
    """The four parts of a face, and the workspace behind them if there is one."""

    graph: GraphStore
    events: MemoryEventLog
    audit: AuditSink
    runtime: PhaseMemoryRuntime
    workspace: Workspace | None = None

    def files(self) -> dict[str, bytes]:
        """All files of the view; nothing for a graph in memory."""
        return {} if self.workspace is None else view_of(self.workspace.folder)


def in_memory(clock: Now | None = None) -> Bench:
    home, clock = MemoryHome(), clock or Clock()
    graph, events, audit = (
        InMemoryGraphStore(home, clock=clock),
        InMemoryEventLog(home),
        InMemoryAuditSink(home),
    )
    return Bench(graph, events, audit, PhaseMemoryRuntime(graph, events, audit, clock=clock))


def in_folder(folder: Path, clock: Now | None = None, *, salt: bool = True) -> Bench:
    workspace = Workspace.create(folder, clock=clock or Clock(), salt=salt)
    return Bench(workspace.graph, workspace.events, workspace.audit, workspace.runtime, workspace)


def view_of(folder: Path) -> dict[str, bytes]:
    """Every file of a workspace but those of the chained log."""
    files = (path for path in folder.rglob("*") if path.is_file())
    names = {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
    return {name: content for name, content in names.items() if not name.startswith(".chronomemory/")}


def event(event_id: str, kind: str = "said", **more: object) -> MemoryEvent:
    return MemoryEvent(event_id, kind, TS, **more)  # type: ignore[arg-type]


def furnish(bench: Bench) -> None:
    """A small family, a path with a branch, an event on it."""
    bench.graph.save_profile(Profile("ann", "Ann", {"likes": ["tea"]}))
    bench.graph.save(
        nodes=[
            Node("ann", "person", "Ann"),
            Node("bob", "person", "Bob"),
            Node("tea", "drink", "Grüner Tee ☕"),
        ],
        edges=[
            Edge("ann-bob", "ann", "bob", "knows", {"since": 1999}),
            Edge("ann-tea", "ann", "tea", "likes"),
            Edge("bob-tea", "bob", "tea", "likes"),
        ],
    )
    bench.runtime.branch("main")
    bench.runtime.record("main", [event("e1", refs=("ann", "node:tea"))])
    bench.runtime.branch("try", "main")
