"""No verb of a handle, memory, folder or graph tells ann whether others use the store, nor what they hold."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from chronomemory import Memory
from chronomemory.blocks import Frame, ScoringWeights
from chronomemory.graph import Edge, MemoryEvent, Node, Workspace
from chronomemory.pages import Pages
from chronomemory.selection import StoreView
from chronomemory.store import ScopedStore
from chronomemory.vectors import Vectors
from twin_worlds import ANN, DIM, NOW, SECRET, WORDS, World, told_in_both

#: Names that are no questions: attributes of the handle, and a conversion that reads no record.
ATTRIBUTES = {"codes", "engine", "scope", "shared", "vectors"}


def records(world: World) -> None:
    """Write, change and ask for records and embeddings by every verb of a handle."""
    ann, store, step = world.ann, world.store, world.step
    step("share", lambda: store.upsert({"id": "SHARED-1", "label": "the office opens at nine"}))
    for number, words in enumerate(WORDS):
        data = {"topic": "tea", "previous": f"A-{number - 1}", "speaker": "Ann", "time": "2026-05-02"}
        row = {"id": f"A-{number}", "label": words, "data": data, "confidence": (number + 1) / 5}
        step(f"upsert {number}", lambda row=row: ann.upsert(row))
        vector = [np.cos(number), np.sin(number), 0.5, 0.2]
        step(
            f"attach {number}", lambda number=number, vector=vector: ann.vectors.attach(f"A-{number}", vector)
        )
    step("if_new", lambda: ann.upsert({"id": "A-1", "label": "again"}, if_new=True))
    step("upsert_many", lambda: ann.upsert_many([{"id": f"B-{n}", "label": WORDS[n]} for n in range(3)]))
    step("attach_many", lambda: ann.vectors.attach_many(["B-0", "B-1"], np.eye(2, DIM)))
    step("attach_tokens", lambda: ann.vectors.attach_tokens("A-1", np.eye(3, DIM)))
    step(
        "attach_tokens_many",
        lambda: ann.vectors.attach_tokens_many(["A-2", "B-1"], [np.eye(2, DIM), np.ones((1, DIM))]),
    )
    step("attach nobody", lambda: ann.vectors.attach("NOBODY", [1.0, 0.0, 0.0, 0.0]))
    step("attach other length", lambda: ann.vectors.attach("A-1", [1.0]))
    step("detach", lambda: [ann.vectors.detach("A-3"), ann.vectors.detach("NOBODY")])
    step("embedding", lambda: [ann.vectors.get(name) for name in ("A-1", "A-3", "SEED", "NOBODY")])
    step("embedding unknown space", lambda: ann.vectors.get("A-1", space="none"))
    step("matrix", ann.vectors.matrix)
    step("matrix of tokens", lambda: ann.vectors.matrix(space="tokens"))
    step("matrix of the store", store.vectors.matrix)
    step("spaces", ann.vectors.spaces)
    step("spaces of the store", store.vectors.spaces)
    step("id", lambda: ann.id("X"))
    step("known", lambda: ann.known)
    step("without", lambda: repr(store.scoped(**ANN, session="s1").without("session")))
    step("get", lambda: [ann.get("A-1"), ann.get("NOBODY"), ann.get("SHARED-1")])
    step("get_many", lambda: ann.get_many(["B-1", "NOBODY", "A-2"]))
    step("record_count", ann.record_count)
    step("count", lambda: [ann.count(by="kind"), ann.count(by="kind", status=None, faces=True)])
    step("update", lambda: ann.update("A-1", confidence=0.4, data={"cups": 2}))
    step("update nobody", lambda: ann.update("NOBODY", label="x"))
    step("update shared", lambda: ann.update("SHARED-1", label="x"))
    step("update other version", lambda: ann.update("A-1", label="x", if_version="0" * 16))
    step("upsert new", lambda: ann.upsert({"id": "A-1"}, if_new=True))
    step("query", lambda: ann.query(status=None, faces=True))
    for order in ("created", "-updated", "happened", "confidence", "id", "-id", "data.topic"):
        step(f"pages by {order}", lambda order=order: paged(ann, order))
    step("query where", lambda: ann.query(where={"data.topic": "tea"}, explain=True, limit=2))
    step("query bad", lambda: ann.query(order_by="data.none"))
    step("stream", lambda: ann.stream(status=None))
    step("export_records", lambda: ann.export_records(status=None, faces=True))
    for text in ("green tea", "coffee that Ann likes", SECRET, "what was said in May?"):
        for context in (True, False):
            step(f"search {text} {context}", lambda t=text, c=context: found_by(ann, t, c))
    step(
        "search by all",
        lambda: [
            (h.id, h.score, h.why)
            for h in ann.search(
                "green tea",
                [1.0, 0.2, 0.1, 0.0],
                query_tokens=np.eye(2, DIM),
                limit=20,
                explain=True,
                now=NOW,
            )
        ],
    )
    step(
        "nearest",
        lambda: [(one.record_id, one.score) for one in ann.vectors.nearest([1.0, 0.1, 0.2, 0.0], k=50)],
    )
    step("changed_since", lambda: ann.changed_since(1))
    step("history", lambda: [*ann.history("A-1"), *ann.history("NOBODY")])
    step("as_of", lambda: looked_back(ann))
    step("why", lambda: ann.why("A-1"))
    step("invalidate", lambda: ann.invalidate("A-0", "it was not so"))
    step("invalidate nobody", lambda: ann.invalidate("NOBODY", "it was not so"))
    step("rollbacks", lambda: ann.rollbacks("A-0"))
    step("why not", lambda: ann.why("A-0"))
    step("reinstate", lambda: ann.reinstate(ann.rollbacks("A-0")[0].rollback_id, "it was so"))
    step("reinstate nobody", lambda: ann.reinstate("ROLLBACK-NOBODY", "it was so"))
    step("record_token_metric", lambda: ann.record_token_metric("T", 1, 2, 3))
    step("get_token_metrics", lambda: ann.get_token_metrics("T"))
    step("token_efficiency_report", ann.token_efficiency_report)
    step("record_skill_run", lambda: ann.record_skill_run("S", True, 4, "good"))
    step("find_skills", lambda: ann.find_skills("tea"))
    rows = world.project / "rows.ndjson"
    rows.write_text('{"id": "I-1", "label": "loaded tea"}\n{"id": 7}\n')
    step("ingest", lambda: ann.ingest([rows], on_error="skip"))
    step("ingest bad", lambda: ann.ingest([rows]))
    step("expire", lambda: ann.upsert({"id": "X-1", "data": {"expires_at": "2020-01-01T00:00:00Z"}}))
    step("sweep and erase", lambda: swept(ann))
    step("sweep", ann.sweep)
    step("delete", lambda: ann.delete("B-0"))
    step("delete nobody", lambda: ann.delete("NOBODY"))
    step("delete_many", lambda: ann.delete_many(["B-1", "NOBODY", "B-0"]))
    step("delete_many where", lambda: ann.delete_many(where={"data.topic": "coffee"}))
    step("set_now", lambda: ann.upkeep.set_now(NOW))  # type: ignore[attr-defined]
    step("counts of the store", lambda: [store.count(by="kind"), store.count(), store.health().records])
    step("indexes", store.upkeep.indexes)


def paged(handle: Any, order: str) -> list[str]:
    page, ids = handle.query(order_by=order, limit=2, status=None), []
    while True:
        ids += [record.id for record in page]
        if page.cursor is None:
            return ids
        page = handle.query(order_by=order, limit=2, status=None, after=page.cursor)


def found_by(handle: Any, text: str, context: bool) -> list[Any]:
    hits, told = handle.search(text, limit=2, context=context, explain=True, now=NOW), []
    while True:
        told += [(hit.id, hit.score, hit.why) for hit in hits]
        if hits.cursor is None:
            return [told, hits.known]
        after = hits.cursor
        hits = handle.search(text, limit=2, context=context, explain=True, now=NOW, after=after)


def looked_back(handle: Any) -> list[Any]:
    view: StoreView = handle.as_of(handle.history("A-2")[-1].seq)
    return [view.query(status=None), view.get("A-1"), view.get("NOBODY"), view.record_count()]


def swept(handle: Any) -> list[Any]:
    planned, done = handle.sweep(erase=True, dry_run=True), handle.sweep(erase=True)
    shown = ("ids", "belonging", "mentions", "lines", "again")
    return [{name: getattr(report.erased, name) for name in shown} for report in (planned, done)]


def test_every_verb_of_a_handle_tells_the_same_alone_and_among_others(tmp_path: Path) -> None:
    told = told_in_both(tmp_path, records)
    named = {name.split()[0] for name in told} | {"query", "search", "upsert", "attach", "delete", "update"}
    verbs = {name for name in (*dir(ScopedStore), *dir(Vectors)) if not name.startswith("_")} - ATTRIBUTES
    assert verbs <= named, "each verb of a handle is part of the comparison"
    assert "AttributeError" in told["set_now"], "only the store itself says which moment it is"


def blocks(world: World) -> None:
    """Do all that a memory can, out of a session and in one."""
    for names in (ANN, {**ANN, "session": "s1"}):
        live(world, world.memory_of(names))


def live(world: World, memory: Memory) -> None:
    made: list[str] = []

    def tell(name: str, work: Callable[[], Any]) -> None:
        world.step(f"{name} {len(world.told)}", work)

    for words in WORDS:
        tell("remember", lambda words=words: made.append(memory.remember(words, ["self/value"]).block_id))
    tell("learn", lambda: memory.learn("The lamp is green", ["work"], time=NOW, speaker="Ann"))
    tell(
        "learn_document",
        lambda: memory.learn_document("Tea grows on hills. It needs rain. " * 9, chunk_size=8),
    )
    tell("consolidate", memory.consolidate)
    tell("connect", lambda: memory.connect(made[0], made[1], "supports"))
    tell("connect nobody", lambda: memory.connect(made[0], "0" * 32))
    for query in ("green tea", SECRET[:3], None):
        tell("recall", lambda query=query: memory.recall(query, top_k=5))
        tell("frame", lambda query=query: memory.frame("attention", query, explain=True))
    tell("frame self", lambda: memory.frame("self"))
    tell("frame none", lambda: memory.frame("none"))
    tell("outcome", lambda: memory.outcome(made[:2], 0.9))
    tell("outcome nobody", lambda: memory.outcome(["0" * 32], 0.9))
    tell("edit", lambda: memory.edit(made[2], "The river house is sold"))
    tell("forget", lambda: memory.forget(made[3]))
    tell("forget nobody", lambda: memory.forget("0" * 32))
    tell("disconnect", lambda: memory.disconnect(made[0], made[1]))
    tell("history", lambda: memory.history(made[0]))
    tell("ls", lambda: [memory.list(), memory.list(status=None, tag="work")])
    weights = ScoringWeights(similarity=1.0, confidence=0.0, recency=0.0, centrality=0.0, reinforcement=0.0)
    tell("define_frame", lambda: memory.define_frame(Frame(name="mine", weights=weights)))
    tell("frame mine", lambda: memory.frame("mine", "tea"))
    tell("keep", lambda: memory.keep(made[:1]))
    world.seconds += 3600 * 400
    tell("active_hours", lambda: memory.status().active_hours)
    tell("should_dream", lambda: memory.should_dream)
    tell("curate", memory.curate)
    tell("dream", memory.dream)
    tell("reembed", memory.reembed)
    tell("status", memory.status)
    tell("guide", lambda: memory.guide("recall"))


def test_a_memory_tells_the_same_alone_and_among_others(tmp_path: Path) -> None:
    told = told_in_both(tmp_path, blocks)
    assert "TypeError" not in str(told)


def pages(world: World) -> None:
    """Do all that a folder of pages can."""
    with Pages(world.store, world.project / "anns", clock=world.now, **ANN) as anns:
        step, made = world.step, []
        step("create", lambda: anns.create("topic-tea", "What is known of tea", ["tea"]))
        step(
            "append",
            lambda: made.append(anns.append("topic-tea", "Green tea is best. See user-profile.", ["tea"])),
        )
        step("append more", lambda: made.append(anns.append("user-profile", "Ann likes tea.", ["tea"])))
        step("append nowhere", lambda: anns.append("topic-none", "x", ["tea"]))
        step("supersede", lambda: anns.supersede("topic-tea", made[0], "Black tea is best.", "it was so"))
        step("supersede nobody", lambda: anns.supersede("topic-tea", "0" * 12, "x", "y"))
        step("chain", lambda: anns.chain("topic-tea", made[0]))
        for verb in (anns.list, anns.recent, anns.rebuild, anns.rebuild_index, anns.compact_flagged):
            step(verb.__name__, verb)
        for verb in (anns.info, anns.links, anns.read, anns.text):
            step(verb.__name__, lambda verb=verb: [verb("topic-tea"), verb("user-profile")])
        step("read nowhere", lambda: anns.read("topic-none"))
        for query in ("green tea", "likes", SECRET[:3]):
            step(f"search {query}", lambda query=query: anns.search(query))
        step("tagged", lambda: anns.tagged("tea"))
        step("set_status", lambda: anns.set_status("topic-tea", "archived"))
        step("flag_compact", lambda: anns.flag_compact("user-profile", "it is long"))
        step("compact", lambda: anns.compact("user-profile"))
        notes = world.project / "notes"
        notes.mkdir()
        (notes / "Old.md").write_text("---\nupdated: 2021-05-05\n---\nAn old note about tea.\n")
        step("import_", lambda: anns.import_(notes))
        profile = world.project / "anns" / "user-profile.md"
        profile.write_text(profile.read_text() + "\n- by hand #tea\n")
        step("sync", anns.sync)
        step("watch", lambda: watched(anns))
        step(
            "files",
            lambda: {path.name: path.read_text() for path in sorted((world.project / "anns").glob("*.md"))},
        )
        step("clean", anns.clean)
    step("others folder", lambda: Pages(world.store, world.project / "anns", user="cy"))


def watched(pages: Pages) -> list[Any]:
    """Watch a folder until its first look is done."""
    heard: list[Any] = []
    stop = threading.Event()
    stop.set()
    pages.watch(heard.append, stop)
    return heard


def test_pages_tell_the_same_alone_and_among_others(tmp_path: Path) -> None:
    told = told_in_both(tmp_path, pages)
    assert "TypeError" not in str(told) and "by hand" in told["files"]


def graph(world: World) -> None:
    """Do all that a workspace can; its store is the one in its folder."""
    step = world.step
    with Workspace.create(
        world.project, clock=world.now, head_file=world.project / "head", **ANN
    ) as workspace:
        own = workspace.graph
        for number in range(4):
            step(
                f"node {number}",
                lambda number=number: own.save_node(Node(f"n{number}", "drink", WORDS[number])),
            )
        for number in range(3):
            edge = Edge(f"e{number}", f"n{number}", f"n{number + 1}", "next")
            step(f"edge {number}", lambda edge=edge: own.save_edge(edge))
        step("edge to nobody", lambda: own.save_edge(Edge("e9", "n0", SECRET[:3], "next")))
        step(
            "event",
            lambda: workspace.events.append(MemoryEvent("m1", "noted", NOW.isoformat(), refs=("n1",))),
        )
        step("event again", lambda: workspace.events.append(MemoryEvent("m1", "noted", NOW.isoformat())))
        step("branch", lambda: workspace.runtime.branch("p1"))
        step("abandon", lambda: workspace.runtime.abandon("p1", "no"))
        step("abandon nobody", lambda: workspace.runtime.abandon("p9", "no"))
        for verb in (own.nodes, own.edges, own.paths, own.plans, own.profiles, own.components, own.export):
            step(verb.__name__, verb)
        step("neighbours", lambda: [own.neighbours("n1"), own.subgraph("n0", 3), own.within("n0", 2)])
        step("routes", lambda: [own.routes("n0", "n3"), own.node("nobody"), own.edge("nobody")])
        for verb in (workspace.snapshot, workspace.replay, workspace.export_graph, workspace.rebuild):
            step(verb.__name__, verb)
        step("diagnose", workspace.diagnose)
        step("others folder", lambda: Workspace.open(world.project, user="cy"))


def test_a_graph_tells_the_same_alone_and_among_others(tmp_path: Path) -> None:
    told = told_in_both(tmp_path, graph)
    assert "TypeError" not in str(told)
