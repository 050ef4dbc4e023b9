"""Nothing is applied that nobody approved, and all of that is on record."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from chronomemory.graph import (
    Action,
    ActionError,
    Approval,
    ApprovalRequired,
    AuditSink,
    Edge,
    InMemoryGraphStore,
    JsonlAuditSink,
    JsonlMemoryEventLog,
    MemoryPath,
    Node,
    PhaseMemoryRuntime,
)
from chronomemory.graph.models import REVIEWED
from workbench import Bench, Clock, furnish

DELETE = Action("a1", "delete_node", "bob", {"edges": True})
PUT = Action("a2", "put_node", "cat", {"kind": "pet", "label": "Cat"})
REVIEWED_ACTIONS = [
    DELETE,
    Action("a3", "delete_edge", "ann-bob"),
    Action("a4", "supersede", "bob", {"by": "ann"}),
    Action("a5", "compact_path", "main"),
    replace(PUT, requires_review=True),
]


def but_the_audit(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name: content for name, content in files.items() if name != "audit.jsonl"}


@pytest.mark.parametrize("action", REVIEWED_ACTIONS, ids=lambda action: action.op)
def test_what_needs_a_review_is_denied_without_one(bench: Bench, action: Action) -> None:
    furnish(bench)
    before, files = bench.graph.export(), but_the_audit(bench.files())
    with pytest.raises(ApprovalRequired) as denied:
        bench.runtime.apply([action])
    assert denied.value.action_ids == (action.id,)
    assert bench.graph.export() == before
    assert but_the_audit(bench.files()) == files
    (entry,) = bench.audit.records()
    assert (entry.outcome, entry.actions[0]["digest"]) == ("denied", action.digest)
    bench.runtime.apply([action], [Approval.of(action, "ann")])
    assert bench.graph.export() != before


def test_what_needs_none_is_applied(bench: Bench) -> None:
    furnish(bench)
    applied = bench.runtime.apply(
        [
            PUT,
            Action("e", "put_edge", "ann-cat", {"source": "ann", "target": "cat", "kind": "owns"}),
            Action("p", "set_phase", "cat", {"phase": "stable"}),
        ]
    )
    assert bench.graph.node("cat") == Node("cat", "pet", "Cat", {}, "stable")
    assert bench.graph.edge("ann-cat") == Edge("ann-cat", "ann", "cat", "owns")
    assert [event.kind for event in applied] == ["action.applied"] * 3
    assert bench.audit.records()[-1].outcome == "applied"


@pytest.mark.parametrize(
    "bend",
    [
        lambda approval: replace(approval, action_digest="0" * 64),
        lambda approval: replace(approval, action_id="a9"),
        lambda approval: Approval.of(replace(DELETE, target="ann"), "ann"),
        lambda approval: Approval.of(replace(DELETE, payload={}), "ann"),
        lambda approval: Approval.of(REVIEWED_ACTIONS[1], "ann"),
    ],
)
def test_an_approval_is_of_that_very_action(bench: Bench, bend: Callable[[Approval], Approval]) -> None:
    furnish(bench)
    with pytest.raises(ApprovalRequired):
        bench.runtime.apply([DELETE], [bend(Approval.of(DELETE, "ann"))])
    assert bench.graph.node("bob") is not None


def test_an_action_cannot_talk_itself_out_of_a_review(bench: Bench) -> None:
    furnish(bench)
    assert not DELETE.requires_review
    with pytest.raises(ApprovalRequired):
        bench.runtime.apply([replace(DELETE, requires_review=False)])


def test_a_batch_with_one_that_is_not_approved_changes_nothing(bench: Bench) -> None:
    furnish(bench)
    before, files = bench.graph.export(), but_the_audit(bench.files())
    with pytest.raises(ApprovalRequired) as denied:
        bench.runtime.apply([PUT, DELETE, REVIEWED_ACTIONS[1]], [Approval.of(DELETE, "ann")])
    assert denied.value.action_ids == ("a3",)
    assert bench.graph.export() == before
    assert but_the_audit(bench.files()) == files


def test_a_batch_with_one_that_cannot_be_changes_nothing(bench: Bench) -> None:
    furnish(bench)
    before, files = bench.graph.export(), but_the_audit(bench.files())
    with pytest.raises(ActionError, match="there is no node 'nobody'"):
        bench.runtime.apply([PUT, Action("x", "set_phase", "nobody", {"phase": "p"})])
    assert bench.graph.export() == before
    assert but_the_audit(bench.files()) == files
    assert bench.audit.records()[-1].outcome == "refused"


def test_an_action_is_applied_once(bench: Bench) -> None:
    furnish(bench)
    bench.runtime.apply([DELETE], [Approval.of(DELETE, "ann")])
    bench.graph.save_node(Node("bob", "person", "Bob is back"))
    with pytest.raises(ActionError, match="applied before"):
        bench.runtime.apply([DELETE], [Approval.of(DELETE, "ann")])
    with pytest.raises(ActionError, match="applied before"):
        bench.runtime.apply([PUT, PUT])
    assert bench.graph.node("cat") is None


def test_what_is_deleted_takes_its_edges_only_if_that_was_said(bench: Bench) -> None:
    furnish(bench)
    bare = Action("d", "delete_node", "bob")
    with pytest.raises(ActionError, match="2 edges"):
        bench.runtime.apply([bare], [Approval.of(bare, "ann")])
    bench.runtime.apply([DELETE], [Approval.of(DELETE, "ann")])
    assert bench.graph.node("bob") is None
    assert [edge.id for edge in bench.graph.edges()] == ["ann-tea"]
    assert bench.events.replay().edges == {edge.id: edge for edge in bench.graph.edges()}
    assert "bob" not in bench.events.replay().nodes


def test_one_action_sees_what_the_one_before_did(bench: Bench) -> None:
    furnish(bench)
    edge = Action("e", "put_edge", "cat-bob", {"source": "cat", "target": "bob", "kind": "likes"})
    bench.runtime.apply([PUT, edge, DELETE], [Approval.of(DELETE, "ann")])
    assert bench.graph.edge("cat-bob") is None
    assert bench.graph.node("cat") is not None
    assert bench.runtime.diagnose() == []


def test_what_is_superseded_is_marked_and_joined(bench: Bench) -> None:
    furnish(bench)
    action = Action("s", "supersede", "bob", {"by": "ann"})
    bench.runtime.apply([action], [Approval.of(action, "rev")])
    old = bench.graph.node("bob")
    assert old is not None
    assert old.data == {"superseded_by": "ann"}
    assert bench.graph.edges(kind="supersedes") == [Edge("supersedes:ann:bob", "ann", "bob", "supersedes")]


def test_a_path_is_compacted_behind_the_gate(bench: Bench) -> None:
    furnish(bench)
    action = Action("c", "compact_path", "main", {"summary_id": "tea"})
    events = bench.runtime.apply([action], [Approval.of(action, "rev")])
    assert [event.kind for event in events] == ["path.compacted", "action.applied"]
    path = bench.graph.path("main")
    assert isinstance(path, MemoryPath)
    assert path.compaction is not None
    assert path.event_ids == ("e1",)
    assert bench.events.replay().paths["main"] == path


@pytest.mark.parametrize(
    ("action", "why"),
    [
        (Action("x", "put_node", "n", {"kind": "k", "wrong": 1}), "there is no field 'wrong'"),
        (Action("x", "put_node", "n", {"id": "m", "kind": "k"}), "another than its target"),
        (
            Action("x", "put_edge", "n", {"source": "ann", "target": "nobody", "kind": "k"}),
            "no node 'nobody'",
        ),
        (Action("x", "delete_edge", "nothing"), "no edge"),
        (Action("x", "delete_edge", "ann-bob", {"why": 1}), "payload has no 'why'"),
        (Action("x", "supersede", "bob", {"by": "bob"}), "another node"),
        (Action("x", "compact_path", "nowhere"), "no path"),
        (Action("x", "compact_path", "try"), "no events"),
        (Action("x", "compact_path", "main", {"summary_id": "n"}), "sums it up"),
        (Action("x", "set_phase", "bob", {"phase": ""}), "phase"),
    ],
)
def test_an_action_that_makes_no_sense_is_refused(bench: Bench, action: Action, why: str) -> None:
    furnish(bench)
    before = bench.graph.export()
    with pytest.raises(ActionError, match=why) as refused:
        bench.runtime.apply([action], [Approval.of(action, "ann")])
    assert refused.value.action_id == "x"
    assert bench.graph.export() == before


def test_who_builds_the_runtime_says_what_is_reviewed(bench: Bench) -> None:
    furnish(bench)
    strict = PhaseMemoryRuntime(bench.graph, bench.events, bench.audit, review={*REVIEWED, "put_node"})
    with pytest.raises(ApprovalRequired):
        strict.apply([PUT])
    lenient = PhaseMemoryRuntime(bench.graph, bench.events, bench.audit, review=())
    lenient.apply([DELETE])
    assert bench.graph.node("bob") is None
    with pytest.raises(ActionError, match="no op 'explode'"):
        PhaseMemoryRuntime(bench.graph, bench.events, bench.audit, review={"explode"})


def test_the_audit_says_who_approved_what(bench: Bench) -> None:
    furnish(bench)
    assert isinstance(bench.audit, AuditSink)
    assert bench.runtime.apply([]) == []
    bench.runtime.apply([DELETE], [Approval.of(DELETE, "ann", "looks right")])
    (entry,) = bench.audit.records()
    assert entry.actions == (
        {
            "id": "a1",
            "op": "delete_node",
            "target": "bob",
            "other": None,
            "source": None,
            "end": None,
            "digest": DELETE.digest,
            "needed_review": True,
            "approved_by": "ann",
        },
    )
    if bench.workspace is not None:
        line = json.loads((bench.workspace.folder / "audit.jsonl").read_bytes())
        assert line == {"schema": "chronomemory.audit/1", **entry.to_dict()}
        recorded = bench.workspace.store.get("audit:000000000001")
        assert recorded is not None
        assert recorded.data["outcome"] == "applied"


def test_parts_of_several_homes_work_together(tmp_path: Path) -> None:
    graph, audit = InMemoryGraphStore(clock=Clock()), JsonlAuditSink(tmp_path / "audit.jsonl")
    events = JsonlMemoryEventLog(tmp_path / "events.jsonl")
    runtime = PhaseMemoryRuntime(graph, events, audit, clock=Clock())
    runtime.apply([PUT])
    with pytest.raises(ApprovalRequired):
        runtime.apply([Action("d", "delete_node", "cat")])
    assert [event.id for event in events.events()] == ["action.applied:a2"]
    assert [(entry.id, entry.outcome) for entry in audit.records()] == [
        ("000000000001", "applying"),
        ("000000000002", "applied"),
        ("000000000003", "denied"),
    ]
    assert events.replay().nodes == {"cat": Node("cat", "pet", "Cat")}
    assert runtime.diagnose() == []
