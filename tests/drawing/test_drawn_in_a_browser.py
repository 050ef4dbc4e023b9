"""A real browser draws the pages, without a complaint and whatever the labels say."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

import pytest
from chronomemory.drawing import Dot, Line, graph_page, paths_page
from pictures import BROWSER, HOSTILE, graph, history, rendered

pytestmark = pytest.mark.skipif(BROWSER is None, reason="there is no Chromium here")


def body_of(dom: str) -> dict[str, str]:
    """Return what the page says of itself."""
    found = re.search(r"<body ([^>]*)>", dom)
    assert found is not None
    return dict(re.findall(r'data-([a-z]+)="([^"]*)"', found[1]))


def test_a_graph_of_a_thousand_is_drawn_found_and_told(tmp_path: Path) -> None:
    dots, lines = graph(1_000)
    ask = f"#find={quote('number 77')}&dot={quote('node:77')}"
    dom = rendered(graph_page(dots, lines, title="A thousand"), tmp_path, ask=ask)
    told = body_of(dom)
    assert (told["dots"], told["lines"], told["drawn"]) == ("1000", "1000", "true")
    assert 5 <= int(told["communities"]) <= 200
    assert int(told["labels"]) >= 1
    assert (told["found"], told["chosen"]) == ("11", "node:77")
    assert dom.count('<input type="checkbox">') == 5
    about = dom.split('<aside id="about"')[1].split("</aside>")[0]
    assert "hidden" not in about.split(">")[0]
    assert "Label of number 77" in about
    assert about.count("<li>") == sum("node:77" in (line.source, line.target) for line in lines)
    # The list says the same as text, here what was found.
    assert dom.split('<ul id="list"')[1].split("</ul>")[0].count("<button") == 11


def test_hostile_labels_do_no_harm_on_a_phone(tmp_path: Path) -> None:
    dots = [
        Dot(f"{number}", name, text, ((text, text),)) for number, (name, text) in enumerate(HOSTILE.items())
    ]
    lines = [Line("0", dot.id, dot.label) for dot in dots]
    dom = rendered(graph_page(dots, lines, title="Calm"), tmp_path, size="500,844", ask="#dot=0")
    assert body_of(dom)["drawn"] == "true"
    assert body_of(dom)["chosen"] == "0"
    assert int(body_of(dom)["labels"]) >= 4
    assert "<title>Calm</title>" in dom
    assert dom.count("<script") == 2
    assert "<img" not in dom
    assert "&lt;/script&gt;&lt;script&gt;" in dom


def test_paths_are_drawn_with_their_lanes(tmp_path: Path) -> None:
    dom = rendered(paths_page(*history()), tmp_path, ask="#find=abandoned")
    told = body_of(dom)
    assert (told["paths"], told["rows"], told["columns"], told["drawn"]) == ("4", "15", "3", "true")
    assert told["found"] == "2"
    lanes = dom.split('<svg id="lanes"')[1].split("</svg>")[0]
    # A line for each path, the curve of a merge, and the cross of an end.
    assert lanes.count("<path") >= 6
    assert lanes.count("<circle") >= 8
    rows = dom.split('<ol id="rows"')[1].split("</ol>")[0]
    assert rows.count("<li") == 15
    assert "abandoned: too slow" in rows
    assert "merged into main" in rows
    assert "compacted: 2 into 1" in rows
