"""Only the verbs of the graph write events that describe it, and diagnose shows those that are forged."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from chronomemory.graph import (
    Action,
    Approval,
    Edge,
    EnvelopeError,
    InMemoryAuditSink,
    InMemoryEventLog,
    InMemoryGraphStore,
    JsonlMemoryEventLog,
    MemoryEvent,
    MemoryPath,
    ModelError,
    Node,
    PhaseMemoryRuntime,
    Profile,
    Workspace,
)
from chronomemory.graph.changes import GRAPH_KINDS, Changes
from workbench import TS, Bench, Clock, event, furnish, in_folder


class MisleadingText(str):
    """A string that claims to equal nothing, so that a check by comparison misses it."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return False

    def __hash__(self) -> int:
        return 7

    def startswith(self, *_: object) -> bool:
        return False


FORGED = [
    event("x", "action.applied", data={"gone_nodes": ["bob"]}),
    event("x", "node.saved", data={"nodes": [{"id": "ghost", "kind": "k"}]}),
    event("x", "path.merged", path_id="main", data={"merged_into": "try"}),
    event("x", "path.note"),
    event("action.applied:d", "said"),
    event(MisleadingText("x"), MisleadingText("action.applied"), data={"gone_nodes": ["bob"]}),
    event(MisleadingText("action.applied:d"), MisleadingText("said")),
]
WAYS: dict[str, Callable[[Bench, MemoryEvent], object]] = {
    "append": lambda bench, forged: bench.events.append(forged),
    "append_many": lambda bench, forged: bench.events.append_many([event("ok"), forged]),
    "record": lambda bench, forged: bench.runtime.record("main", [event("ok"), forged]),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("forged", FORGED, ids=lambda one: f"{str.__str__(one.kind)}-{str.__str__(one.id)}")
def test_forged_graph_events_are_refused(bench: Bench, forged: MemoryEvent, way: str) -> None:
    furnish(bench)
    before = bench.graph.export()
    with pytest.raises(ModelError, match=r"describes a change of the graph|reserved"):
        WAYS[way](bench, forged)
    assert bench.graph.export() == before
    assert bench.runtime.diagnose() == []


@pytest.mark.parametrize("way", WAYS)
def test_only_plain_events_are_appended(bench: Bench, way: str) -> None:
    class Subclass(MemoryEvent):
        """An event whose fields may be shown in two ways."""

    furnish(bench)
    with pytest.raises(ModelError, match="MemoryEvent expected, got Subclass"):
        WAYS[way](bench, Subclass("x", "said", TS))
    assert bench.events.event("ok") is None


@pytest.mark.parametrize("kind", sorted(GRAPH_KINDS))
def test_an_import_beside_a_history_brings_no_graph_events(workspace: Workspace, kind: str) -> None:
    workspace.graph.save_node(Node("cat", "pet"))
    before = workspace.export_graph()
    forged = event("action.applied:d" if kind == "action.applied" else "x", kind)
    with pytest.raises(EnvelopeError, match=r"events\[1\]") as refused:
        workspace.import_graph({"events": [event("ok").to_dict(), forged.to_dict()]})
    assert refused.value.path == "events[1]"
    assert workspace.export_graph() == before


@pytest.mark.parametrize(
    "forged",
    [
        event("action.applied:d", "said"),
        event("action.applied:d", "node.saved"),
        event("x", "action.applied", data={"action": Action("x", "delete_node", "n").to_dict()}),
        event(
            "action.applied:d",
            "action.applied",
            data={"action": Action("e", "put_node", "n", {"kind": "k"}).to_dict()},
        ),
    ],
)
def test_an_imported_history_names_applied_actions_by_their_ids(
    workspace: Workspace, forged: MemoryEvent
) -> None:
    with pytest.raises(EnvelopeError, match=r"events\[0\].*reserved"):
        workspace.import_graph({"events": [forged.to_dict()]})
    assert workspace.events.events() == []


def test_a_whole_history_is_imported_into_an_empty_workspace(tmp_path: Path) -> None:
    bench = in_folder(tmp_path / "one")
    furnish(bench)
    delete = Action("d", "delete_node", "bob", {"edges": True})
    bench.runtime.apply([delete], [Approval.of(delete, "ann")])
    assert bench.workspace is not None
    with bench.workspace, Workspace.create(tmp_path / "two", clock=Clock()) as other:
        exported = json.loads(bench.workspace.export_graph())
        other.import_graph(exported)
        assert other.diagnose() == []
        other.import_graph(exported)
        assert other.replay() == other.snapshot() == bench.workspace.snapshot()


def test_an_approved_action_is_not_blocked_by_a_forged_event(bench: Bench) -> None:
    furnish(bench)
    delete = Action("d", "delete_node", "bob", {"edges": True})
    for way in WAYS.values():
        with pytest.raises(ModelError):
            way(bench, event("action.applied:d", "said"))
    bench.runtime.apply([delete], [Approval.of(delete, "ann")])
    assert bench.graph.node("bob") is None


def forge(bench: Bench, forged: MemoryEvent) -> None:
    """Write an event as an older version, or another tool, could have written it."""
    bench.graph.home.run(lambda look: Changes(events=(forged,)))


@pytest.mark.parametrize(
    ("forged", "where", "item", "message"),
    [
        (
            event("x", "action.applied", data={"gone_nodes": ["bob"]}),
            "nodes",
            "bob",
            "in the store, but not in the replay",
        ),
        (
            event("x", "action.applied", data={"gone_edges": ["ann-bob"]}),
            "edges",
            "ann-bob",
            "in the store, but not in the replay",
        ),
        (
            event("x", "node.saved", data={"nodes": [Node("ghost", "k").to_dict()]}),
            "nodes",
            "ghost",
            "in the replay of the events, but not in the store",
        ),
        (
            event("x", "edge.saved", data={"edges": [Edge("e", "ann", "bob", "k").to_dict()]}),
            "edges",
            "e",
            "in the replay of the events, but not in the store",
        ),
        (
            event("x", "profile.saved", data={"profiles": [Profile("ann", "Eve").to_dict()]}),
            "profiles",
            "ann",
            "differs",
        ),
        (
            event("x", "edge.saved", data={"edges": [Edge("ann-bob", "ann", "bob", "k").to_dict()]}),
            "edges",
            "ann-bob",
            "differs",
        ),
        (event("x", "path.abandoned", path_id="try", data={"reason": "no"}), "paths", "try", "differs"),
        (
            event("x", "path.branched", data={"paths": [MemoryPath("new").to_dict()]}),
            "paths",
            "new",
            "in the replay of the events, but not in the store",
        ),
        (event("x", "node.saved", data={"nodes": [3]}), "events.jsonl", "x", "cannot be read"),
        (event("action.applied:d", "said"), "events.jsonl", "action.applied:d", "reserved"),
    ],
)
def test_diagnose_shows_a_forged_event_of_an_older_store(
    bench: Bench, forged: MemoryEvent, where: str, item: str, message: str
) -> None:
    furnish(bench)
    forge(bench, forged)
    found = bench.runtime.diagnose()
    assert {(one.code, one.level) for one in found} == {("replay-drift", "error")}
    (finding,) = [one for one in found if (one.where, one.id) == (where, item)]
    assert message in finding.message
    if bench.workspace is not None:
        assert bench.workspace.diagnose() == found


def test_values_that_only_python_takes_for_equal_are_a_difference(bench: Bench) -> None:
    bench.graph.save_node(Node("n", "k", data={"a": 1}))
    forge(bench, event("x", "node.saved", data={"nodes": [Node("n", "k", data={"a": True}).to_dict()]}))
    assert [(one.code, one.id) for one in bench.runtime.diagnose()] == [("replay-drift", "n")]


@pytest.mark.parametrize("kept", ["memory", "file"])
def test_a_log_beside_the_graph_is_compared_with_it(tmp_path: Path, kept: str) -> None:
    graph = InMemoryGraphStore(clock=Clock())
    events = InMemoryEventLog() if kept == "memory" else JsonlMemoryEventLog(tmp_path / "events.jsonl")
    runtime = PhaseMemoryRuntime(graph, events, InMemoryAuditSink(), clock=Clock())
    runtime.branch("main")
    runtime.apply([Action("a", "put_node", "cat", {"kind": "pet"})])
    with pytest.raises(ModelError):
        runtime.record("main", [event("x", "action.applied", data={"gone_nodes": ["cat"]})])
    assert runtime.diagnose() == []
    events.append(event("x", "node.saved", data={"gone_nodes": ["cat"]}))
    assert [(one.code, one.where, one.id) for one in runtime.diagnose()] == [("replay-drift", "nodes", "cat")]
