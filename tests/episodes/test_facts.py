"""Facts are pinned, replaced and found, each with all that led to it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from chronomemory import ChronoStore
from chronomemory.episodes import (
    AddDelta,
    ConsolidationRuleError,
    DeleteDelta,
    Episodes,
    Fact,
    FactConflictError,
    FactPattern,
    Facts,
    MemoryScopeError,
    NoopDelta,
    UpdateDelta,
)
from conversing import START, episode, put, rule
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

STEP = {"rule_id": "by hand", "source_episode_ids": ["e0"], "promotion_ts": START.isoformat()}


def fact(name: str, *, user: str = "ann", agent: str = "helper", minute: int = 0, **payload: Any) -> Fact:
    return Fact(
        id=name,
        user=user,
        agent=agent,
        payload=payload,
        lineage=[STEP],
        confidence=0.9,
        pinned_at=START + timedelta(minutes=minute),
    )


def provenance(*sources: str, minute: int = 0, rule_id: str = "r") -> dict[str, Any]:
    when = START + timedelta(minutes=minute)
    return {"source_episode_ids": list(sources), "promotion_ts": when, "rule_id": rule_id, "confidence": 0.8}


def add(name: str, *, user: str = "ann", **more: Any) -> AddDelta:
    payload = {"id": name, "user": user, "agent": "helper", "content": name}
    return AddDelta(kind="add", fact_payload=payload, **provenance(name, **more))


def update(name: str, *replaces: str, user: str = "ann", **more: Any) -> UpdateDelta:
    payload = {"id": name, "user": user, "agent": "helper", "content": name}
    return UpdateDelta(
        kind="update", replaces=list(replaces), fact_payload=payload, **provenance(name, **more)
    )


def ids(facts: Facts, **slots: str) -> list[str]:
    return [one.id for one in facts.query(FactPattern(**slots))]


class TestPinning:
    def test_a_fact_comes_back_whole(self, facts: Facts, store: ChronoStore) -> None:
        told = fact("f", subject="ann", predicate="lives in", object="Oslo", nested={"n": None})
        facts.pin(told)
        assert facts.query(FactPattern(user="ann")) == [told]
        assert facts.get("f") == told
        assert [hit.id for hit in store.scoped(user="ann").search("Oslo")] == ["fact:f"]
        assert facts.health().fragment_count == 1

    def test_slots_are_equal_or_any(self, facts: Facts) -> None:
        facts.pin(fact("b", minute=1, subject="ann", predicate="likes", object="tea"))
        facts.pin(fact("c", minute=1, subject="ann", predicate="likes", object="Tea"))
        facts.pin(fact("a", minute=2, agent="other", subject="ann", predicate="lives in", object="Oslo"))
        facts.pin(fact("z", user="bob", subject="ann", predicate="likes", object="te_"))
        assert ids(facts) == ["z", "b", "c", "a"]
        assert ids(facts, user="ann") == ["b", "c", "a"]
        assert ids(facts, user="ann", object="tea") == ["b"]
        assert ids(facts, agent="other") == ["a"]
        assert ids(facts, user="ann", agent="helper", predicate="likes") == ["b", "c"]
        assert ids(facts, object="te%") == ids(facts, user="an") == ids(facts, user="ANN") == []
        with pytest.raises(MemoryScopeError):
            ids(facts, user="")

    def test_pinning_replaces_by_id_and_never_what_is_anothers(self, facts: Facts) -> None:
        facts.pin(fact("f", object="tea"))
        facts.pin(fact("f", object="coffee"))
        assert [one.payload for one in facts.query(FactPattern(user="ann"))] == [{"object": "coffee"}]
        for thief in (fact("f", user="bob"), fact("f", agent="other")):
            with pytest.raises(MemoryScopeError):
                facts.pin(thief)
        facts.unpin("f")
        with pytest.raises(MemoryScopeError):
            facts.pin(fact("f", user="bob"))
        assert ids(facts) == []

    def test_a_fact_has_a_lineage(self, facts: Facts) -> None:
        with pytest.raises(ConsolidationRuleError, match=r"^pin: .*lineage"):
            facts.pin(fact("f").model_copy(update={"lineage": []}))

    def test_the_past_is_there(self, facts: Facts, store: ChronoStore) -> None:
        facts.apply_delta(add("a"))
        then = store.engine.last_seq()
        event = store.everyone().history("fact:a")[-1]
        facts.apply_delta(update("b", "a"))
        facts.apply_delta(add("c", user="bob"))
        moment = datetime.fromisoformat(event.ts)
        assert ids(facts) == ["b", "c"]
        for when in (then, moment):
            past = facts.query(FactPattern(), as_of=when)
            assert [(one.id, len(one.lineage)) for one in past] == [("a", 1)]
            assert [one.id for one in facts.query(FactPattern(user="ann"), as_of=when)] == ["a"]
            assert facts.query(FactPattern(user="bob"), as_of=when) == []
        assert facts.query(FactPattern(), as_of=0) == []

    def test_unpinning_keeps_the_history(self, facts: Facts, store: ChronoStore) -> None:
        facts.pin(fact("f"))
        then = store.engine.last_seq()
        with pytest.raises(MemoryScopeError):
            facts.unpin("f", user="bob")
        facts.unpin("f", user="ann")
        assert ids(facts) == []
        assert facts.get("f") is None
        assert [one.id for one in facts.query(FactPattern(user="ann"), as_of=then)] == ["f"]
        assert [event.op for event in store.everyone().history("fact:f")] == ["upsert", "delete"]
        with pytest.raises(FactConflictError):
            facts.unpin("f")
        facts.unpin("f", missing_ok=True)


class TestDeltas:
    def test_an_update_carries_the_whole_story(self, facts: Facts) -> None:
        facts.apply_delta(add("a"))
        facts.apply_delta(update("b", "a", minute=1))
        facts.apply_delta(update("c", "b", minute=2))
        (left,) = facts.query(FactPattern(user="ann"))
        assert left.id == "c"
        assert [step["source_episode_ids"] for step in left.lineage] == [["a"], ["b"], ["c"]]
        assert left.lineage[1] == {
            "rule_id": "r",
            "source_episode_ids": ["b"],
            "promotion_ts": (START + timedelta(minutes=1)).isoformat(),
        }
        assert (left.confidence, left.pinned_at) == (0.8, START + timedelta(minutes=2))

    def test_several_facts_become_one(self, facts: Facts) -> None:
        for name in "ab":
            facts.apply_delta(add(name))
        facts.apply_delta(update("b", "a", "b", minute=1))
        (left,) = facts.query(FactPattern())
        assert [step["source_episode_ids"] for step in left.lineage] == [["a"], ["b"], ["b"]]

    def test_unpin_and_pin_are_one_batch(self, facts: Facts, store: ChronoStore) -> None:
        facts.apply_delta(add("a"))
        before = store.engine.last_seq()
        facts.apply_delta(update("b", "a"))
        events = list(store.everyone().engine.replay(before + 1))
        assert len(events) == 3
        for seq, wanted in ((before, ["a"]), (before + 3, ["b"])):
            assert [one.id for one in facts.query(FactPattern(), as_of=seq)] == wanted

    def test_a_delta_that_fails_leaves_nothing(self, facts: Facts, store: ChronoStore) -> None:
        facts.apply_delta(add("a"))
        head = store.engine.last_event()[1]
        for bad in (
            update("b", "a", "missing"),
            DeleteDelta(kind="delete", replaces=["a", "x"], **provenance("e")),
        ):
            with pytest.raises(FactConflictError) as caught:
                facts.apply_delta(bad)
            assert caught.value.fact_id in ("missing", "x")
        with pytest.raises(ConsolidationRuleError):
            facts.apply_delta(update("b", "a").model_copy(update={"confidence": 2.0}))
        assert store.engine.last_event()[1] == head
        facts.apply_delta(update("b", "a", "missing"), missing_ok=True)
        assert ids(facts) == ["b"]

    def test_a_delete_unpins(self, facts: Facts) -> None:
        for name in "abc":
            facts.apply_delta(add(name))
        facts.apply_delta(DeleteDelta(kind="delete", replaces=["a", "c"], **provenance("e")))
        assert ids(facts) == ["b"]

    def test_a_noop_leaves_its_event_and_nothing_else(self, facts: Facts, store: ChronoStore) -> None:
        before = store.engine.last_seq()
        for _ in range(2):
            facts.apply_delta(NoopDelta(kind="noop", **provenance("e")))
        assert store.engine.last_seq() == before + 2
        assert ids(facts) == []
        assert store.everyone().query(faces=True) == []

    def test_a_payload_says_whose_fact_it_is(self, facts: Facts) -> None:
        for payload in (
            {},
            {"user": "ann"},
            {"user": "ann", "agent": 5},
            {"user": "a", "agent": "b", "id": " "},
        ):
            with pytest.raises(ConsolidationRuleError, match="fact_payload"):
                facts.apply_delta(AddDelta(kind="add", fact_payload=payload, **provenance("e")))
        with pytest.raises(MemoryScopeError):
            facts.apply_delta(
                AddDelta(kind="add", fact_payload={"user": "a/b", "agent": "b"}, **provenance("e"))
            )

    def test_a_payload_without_an_id_gets_one_that_stays(self, facts: Facts) -> None:
        delta = AddDelta(kind="add", fact_payload={"user": "a", "agent": "b"}, **provenance("e"))
        facts.apply_delta(delta)
        facts.apply_delta(delta)
        assert len(ids(facts)) == 1

    def test_nobody_replaces_what_is_anothers(
        self, facts: Facts, episodes: Episodes, store: ChronoStore
    ) -> None:
        put(episodes, episode("bob's", user="bob"))
        facts.apply_delta(add("a"))
        head = store.engine.last_event()[1]
        gone = DeleteDelta(kind="delete", replaces=["a"], **provenance("bob's"))
        for bad in (update("b", "a", user="bob"), add("a", user="bob"), gone):
            with pytest.raises(MemoryScopeError):
                facts.apply_delta(bad)
        with pytest.raises(MemoryScopeError):
            facts.apply_delta(gone.model_copy(update={"source_episode_ids": ["elsewhere"]}), user="bob")
        assert store.engine.last_event()[1] == head
        assert ids(facts, user="ann") == ["a"]

    def test_a_delete_whose_episodes_are_elsewhere_is_of_one_owner(
        self, facts: Facts, store: ChronoStore
    ) -> None:
        for one in (add("a"), add("b"), add("c", user="bob")):
            facts.apply_delta(one)
        head = store.engine.last_event()[1]
        gone = DeleteDelta(kind="delete", replaces=["a", "c"], **provenance("elsewhere"))
        with pytest.raises(MemoryScopeError, match="'c' is of another owner"):
            facts.apply_delta(gone)
        assert store.engine.last_event()[1] == head
        facts.apply_delta(gone.model_copy(update={"replaces": ["a", "b"]}))
        assert ids(facts) == ["c"]

    def test_a_fact_is_of_whoever_its_episodes_are(self, facts: Facts, episodes: Episodes) -> None:
        put(episodes, episode("a"), episode("b", user="bob"))
        facts.apply_delta(add("mine", user="bob").model_copy(update={"source_episode_ids": ["b"]}))
        for bad in (add("a", user="bob"), update("a", "mine", user="bob")):
            with pytest.raises(MemoryScopeError, match="another user than its episodes"):
                facts.apply_delta(bad)
        with pytest.raises(MemoryScopeError, match="several users"):
            facts.apply_delta(add("both").model_copy(update={"source_episode_ids": ["a", "b"]}))
        assert ids(facts) == ["mine"]

    def test_why_leads_from_a_fact_to_its_episodes(
        self, facts: Facts, episodes: Episodes, store: ChronoStore
    ) -> None:
        lives = {"subject": "ann", "predicate": "lives in"}
        put(episodes, episode("a", **lives, object="Rome"), episode("b", minute=1, **lives, object="Oslo"))
        for delta in episodes.consolidate(rule()):
            facts.apply_delta(delta)
        (left,) = facts.query(FactPattern(subject="ann", predicate="lives in"))
        assert left.payload["object"] == "Oslo"
        grounds = store.scoped(user="ann").why("fact:b").root.grounds
        found = [(ground.record_id, ground.record and ground.record.created_seq) for ground in grounds]
        assert found == [("episode:a", 1), ("episode:b", 2)]
        assert store.verify().valid


#: Names that meant something to somebody: patterns, quotes, prefixes, pairs of case and of normal forms.
NASTY = ["ann", "annX", "Ann", "an_", "%", "_", "*", "..", "'", '"', "é", "e\u0301", " ", "ann ", "\\", "😀"]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(users=st.lists(st.sampled_from(NASTY), min_size=2, max_size=6, unique=True), data=st.data())
def test_no_owner_replaces_or_sees_what_is_anothers(
    tmp_path_factory: pytest.TempPathFactory, users: list[str], data: st.DataObject
) -> None:
    with ChronoStore(tmp_path_factory.mktemp("owners"), durability="off") as store, Facts(store) as facts:
        for number, user in enumerate(users):
            facts.apply_delta(add(f"f{number}", user=user))
        victim = data.draw(st.integers(0, len(users) - 1))
        for thief in users:
            if thief == users[victim]:
                continue
            for bad in (update("new", f"f{victim}", user=thief), add(f"f{victim}", user=thief)):
                with pytest.raises(MemoryScopeError):
                    facts.apply_delta(bad)
        for number, user in enumerate(users):
            assert ids(facts, user=user) == [f"f{number}"]
