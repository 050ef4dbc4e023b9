"""Content of an erased record that another record or a file repeats is removed with it."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from pathlib import Path

import pytest
from chronomemory import ChronoStore, DepGraph
from chronomemory.episodes import (
    ChronoFactStore,
    ChronoMemoryStore,
    ConsolidationRule,
    Episode,
    Episodes,
    Facts,
)
from chronomemory.episodes.runner import Runner
from chronomemory.graph import Action, ActionError, Edge, MemoryEvent, Node, Workspace
from chronomemory.graph.models import ActivationPlan, Profile
from chronomemory.mcp import file_editing
from chronomemory.mcp.served_store import ServedStore
from chronomemory.pages import Pages
from chronomemory.scope import Scope
from test_erase import holding, is_valid_for_both
from world import START

TEXT = "# Tea\n\nThe pin is zq4711.\n\n## 2026-05-18T09:00 #a #id:2026-05-18-0900-aaaa\n\nIt was zq4712.\n"


def inside(root: Path, text: str) -> list[str]:
    """Return the files of the store that hold a text."""
    return holding(root / ".chronomemory", text)


def ids_of(store: ChronoStore, ending: str) -> list[str]:
    """Return the ids of all records with this ending, deleted ones too."""
    records = store.everyone().query(faces=True, status=None)
    return [record.id for record in records if record.id.endswith(ending)]


def test_pages_that_a_rename_left_are_erased_with_the_page(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        served = ServedStore(store, Scope())
        file_editing.create(served, "/memories/topic-one.md", TEXT, operation_id="a")
        for old, new in (("one", "two"), ("two", "three")):
            file_editing.rename(
                served, f"/memories/topic-{old}.md", f"/memories/topic-{new}.md", operation_id=new
            )
        assert [hit.record.data["page"].rpartition(":")[2] for hit in store.search("zq4711")] == [
            "topic-three"
        ]
        told = store.erase(ids=ids_of(store, ":topic-three"), reason="asked for")
        assert {name.rpartition(":")[2] for name in told.belonging} >= {"topic-one", "topic-two"}
        digest = hashlib.sha256(TEXT.encode()).hexdigest()[:32]
        for needle in ("zq4711", "zq4712", "topic-one", "topic-two", digest):
            assert inside(tmp_path, needle) == [], needle
        assert is_valid_for_both(store)


def test_entries_that_a_rename_left_are_erased_with_the_entry(tmp_path: Path) -> None:
    with Pages(tmp_path) as pages:
        pages.create("topic-old", "drinks", ["tea"])
        secret = pages.append("topic-old", "The pin is zq4711.")
        pages.append("topic-old", "Tea is green.")
        served = ServedStore(pages.store, Scope())
        file_editing.rename(served, "/memories/topic-old.md", "/memories/topic-new.md", operation_id="")
        pages.store.erase(ids=ids_of(pages.store, f":topic-new:{secret}"), reason="asked for")
        assert inside(tmp_path, "zq4711") == []
        left = pages.store.query(kind="entry", faces=True)
        assert [record.data["content"] for record in left] == ["Tea is green."]


@pytest.mark.parametrize("whole", [True, False])
def test_a_renamed_page_is_erased_with_its_old_ids(tmp_path: Path, whole: bool) -> None:
    with Pages(tmp_path) as pages:
        pages.create("topic-zqold", "drinks", ["tea"])
        secret = pages.append("topic-zqold", "The pin is zq4711.")
        pages.append("topic-zqold", "Tea is green.")
        old = [name for name in ids_of(pages.store, "") if ":topic-zqold" in name]
        served = ServedStore(pages.store, Scope())
        for number, (before, after) in enumerate([("zqold", "mid"), ("mid", "new")]):
            file_editing.rename(
                served,
                f"/memories/topic-{before}.md",
                f"/memories/topic-{after}.md",
                operation_id=str(number),
            )
        asked = old if whole else [name for name in old if name.endswith(secret)]
        told = pages.store.erase(ids=asked, reason="asked for")
        assert f":topic-new:{secret}" in "".join(told.belonging)
        for needle in ("zq4711", "zqold") if whole else ("zq4711",):
            assert holding(tmp_path, needle) == []
        left = pages.store.query(kind="entry", faces=True)
        assert [record.data["content"] for record in left] == ([] if whole else ["Tea is green."])
        assert is_valid_for_both(pages.store)


def test_a_page_whose_file_was_renamed_by_hand_is_mentioned(tmp_path: Path) -> None:
    with Pages(tmp_path) as pages:
        pages.create("topic-old", "drinks", ["tea"])
        pages.append("topic-old", "The pin is zq4711.")
        (tmp_path / "memory" / "topic-old.md").rename(tmp_path / "memory" / "topic-new.md")
        assert [problem.kind for problem in pages.sync().problems] == ["renamed"]
        told = pages.store.erase(ids=ids_of(pages.store, ":topic-new"), reason="asked for")
        assert [name for name in told.mentions if name.endswith(":topic-old")]


def test_a_page_of_the_name_that_a_rename_freed_is_kept(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        served = ServedStore(store, Scope())
        old, new = "/memories/topic-old.md", "/memories/topic-new.md"
        file_editing.create(served, old, TEXT, operation_id="")
        file_editing.rename(served, old, new, operation_id="")
        file_editing.create(served, old, "# Rum\n\nRum is brown.\n", operation_id="")
        store.erase(ids=ids_of(store, ":topic-new"), reason="asked for")
        assert inside(tmp_path, "zq4711") == []
        with Pages(store) as pages:
            assert "Rum is brown." in pages.text("topic-old")


@pytest.mark.parametrize("more", ["", "\n## More\n\nNot much.\n"])
def test_a_note_that_was_moved_is_erased_under_both_names(tmp_path: Path, more: str) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "Plan.md").write_text("Nothing yet.")
    (notes / "Old.md").write_text("# Mia\n\n## Pins\n\nThe pin is zq4711.\n\n## Tea\n\nIt is green.\n")
    with Pages(tmp_path, "notes") as pages:
        pages.sync()
        (notes / "Old.md").rename(notes / "New.md")
        (notes / "New.md").write_text((notes / "New.md").read_text() + more)
        assert pages.sync().forgotten == ("Old",)
        told = pages.store.erase(ids=ids_of(pages.store, ":New"), reason="asked for")
        assert set(ids_of(pages.store, ":Old")) == set()
        assert inside(tmp_path, "zq4711") == []
        assert str(notes / "New.md") in told.page_files


def test_a_reinstated_rollback_keeps_no_id_of_an_erased_record(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert_many([{"id": name, "label": "x"} for name in ("base", "zqmia", "tom", "zqann")])
        for name in ("zqmia", "tom", "zqann"):
            DepGraph(store).add_edge(name, "base", "depends_on")
        store.invalidate("base", "wrong")
        store.update("zqann", label="changed since")
        report = store.reinstate("ROLLBACK-base", "right after all")
        assert [left.record_id for left in report.left] == ["zqann"]
        told = store.erase(ids=["zqmia", "zqann"], reason="asked for")
        assert told.mentions == ("ROLLBACK-base",)
        assert inside(tmp_path, "zqmia") + inside(tmp_path, "zqann") == []
        record = store.get("ROLLBACK-base")
        assert record is not None
        assert record.data["reinstated"][0]["restored"] == ["base", "tom"]


def test_a_compacted_page_does_not_quote_an_erased_entry(tmp_path: Path) -> None:
    with Pages(tmp_path) as pages:
        pages.create("topic-mia", "of Mia", ["mia"])
        first = pages.append("topic-mia", "Mia has zqpox. #zqill\n\nSee [[zqdoctor]].", ["health"])
        second = pages.supersede("topic-mia", first, "Mia has a cold. #cold", reason="a mistake")
        assert pages.compact("topic-mia").accepted
        third = pages.supersede("topic-mia", second, "Mia is well. #well", reason="time went by")
        assert pages.compact("topic-mia").accepted
        store = pages.store
        (successor,) = ids_of(store, third)
        told = store.erase(ids=ids_of(store, first), reason="asked for")
        assert successor in told.mentions
        for needle in ("zqpox", "zqill", "zqdoctor", first):
            assert inside(tmp_path, needle) == [], needle
        assert is_valid_for_both(store)
        record = store.get(successor)
        assert record is not None
        assert record.data["content"].startswith("Mia is well. #well\n\nEarlier: ")
        assert record.data["content"].endswith("Mia has a cold. #cold")
        assert record.data["tags"] == ["health", "well", "cold"]
        told = store.erase(ids=ids_of(store, second), reason="asked for")
        assert (told.belonging, successor in told.mentions) == ((), True)
        record = store.get(successor)
        assert record is not None
        assert (record.data["content"], record.data["tags"]) == ("Mia is well. #well", ["health", "well"])
        assert [(one.content, one.tags) for one in pages.read("topic-mia")] == [
            ("Mia is well. #well", ("health",))
        ]


def test_a_paragraph_below_the_note_of_an_erased_entry_stays(tmp_path: Path) -> None:
    with Pages(tmp_path) as pages:
        pages.create("topic-mia", "of Mia", ["mia"])
        first = pages.append("topic-mia", "Mia has zqpox.\n\nAnd zqfever.", ["health"])
        second = pages.supersede("topic-mia", first, "Mia is well.", reason="a mistake")
        pages.compact("topic-mia")
        file = pages.folder / "topic-mia.md"
        file.write_text(f"{file.read_text().rstrip()}\n\nWritten by hand.\n")
        pages.sync()
        pages.store.erase(ids=ids_of(pages.store, first), reason="asked for")
        assert inside(tmp_path, "zqpox") == inside(tmp_path, "zqfever") == []
        (entry,) = pages.read("topic-mia")
        assert (entry.id, entry.content) == (second, "Mia is well.\n\nWritten by hand.")


def test_a_fact_that_copies_an_erased_episode_goes_with_it(tmp_path: Path) -> None:
    owner = {"user": "ann", "agent": "bot"}
    meaning = {"subject": "ann", "predicate": "lives in", "object": "Rome"}
    with ChronoStore(tmp_path) as store, Episodes(store) as episodes, Facts(store) as facts:
        memory, kept = ChronoMemoryStore(store), ChronoFactStore(store)
        for name in ("turn", "other"):
            content = f"I moved to Rome with zq{name}"
            episode = Episode(
                id=name,
                content=content,
                timestamp=START,
                source_node="n",
                session="s",
                metadata=dict(meaning, subject=name),
                **owner,
            )
            episodes.put(episode, session="s", **owner)
        rule = ConsolidationRule(
            id="r", cadence={"every": 1}, when_filter="metadata.subject IS NOT NULL", then_emits=["profile"]
        )
        Runner(memory, kept, [rule]).run()
        assert facts.get("turn") is not None
        told = store.erase(ids=["episode:turn"], reason="asked for")
        assert told.belonging == ("fact:turn",)
        assert (
            inside(tmp_path, "zqturn")
            == inside(tmp_path, "episode:turn")
            == inside(tmp_path, "fact:turn")
            == []
        )
        assert inside(tmp_path, "zqother") != []
        assert facts.get("turn") is None and facts.get("other") is not None


def test_the_text_above_the_entries_of_a_page_goes_and_its_title_stays(tmp_path: Path) -> None:
    with Pages(tmp_path) as pages:
        pages.create("topic-mia", "of Mia", ["mia"])
        file = pages.folder / "topic-mia.md"
        file.write_text(f"{file.read_text()}\nzqpreamble text\n")
        pages.sync()
        entry = pages.append("topic-mia", "Mia is well.", ["health"])
        digits = pages._home.digits
        pages.store.erase(ids=[f"entry:{digits}:topic-mia:"], reason="asked for")
        assert inside(tmp_path, "zqpreamble") == []
        assert [one.id for one in pages.read("topic-mia")] == [entry]
        assert pages.sync().problems == ()
        assert "description: of Mia" in (pages.folder / "topic-mia.md").read_text()


def test_records_whose_ids_contain_an_erased_id_go_with_it(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "TASK-zq4713", "label": "x"})
        store.upsert({"id": "SKILL-zq4713", "kind": "skill", "label": "y"})
        store.record_token_metric("TASK-zq4713", 1, 2, 3)
        store.record_skill_run("SKILL-zq4713", True, 1, {})
        kept = store.record_token_metric("TASK-other", 1, 2, 3)
        report = store.erase(ids=["TASK-zq4713", "SKILL-zq4713"], reason="asked for")
        assert len(report.belonging) == 2
        assert inside(tmp_path, "zq4713") == []
        assert [record.id for record in store.query()] == [kept.id]


def fill(root: Path, **names: str) -> None:
    with Workspace.create(root, **names) as workspace:
        graph, runtime = workspace.graph, workspace.runtime
        for name in ("zqmia", "tea"):
            graph.save_node(Node(name, "person", f"the label of {name}"))
        graph.save_profile(Profile("p", "P", {}))
        graph.save_edge(Edge("likes", "zqmia", "tea", "likes"))
        graph.save_plan(ActivationPlan("plan", "p", ("zqmia", "tea"), {}))
        workspace.events.append(MemoryEvent("said", "said", "2026-05-18T09:00:00Z", refs=("zqmia", "tea")))
        runtime.apply([Action("act", "set_phase", "zqmia", {"phase": "new"})])


def test_events_and_audits_of_a_graph_keep_nothing_of_erased_items(tmp_path: Path) -> None:
    """The reason of an abandoned path, earlier ends of an edge, and digests of refused actions."""
    refused = Action("no", "put_edge", "e3", {"source": "zqmia", "target": "nobody", "kind": "likes"})
    mine = MemoryEvent("mine", "said", "2026-05-18T09:01:00Z", data={"reason": "my own"})
    with Workspace.create(tmp_path) as workspace:
        graph, runtime = workspace.graph, workspace.runtime
        for name in ("zqmia", "tea", "milk"):
            graph.save_node(Node(name, "person", name))
        graph.save_edge(Edge("e1", "zqmia", "tea", "likes"))
        graph.save_edge(Edge("e1", "tea", "milk", "likes"))
        for number, source in enumerate(("zqmia", "milk")):
            payload = {"source": source, "target": "tea", "kind": "likes"}
            runtime.apply([Action(f"a{number}", "put_edge", "e2", payload)])
        with pytest.raises(ActionError):
            runtime.apply([refused])
        runtime.branch("zqpath")
        runtime.record("zqpath", [mine])
        runtime.abandon("zqpath", "zqsecret reason")
        runtime.branch("kept")
        runtime.abandon("kept", "kept reason")
        workspace.store.erase(ids=["node:zqmia", "path:zqpath"], reason="asked for")
        for needle in ("zqmia", "zqpath", "zqsecret", refused.digest):
            assert inside(tmp_path, needle) == [], needle
        assert inside(tmp_path, "kept reason") != [] and inside(tmp_path, "my own") != []
        assert {edge.id for edge in graph.edges()} == {"e1", "e2"}
        assert workspace.diagnose() == []


@pytest.mark.parametrize("is_open", [False, True])
def test_files_of_a_workspace_are_cleared_when_a_node_is_erased(tmp_path: Path, is_open: bool) -> None:
    fill(tmp_path)
    workspace = Workspace.open(tmp_path) if is_open else None
    with ChronoStore(tmp_path) as store:
        store.erase(ids=["node:zqmia"], reason="asked for")
        assert holding(tmp_path, "zqmia") == []
        assert [path for path in tmp_path.rglob("*") if "zqmia" in path.name] == []
    with workspace or Workspace.open(tmp_path) as workspace:
        assert workspace.diagnose() == []
        assert [node.id for node in workspace.graph.nodes()] == ["tea"]


def test_files_of_a_workspace_are_cleared_by_a_scope_and_by_a_sweep(tmp_path: Path) -> None:
    fill(tmp_path / "scope", user="mia")
    with ChronoStore(tmp_path / "scope") as store:
        store.erase(scope={"user": "mia"}, reason="asked for")
        assert holding(tmp_path / "scope", "zqmia") == []
        assert [one.scope for one in store.scopes()] == [Scope()]
    fill(tmp_path / "sweep")
    with Workspace.open(tmp_path / "sweep") as workspace:
        store, until = workspace.store, {"expires_at": "2026-05-18T12:00:00Z"}
        workspace.home.handle.run(lambda conn: conn.patch("node:zqmia", {"data": until}))
        swept = store.sweep(erase=True, reason="it is over", now=lambda: START + timedelta(days=1))
        assert swept.ids == ("node:zqmia",)
        assert holding(tmp_path / "sweep", "zqmia") == []
