"""A workspace holds against what a careless or malicious hand does to it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from chronomemory.errors import RecordTooLarge
from chronomemory.graph import (
    Action,
    ActionError,
    ActivationPlan,
    Approval,
    ApprovalRequired,
    Edge,
    EnvelopeError,
    MemoryEvent,
    ModelError,
    Node,
    Profile,
    Workspace,
    WorkspaceError,
)

TS = "2026-01-01T00:00:00Z"


@pytest.fixture
def workspace(tmp_path: Path) -> Any:
    with Workspace.create(tmp_path / "w") as made:
        yield made


def files_of(folder: Path) -> dict[str, bytes]:
    inside = folder / ".chronomemory"
    return {
        str(path): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_relative_to(inside)
    }


@pytest.mark.parametrize("hurt", ["cut", "altered"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_files_are_not_rebuilt_from_a_damaged_log(workspace: Workspace, hurt: str) -> None:
    workspace.graph.save_node(Node("keep", "k"))
    workspace.graph.save_node(Node("lost", "k", "precious"))
    folder = workspace.folder
    workspace.close()
    log = folder / ".chronomemory" / "events.wal"
    content = log.read_bytes()
    damaged = (
        b"".join(content.splitlines(True)[:-3])
        if hurt == "cut"
        else content.replace(b"precious", b"preciouz")
    )
    log.write_bytes(damaged)
    before = files_of(folder)
    with Workspace.open(folder) as again:
        assert "chain-break" in {one.code for one in again.diagnose()}
        with pytest.raises(WorkspaceError, match="the log is damaged"):
            again.rebuild()
    assert files_of(folder) == before


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_log_that_is_cut_under_an_open_workspace_is_diagnosed(workspace: Workspace) -> None:
    workspace.graph.save_node(Node("a", "k"))
    log = workspace.folder / ".chronomemory" / "events.wal"
    os.truncate(log, len(log.read_bytes()) // 2)
    assert {one.code for one in workspace.diagnose()} == {"chain-break"}


def test_two_supersessions_never_share_an_edge(workspace: Workspace) -> None:
    workspace.graph.save(nodes=[Node(name, "k") for name in ("a:b", "c", "a", "b:c")])
    actions = [Action("1", "supersede", "c", {"by": "a:b"}), Action("2", "supersede", "b:c", {"by": "a"})]
    workspace.runtime.apply(actions, [Approval.of(action, "r") for action in actions])
    assert {(edge.source, edge.target) for edge in workspace.graph.edges()} == {("a:b", "c"), ("a", "b:c")}


def test_a_supersession_replaces_no_edge_of_others(workspace: Workspace) -> None:
    workspace.graph.save(
        nodes=[Node("a", "k"), Node("b", "k")], edges=[Edge("supersedes:a:b", "b", "a", "mine")]
    )
    action = Action("1", "supersede", "b", {"by": "a"})
    with pytest.raises(ActionError, match="there is another edge"):
        workspace.runtime.apply([action], [Approval.of(action, "r")])
    assert [edge.kind for edge in workspace.graph.edges()] == ["mine"]


def test_a_key_map_loses_no_field(workspace: Workspace) -> None:
    keys = {"nodes": {"id": "uid", "kind": "type"}}
    workspace.import_graph({"nodes": [{"uid": "z", "type": "T", "kind": "other", "id": 77}]}, keys=keys)
    node = workspace.graph.node("z")
    assert node is not None and (node.kind, node.data) == ("T", {"kind": "other", "id": 77})
    with pytest.raises(EnvelopeError, match="'age' stands beside data and in it"):
        workspace.import_graph(
            {"nodes": [{"uid": "y", "type": "T", "age": 1, "data": {"age": 2}}]}, keys=keys
        )


@pytest.mark.parametrize("keys", [[], "x", 5, {"nodes": {"id": []}}, {"arrays": {"nodes": {}}}])
def test_a_key_map_that_makes_no_sense_is_refused(workspace: Workspace, keys: Any) -> None:
    with pytest.raises(EnvelopeError, match="keys"):
        workspace.import_graph({"nodes": []}, keys=keys)


@pytest.mark.parametrize(("before", "after"), [(1, True), (1, 1.0), (0.0, -0.0)])
def test_values_that_python_takes_for_equal_are_imported(
    workspace: Workspace, before: Any, after: Any
) -> None:
    workspace.graph.save_node(Node("n", "k", data={"a": before}))
    workspace.import_graph({"nodes": [{"id": "n", "kind": "k", "data": {"a": after}}]})
    node = workspace.graph.node("n")
    assert node is not None and json.dumps(node.data) == json.dumps({"a": after})
    assert workspace.replay() == workspace.snapshot()


@pytest.mark.parametrize(
    "event",
    [
        MemoryEvent("x", "node.saved", TS, data={"nodes": [{"id": "phantom", "kind": "k"}]}),
        MemoryEvent("x", "path.note", TS, path_id="p"),
        MemoryEvent("action.applied:z", "said", TS),
    ],
)
def test_nobody_tells_of_changes_that_were_none(workspace: Workspace, event: MemoryEvent) -> None:
    with pytest.raises(ModelError, match="a change of the graph"):
        workspace.events.append(event)
    assert workspace.replay() == workspace.snapshot()


def test_an_event_that_is_there_is_only_put_on_the_path(workspace: Workspace) -> None:
    workspace.runtime.branch("main")
    event = workspace.events.append(MemoryEvent("t", "said", TS))
    assert workspace.runtime.record("main", [event, MemoryEvent("", "said", TS)]).event_ids[0] == "t"
    assert len(workspace.events.events("said")) == 2


def test_only_what_it_should_be_is_saved(workspace: Workspace) -> None:
    before = files_of(workspace.folder)
    wrong: Any
    for wrong in (Profile("p"), Edge("e", "a", "b", "k"), None):
        with pytest.raises(ModelError, match="Node expected"):
            workspace.graph.save_node(wrong)
    wrong = Node("p", "k")
    with pytest.raises(ModelError, match="ActivationPlan expected"):
        workspace.graph.save_plan(wrong)
    with pytest.raises(ModelError, match="AuditRecord expected"):
        workspace.audit.record(wrong)
    with pytest.raises(ActionError, match="Action expected"):
        workspace.runtime.apply([wrong])
    assert files_of(workspace.folder) == before
    assert ActivationPlan("p", "q").id == "p"


def test_every_apply_that_fails_is_on_record(workspace: Workspace) -> None:
    with pytest.raises(RecordTooLarge):
        workspace.runtime.apply(
            [Action("a", "put_node", "n", {"kind": "k", "data": {"x": "y" * 17_000_000}})]
        )
    compact = Action("c", "compact_path", "p", {"summary_id": []})
    workspace.runtime.branch("p")
    with pytest.raises(ActionError, match="no node"):
        workspace.runtime.apply([compact], [Approval.of(compact, "r")])
    assert [record.outcome for record in workspace.audit.records()] == ["refused", "refused"]


def test_an_approval_is_not_that_of_another_action_with_its_id(workspace: Workspace) -> None:
    workspace.graph.save_node(Node("n", "k"))
    delete = Action("a", "delete_node", "n")
    put = Action("a", "put_node", "m", {"kind": "k"}, requires_review=True)
    with pytest.raises(ApprovalRequired):
        workspace.runtime.apply([delete, put], [Approval.of(put, "ann")])
    (denied,) = workspace.audit.records()
    assert [action["approved_by"] for action in denied.actions] == [None, "ann"]


@pytest.mark.parametrize("revision", ["1", [], None, 1.5])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_strange_revision_is_a_drift(workspace: Workspace, revision: Any) -> None:
    page = workspace.folder / "workspace.json"
    said = json.loads(page.read_bytes())
    page.write_text(json.dumps({**said, "revision": revision}))
    assert [one.code for one in workspace.diagnose()] == ["view-drift"]
    workspace.rebuild()
    assert workspace.diagnose() == []


def test_what_is_written_and_cannot_be_shown_is_no_refusal(workspace: Workspace) -> None:
    shutil.rmtree(workspace.folder / "nodes")
    with pytest.warns(RuntimeWarning, match="this is in the log, but the files do not show it"):
        workspace.graph.save_node(Node("y", "k"))
    assert workspace.graph.node("y") is not None
    workspace.rebuild()
    assert workspace.diagnose() == []


def test_a_save_of_large_things_is_told_by_several_events(workspace: Workspace) -> None:
    workspace.graph.save(nodes=[Node(f"n{number}", "k", data={"x": "y" * 100_000}) for number in range(180)])
    assert len(workspace.events.events("node.saved")) > 4
    assert len(workspace.replay().nodes) == 180
