"""Other tools read what is written for them, whatever the texts say."""

from __future__ import annotations

import shutil
import subprocess
from xml.etree import ElementTree

import pytest
from chronomemory.drawing import Dot, Line, to_dot, to_graphml
from pictures import HOSTILE, graph

GRAPHML = "{http://graphml.graphdrawing.org/xmlns}"
ODD = {**HOSTILE, "ends with a backslash": "a\\", "is quoted": 'say "\\" now\nand then', "is a word": "node"}


def odd_graph() -> tuple[list[Dot], list[Line]]:
    dots = [Dot(text, name, text, ((name, text),)) for name, text in ODD.items()]
    return dots, [Line(text, "node", text) for text in ODD.values()]


def test_the_order_in_which_a_graph_comes_does_not_matter() -> None:
    dots, lines = graph(50)
    assert to_dot(dots, lines) == to_dot(dots[::-1], lines[::-1])
    assert to_graphml(dots, lines) == to_graphml(dots[::-1], lines[::-1])


def test_lines_to_nothing_are_left_out() -> None:
    assert to_dot([Dot("a")], [Line("a", "b")]) == 'digraph "graph" {\n  "a" [label="a"];\n}\n'
    assert "<edge" not in to_graphml([Dot("a")], [Line("a", "b")])


def test_quotes_backslashes_and_entities_are_escaped_for_graphviz() -> None:
    written = to_dot([Dot('a"\\', label='say "x\\n"\n&amp;')], [])
    assert written.splitlines()[1] == r"""  "a\"\\" [label="say \"x\\n\"\n&amp;amp;"];"""


@pytest.mark.skipif(shutil.which("dot") is None, reason="there is no Graphviz here")
def test_graphviz_reads_it() -> None:
    dots, lines = odd_graph()
    done = subprocess.run(
        ["dot", "-Tplain"], input=to_dot(dots, lines), capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert sum(line.startswith("node ") for line in done.stdout.splitlines()) == len(dots)


def test_graphml_is_xml_with_everything_in_it() -> None:
    dots, lines = odd_graph()
    root = ElementTree.fromstring(to_graphml(dots, lines).encode("utf-8"))
    assert (
        len(root.findall(f".//{GRAPHML}node"))
        == len(dots)
        == len({one.get("id") for one in root.iter(f"{GRAPHML}node")})
    )
    assert len(root.findall(f".//{GRAPHML}edge")) == len(lines)
    said = {one.text for one in root.iter(f"{GRAPHML}data")}
    assert HOSTILE["is a script"] in said
    assert HOSTILE["is an entity"] in said
    keys = {one.get("id") for one in root.iter(f"{GRAPHML}key")}
    assert {one.get("key") for one in root.iter(f"{GRAPHML}data")} <= keys


def test_networkx_reads_the_graphml() -> None:
    networkx = pytest.importorskip("networkx")
    dots, lines = graph(30)
    read = networkx.parse_graphml(to_graphml(dots, lines), force_multigraph=True)
    assert set(read.nodes) == {dot.id for dot in dots}
    assert read.nodes["node:3"]["label"] == "Label of number 3"
    assert read.number_of_edges() == len(lines)
