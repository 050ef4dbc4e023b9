"""What refers to an erased record is kept, and does not say which record it was."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

import pytest
from chronomemory import ChronoStore, DepGraph
from chronomemory.blocks import Memory
from chronomemory.blocks.ids import content_hash
from chronomemory.episodes import AddDelta, Episode, Episodes, Facts
from chronomemory.graph import Action, ActionError, Approval, Node, Workspace
from chronomemory.mcp import file_editing, remembering
from chronomemory.mcp.reference import Entity, Relation, create_entities, create_relations, read_graph
from chronomemory.mcp.served_store import ServedStore
from chronomemory.pages import Pages
from chronomemory.scope import Scope
from test_erase import holding, is_valid_for_both
from world import START

PAGE = "---\ndescription: drinks\ntags: [tea]\n---\n\n# Tea\n\nThe pin is zq4711.\n"


def inside(root: Path, text: str) -> list[str]:
    """The files of the store that hold a text."""
    return holding(root / ".chronomemory", text)


def test_a_phone_number_cannot_be_guessed_from_the_blocks_beside_it(tmp_path: Path) -> None:
    with Memory(tmp_path) as memory:
        before = memory.remember("Anna is here").block_id
        secret = memory.remember("Her phone is 5550107", previous=before).block_id
        after = memory.remember("She will call back", previous=secret).block_id
        memory.remember("Her phone is none of your business", supersedes=secret)
    with ChronoStore(tmp_path) as store:
        store.compact()
        told = store.erase(ids=[f"block:{secret}"], reason="asked for")
        assert f"block:{after}" in told.mentions
        guesses = [content_hash(f"Her phone is {number}", Scope()) for number in range(5550100, 5550110)]
        assert [guess for guess in guesses if inside(tmp_path, guess)] == []
        assert is_valid_for_both(store)
    with Memory(tmp_path) as memory:
        assert {block["content"] for block in memory.list()} == {
            "Anna is here",
            "She will call back",
            "Her phone is none of your business",
        }


@pytest.mark.parametrize("what", ["page", "folder's results"])
def test_kept_results_of_file_edits_go_with_the_page(tmp_path: Path, what: str) -> None:
    with ChronoStore(tmp_path) as store:
        served = ServedStore(store, Scope())
        file_editing.create(served, "/memories/topic-tea.md", PAGE, operation_id="one")
        file_editing.str_replace(
            served, "/memories/topic-tea.md", "zq4711", "zq4711 or zq4712", operation_id="two"
        )
        file_editing.create(served, "/memories/topic-rum.md", PAGE.replace("zq4711", "9"), operation_id="x")
        asked = hashlib.sha256
        (page,) = (one for one in store.query(kind="page", faces=True) if one.data["name"] == "topic-tea")
        entries = [one.id for one in store.query(faces=True, status=None) if one.data.get("page") == page.id]
        store.compact()
        ids = [page.id, *entries] if what == "page" else [page.id]
        store.erase(ids=ids, reason="asked for")
        for text in ("zq4711", "zq4712", "topic-tea", asked(PAGE.encode()).hexdigest()[:32]):
            assert inside(tmp_path, text) == [], text
        assert is_valid_for_both(store)
        with Pages(store) as pages:
            assert "The pin is 9" in pages.text("topic-rum")


def test_an_entry_is_erased_with_the_digests_of_its_page(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store, Pages(store, clock=lambda: START) as pages:
        pages.create("topic-tea", "drinks", ["tea"])
        first = pages.append("topic-tea", "The pin is zq4711.", ["tea"])
        second = pages.supersede("topic-tea", first, "The pin is zq4712.", "it changed")
        text = pages.text("topic-tea")
        (entry,) = (one for one in store.query(kind="entry", faces=True) if one.data["id"] == second)
        told = store.erase(ids=[entry.id], reason="asked for")
        assert entry.data["page"] in told.mentions
        digest = hashlib.sha256(text.encode()).hexdigest()[:32]
        for needle in ("zq4712", second, digest):
            assert inside(tmp_path, needle) == [], needle
        assert is_valid_for_both(store)
        assert pages.list() != []


def test_relations_go_with_their_entity(tmp_path: Path) -> None:
    for number, names in enumerate(({}, {"user": "ann"})):
        with ChronoStore(tmp_path / str(number)) as store:
            served = ServedStore(store, Scope(**names))
            people = ("Zqmia", "Tom", "Ann")
            create_entities(
                served, [Entity(name=name, entityType="person", observations=[]) for name in people]
            )
            rows = [("Zqmia", "Tom", "knows"), ("Tom", "Zqmia", "likes"), ("Tom", "Ann", "likes")]
            create_relations(
                served, [Relation(from_=one, to=other, relationType=how) for one, other, how in rows]
            )
            door = store.everyone()
            (entity,) = (one for one in door.query(kind="entity") if one.label == "Zqmia")
            told = store.erase(ids=[entity.id], reason="asked for")
            assert len(told.belonging) == 2
            assert inside(store.project_root, "Zqmia") == []
            assert [row["to"] for row in read_graph(served, 4000).structured["relations"]] == ["Ann"]
            assert is_valid_for_both(store)


def test_what_a_call_doubted_takes_the_kept_result_along(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert_many([{"id": "ground", "label": "a"}, {"id": "zqmia", "label": "b"}])
        DepGraph(store).add_edge("zqmia", "ground", "depends_on")
        served = ServedStore(store, Scope())
        remembering.retract(served, "ground", reason="wrong", operation_id="one")
        store.erase(ids=["zqmia"], reason="asked for")
        assert inside(tmp_path, "zqmia") == []


def test_a_fact_is_kept_without_the_id_of_an_erased_episode(tmp_path: Path) -> None:
    owner = {"user": "ann", "agent": "bot"}
    with ChronoStore(tmp_path) as store, Episodes(store) as episodes, Facts(store) as facts:
        for name in ("zqturn", "other"):
            episode = Episode(
                id=name, content="hello", timestamp=START, source_node="n", session="s", **owner
            )
            episodes.put(episode, session="s", **owner)
        delta = AddDelta(
            kind="add",
            rule_id="r",
            promotion_ts=START,
            source_episode_ids=["zqturn", "other"],
            confidence=0.9,
            fact_payload={"id": "f", "content": "ann said hello", **owner},
        )
        facts.apply_delta(delta)
        planned = store.erase(ids=["episode:zqturn"], reason="asked for", dry_run=True)
        told = store.erase(ids=["episode:zqturn"], reason="asked for")
        assert planned.mentions == told.mentions == ("fact:f",)
        assert inside(tmp_path, "zqturn") == []
        fact = facts.get("f")
        assert fact is not None
        assert [step["source_episode_ids"] for step in fact.lineage] == [["other"]]
        assert store.erase(ids=["episode:other"], reason="asked for", derived=True).belonging == ("fact:f",)
        assert is_valid_for_both(store)


def test_evidence_is_cut_and_embeddings_of_what_is_kept_stay(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "zqmia", "label": "Mia"})
        store.upsert({"id": "W", "label": "a witness", "evidence": ["zqmia", "a letter"]})
        store.vectors.attach_many(["zqmia", "W"], [[1.0, 0.0], [0.0, 1.0]], model="m")
        before = store.vectors.get("W")
        store.erase(ids=["zqmia"], reason="asked for")
        kept = store.get("W")
        assert kept is not None
        assert kept.evidence == ["a letter"]
        after = store.vectors.get("W")
        assert before is not None
        assert after is not None
        assert list(after) == list(before)
        assert inside(tmp_path, "zqmia") == []
    with ChronoStore(tmp_path) as store:
        assert store.vectors.get("W") is not None
        assert is_valid_for_both(store)


def test_a_report_keeps_no_id_of_a_later_rollback_in_a_text(tmp_path: Path) -> None:
    with ChronoStore(tmp_path, salt=True) as store:
        store.upsert_many([{"id": "mia@example.org"}, {"id": "beta"}, {"id": "C"}])
        graph = DepGraph(store)
        graph.add_edge("C", "mia@example.org", "depends_on")
        graph.add_edge("C", "beta", "depends_on")
        store.invalidate("beta", "wrong")
        store.invalidate("mia@example.org", "wrong too")
        (left,) = store.reinstate("ROLLBACK-beta", "it was right").left
        assert left.why.endswith(", by ROLLBACK-mia@example.org: take that back first")
        store.erase(ids=["mia@example.org"], reason="asked for")
        assert inside(tmp_path, "mia@example.org") == []
        assert is_valid_for_both(store)


@pytest.mark.parametrize(
    "action",
    [
        Action("a", "delete_edge", "supersedes:third:m%3Aia%25"),
        Action("a", "put_node", "third", {"kind": "p", "label": "x", "data": {"superseded_by": "m:ia%"}}),
    ],
)
def test_audit_and_events_forget_the_node_that_an_action_names(tmp_path: Path, action: Action) -> None:
    with Workspace.create(tmp_path) as made:
        made.graph.save(nodes=[Node("m:ia%", "p", "Mia"), Node("third", "p", "T")])
        with suppress(ActionError):
            made.runtime.apply([action], [Approval.of(action, "ann")])
    with ChronoStore(tmp_path) as store:
        store.erase(ids=["node:m:ia%"], reason="asked for")
        assert is_valid_for_both(store)
    for name in ("m:ia%", "m%3Aia%25"):
        assert holding(tmp_path, name) == []
