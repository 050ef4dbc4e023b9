"""What belongs to an erased record goes with it, what speaks of it is told, and everything else stays."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from chronomemory import ChronoStore, DepGraph
from chronomemory.blocks import Memory
from chronomemory.errors import HistoryUnavailable, InvalidArgument, InvalidRecord
from chronomemory.graph import Edge, Node, Workspace
from chronomemory.pages import Pages
from chronomemory.rollback import reinstate
from test_erase import everything, holding, is_valid_for_both


def test_edges_and_rollbacks_of_a_record_go_with_it(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        for name in ("mia@zq.org", "d", "tea"):
            store.upsert({"id": name, "label": name.upper()})
        graph = DepGraph(store)
        graph.add_edge("d", "mia@zq.org", "depends_on")
        graph.add_edge("mia@zq.org", "tea", "supports")
        graph.add_edge("d", "tea", "depends_on")
        store.upsert({"id": "W", "label": "a witness", "evidence": ["mia@zq.org"]})
        store.compact()
        graph.remove_edge("mia@zq.org", "tea", "supports")
        store.invalidate("tea", "cold")
        store.invalidate("mia@zq.org", "she moved to Elm Street")
        before = everything(store)
        planned = store.erase(ids=["mia@zq.org"], reason="asked for", dry_run=True)
        told = store.erase(ids=["mia@zq.org"], reason="asked for")
        assert (planned.belonging, planned.mentions, planned.lines) == (
            told.belonging,
            told.mentions,
            told.lines,
        )
        # The id of a rollback names its target.
        gone = {name for name in before if name.startswith(("EDGE-", "ROLLBACK-")) and "mia" in name}
        assert set(told.belonging) == gone
        assert len(gone) == 3
        assert set(told.mentions) == {"W"}
        before["W"]["evidence"] = []
        kept = {name: record for name, record in before.items() if name not in gone | {"mia@zq.org"}}
        after = everything(store)
        assert {name: record for name, record in after.items() if name[:8] != "erasure:"} == kept
        assert holding(tmp_path, "mia@zq.org") == []
        assert is_valid_for_both(store)


def test_a_rollback_of_another_record_is_kept_without_it(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert_many([{"id": name, "label": name.upper()} for name in ("tea", "zqmia", "tom")])
        for name in ("zqmia", "tom"):
            DepGraph(store).add_edge(name, "tea", "depends_on")
        store.invalidate("tea", "cold")
        assert store.erase(ids=["zqmia"], reason="asked for").mentions == ("ROLLBACK-tea",)
        assert holding(tmp_path, "zqmia") == []
        # Its events were written again, so nothing shows that the others are unchanged since.
        report = reinstate(store, "ROLLBACK-tea", "warm again")
        assert report.restored == () and {each.record_id for each in report.left} == {"tea", "tom"}


def test_a_rollback_of_it_alone_goes(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "mia", "label": "Mia"})
        store.invalidate("mia", "moved to Elm Street")
        assert store.erase(ids=["mia"], reason="asked for").belonging == ("ROLLBACK-mia",)
        assert holding(tmp_path, "Elm Street") == []


def test_an_edge_that_leads_elsewhere_by_now_stays(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        for name in ("mia", "tom", "tea"):
            store.upsert({"id": name})
        edge = {"id": "EDGE-1", "kind": "edge", "label": "first to mia"}
        store.upsert(edge | {"data": {"from_id": "tea", "to_id": "mia", "edge_type": "supports"}})
        store.upsert(
            edge | {"label": "to tom", "data": {"from_id": "tea", "to_id": "tom", "edge_type": "supports"}}
        )
        before = store.get("EDGE-1")
        told = store.erase(ids=["mia"], reason="asked for")
        assert told.belonging == ()
        after = store.get("EDGE-1")
        assert before is not None and after is not None
        assert after.to_dict() == before.to_dict()
        assert holding(tmp_path, "first to mia") == []
        assert is_valid_for_both(store)


def test_links_and_contradictions_of_a_block_go_with_it(tmp_path: Path) -> None:
    texts = ["tea is green", "tea is not green", "coffee is black"]
    with Memory(tmp_path) as memory:
        ids = [memory.remember(text).block_id for text in texts]
        memory.consolidate()
        for _ in range(6):
            memory.outcome(ids, 0.9)
    with ChronoStore(tmp_path) as store:
        before = everything(store)
        gone = {name for name in before if ids[0] in name}
        assert len(gone) > 1, "it has links"
        told = store.erase(ids=[f"block:{ids[0]}"], reason="asked for")
        assert {*told.ids, *told.belonging} == gone
        after = {name: record for name, record in everything(store).items() if name[:8] != "erasure:"}
        assert after == {name: record for name, record in before.items() if name not in gone}
        assert holding(tmp_path, ids[0]) == []
        assert is_valid_for_both(store)


def graph_in(root: Path, **names: str) -> None:
    with Workspace.create(root, **names) as workspace:
        workspace.graph.save_node(Node("tea", "drink", "tea"))
        workspace.import_graph(
            {
                "nodes": [
                    {"id": "zed", "kind": "person", "label": "secretzq"},
                    {"id": "tom", "kind": "person", "label": "Tom"},
                ],
                "edges": [
                    {"id": "e", "source": "zed", "target": "tea", "kind": "likes"},
                    {"id": "f", "source": "tom", "target": "tea", "kind": "likes"},
                ],
            }
        )
        workspace.graph.save_node(Node("zed", "person", "secretzq again"))


def test_a_node_goes_with_its_edges_and_what_events_told_of_it(tmp_path: Path) -> None:
    graph_in(tmp_path)
    with ChronoStore(tmp_path) as store:
        told = store.erase(ids=["node:zed"], reason="asked for")
        assert "gedge:e" in told.belonging
        assert holding(tmp_path / ".chronomemory", "secretzq") == []
        assert is_valid_for_both(store)
    with Workspace.open(tmp_path) as workspace:
        assert {node.id for node in workspace.graph.nodes()} == {"tea", "tom"}
        assert [edge.id for edge in workspace.graph.edges()] == ["f"]
        assert workspace.replay() == workspace.snapshot(), "what the events told of others is told again"
        assert holding(tmp_path, "secretzq") == [], "the files follow"
        assert workspace.diagnose() == []
        workspace.graph.save_edge(Edge("g", "tea", "tom", "is liked by"))
        assert workspace.diagnose() == []


def test_a_workspace_whose_scope_was_erased_begins_anew(tmp_path: Path) -> None:
    graph_in(tmp_path, user="mia")
    with ChronoStore(tmp_path) as store:
        store.erase(scope={"user": "mia"}, reason="asked for")
    with Workspace.open(tmp_path, user="mia") as workspace:
        assert workspace.graph.nodes() == []
        assert holding(tmp_path, "secretzq") == []
        workspace.graph.save_node(Node("milk", "drink", "milk"))
        assert workspace.diagnose() == []


def test_files_of_a_workspace_follow_an_erasure_at_the_next_write(tmp_path: Path) -> None:
    graph_in(tmp_path)
    with Workspace.open(tmp_path) as workspace:
        workspace.store.erase(ids=["node:zed"], reason="asked for")
        workspace.graph.save_node(Node("milk", "drink", "milk"))
        assert holding(tmp_path, "secretzq") == []
        assert workspace.diagnose() == []


def test_files_of_a_workspace_follow_an_erasure_in_a_log_that_went_back(tmp_path: Path) -> None:
    with Workspace.create(tmp_path) as workspace:
        workspace.graph.save_node(Node("zed", "person", "secretzq"))
        copy = workspace.store.backup()
        for number in range(5):
            workspace.graph.save_node(Node(f"n{number}", "drink", "tea"))
        workspace.store.upkeep.restore(copy)
        workspace.store.erase(ids=["node:zed"], reason="asked for")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of files that are ahead of the log
        with Workspace.open(tmp_path) as workspace:
            workspace.graph.save_node(Node("milk", "drink", "milk"))
    assert holding(tmp_path, "secretzq") == []


def test_again_keeps_embeddings_and_codes(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        for label in ("past", "present"):
            store.upsert({"id": "mia", "label": label})
        store.upsert({"id": "tea"})
        past, now = np.full(4, 77.125, np.float32), np.eye(4, dtype=np.float32)
        store.vectors.attach("mia", past, model="m")
        store.vectors.attach_many(["tea", "mia"], now[:2], model="m")
        store.vectors.attach_tokens("mia", now, model="t")
        planned = store.erase(ids=["mia"], again=["mia"], reason="asked for", dry_run=True)
        told = store.erase(ids=["mia"], again=["mia"], reason="asked for")
        assert (planned.lines, planned.unsalted, planned.logs) == (told.lines, told.unsalted, told.logs)
        for name, row in (("tea", now[0]), ("mia", now[1])):
            found = store.vectors.get(name)
            assert found is not None
            assert np.array_equal(found, row)
        assert next(near.record_id for near in store.vectors.nearest(now[1])) == "mia"
        assert [hit.id for hit in store.search(query_tokens=now)] == ["mia"]
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert not [path for path in files if past.tobytes() in path.read_bytes()]
        assert is_valid_for_both(store)
    with ChronoStore(tmp_path) as store:
        assert store.vectors.get("mia") is not None


@pytest.mark.parametrize("again", [[], ["r0"]])
def test_a_dry_run_counts_the_lines_of_embeddings(tmp_path: Path, again: list[str]) -> None:
    with ChronoStore(tmp_path) as store:
        for number in range(3):
            store.upsert({"id": f"r{number}"})
            store.vectors.attach(f"r{number}", np.eye(3)[number], model="m")
        store.compact()
        store.upsert({"id": "r0", "label": "new"})
        planned = store.erase(ids=["r0"], again=again, reason="t", dry_run=True)
        told = store.erase(ids=["r0"], again=again, reason="t")
        assert (planned.lines, planned.unsalted, planned.logs, planned.replaced) == (
            told.lines,
            told.unsalted,
            told.logs,
            told.replaced,
        )
        event = store.everyone().get(f"erasure:{told.seq}")
        assert event is not None
        assert event.data["records"] == 1


def test_rows_that_a_repair_set_aside_go_too(tmp_path: Path) -> None:
    row = np.full(8, 77.125, np.float32)
    store = ChronoStore(tmp_path)
    store.upsert({"id": "mia", "label": "Mia"})
    store.upsert({"id": "tea", "label": "Tea"})
    store.vectors.attach("mia", row, model="m")
    store.vectors.attach("tea", np.ones(8), space="default")
    store.vectors.attach("tea", np.ones(8), space="other", model="o")
    store.close()
    for name in ("default", "other"):
        path = tmp_path / ".chronomemory" / "vectors" / f"{name}.0.f32"
        rows = bytearray(path.read_bytes())
        rows[-1] ^= 1  # a row of tea
        path.write_bytes(rows)
    with store:
        store.upkeep.repair()
        aside = tmp_path / ".chronomemory" / "quarantine"
        assert [path for path in aside.rglob("*.f32") if row.tobytes() in path.read_bytes()]
        assert store.erase(ids=["mia"], reason="asked for").quarantine
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert not [path.name for path in files if row.tobytes() in path.read_bytes()]


def test_where_leaves_out_what_the_store_says_of_itself(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        for number in range(4):
            store.upsert({"id": f"r{number}", "label": f"text {number}"})
        store.vectors.attach("r0", np.ones(3), model="m")
        store.erase(ids=["r3"], reason="asked for")
        told = store.erase(where={"status": "active"}, reason="t", dry_run=True)
        assert set(told.ids) == {"r0", "r1", "r2"}
        with pytest.raises(InvalidArgument, match="where"):
            store.erase(where={}, reason="t")


def test_again_is_among_what_a_scope_or_a_condition_means(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        for name in ("a1", "a2"):
            store.scoped(user="ann").upsert({"id": name, "label": "said before", "data": {"n": 1}})
            store.scoped(user="ann").upsert({"id": name, "label": f"now of {name}", "data": {"n": 1}})
        store.upsert({"id": "v0"})
        with pytest.raises(InvalidArgument, match="again"):
            store.erase(ids=["v0"], again="v0", reason="t")
        with pytest.raises(InvalidRecord, match="again"):
            store.erase(scope={"user": "ann"}, again=["v0"], reason="t")
        store.erase(scope={"user": "ann"}, again=["a1"], reason="t")
        ann = store.scoped(user="ann")
        record = ann.get("a1")
        assert record is not None
        assert record.label == "now of a1"
        assert (len(ann.history("a1")), ann.get("a2")) == (1, None)
        store.erase(where={"data.n": 1}, again=["a1"], reason="t")
        assert ann.get("a1") is not None
        assert holding(tmp_path, "said before") == []
        assert is_valid_for_both(store)


def test_a_reason_is_refused_for_the_words_in_it(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        ann = store.scoped(user="ann.zq")
        for name, label in (("rec-x", "a"), ("1", "a rather long label"), ("rec-z", " ")):
            ann.upsert({"id": name, "label": label})
        with pytest.raises(InvalidRecord, match=r'reason.*"ann\.zq"'):
            store.erase(scope={"user": "ann.zq"}, reason="Ann.zq asked")
        with pytest.raises(InvalidRecord, match=r'reason.*"a rather long label"'):
            store.erase(scope={"user": "ann.zq"}, reason="for a rather Long Label")
        assert len(store.erase(scope={"user": "ann.zq"}, reason="asked for, ticket 17").ids) == 3


def test_what_was_looked_at_before_an_erasure_answers_no_more(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store, ChronoStore(tmp_path, own_engine=True) as other:
        store.upsert({"id": "mia", "label": "secretzq"})
        store.upsert({"id": "tea"})
        views = [handle.as_of(2) for handle in (store, other)]
        walks = [handle.stream() for handle in (store, other)]
        begun = store.stream()
        assert next(begun).id == "mia"
        assert [view.record_count() for view in views] == [2, 2]
        store.erase(ids=["mia"], reason="asked for")
        for view in views:
            for ask in (lambda view=view: view.get("mia"), view.query, view.record_count):
                with pytest.raises(HistoryUnavailable, match="erased since"):
                    ask()
        for walk in (*walks, begun):
            with pytest.raises(HistoryUnavailable, match="erased since"):
                next(walk)
        assert [handle.as_of(2).get("mia") for handle in (store, other)] == [None, None]
        last = store.as_of(2)
    assert last.get("tea") is not None, "who has closed the store keeps what was read"


@pytest.mark.parametrize("history", ["redact", "drop"])
def test_no_other_block_keeps_the_id_of_one_that_is_gone(
    tmp_path: Path, history: Literal["redact", "drop"]
) -> None:
    with ChronoStore(tmp_path) as store, Memory(store, user="ann") as memory:
        gone = memory.remember("Zed lives in Elm Street").block_id
        memory.remember("The office opens at nine")
        with memory.session("t"):
            memory.frame("attention", "does the office know where Zed lives")
        later = memory.remember("It was said after that", previous=gone).block_id
        forming = [record for record in store.everyone().query(faces=True) if gone in str(record.data)]
        assert len(forming) > 2, "both were shown together"
        told = store.erase(ids=[f"block:{gone}"], reason="asked for", history=history)
        left = [record.id for record in store.everyone().query(faces=True) if gone in str(record.data)]
        assert left == []
        assert holding(tmp_path, gone) == []
        assert f"block:{later}" in told.mentions
        assert is_valid_for_both(store)


def test_entries_go_with_their_page(tmp_path: Path) -> None:
    with Pages(tmp_path) as pages:
        for name in ("person-zed", "topic-tea"):
            pages.create(name, "of it")
        for name, text in (
            ("person-zed", "secretzq one"),
            ("person-zed", "secretzq two"),
            ("topic-tea", "green"),
        ):
            pages.append(name, text, ["said"])
        with ChronoStore(tmp_path) as store:
            before = everything(store)
            (page,) = [name for name in before if name.endswith(":person-zed")]
            told = store.erase(ids=[page], reason="asked for")
            assert {*told.ids, *told.belonging} == {name for name in before if "person-zed" in name}
            assert len(told.belonging) > 1
            assert holding(tmp_path / ".chronomemory", "secretzq") == []
            assert is_valid_for_both(store)
