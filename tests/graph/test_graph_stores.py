"""Both stores keep profiles, nodes, edges, paths and plans, and answer alike."""

from __future__ import annotations

import json

import pytest
from chronomemory.graph import (
    ActivationPlan,
    Edge,
    FileBackedMemoryGraphStore,
    MemoryGraphStore,
    MemoryPath,
    ModelError,
    Node,
    Profile,
    Workspace,
)
from chronomemory.graph.log_home import LogLook
from workbench import Bench, Clock, furnish


def test_it_is_a_graph_store(bench: Bench) -> None:
    assert isinstance(bench.graph, MemoryGraphStore)


def test_what_is_saved_is_there_and_equal(bench: Bench) -> None:
    profile, node = Profile("p", "Ann", {"a": [1, {"b": 2.5}]}), Node("n", "k", "ü", {"x": None}, "fluid")
    edge, path = Edge("e", "n", "m", "knows"), MemoryPath("x", None, ("e1",))
    bench.graph.save_profile(profile)
    bench.graph.save_node(node)
    bench.graph.save_edge(edge)
    bench.graph.save_path(path)
    found = (bench.graph.profile("p"), bench.graph.node("n"), bench.graph.edge("e"), bench.graph.path("x"))
    assert found == (profile, node, edge, path)
    assert (bench.graph.profiles(), bench.graph.nodes()) == ([profile], [node])
    assert (bench.graph.edges(), bench.graph.paths()) == ([edge], [path])


def test_what_is_not_there_is_none(bench: Bench) -> None:
    assert (
        bench.graph.node("n")
        is bench.graph.edge("n")
        is bench.graph.path("n")
        is bench.graph.profile("n")
        is None
    )
    assert bench.graph.plan("n") is None
    assert bench.graph.nodes("k") == bench.graph.edges(source="n") == bench.graph.plans() == []


def test_saving_again_takes_the_place_of_the_first(bench: Bench) -> None:
    bench.graph.save_node(Node("n", "k", "one"))
    bench.graph.save_node(Node("n", "other", "two"))
    assert bench.graph.node("n") == Node("n", "other", "two")
    assert bench.graph.nodes("k") == []
    assert [node.label for node in bench.graph.nodes("other")] == ["two"]
    bench.graph.save_edge(Edge("e", "a", "b", "k"))
    bench.graph.save_edge(Edge("e", "b", "c", "k"))
    assert bench.graph.edges(source="a") == bench.graph.edges(target="b") == []
    assert [edge.id for edge in bench.graph.edges(source="b")] == ["e"]


def test_lists_are_sorted_by_id_and_filtered(bench: Bench) -> None:
    for name in ("c", "a", "B", "ä", "b"):
        bench.graph.save_node(Node(name, "odd" if name in "ac" else "even"))
    assert [node.id for node in bench.graph.nodes()] == ["B", "a", "b", "c", "ä"]
    assert [node.id for node in bench.graph.nodes("odd")] == ["a", "c"]
    bench.graph.save(
        edges=[
            Edge("2", "a", "b", "x"),
            Edge("1", "a", "c", "y"),
            Edge("3", "c", "b", "x"),
            Edge("0", "a", "b", "y"),
        ]
    )
    assert [edge.id for edge in bench.graph.edges(source="a")] == ["0", "1", "2"]
    assert [edge.id for edge in bench.graph.edges(target="b")] == ["0", "2", "3"]
    assert [edge.id for edge in bench.graph.edges(source="a", target="b")] == ["0", "2"]
    assert [edge.id for edge in bench.graph.edges(source="a", kind="y")] == ["0", "1"]
    assert [edge.id for edge in bench.graph.edges(kind="x")] == ["2", "3"]


def test_what_is_handed_out_or_in_is_a_copy(bench: Bench) -> None:
    data = {"list": [1]}
    bench.graph.save_node(Node("n", "k", data=data))
    data["list"].append(2)
    first = bench.graph.node("n")
    assert first is not None
    first.data["list"].append(3)
    again = bench.graph.node("n")
    assert again is not None
    assert again.data == {"list": [1]}


def test_plans_are_kept_beside_the_graph(bench: Bench) -> None:
    bench.graph.save_plan(ActivationPlan("morning", "ann", ("tea",), {"at": 7}))
    bench.graph.save_plan(ActivationPlan("evening", "ann"))
    assert bench.graph.plan("morning") == ActivationPlan("morning", "ann", ("tea",), {"at": 7})
    assert [plan.id for plan in bench.graph.plans()] == ["evening", "morning"]
    assert [plan["id"] for plan in bench.graph.export()["plans"]] == ["evening", "morning"]
    assert bench.events.events() == []


def test_what_is_saved_is_told_by_an_event(bench: Bench) -> None:
    bench.graph.save_node(Node("n", "k"))
    bench.graph.save(nodes=[Node("m", "k")], edges=[Edge("e", "n", "m", "k")])
    assert [event.kind for event in bench.events.events()] == ["node.saved", "node.saved", "edge.saved"]
    assert bench.events.replay().nodes == {node.id: node for node in bench.graph.nodes()}


def test_ids_that_are_no_file_names_are_fine(bench: Bench) -> None:
    names = [
        "../../etc/passwd",
        "..",
        ".",
        "a/b",
        "A",
        "a",
        "con",
        "ü",
        "%2F",
        "x" * 400,
        " ",
        "a:b",
    ]
    bench.graph.save(nodes=[Node(name, "k", name) for name in names])
    assert [node.id for node in bench.graph.nodes()] == sorted(names)
    if bench.workspace is not None:
        assert bench.workspace.diagnose() == []
        assert len(list((bench.workspace.folder / "nodes").iterdir())) == len(names)
        assert not (bench.workspace.folder / "etc").exists()


def test_the_envelope_has_everything_sorted_and_no_moment_of_export(bench: Bench) -> None:
    furnish(bench)
    envelope = bench.graph.export()
    assert list(envelope) == ["schema", "profiles", "nodes", "edges", "paths", "plans", "events"]
    assert envelope["schema"] == "chronomemory.graph/1"
    assert [node["id"] for node in envelope["nodes"]] == ["ann", "bob", "tea"]
    assert [event["id"] for event in envelope["events"]] == [event.id for event in bench.events.events()]
    assert bench.graph.export() == envelope
    json.dumps(envelope)


def test_a_folder_is_the_same_when_it_is_opened_again(tmp_path: object) -> None:
    folder = f"{tmp_path}/workspace"
    with FileBackedMemoryGraphStore(folder, clock=Clock()) as store:
        store.save(nodes=[Node("a", "k")], edges=[Edge("e", "a", "a", "k")], paths=[MemoryPath("main")])
        store.save_profile(Profile("p", "P"))
        before = store.export()
    with FileBackedMemoryGraphStore(folder) as again:
        assert again.export() == before
        assert again.edges(target="a") == [Edge("e", "a", "a", "k")]
    with Workspace.open(folder) as workspace:
        assert workspace.graph.export() == before


def test_lookups_go_through_no_list(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace.graph.save(
        nodes=[Node("a", "x"), Node("b", "y")], edges=[Edge("e", "a", "b", "k")], profiles=[Profile("p")]
    )

    def never(*_: object) -> list[object]:
        raise AssertionError("everything of a kind was fetched")

    monkeypatch.setattr(LogLook, "_records", never)
    graph = workspace.graph
    assert [node.id for node in graph.nodes("x")] == ["a"]
    assert graph.edges(source="a") == graph.edges(target="b") == graph.edges(kind="k") != []
    assert graph.within("a", 2) == {"a": 0, "b": 1}
    assert graph.components() == [["a", "b"]]
    assert len(workspace.events.events("node.saved")) == 1
    graph.save_node(Node("c", "x"))
    with pytest.raises(AssertionError):
        graph.nodes()


def test_a_batch_is_all_or_nothing(bench: Bench) -> None:
    with pytest.raises(ModelError, match="Node expected"):
        bench.graph.save(nodes=[Node("a", "k"), "no node"])  # type: ignore[list-item]
    assert bench.graph.nodes() == []
    assert bench.events.events() == []


def test_two_unicode_forms_of_an_id_are_one(bench: Bench) -> None:
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    bench.graph.save_node(Node(decomposed, "place"))
    bench.graph.save_node(Node("b", "place"))
    bench.graph.save_edge(Edge("e", composed, "b", "near"))
    assert [node.id for node in bench.graph.nodes()] == ["b", composed]
    for form in (composed, decomposed):
        assert bench.graph.node(form) == Node(composed, "place")
        assert [edge.id for edge in bench.graph.edges(source=form)] == ["e"]
