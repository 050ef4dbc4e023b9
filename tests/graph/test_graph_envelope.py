"""What goes out comes in again byte for byte, and what others wrote by a key map."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from chronomemory.face.arguments import HIDDEN
from chronomemory.graph import (
    Action,
    ActivationPlan,
    Approval,
    DuplicateEventError,
    Edge,
    EnvelopeError,
    KeyMap,
    MemoryPath,
    Node,
    Profile,
    Workspace,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from workbench import TS, Clock, event, furnish, in_folder, view_of

FIXTURES = Path(__file__).parent / "fixtures"


def test_out_in_and_out_again_is_the_same_bytes(tmp_path: Path) -> None:
    bench = in_folder(tmp_path / "one")
    furnish(bench)
    action = Action("d", "delete_node", "bob", {"edges": True})
    bench.runtime.apply([action], [Approval.of(action, "ann")])
    bench.runtime.abandon("try", "no")
    assert bench.workspace is not None
    exported = bench.workspace.export_graph()
    with Workspace.create(tmp_path / "two", clock=Clock()) as other:
        told = other.import_graph(json.loads(exported))
        assert other.export_graph() == exported
        assert other.replay() == other.snapshot() == bench.workspace.snapshot()
        assert other.diagnose() == []
        assert (told.nodes, told.edges, told.paths) == (2, 1, 2)
        before = view_of(tmp_path / "two")
        assert other.import_graph(json.loads(exported)).summary == (
            "imported 0 profiles, 0 nodes, 0 edges, 0 paths, 0 plans, 0 events"
        )
        assert view_of(tmp_path / "two") == before
    bench.workspace.close()


def test_activation_plans_are_exported_and_imported(tmp_path: Path) -> None:
    with Workspace.create(tmp_path / "one") as one, Workspace.create(tmp_path / "two") as two:
        one.graph.save_profile(Profile("ann"))
        one.graph.save_node(Node("tea", "drink"))
        plan = ActivationPlan("morning", "ann", ("tea",), {"hour": 7})
        one.graph.save_plan(plan)
        exported = one.export_graph()
        assert json.loads(exported) == one.graph.export()
        assert two.import_graph(json.loads(exported)).plans == 1
        assert two.graph.plans() == [plan]
        assert two.export_graph() == exported
        assert two.import_graph(json.loads(exported)).plans == 0
        assert two.diagnose() == []
        with pytest.raises(EnvelopeError) as refused:
            two.import_graph({"plans": [{"id": "evening"}]})
        assert refused.value.path == "plans[0].profile_id"


def test_an_envelope_of_an_earlier_version_has_no_plans(workspace: Workspace) -> None:
    assert workspace.import_graph({"schema": "chronomemory.graph/1", "nodes": []}).plans == 0


def test_a_fixture_without_events_is_told_by_events(workspace: Workspace) -> None:
    workspace.import_graph(json.loads((FIXTURES / "graph.json").read_bytes()))
    workspace.import_graph(json.loads((FIXTURES / "profile.json").read_bytes()))
    assert [node.id for node in workspace.graph.nodes("person")] == ["ann", "bob"]
    profile = workspace.graph.profile("ann")
    assert profile is not None
    assert profile.name == "Ann"
    assert workspace.replay() == workspace.snapshot()
    assert workspace.diagnose() == []


FOREIGN = {
    "schema": "somebody.else/3",
    "vertices": [
        {"uid": "a", "type": "person", "title": "Ann", "age": 41},
        {"uid": "b", "type": "person", "title": "Bob", "data": {"age": 7}, "extra": [1]},
    ],
    "links": {"l1": {"from": "a", "to": "b", "type": "knows"}},
}
KEYS: KeyMap = {
    "arrays": {"nodes": "vertices", "edges": "links"},
    "nodes": {"id": "uid", "kind": "type", "label": "title"},
    "edges": {"source": "from", "target": "to", "kind": "type"},
}


def test_a_key_map_reads_what_others_wrote(workspace: Workspace) -> None:
    workspace.import_graph(FOREIGN, keys=KEYS)
    assert workspace.graph.nodes() == [
        Node("a", "person", "Ann", {"age": 41}),
        Node("b", "person", "Bob", {"age": 7, "extra": [1]}),
    ]
    assert workspace.graph.edges() == [Edge("l1", "a", "b", "knows")]


@pytest.mark.parametrize(
    ("envelope", "keys", "path"),
    [
        ([], None, ""),
        ({"schema": "chronomemory.graph/9"}, None, "schema"),
        (FOREIGN, None, "schema"),
        ({"nodes": 3}, None, "nodes"),
        ({"nodes": [{"id": "a", "kind": "k"}, {"id": "b"}]}, None, "nodes[1].kind"),
        ({"nodes": [3]}, None, "nodes[0]"),
        ({"nodes": [{"id": "a", "kind": "k", "x": 1}]}, None, "nodes[0].x"),
        ({"nodes": [{"id": "a", "kind": "k"}] * 2}, None, "nodes[1].id"),
        ({"events": [{"id": "", "kind": "k", "ts": TS}]}, None, "events[0].id"),
        ({"nodes": []}, {"vertices": {}}, "keys.vertices"),
        ({"nodes": []}, {"nodes": {"colour": "x"}}, "keys.nodes.colour"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(
    workspace: Workspace, envelope: Any, keys: KeyMap | None, path: str
) -> None:
    before = view_of(workspace.folder)
    with pytest.raises(EnvelopeError) as refused:
        workspace.import_graph(envelope, keys=keys)
    assert refused.value.path == path
    assert view_of(workspace.folder) == before


def test_events_that_contradict_are_refused(workspace: Workspace) -> None:
    workspace.events.append(event("e"))
    with pytest.raises(DuplicateEventError):
        workspace.import_graph({"events": [event("e", "other").to_dict()]})
    ghost = event("g", "node.saved", data={"nodes": [Node("ghost", "k").to_dict()]})
    with pytest.raises(EnvelopeError, match="'ghost', which the envelope does not list"):
        workspace.import_graph({"events": [ghost.to_dict()]})


def test_what_is_imported_over_something_takes_its_place(workspace: Workspace) -> None:
    workspace.graph.save_node(Node("a", "k", "old"))
    told = workspace.import_graph({"nodes": [Node("a", "k", "new").to_dict()]})
    assert (told.nodes, told.events) == (1, 1)
    assert workspace.graph.node("a") == Node("a", "k", "new")
    assert workspace.replay() == workspace.snapshot()


NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4)
DATA = st.dictionaries(
    NAMES,
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), NAMES
    ),
    max_size=2,
)
#: Ids have no invisible characters in them.
IDS = NAMES.filter(lambda name: not HIDDEN.search(name))
NODES = st.lists(st.builds(Node, IDS, NAMES, NAMES, DATA), unique_by=lambda node: node.id, max_size=5)
EDGES = st.lists(st.builds(Edge, IDS, IDS, IDS, NAMES, DATA), unique_by=lambda edge: edge.id, max_size=5)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(nodes=NODES, edges=EDGES, name=IDS, number=st.integers())
def test_any_graph_comes_back_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, nodes: list[Node], edges: list[Edge], name: str, number: int
) -> None:
    one, two = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("two")
    with Workspace.create(one, durability="off") as here, Workspace.create(two, durability="off") as there:
        here.graph.save(nodes=nodes, edges=edges, paths=[MemoryPath(name)], profiles=[Profile(name, name)])
        here.events.append(event(name, data={"number": number}))
        exported = here.export_graph()
        there.import_graph(json.loads(exported))
        assert there.export_graph() == exported
        assert there.replay() == there.snapshot() == here.snapshot()
        assert {one.code for one in there.diagnose()} <= {"missing-endpoint"}
