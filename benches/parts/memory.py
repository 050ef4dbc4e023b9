"""Measures the faces of the store: blocks, graphs, episodes, pages, scopes and the MCP server."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from itertools import count as numbers
from pathlib import Path
from typing import Any

from benches.data import fields, matrix, questions, texts
from benches.harness import Job, Work, dataset, task
from benches.keep import batches, open_keep

TOP = 20
QUESTIONS = 20

# Blocks.


def _memory(folder: Path, known: dict[str, Any] | None = None) -> Any:
    """Open a memory whose embedder knows the vectors of some texts, and gives all others the same."""
    from chronomemory.blocks import Memory  # noqa: PLC0415
    from chronomemory.embedders import CallableEmbedder  # noqa: PLC0415

    query = matrix(2, 1).sum(axis=0)
    return Memory(
        folder,
        embedder=CallableEmbedder("mock", lambda asked: [(known or {}).get(text, query) for text in asked]),
    )


@dataset("blocks")
def fill(job: Job) -> None:
    import numpy as np  # noqa: PLC0415

    rows = matrix(job.size, 1)
    if job.family == "numpy":
        np.save(job.dataset("blocks").with_suffix(".npy"), rows)
        return
    from chronomemory.blocks import content_hash, sync  # noqa: PLC0415
    from chronomemory.blocks.storage.blocks import new_block  # noqa: PLC0415

    memory, given = _memory(job.dataset("blocks")), list(dict.fromkeys(texts(job.size)))
    for start in range(0, len(given), 10_000):
        with memory.blocks.begin() as conn:
            for text, row in zip(given[start : start + 10_000], rows[start:], strict=False):
                name = content_hash(text)
                conn.put(new_block(name, text, "knowledge", "bench", status="active"))
                sync.update_block_scoring(conn, name, embedding=row, embedding_model="mock")
    memory.recall(given[0])
    memory.close()


def _recall(job: Job, ask: Callable[[Any, str], Any]) -> Work:
    asked = [f"What did we say about {words}?" for words in questions(job.size, 2, QUESTIONS)]
    job.count = len(asked)
    if job.family == "numpy":
        import numpy as np  # noqa: PLC0415

        rows, query = np.load(job.dataset("blocks").with_suffix(".npy")), matrix(2, 1).sum(axis=0)

        def product() -> None:
            for _ in asked:
                scores = rows @ query
                best = np.argpartition(-scores, TOP)[:TOP]
                best[np.argsort(-scores[best])]

        return product
    memory = _memory(job.dataset("blocks"))
    job.stack.callback(memory.close)

    def work() -> None:
        for question in asked:
            assert ask(memory, question)

    return work


@task("memory", "recall", "ours", "numpy", sizes="blocks", dataset="blocks")
def recall(job: Job) -> Work:
    """Compared with NumPy's product of the same vectors, which knows no words, links or time."""
    return _recall(job, lambda memory, question: memory.recall(question))


@task("memory", "frame", "ours", sizes="blocks", dataset="blocks")
def frame(job: Job) -> Work:
    return _recall(job, lambda memory, question: memory.frame("task", question))


@task("memory", "open and first recall", "ours", sizes="blocks", dataset="blocks", fresh=True)
def first_recall(job: Job) -> Work:
    _memory(job.folder / "other").close()
    (asked,) = questions(job.size, 2, 1)

    def work() -> bool:
        memory = _memory(job.dataset("blocks"))
        job.finish = memory.close
        return bool(memory.recall(asked))

    return work


def _learn(job: Job, *, consolidate: bool) -> Work:
    given = list(texts(job.scaled(1_000)))
    known = dict(zip(given, matrix(len(given), 3), strict=True))
    memory = _memory(job.folder / "memory", known)
    job.finish = memory.close

    def learn() -> None:
        for text in given:
            memory.learn(text)

    if consolidate:
        learn()
        return lambda: memory.consolidate() and None
    return learn


for _consolidate, _name in ((False, "learn"), (True, "consolidate")):
    task("memory", f"{_name} blocks", "ours", fresh=True, unit="µs", rounds=3)(
        lambda job, _consolidate=_consolidate: _learn(job, consolidate=_consolidate)
    )


# Graphs.


def _graph(job: Job) -> dict[str, Any]:
    chance, nodes = random.Random(7), job.scaled(5_000)
    job.count = 1

    def node() -> str:
        return f"n{chance.randrange(nodes):06}"

    return {
        "nodes": [
            {"id": f"n{n:06}", "kind": f"k{n % 97}", "label": f"node {n}", "data": {}} for n in range(nodes)
        ],
        "edges": [
            {"id": f"e{n:06}", "source": node(), "target": node(), "kind": "knows", "data": {}}
            for n in range(3 * nodes)
        ],
    }


HOPS = (
    "with near(id) as (select :id union select target from edges where source = :id union"
    " select source from edges where target = :id) select id from near union select target from edges"
    " join near on source = near.id union select source from edges join near on target = near.id"
)


def _workspace(job: Job, given: dict[str, Any]) -> tuple[Work, Callable[[str], Any], Callable[[str], Any]]:
    """Return how a graph is imported, the edges of a node, and the nodes within two hops."""
    if job.family == "ours":
        from chronomemory.graph import Workspace  # noqa: PLC0415

        made = job.enter(Workspace.create(job.folder / "workspace"))
        graph = made.graph
        return (
            lambda: made.import_graph(given) and None,
            lambda name: [edge.id for edge in graph.edges(source=name)],
            lambda name: graph.within(name, 2),
        )
    if job.family == "networkx":
        import networkx as nx  # noqa: PLC0415

        net = nx.MultiDiGraph()

        def add() -> None:
            net.add_nodes_from((node["id"], {**node}) for node in given["nodes"])
            net.add_edges_from((one["source"], one["target"], one["id"], {**one}) for one in given["edges"])

        both = net.to_undirected(as_view=True)
        return (
            add,
            lambda name: [key for _, _, key in net.out_edges(name, keys=True)],
            lambda name: nx.single_source_shortest_path_length(both, name, cutoff=2),
        )
    base = sqlite3.connect(job.folder / "graph.sqlite")
    base.executescript(
        "create table nodes (id text primary key, kind text, label text, data text);"
        "create table edges (id text primary key, source text, target text, kind text, data text);"
        "create index by_source on edges (source); create index by_target on edges (target);"
    )

    def insert() -> None:
        for table in ("nodes", "edges"):
            rows = [[json.dumps(v) if k == "data" else v for k, v in row.items()] for row in given[table]]
            base.executemany(f"insert into {table} values ({','.join('?' * len(rows[0]))})", rows)
        base.commit()

    asked = "select id from edges where source = ?"
    return (
        insert,
        lambda name: [row[0] for row in base.execute(asked, (name,))],
        lambda name: [row[0] for row in base.execute(HOPS, {"id": name})],
    )


GRAPHS = ("ours", "networkx", "sqlite")


@task("memory", "graph: import", *GRAPHS, fresh=True, unit="s", rounds=3)
def graph_import(job: Job) -> Work:
    """networkx keeps nothing on disk; sqlite syncs once."""
    return _workspace(job, _graph(job))[0]


def _walk(job: Job, *, hops: bool) -> Work:
    given = _graph(job)
    fill, edges, near = _workspace(job, given)
    fill()
    ask = near if hops else edges
    names = [node["id"] for node in given["nodes"][:: max(1, len(given["nodes"]) // 200)]]
    job.count = len(names)
    return lambda: [len(ask(name)) for name in names]


@task("memory", "graph: edges of a node", *GRAPHS, unit="µs")
def graph_edges(job: Job) -> Work:
    return _walk(job, hops=False)


@task("memory", "graph: within two hops", *GRAPHS, unit="µs")
def graph_hops(job: Job) -> Work:
    return _walk(job, hops=True)


# Episodes and pages.


def _episodes(job: Job, what: str) -> Work:
    from chronomemory.episodes import ChronoMemoryStore, Episode  # noqa: PLC0415

    store = open_keep("ours", job.folder / "store").store
    job.finish = store.close
    kept, start = ChronoMemoryStore(store).episodes, datetime(2026, 1, 1, tzinfo=timezone.utc)
    names: dict[str, Any] = {"user": "ann", "session": "s1", "agent": "helper"}
    given = [
        Episode(id=f"e{n}", content=text, timestamp=start + timedelta(seconds=n), source_node="chat", **names)
        for n, text in enumerate(texts(job.scaled(5_000)))
    ]
    if what == "put_many":
        return lambda: kept.put_many(given, **names)
    if what == "put":

        def put() -> None:
            for one in given:
                kept.put(one, **names)

        return put
    kept.put_many(given, **names)
    kept.recent("ann", limit=10)
    job.count = 200
    return lambda: [len(kept.recent("ann", limit=10)) for _ in range(200)]


for _name in ("put", "put_many", "recent"):
    task("memory", f"episodes: {_name}", "ours", fresh=True, unit="µs", rounds=3)(
        lambda job, _name=_name: _episodes(job, _name)
    )


@task("memory", "pages: append", "ours", "limit", unit="µs", rounds=3)
def append(job: Job) -> Work:
    """The limit writes, syncs and renames a file of the size of the page, and nothing else."""
    if job.system == "limit":
        draft, turn = job.folder / "draft", numbers()

        def write() -> None:
            with draft.open("wb") as file:
                file.write(b"x" * 4_000)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(job.folder / f"page-{next(turn)}.md")

    else:
        from chronomemory.pages import Pages  # noqa: PLC0415

        pages = job.enter(Pages(job.folder / "project"))
        entries = texts(1_000_000)
        names = [pages.create(f"topic-{number}", "A page") for number in range(20)]
        turn = numbers()

        def write() -> None:
            pages.append(names[next(turn) % 20], next(entries), ["late"])

    def work() -> None:
        for _ in range(20):
            write()

    job.count = 20
    return work


# Scopes.


@dataset("scopes")
def scopes(job: Job) -> None:
    """A tenth of the records is shared; the others belong to users of ten records each."""
    for place in ("alone", "many"):
        keep = open_keep("ours", job.dataset("scopes") / place)
        for batch in batches(job.size // 10):
            keep.put_many(batch)
        for user in range(job.size // 10 if place == "many" else 8):
            handle = keep.store.scoped(user=f"user-{user}")
            handle.upsert_many({**fields(at), "id": handle.id(f"own-{user}-{at}")} for at in range(9))
        keep.store.search("chain")
        keep.close()


ASKS: dict[str, Callable[[Any], Any]] = {
    "search": lambda handle: handle.search("writer 12 restart"),
    "query": lambda handle: handle.query(where={"data.score": {"gte": 99}}, limit=100),
}


def _small_scope(job: Job, what: str) -> Work:
    """Among many others, and alone with the shared records: others must not slow a user down."""
    keep = open_keep("ours", job.dataset("scopes") / (job.setting or "many"), verify="quick")
    job.stack.callback(keep.close)
    handle, ask = keep.store.scoped(user="user-7"), ASKS[what]
    return lambda: ask(handle) and None


for _name in ASKS:
    task("memory", f"{_name} of a user of nine", "ours", "ours/alone", sizes="largest", dataset="scopes")(
        lambda job, _name=_name: _small_scope(job, _name)
    )

# The MCP server.

BARE = """
import gc
gc.disable()
from mcp.server import MCPServer
gc.enable()
server = MCPServer("bare")
@server.tool()
def search_memories(query: str) -> dict[str, str]:
    return {"query": query}
server.run("stdio")
"""
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
FRAMES = (
    {"id": 1, "method": "initialize", "params": HELLO},
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/call", "params": {"name": "search_memories", "arguments": {"query": "word"}}},
)


@task(
    "memory",
    "MCP server: start and first answer",
    "ours",
    "limit",
    sizes="largest",
    dataset="store",
    fresh=True,
)
def mcp_server(job: Job) -> Work:
    """The limit is a server that is nothing but the SDK and one tool."""
    ours = ["-m", "chronomemory", "mcp", "--structured", "--project", str(job.dataset("store"))]
    command = [sys.executable, *(["-c", BARE] if job.system == "limit" else ours)]

    def work() -> None:
        pipe = subprocess.PIPE
        with subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
        ) as server:
            assert server.stdin is not None and server.stdout is not None
            for frame in FRAMES:
                server.stdin.write(json.dumps({"jsonrpc": "2.0", **frame}) + "\n")
                server.stdin.flush()
                while "id" in frame and json.loads(server.stdout.readline()).get("id") != frame["id"]:
                    pass
            server.stdin.close()

    return work
