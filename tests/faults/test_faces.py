"""The harnesses of erasures through faces would find what they look for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import taught
from answers import differing
from chronomemory import ChronoStore
from chronomemory.episodes import Facts
from chronomemory.graph import Node
from faces import fact_of
from harness import Outcome
from victims import Victims


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Victims]:
    twins = Victims(tmp_path, "1")
    twins.steps = 1
    for _ in range(3):
        twins.learned()
        twins.told()
    twins.drawn_on()
    twins.written()
    for store in (twins.a, twins.b):
        store.upsert({"id": "K1", "label": "harbour lantern"})
    twins.align()
    yield twins
    twins.close()


def block_said(twins: Victims, store: ChronoStore) -> None:
    with twins.memory(store, "ann") as memory:
        memory.remember("only one of them has heard of it")


def block_taught(twins: Victims, store: ChronoStore) -> None:
    with twins.memory(store, None) as memory:
        memory.outcome([memory.list()[0]["id"]], 1.0)


def episode_told(twins: Victims, store: ChronoStore) -> None:
    told, names = twins.episode("x", "ann", "told to one of them")
    twins.episodes(store).put(told, **names)


def fact_believed(twins: Victims, store: ChronoStore) -> None:
    Facts(store).pin(fact_of("x", "ann", {"object": "tea"}, ["ann-e1"], 1))


def node_drawn(twins: Victims, store: ChronoStore) -> None:
    with twins.workspace(store) as workspace:
        workspace.graph.save_node(Node("x", "drink", "in one of them"))


def page_written(twins: Victims, store: ChronoStore) -> None:
    with twins.pages(store, "of-ann") as pages:
        pages.append("topic-tea", "in one of them", ["said"])


def rows(twins: Victims, name: str) -> dict[str, object]:
    record = twins.a.everyone().get(name)
    assert record is not None
    return {name: record.to_dict()}


FOUND = {
    block_said: "recall of ann",
    block_taught: "recall of None",
    episode_told: "episodes of ann",
    fact_believed: "facts",
    node_drawn: "nodes",
    page_written: "topic-tea of of-ann",
}


def test_twins_that_live_alike_answer_alike(pair: Victims) -> None:
    assert differing(pair) == []


@pytest.mark.parametrize("face", FOUND, ids=lambda face: str(face.__name__))
def test_what_one_face_of_one_twin_says_is_found(pair: Victims, face: object) -> None:
    assert callable(face)
    with pair.same():
        face(pair, pair.a)
    pair.align()
    assert any(said.startswith(FOUND[face]) for said in differing(pair)), differing(pair)


def test_what_changes_beside_an_erasure_is_found(pair: Victims) -> None:
    pair.confided()
    names = [one.name for one in pair.victims.values() if one.face == "episodes"]
    before = pair.everything()
    pair.report = pair.a.erase(ids=names, reason="asked for")
    went = [name.partition(":")[2] for name in names]
    assert pair.as_before(before, went, dropped=False) == []
    pair.a.everyone().upsert({"id": "K2", "label": f"heard of {went[0]}"})
    said = pair.as_before(
        {**before, "records": {**before["records"], **rows(pair, "K2")}}, went, dropped=False
    )
    assert [one[:35] for one in said] == ["K2 speaks of what went, and is not "]
    pair.a.delete("K1")
    assert any(said.startswith("K1 is") for said in pair.as_before(before, went, dropped=False))
    block = next(name for name in before["records"] if name.startswith("block:"))
    pair.a.erase(ids=[block], reason="nobody asked for it")
    assert any(said.startswith(f"{block} went too") for said in pair.as_before(before, went, dropped=False))


def test_what_a_pupil_alone_has_learned_is_found(tmp_path: Path) -> None:
    pupils = taught.Pupils(tmp_path, "2")
    for _ in range(20):
        pupils.act([pupils.store])
    went = set(pupils.secrets)
    other = pupils.part()
    assert len(went) > 1
    assert taught.compared(pupils, other, went) == []
    with pupils.memory(other, None) as memory:
        memory.outcome([memory.list()[0]["id"]], 1.0)
    assert taught.compared(pupils, other, went) != []
    other.close()
    pupils.forget()
    assert taught.judged(pupils) == []
    pupils.gone_ids.append(pupils.store.query(kind="block", faces=True)[0].id.partition(":")[2])
    assert any("the id of what was erased is in snapshot.json" in said for said in taught.judged(pupils))
    pupils.store.close()


def test_no_list_of_links_in_the_making_names_what_was_erased(tmp_path: Path) -> None:
    outcome = Outcome("taught")
    taught.live("1-2", 1, outcome)
    assert outcome.found == []
    assert outcome.counts["lists that still name one"] == 0
