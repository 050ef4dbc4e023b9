"""A graph as a page: communities apart, kinds by colour and shape, and whatever is asked about a dot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from chronomemory.drawing.layout import lay_out
from chronomemory.drawing.page import TITLE_LETTERS, by_count, clean, counted, excerpt, label_lines, page_of
from chronomemory.drawing.parts import Dot, Line, sorted_by_id, sorted_lines

#: So many dots are laid out in a few seconds and can still be distinguished.
_MOST_DOTS = 5000
_SCRIPTS = ("shell.js", "view.js", "picture.js", "graph.js")
_FACT_LETTERS = 1000
#: The smallest dot, and how much larger the largest is, in pixels.
_DOT_PIXELS = 4.5
_GROWTH_PIXELS = 7.0


def graph_page(
    dots: Iterable[Dot],
    lines: Iterable[Line],
    *,
    title: str = "Graph",
    note: str = "",
    empty: str = "There is nothing to draw yet.",
    dot_noun: str = "node",
    line_noun: str = "edge",
    directed: bool = True,
    limit: int = _MOST_DOTS,
) -> str:
    """Return the page; of more than ``limit`` dots the best linked are drawn, and the others are counted."""
    found, links = sorted_by_id(dots, "dots"), sorted_lines(lines)
    known = {dot.id for dot in found}
    whole = [line for line in links if line.source in known and line.target in known]
    degree = Counter(end for line in whole for end in {line.source, line.target})
    ranked = sorted(found, key=lambda dot: (-degree[dot.id], dot.id))
    kept = sorted(ranked[:limit], key=lambda dot: dot.id)
    data = _data(kept, whole, len(found) - len(kept), clean(line_noun))
    data |= {
        "title": excerpt(title, TITLE_LETTERS),
        "dotNoun": clean(dot_noun),
        "lineNoun": clean(line_noun),
        "directed": directed,
        "empty": clean(empty),
        "loose": len(links) - len(whole),
    }
    return page_of("graph.html", _SCRIPTS, data, {"__HEADING__": title, "__NOTE__": note})


def _data(dots: list[Dot], links: list[Line], left_out: int, line_noun: str) -> dict[str, Any]:
    number = {dot.id: place for place, dot in enumerate(dots)}
    lines = [line for line in links if line.source in number and line.target in number]
    pairs = [(number[line.source], number[line.target]) for line in lines]
    layout = lay_out([dot.kind for dot in dots], pairs)
    degree = Counter(end for pair in pairs for end in set(pair))
    kinds = by_count(dot.kind for dot in dots)
    line_kinds = by_count((line.alarm, line.kind) for line in lines)
    plain = sum(not line.alarm for line in lines)
    alarms = [counted(count, excerpt(kind, 80)) for (alarm, kind), count in line_kinds if alarm]
    kind_number = {kind: place for place, (kind, _) in enumerate(kinds)}
    line_number = {kind: place for place, (kind, _) in enumerate(line_kinds)}
    most = max(degree.values(), default=1)
    weights = [
        (degree[place] / most) ** 0.5 if dot.weight is None else dot.weight for place, dot in enumerate(dots)
    ]
    return {
        "kinds": [[excerpt(kind, 80), count, " ".join(label_lines(kind, lines=1))] for kind, count in kinds],
        "lineKinds": [[excerpt(kind, 80), count, alarm] for (alarm, kind), count in line_kinds],
        "counts": [counted(plain, line_noun), *alarms],
        "dots": [
            [
                excerpt(dot.id, _FACT_LETTERS),
                kind_number[dot.kind],
                excerpt(dot.label),
                label_lines(dot.label or dot.id),
                [[excerpt(name, 80), excerpt(value, _FACT_LETTERS)] for name, value in dot.facts],
                *layout.places[place],
                layout.community[place],
                round(_DOT_PIXELS + _GROWTH_PIXELS * min(1.0, max(0.0, weights[place])), 1),
            ]
            for place, dot in enumerate(dots)
        ],
        "lines": [
            [
                *pair,
                line_number[line.alarm, line.kind],
                round(min(1.0, max(0.0, line.weight)), 3),
                int(line.alarm),
            ]
            for pair, line in zip(pairs, lines, strict=True)
        ],
        "circles": layout.circles,
        "leftOut": left_out,
    }
