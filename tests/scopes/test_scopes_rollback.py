"""What falls in a wide scope takes down what rests on it in narrower ones, and nothing else."""

from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoStore, DepGraph
from chronomemory.errors import IdTaken, OutOfScope


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with ChronoStore(tmp_path) as store:
        yield store


def rests(handle: Any, what: str, on: str) -> None:
    DepGraph.from_store(handle).add_edge(what, on, "depends_on")


def standing(store: ChronoStore) -> dict[str, str]:
    found = store.everyone().query(kind="fact", status="")
    return {record.id: record.status for record in found}


@pytest.fixture
def people(store: ChronoStore) -> Any:
    ann, bob = store.scoped(user="ann"), store.scoped(user="bob")
    store.upsert_many([{"id": "RULE"}, {"id": "LAW"}])
    ann.upsert_many([{"id": "A-1", "confidence": 0.8}, {"id": "A-2", "confidence": 0.4}])
    bob.upsert({"id": "B-1"})
    rests(ann, "A-1", "RULE")
    rests(ann, "A-2", "A-1")
    return ann, bob


def test_what_rests_on_it_below_is_doubted_in_the_same_batch(store: ChronoStore, people: Any) -> None:
    before = store.wal_seq()
    report = store.invalidate("RULE", "it was wrong")
    assert report.affected_ids == ["RULE"] and report.cascaded == []
    events = store.replay(from_seq=before + 1)
    assert [event.op for event in events] == ["begin", *["upsert"] * 5]
    assert standing(store) == {
        "RULE": "invalidated",
        "LAW": "active",
        "A-1": "hypothesis",
        "A-2": "hypothesis",
        "B-1": "active",
    }
    kept = store.get("ROLLBACK-RULE")
    assert kept is not None and kept.data["affected"] == ["RULE"] and len(kept.data["changes"]) == 1
    ann, _ = people
    doubted = ann.get("A-1")
    assert doubted.confidence == 0.4 and doubted.is_hypothesis and doubted.scope == ann.scope
    assert store.chain_valid() and store.verify().scopes == ()


def test_each_scope_is_told_what_was_doubted_in_it_and_can_take_it_back(
    store: ChronoStore, people: Any
) -> None:
    ann, bob = people
    bob.upsert({"id": "B-2"})
    rests(bob, "B-2", "RULE")
    store.invalidate("RULE", "it was wrong")
    own = ann.id("ROLLBACK-RULE")
    kept = ann.get(own)
    assert kept.data["affected"] == ["A-1", "A-2"] and kept.scope == ann.scope
    for name in ("A-1", "A-2"):
        (told,) = ann.rollbacks(name)
        assert (told.rollback_id, told.reason) == (own, "it was wrong")
    assert bob.get(bob.id("ROLLBACK-RULE")).data["affected"] == ["B-2"]
    assert bob.get(own) is None and store.get(own) is None
    assert [each.rollback_id for each in store.rollbacks("RULE")] == ["ROLLBACK-RULE"]
    ann.reinstate(own, "it holds for her")
    told = standing(store)
    assert (told["A-1"], told["A-2"], told["B-2"]) == ("active", "active", "hypothesis")
    assert told["RULE"] == "invalidated"
    assert store.verify().valid and store.verify().scopes == ()


def test_a_handle_withdraws_what_is_its_own(store: ChronoStore, people: Any) -> None:
    ann, bob = people
    now = store.scoped(user="ann", session="s1")
    now.upsert({"id": "A-3"})
    rests(now, "A-3", "A-1")
    assert ann.invalidate("A-1", "changed her mind").affected_ids == ["A-1", "A-2", "A-3"]
    kept = ann.query(kind="rollback_event", status="")
    assert [record.id for record in kept] == [ann.id("ROLLBACK-A-1")] and kept[0].scope == ann.scope
    assert bob.query(kind="rollback_event", status="") == []
    assert standing(store)["RULE"] == "active"
    with pytest.raises(OutOfScope):
        ann.invalidate("RULE", "not hers")
    assert bob.invalidate("A-1", "not seen").affected_ids == []
    assert standing(store)["A-2"] == "hypothesis" and standing(store)["RULE"] == "active"


def test_nothing_wider_falls_for_what_somebody_said(store: ChronoStore, people: Any) -> None:
    ann, bob = people
    rests(ann, "RULE", "A-1")
    rests(bob, "A-2", "LAW")
    rests(bob, "A-2", "B-1")
    assert ann.invalidate("A-1", "wrong").affected_ids == ["A-1", "A-2"]
    assert standing(store)["RULE"] == "active"
    store.invalidate("LAW", "wrong")
    assert bob.invalidate("B-1", "wrong").affected_ids == ["B-1"]
    assert store.everyone().get("A-2").confidence == 0.2, "once, by her own word"  # type: ignore[union-attr]


def test_what_goes_through_something_that_is_no_record(store: ChronoStore, people: Any) -> None:
    ann, bob = people
    rests(ann, "PAPER", "LAW")
    rests(ann, "A-2", "PAPER")
    rests(bob, "B-1", "PAPER")
    store.invalidate("LAW", "wrong")
    assert standing(store)["A-2"] == "hypothesis"
    assert standing(store)["B-1"] == "active", "he never said that the paper rests on the law"


def test_everyone_follows_every_edge(store: ChronoStore, people: Any) -> None:
    assert store.everyone().invalidate("RULE", "wrong").affected_ids == ["RULE", "A-1", "A-2"]


def test_ids_of_others_are_not_for_everyone_to_occupy(store: ChronoStore, people: Any) -> None:
    ann, _ = people
    everyone = store.everyone()
    others: list[dict[str, Any]] = [{}, {"@scope": {"user": "bob"}}]
    for data in (*others, {"@scope": {"user": "ann", "session": "s1"}}):
        with pytest.raises(IdTaken):
            everyone.upsert({"id": ann.id("TEA"), "data": data})
    everyone.upsert({"id": ann.id("TEA"), "data": {"@scope": {"user": "ann"}}})
    assert ann.get(ann.id("TEA")).scope == ann.scope
