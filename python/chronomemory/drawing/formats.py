"""A graph in the formats of other tools: Graphviz, GraphML, networkx."""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape, quoteattr

from chronomemory.drawing.page import clean, distinct, excerpt
from chronomemory.drawing.parts import Dot, Line, sorted_by_id, sorted_lines

#: Graphviz makes room for all of a label, and fails if there is none.
_LABEL_LETTERS = 300


def to_dot(dots: Iterable[Dot], lines: Iterable[Line], *, name: str = "graph") -> str:
    """Return the graph in the language of Graphviz; lines to dots that are not there are left out.

    >>> print(to_dot([Dot("a", "state", "Ice"), Dot("b")], [Line("a", "b", "melts into")]), end="")
    digraph "graph" {
      "a" [label="Ice", class="state"];
      "b" [label="b"];
      "a" -> "b" [label="melts into"];
    }
    """
    found, links, names = _parts(dots, lines)
    written = [f"digraph {_quoted(clean(name))} {{"]
    for dot in found:
        marks = [f"label={_label(dot.label or dot.id)}"]
        if dot.kind:
            marks.append(f"class={_label(dot.kind)}")
        written.append(f"  {_quoted(names[dot.id])} [{', '.join(marks)}];")
    for line in links:
        marks = [f"label={_label(line.kind)}"] if line.kind else []
        if line.alarm:
            marks.append("style=dashed")
        attributes = f" [{', '.join(marks)}]" if marks else ""
        written.append(f"  {_quoted(names[line.source])} -> {_quoted(names[line.target])}{attributes};")
    return "\n".join((*written, "}\n"))


def to_graphml(dots: Iterable[Dot], lines: Iterable[Line]) -> str:
    """Return the graph as GraphML; facts are attributes. Two dots with one id are an ``InvalidArgument``."""
    found, links, names = _parts(dots, lines)
    facts = distinct(fact for dot in found for fact, _ in dot.facts)
    # A fact that is called as a label or a kind is must not be taken for it.
    facts |= {fact: f"data.{name}" for fact, name in facts.items() if name in ("label", "kind")}
    fact_keys = {fact: f"f{number}" for number, fact in enumerate(sorted(facts))}
    written = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">',
        *(
            _key(*key)
            for key in (("label", "node", "label"), ("kind", "node", "kind"), ("line", "edge", "kind"))
        ),
        _key("weight", "edge", "weight", "double"),
        _key("alarm", "edge", "alarm", "boolean"),
        *(_key(key, "node", facts[fact]) for fact, key in fact_keys.items()),
        '  <graph edgedefault="directed">',
    ]
    for dot in found:
        values = {"label": dot.label, "kind": dot.kind} | {
            fact_keys[fact]: value for fact, value in dot.facts
        }
        written += [f"    <node id={_attribute(names[dot.id])}>", *_data(values), "    </node>"]
    for number, line in enumerate(links):
        ends = f"source={_attribute(names[line.source])} target={_attribute(names[line.target])}"
        alarm = {"alarm": "true"} if line.alarm else {}
        values = {"line": line.kind, "weight": repr(float(line.weight))} | alarm
        written += [f'    <edge id="e{number}" {ends}>', *_data(values), "    </edge>"]
    return "\n".join((*written, "  </graph>", "</graphml>\n"))


def _parts(dots: Iterable[Dot], lines: Iterable[Line]) -> tuple[list[Dot], list[Line], dict[str, str]]:
    found = sorted_by_id(dots, "dots")
    names = distinct(dot.id for dot in found)
    links = [line for line in sorted_lines(lines) if line.source in names and line.target in names]
    return found, links, names


def _quoted(name: str) -> str:
    # Graphviz keeps a pair of backslashes as it is, so names stay apart; a single one could end the string.
    doubled = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\u2424")
    return f'"{doubled}"'


def _label(text: str) -> str:
    # In a label a backslash begins an escape, and an ampersand the name of a sign.
    signs = str.maketrans({"&": "&amp;", "\\": "\\\\", '"': '\\"', "\n": "\\n"})
    return f'"{excerpt(text, _LABEL_LETTERS).translate(signs)}"'


def _attribute(text: str) -> str:
    return quoteattr(text, {"\n": "&#10;", "\t": "&#9;"})


def _key(key: str, of: str, name: str, kind: str = "string") -> str:
    return f'  <key id="{key}" for="{of}" attr.name={_attribute(name)} attr.type="{kind}"/>'


def _data(values: dict[str, str]) -> list[str]:
    return [
        f'      <data key="{key}">{escape(clean(value))}</data>' for key, value in values.items() if value
    ]
