"""Rules are run when they are due, each episode once, whatever happens in between."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoStore
from chronomemory.episodes import (
    ChronoFactStore,
    ChronoMemoryStore,
    ConsolidationRule,
    ConsolidationRuleError,
    ConsolidationRunner,
    Fact,
    FactPattern,
    RuleRun,
    RunReport,
)
from chronomemory.face.batch import Connection
from conversing import START, episode, put, rule

LIVES = {"subject": "ann", "predicate": "lives in"}


class House:
    """Episodes and facts of one store, a clock that is set by hand, and a runner."""

    def __init__(
        self, store: ChronoStore, *rules: ConsolidationRule, facts: ChronoStore | None = None
    ) -> None:
        self.now = START
        self.memory = ChronoMemoryStore(store)
        self.facts = ChronoFactStore(facts or store)
        self.runner = ConsolidationRunner(self.memory, self.facts, rules, clock=lambda: self.now)

    def put(self, name: str, **more: Any) -> None:
        put(self.memory.episodes, episode(name, **more))

    def run(self) -> RunReport:
        return asyncio.run(self.runner.run())

    def left(self, **slots: str) -> list[Fact]:
        return self.facts.facts.query(FactPattern(**slots))


def done(report: RunReport) -> list[tuple[bool, int, int, int, int]]:
    return [(run.due, run.matched, run.added, run.updated, run.deleted) for run in report.rules]


def test_new_episodes_become_facts_once(store: ChronoStore) -> None:
    house = House(store, rule("metadata.subject IS NOT NULL", then_emits=["homes"]))
    house.put("chatter")
    house.put("a", minute=1, **LIVES, object="Rome")
    assert done(house.run()) == [(True, 1, 1, 0, 0)]
    assert done(house.run()) == [(False, 0, 0, 0, 0)]
    head = store.engine.last_event()[1]
    assert house.run().applied == 0
    assert store.engine.last_event()[1] == head
    house.put("b", minute=2, **LIVES, object="Oslo")
    assert done(house.run()) == [(True, 1, 0, 1, 0)]
    assert [fact.id for fact in house.left(channel="homes")] == ["b"]
    assert house.left(channel="home") == []
    assert [fact.metadata for fact in house.left()] == [{"channels": ["homes"]}]


def test_what_a_rule_did_for_somebody_changes_no_score_of_another(store: ChronoStore) -> None:
    store.upsert_many([{"id": "F1", "label": "shared tea"}, {"id": "F2", "label": "coffee"}])
    bob = store.scoped(user="bob")
    before = [(hit.id, hit.score.hex()) for hit in bob.search("tea")]
    house = House(store, rule("metadata.subject IS NOT NULL"))
    house.put("a", **LIVES, object="Rome")
    assert house.run().applied == 1
    assert [(hit.id, hit.score.hex()) for hit in bob.search("tea")] == before


def test_late_news_of_long_ago_is_new(store: ChronoStore) -> None:
    house = House(store, rule())
    house.put("a", minute=10)
    house.run()
    house.put("b", minute=1)
    assert done(house.run()) == [(True, 1, 1, 0, 0)]


def test_every_waits_for_so_many_that_match(store: ChronoStore) -> None:
    house = House(store, rule("content LIKE 'x%'", every=3))
    for name in ("x1", "other", "x2"):
        house.put(name)
    assert done(house.run()) == [(False, 2, 0, 0, 0)]
    house.put("x3")
    assert done(house.run()) == [(True, 3, 3, 0, 0)]
    house.put("x4")
    assert done(house.run()) == [(False, 1, 0, 0, 0)]


def test_cron_waits_for_its_time(store: ChronoStore) -> None:
    house = House(store, rule(cron="0 3 * * *"))
    house.put("a")
    assert done(house.run()) == [(False, 1, 0, 0, 0)]  # 09:00: seen for the first time
    house.now = datetime.fromisoformat("2026-05-19T02:59:59+00:00")
    assert not house.run().rules[0].due
    house.now = datetime.fromisoformat("2026-05-19T05:00:00+02:00")
    assert done(house.run()) == [(True, 1, 1, 0, 0)]
    house.put("b")
    assert not house.run().rules[0].due
    house.now += timedelta(days=3)
    assert done(house.run()) == [(True, 1, 1, 0, 0)]
    assert not house.run().rules[0].due
    house.now += timedelta(days=1)
    assert done(house.run()) == [(True, 0, 0, 0, 0)]  # its time came, and there was nothing to do
    house.put("c")
    assert not house.run().rules[0].due


def test_a_clock_that_was_ahead_once_keeps_no_cron_waiting(store: ChronoStore) -> None:
    house = House(store, rule(cron="0 * * * *"))
    house.put("a")
    house.run()
    begun, house.now = house.now, house.now + timedelta(days=365)
    assert house.run().rules[0].due
    house.put("b")
    house.now = begun + timedelta(hours=1)
    assert done(house.run()) == [(True, 1, 1, 0, 0)]
    house.put("c")
    assert not house.run().rules[0].due, "by the clock that is right now it has just been"


def test_what_makes_no_sense_is_reported_and_the_rest_is_done(store: ChronoStore) -> None:
    house = House(store, rule())
    house.put("a")
    house.put("thief", user="bob", minute=1)
    house.run()
    house.put("bad", minute=2, intent="delete")
    house.put("steals", user="bob", minute=3, intent="delete", replaces="a")
    house.put("takes", user="bob", minute=4, intent="update", replaces="a")
    house.put("late", minute=5, intent="delete", replaces="never there")
    house.put("seen", minute=6, intent="noop")
    house.put("good", minute=7, intent="update", replaces="a")
    (run,) = house.run().rules
    assert run == RuleRun(
        "rule",
        due=True,
        matched=6,
        updated=1,
        left=1,
        bad_episode_ids=("bad",),
        refused_episode_ids=("steals", "takes"),
        missing_fact_ids=("never there",),
    )
    assert [fact.id for fact in house.left()] == ["good", "thief"]
    assert "3 refused" in str(run)
    assert house.run().to_dict()["rules"][0]["due"] is False


def test_a_delta_that_is_refused_does_nothing_of_what_it_says(store: ChronoStore) -> None:
    house = House(store, rule())
    for name, user in (("a", "ann"), ("b", "bob"), ("c", "bob")):
        house.put(name, user=user)
    house.run()
    taken = house.left(user="ann")[0].model_copy(update={"id": "e2"})
    house.facts.facts.pin(taken)
    house.put("e1", user="bob", minute=1, intent="delete", replaces=["b", "a"])
    house.put("e2", user="bob", minute=2, intent="update", replaces=["c"])
    (run,) = house.run().rules
    assert run.refused_episode_ids == ("e1", "e2")
    assert [fact.id for fact in house.left()] == ["a", "b", "c", "e2"]


def test_facts_may_live_elsewhere(store: ChronoStore, tmp_path: Path) -> None:
    with ChronoStore(tmp_path / "facts") as other:
        house = House(store, rule(), facts=other)
        house.put("a")
        head = store.engine.last_event()[1]
        assert house.run().applied == 1
        assert house.run().applied == 0
        assert store.engine.last_event()[1] == head
        assert [fact.id for fact in house.left()] == ["a"]


def test_a_changed_episode_is_looked_at_again(store: ChronoStore) -> None:
    house = House(store, rule())
    house.put("a", content="first")
    house.run()
    house.put("a", content="second")
    assert done(house.run()) == [(True, 1, 1, 0, 0)]
    assert [fact.payload["content"] for fact in house.left()] == ["second"]


class KilledError(Exception):
    """The runner is gone."""


@pytest.mark.parametrize("verb", ["put", "delete", "commit", "committed"])
@pytest.mark.parametrize("step", range(4))
def test_a_runner_that_dies_at_any_point_ends_in_the_same_facts(
    store: ChronoStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, step: int
) -> None:
    rules = [rule("user = 'ann'", name="one", then_emits=["x"]), rule("user = 'bob'", name="two")]

    def fill(house: House) -> House:
        house.put("a", **LIVES)
        house.put("b", minute=1, **LIVES)
        house.put("c", minute=2, intent="delete", replaces="b")
        house.put("d", minute=3, **LIVES)
        house.put("e", user="bob", minute=4)
        return house

    with ChronoStore(tmp_path / "undisturbed") as other:
        calm = fill(House(other, *rules))
        calm.run()
        wanted = calm.left()
    house = fill(House(store, *rules))
    calls = 0
    whole = getattr(Connection, verb.removesuffix("ted"))

    def dies(conn: Connection, *args: Any) -> Any:
        nonlocal calls
        calls += 1
        if verb == "committed":
            whole(conn, *args)
        if calls > step:
            raise KilledError
        return None if verb == "committed" else whole(conn, *args)

    with monkeypatch.context() as patched:
        patched.setattr(Connection, verb.removesuffix("ted"), dies)
        try:
            house.run()
        except KilledError:
            assert calls == step + 1
    again = House(store, *rules)
    again.run()
    assert again.left() == wanted
    assert [fact.id for fact in wanted] == ["d", "e"]
    assert again.run().applied == 0


@pytest.mark.parametrize(
    "cadence",
    [
        *(
            {},
            {"every": 0},
            {"every": True},
            {"every": "3"},
            {"every": 1.5},
            {"cron": "* * * *"},
            {"cron": 5},
        ),
        *(
            {"cron": "* * * * * *"},
            {"cron": "61 * * * *"},
            {"cron": "@daily"},
            {"every": 1, "cron": "* * * * *"},
        ),
    ],
)
def test_what_is_no_cadence_is_refused(store: ChronoStore, cadence: dict[str, Any]) -> None:
    bad = ConsolidationRule(id="r", cadence=cadence, when_filter="", then_emits=[])
    with pytest.raises(ConsolidationRuleError, match="cadence") as caught:
        House(store, bad)
    assert caught.value.rule_id == "r"


def test_rules_are_told_apart(store: ChronoStore) -> None:
    with pytest.raises(ConsolidationRuleError, match="two rules"):
        House(store, rule(), rule())
    with pytest.raises(ConsolidationRuleError, match="then_emits"):
        House(store, rule(then_emits=[" "]))


def test_two_runners_at_once_do_the_work_once(store: ChronoStore, tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as same:
        first, second = House(store, rule()), House(same, rule())
        for number in range(20):
            first.put(f"e{number}", minute=number, **LIVES)

        async def both() -> list[RunReport]:
            return list(await asyncio.gather(first.runner.run(), second.runner.run()))

        reports = asyncio.run(both())
        assert sum(report.applied for report in reports) == 20
        (left,) = first.left()
        assert len(left.lineage) == 20


def test_episodes_that_went_back_to_a_copy_are_gone_through_again(tmp_path: Path) -> None:
    with ChronoStore(tmp_path / "episodes") as episodes, ChronoStore(tmp_path / "facts") as facts:
        house = House(episodes, rule(), facts=facts)
        house.put("e1")
        copy = episodes.backup()
        for number in range(2, 8):
            house.put(f"e{number}")
        assert done(house.run()) == [(True, 7, 7, 0, 0)]
        episodes.upkeep.restore(copy)
        for number in range(8):
            # Their events have the numbers of those that were left behind, and later ones.
            house.put(f"new{number}")
        house.run()
        assert {fact.id for fact in house.left()} >= {f"new{number}" for number in range(8)}
        assert done(house.run()) == [(False, 0, 0, 0, 0)]


@pytest.mark.parametrize("keep_history", [True, False])
def test_a_compaction_of_the_episodes_makes_nothing_new(tmp_path: Path, keep_history: bool) -> None:
    with ChronoStore(tmp_path / "episodes") as episodes, ChronoStore(tmp_path / "facts") as facts:
        house = House(episodes, rule(), facts=facts)
        house.put("e1")
        house.run()
        house.put("e2")
        episodes.compact(keep_history=keep_history)
        house.run()
        assert [fact.id for fact in house.left()] == ["e1", "e2"]
        assert done(house.run()) == [(False, 0, 0, 0, 0)]
