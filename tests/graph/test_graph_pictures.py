"""Pictures and other tools' formats show the graph as it is."""

from __future__ import annotations

import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import networkx
import pytest
from chronomemory.graph import Edge, InMemoryGraphStore, MemoryEvent, Node, Workspace, pictures

HOSTILE = '</script><script>alert(1)</script>"&\u202e'


def made() -> InMemoryGraphStore:
    graph = InMemoryGraphStore()
    graph.save_node(Node("a", "person", "Anna", data={"age": 40, "tags": ["x"]}, phase="stable"))
    graph.save_node(Node("b", "place", HOSTILE))
    graph.save_edge(Edge("e1", "a", "b", "lives in", data={"since": 2020}))
    graph.save_edge(Edge("e2", "a", "b", "knows"))
    return graph


def data_in(page: str) -> Any:
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.S)
    assert found is not None
    return json.loads(found[1])


def test_networkx_gets_all_of_it() -> None:
    graph = pictures.to_networkx(made())
    assert isinstance(graph, networkx.MultiDiGraph)
    assert graph.nodes["a"] == {
        "kind": "person",
        "label": "Anna",
        "phase": "stable",
        "data": {"age": 40, "tags": ["x"]},
    }
    assert graph.edges["a", "b", "e1"] == {"kind": "lives in", "data": {"since": 2020}}
    assert set(graph["a"]["b"]) == {"e1", "e2"}


def test_without_networkx_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ImportError, match=r"pip install 'chronomemory-rs\[graph\]'"):
        pictures.to_networkx(made())


def test_dot_and_graphml_name_every_node_and_edge() -> None:
    dot = pictures.to_dot(made())
    assert dot.count("->") == 2
    assert "Anna" in dot
    root = ElementTree.fromstring(pictures.to_graphml(made()))
    space = "{http://graphml.graphdrawing.org/xmlns}"
    assert len(list(root.iter(f"{space}node"))) == len(list(root.iter(f"{space}edge"))) == 2


def test_a_page_shows_what_there_is_and_labels_do_no_harm() -> None:
    page = pictures.graph_page(made())
    assert "alert(1)</script>" not in page
    assert json.dumps(data_in(page)).count("Anna") >= 1
    assert page == pictures.graph_page(made())


def test_paths_are_drawn_with_their_ends(tmp_path: Path) -> None:
    with Workspace.create(tmp_path) as workspace:
        runtime = workspace.runtime
        runtime.branch("main")
        runtime.record("main", [MemoryEvent("s1", "said", "2026-05-18T09:00:00Z")])
        runtime.branch("side", "main")
        runtime.abandon("side", "It led nowhere")
        workspace.graph.save_node(Node("a", "person"))
        told = json.dumps(data_in(pictures.paths_page(workspace.graph.paths(), workspace.events.events())))
    assert all(word in told for word in ("main", "side", "s1", "It led nowhere"))
    assert "node.saved" not in told


@pytest.mark.parametrize("verb", [pictures.graph_page, pictures.to_dot, pictures.to_graphml])
def test_nothing_can_be_drawn_as_well(verb: Any) -> None:
    assert verb(InMemoryGraphStore())


def test_names_stay_apart_and_facts_are_no_labels() -> None:
    graph = InMemoryGraphStore()
    graph.save(
        nodes=[Node("a b", "k"), Node("a\u00a0b", "k", "real", data={"label": "mine", "kind": "mine"})]
    )
    assert len({line.split("[")[0] for line in pictures.to_dot(graph).splitlines() if "[" in line}) == 2
    read = networkx.parse_graphml(pictures.to_graphml(graph))
    told = next(marks for _, marks in read.nodes(data=True) if marks.get("label") == "real")
    assert (told["kind"], told["data.label"], told["data.kind"]) == ("k", "mine", "mine")
