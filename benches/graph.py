"""Measures how fast a graph workspace is filled, asked and exported, beside networkx and sqlite.

`python -m benches.graph [NODES EDGES]`. The three take turns at each question, and every answer is checked
against the others. Sqlite has an index on kind, source and target, and its file is as durable as it is by
default; networkx keeps nothing on disk. Times in brackets are those of a core: on a machine that others
use, they say more.
"""

from __future__ import annotations

import gc
import json
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
from chronomemory.graph import Workspace
from chronomemory.graph.view import View

KINDS = 100
ASKED = 300
ROUNDS = 3

Ask = Callable[[str], Any]


def fixture(nodes: int, edges: int) -> dict[str, Any]:
    """A graph whose edges lie at random."""
    chance = random.Random(7)
    return {
        "nodes": [
            {
                "id": f"n{number:06d}",
                "kind": f"k{number % KINDS:02d}",
                "label": f"node {number}",
                "data": {"n": number},
            }
            for number in range(nodes)
        ],
        "edges": [
            {
                "id": f"e{number:06d}",
                "source": f"n{chance.randrange(nodes):06d}",
                "target": f"n{chance.randrange(nodes):06d}",
                "kind": "knows",
                "data": {"w": number % 10},
            }
            for number in range(edges)
        ],
    }


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.perf_counter()
    done = work()
    return time.perf_counter() - begin, done


def weighed(work: Callable[[], Any]) -> tuple[str, Any]:
    """Say how long something large took, and how much of that a core was at work for it."""
    # What the others hold in memory must not make the collector slower for whoever comes next.
    gc.collect()
    gc.freeze()
    begin = time.process_time()
    taken, done = timed(work)
    return f"{taken:,.1f} ({time.process_time() - begin:,.1f}) s", done


def tell(what: str, *figures: str) -> None:
    print(f"{what:34}" + "".join(f"{figure:>16}" for figure in figures), flush=True)


def seconds(taken: float) -> str:
    return f"{taken:,.2f} s"


def micros(taken: float) -> str:
    return f"{taken * 1e6:,.0f} µs"


class WatchedView:
    """Adds up how long a view takes to follow."""

    def __init__(self) -> None:
        self.taken = 0.0
        follow = View.follow

        def watched(view: View, *args: Any) -> None:
            taken, _ = timed(lambda: follow(view, *args))
            self.taken += taken

        View.follow = watched  # type: ignore[method-assign]


def networkx_of(given: dict[str, Any]) -> nx.MultiDiGraph:
    graph = nx.MultiDiGraph()
    graph.add_nodes_from((node["id"], {**node}) for node in given["nodes"])
    graph.add_edges_from((edge["source"], edge["target"], edge["id"], {**edge}) for edge in given["edges"])
    return graph


def sqlite_of(given: dict[str, Any], path: Path) -> sqlite3.Connection:
    base = sqlite3.connect(path)
    base.executescript(
        "create table nodes (id text primary key, kind text, label text, data text);"
        "create table edges (id text primary key, source text, target text, kind text, data text);"
        "create index by_kind on nodes (kind); create index by_source on edges (source);"
        "create index by_target on edges (target);"
    )
    nodes = ((n["id"], n["kind"], n["label"], json.dumps(n["data"])) for n in given["nodes"])
    edges = ((e["id"], e["source"], e["target"], e["kind"], json.dumps(e["data"])) for e in given["edges"])
    base.executemany("insert into nodes values (?, ?, ?, ?)", nodes)
    base.executemany("insert into edges values (?, ?, ?, ?, ?)", edges)
    base.commit()
    return base


NEAR = (
    "with near(id) as (select :id union select target from edges where source = :id"
    " union select source from edges where target = :id)"
    " select id from near union select target from edges join near on source = near.id"
    " union select source from edges join near on target = near.id"
)


def questions(
    workspace: Workspace, graph: nx.MultiDiGraph, base: sqlite3.Connection
) -> dict[str, tuple[str, Ask, Ask, Ask]]:
    """What is asked of whom: each gives the ids that it finds."""
    ours, both = workspace.graph, graph.to_undirected(as_view=True)

    def rows(query: str) -> Ask:
        return lambda key: sorted(row[0] for row in base.execute(query, (key,)).fetchall())

    return {
        "nodes by kind": (
            "kind",
            lambda kind: [node.id for node in ours.nodes(kind)],
            lambda kind: [name for name, data in graph.nodes(data=True) if data["kind"] == kind],
            rows("select id, kind, label, data from nodes where kind = ?"),
        ),
        "edges by source": (
            "node",
            lambda name: [edge.id for edge in ours.edges(source=name)],
            lambda name: sorted(key for _, _, key in graph.out_edges(name, keys=True)),
            rows("select id, source, target, kind, data from edges where source = ?"),
        ),
        "edges by target": (
            "node",
            lambda name: [edge.id for edge in ours.edges(target=name)],
            lambda name: sorted(key for _, _, key in graph.in_edges(name, keys=True)),
            rows("select id, source, target, kind, data from edges where target = ?"),
        ),
        "within two hops, ids": (
            "node",
            lambda name: sorted(ours.within(name, 2)),
            lambda name: sorted(nx.single_source_shortest_path_length(both, name, cutoff=2)),
            lambda name: sorted(row[0] for row in base.execute(NEAR, {"id": name})),
        ),
    }


def measure(nodes: int, edges: int, folder: Path) -> None:
    given = fixture(nodes, edges)
    print(f"{nodes:,} nodes, {edges:,} edges\n")
    tell("", "chronomemory", "networkx", "sqlite")
    view = WatchedView()
    workspace = Workspace.create(folder / "workspace")
    taken, _ = weighed(lambda: workspace.import_graph(given))
    in_memory, graph = weighed(lambda: networkx_of(given))
    in_file, base = weighed(lambda: sqlite_of(given, folder / "graph.sqlite"))
    tell("import", taken, in_memory, in_file)
    tell("  of which the files of the view", seconds(view.taken))
    first, _ = weighed(lambda: workspace.graph.within("n000000", 1))
    tell("the first walk, makes indexes", first)
    chance = random.Random(8)
    for what, (of, *asks) in questions(workspace, graph, base).items():
        number = ASKED if of == "node" else ASKED // 10
        keys = [
            f"n{chance.randrange(nodes):06d}" if of == "node" else f"k{chance.randrange(KINDS):02d}"
            for _ in range(number)
        ]
        spent: list[list[float]] = [[], [], []]
        workspace.graph.edges(source="nobody")
        for key in keys * ROUNDS:
            answers = []
            for place, ask in enumerate(asks):
                one, answer = timed(lambda ask=ask, key=key: ask(key))  # type: ignore[misc]
                spent[place].append(one)
                answers.append(answer)
            assert answers[0] == answers[1] == answers[2], (what, key)
        tell(f"{what}, median", *(micros(statistics.median(each)) for each in spent))
    out, envelope = weighed(workspace.export_graph)
    theirs, _ = weighed(lambda: json.dumps(nx.node_link_data(graph, edges="edges")))
    rows, _ = weighed(
        lambda: json.dumps([base.execute(f"select * from {name}").fetchall() for name in ("nodes", "edges")])
    )
    tell("export as JSON", out, theirs, rows)
    assert len(json.loads(envelope)["edges"]) == edges
    workspace.close()
    base.close()
    again, opened = weighed(lambda: Workspace.open(folder / "workspace"))
    assert opened.graph.node("n000000") is not None
    opened.close()
    tell("open it again", again)


if __name__ == "__main__":
    size = [int(word) for word in sys.argv[1:3]] if len(sys.argv) > 2 else [100_000, 300_000]
    with tempfile.TemporaryDirectory() as place:
        measure(*size, Path(place))
