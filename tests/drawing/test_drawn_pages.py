"""Pages are whole in themselves, the same for the same graph, and safe whatever the texts say."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import chronomemory.drawing
import pytest
from chronomemory.drawing import Branch, Dot, Line, Step, graph_page, paths_page
from chronomemory.errors import InvalidArgument
from pictures import HOSTILE, Elements, data_of, graph, history

WEB = Path(chronomemory.drawing.__file__).parent / "web"
LONGEST_FILE_LINES = 400


def test_the_same_graph_gives_the_same_page_in_whatever_order_it_comes() -> None:
    dots, lines = graph(120)
    page = graph_page(dots, lines)
    assert page == graph_page(reversed(dots), reversed(lines)) == graph_page(iter(dots), iter(lines))


def test_the_same_paths_give_the_same_page_in_whatever_order_they_come() -> None:
    branches, steps = history()
    assert paths_page(branches, steps) == paths_page(reversed(branches), reversed(steps))


def test_the_data_say_what_was_given() -> None:
    told = data_of(
        graph_page(
            [Dot("a", "state", "Ice", (("melts at", "0 °C"),)), Dot("b", "state", "Water"), Dot("c")],
            [Line("a", "b", "becomes"), Line("a", "c", "contradicts", alarm=True), Line("a", "gone")],
        )
    )
    assert told["kinds"] == [["state", 2, "state"], ["", 1, ""]]
    assert told["lineKinds"] == [["becomes", 1, False], ["contradicts", 1, True]]
    assert told["counts"] == ["1 edge", "1 contradicts"]
    assert told["loose"] == 1
    assert told["dots"][0][:5] == ["a", 0, "Ice", ["Ice"], [["melts at", "0 °C"]]]
    assert [line[:2] for line in told["lines"]] == [[0, 1], [0, 2]]


def test_of_many_dots_those_with_the_most_lines_are_drawn() -> None:
    dots = [Dot(str(number)) for number in range(10)]
    told = data_of(graph_page(dots, [Line("3", "7"), Line("3", "5")], limit=2))
    assert [dot[0] for dot in told["dots"]] == ["3", "5"]
    assert (told["leftOut"], len(told["lines"]), told["loose"]) == (8, 1, 0)


def test_two_dots_of_one_id_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="ids of dots must differ, got 'a' twice"):
        graph_page([Dot("a"), Dot("a")], [])


def hostile_pages(text: str) -> list[str]:
    dots = [Dot(text, text, text, ((text, text),)), Dot("b", label="calm")]
    steps = [Step(text, text, text, text, 1)]
    branch = Branch(text, "b", (text,), False, abandoned_reason=text, compaction=text)
    said = {"title": text, "note": text, "empty": text}
    return [
        graph_page(dots, [Line(text, "b", text, alarm=True)], **said),
        paths_page([branch, Branch("b", merged_into=text)], steps, **said),
    ]


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("which", [0, 1], ids=["graph", "paths"])
def test_no_text_becomes_part_of_the_page(text: str, which: int) -> None:
    page, harmless = hostile_pages(text)[which], hostile_pages("harmless")[which]
    page.encode("utf-8")
    assert Elements(page).tags == Elements(harmless).tags
    assert Elements(page).ids == Elements(harmless).ids
    assert Elements(page).loads == Elements(page).handlers == []
    data = page.split('type="application/json">')[1].split("</script>")[0]
    assert not set(data) & set("<>&\u2028\u2029\u202e\x00")
    data_of(page)
    assert len(page.encode()) < 120_000


@pytest.mark.parametrize("page", [graph_page([], []), paths_page([])], ids=["graph", "paths"])
def test_only_the_pages_own_script_and_style_may_run_and_nothing_is_loaded(page: str) -> None:
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; ")
    assert "unsafe" not in policy[1]
    for tag in ("style", "script"):
        inner = re.search(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        assert inner is not None
        digest = base64.b64encode(hashlib.sha256(inner[1].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy[1]
    assert not re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|fetch\(", page)


def test_the_parts_of_the_pages_are_no_warehouses() -> None:
    lengths = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in WEB.iterdir()}
    assert {"page.html", "style.css", "graph.js", "paths.js"} <= set(lengths)
    assert [name for name, lines in lengths.items() if lines > LONGEST_FILE_LINES] == []
