"""This face keeps its word to those who try to break it."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoRecord, ChronoStore
from chronomemory.episodes import (
    ChronoFactStore,
    ChronoMemoryStore,
    ConsolidationRule,
    ConsolidationRuleError,
    DeleteDelta,
    Episodes,
    Fact,
    FactPattern,
    Facts,
    MemoryScopeError,
    MigrationNotSupported,
    MigrationPlan,
    NoopDelta,
)
from chronomemory.episodes.kept import Progress, put_progress
from chronomemory.episodes.memory import utc_text
from chronomemory.episodes.runner import RuleRun, Runner
from conversing import START, episode, put, rule

LIVES = {"subject": "ann", "predicate": "lives in"}


def run(store: ChronoStore, *rules: ConsolidationRule) -> tuple[RuleRun, ...]:
    given = [ChronoMemoryStore(store), ChronoFactStore(store), rules]
    return Runner(*given, clock=lambda: START).run().rules


def ids(facts: Facts) -> list[str]:
    return [fact.id for fact in facts.query(FactPattern())]


@pytest.mark.parametrize("user", ["", "a/b", "a\nb"])
def test_a_delta_is_of_a_name_that_is_one(episodes: Episodes, facts: Facts, user: str) -> None:
    put(episodes, episode("a"))
    facts.apply_delta(episodes.consolidate(rule())[0])
    told = {"source_episode_ids": ["elsewhere"], "promotion_ts": START, "rule_id": "r", "confidence": 1.0}
    for delta in (DeleteDelta(kind="delete", replaces=["a"], **told), NoopDelta(kind="noop", **told)):
        with pytest.raises(MemoryScopeError):
            facts.apply_delta(delta, user=user)
    assert ids(facts) == ["a"]


class TestSeveralRulesOverOneEpisode:
    """What each of them made stays."""

    @pytest.fixture(autouse=True)
    def moves(self, episodes: Episodes) -> None:
        put(episodes, *(episode(f"e{number}", minute=number, **LIVES) for number in range(3)))

    def test_a_late_rule_adds_its_step_and_channel(self, store: ChronoStore, facts: Facts) -> None:
        first = rule(then_emits=["ch"])
        run(store, first)
        run(store, first, rule("id = 'e2'", name="late", then_emits=["late", "ch"]))
        (left,) = facts.query(FactPattern())
        assert [(step["rule_id"], *step["source_episode_ids"]) for step in left.lineage] == [
            *(("rule", "e0"), ("rule", "e1"), ("rule", "e2"), ("late", "e2"))
        ]
        assert left.metadata == {"channels": ["ch", "late"]}
        assert store.scoped(user="ann").get("fact:e2").evidence == [f"episode:e{n}" for n in range(3)]

    def test_plain_rules_share_a_fact(self, store: ChronoStore, facts: Facts) -> None:
        run(
            store,
            rule("id = 'e1'", name="a", then_emits=["a"]),
            rule("id = 'e1'", name="b", then_emits=["b"]),
        )
        (left,) = facts.query(FactPattern(channel="a"))
        assert left.metadata == {"channels": ["a", "b"]}
        assert [step["rule_id"] for step in left.lineage] == ["a", "b"]

    @pytest.mark.parametrize("when", ["id = 'e0'", "id = 'e1'", "id IN ('e0', 'e1')"])
    def test_what_was_replaced_is_not_brought_back(self, store: ChronoStore, facts: Facts, when: str) -> None:
        run(store, rule())
        (late,) = run(store, rule(when, name="late"))
        assert ids(facts) == ["e2"]
        assert (late.added, late.updated, late.left) == (0, 0, late.matched)
        assert late.missing_fact_ids == ()

    def test_the_same_twice_is_one_fact(self, store: ChronoStore, facts: Facts) -> None:
        first, second = run(store, rule(name="a", then_emits=["a"]), rule(name="b", then_emits=["b"]))
        (left,) = facts.query(FactPattern())
        assert (left.id, left.metadata) == ("e2", {"channels": ["a", "b"]})
        assert (first.added, first.updated) == (1, 2)
        assert (second.left, second.updated, second.missing_fact_ids) == (2, 1, ())

    def test_what_is_said_anew_is_believed_again(
        self, store: ChronoStore, episodes: Episodes, facts: Facts
    ) -> None:
        run(store, rule())
        facts.unpin("e2")
        put(episodes, episode("e2", minute=2, **LIVES))
        run(store, rule())
        assert ids(facts) == ["e2"]

    def test_what_a_rule_replaces_goes_though_its_own_fact_is_over(
        self, store: ChronoStore, facts: Facts
    ) -> None:
        run(store, rule("id IN ('e1', 'e2')"))
        run(store, rule("id IN ('e0', 'e1')", name="late"))
        assert ids(facts) == ["e2"]


def test_what_was_not_there_is_not_counted_as_deleted(
    store: ChronoStore, episodes: Episodes, facts: Facts
) -> None:
    put(episodes, episode("a"), episode("b", minute=1, intent="delete", replaces="never"))
    put(episodes, episode("c", minute=2, intent="delete", replaces=["never", "a"]))
    (done,) = run(store, rule())
    assert (done.added, done.deleted, done.missing_fact_ids) == (1, 1, ("never", "never"))
    assert ids(facts) == []


def plan(version: int, *columns: str) -> MigrationPlan:
    added = [{"op": "add_column", "name": name, "nullable": True} for name in columns]
    return MigrationPlan(target_version=version, operations=added)


def test_plans_at_once_lose_no_column(tmp_path: Path, episodes: Episodes) -> None:
    names = [f"c{number}" for number in range(16)]
    put(episodes, episode("a"))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: episodes.migrate(plan(2, name)), names))
    (one,) = episodes.recent("ann", limit=1)
    assert sorted(one.metadata) == sorted(names)


@pytest.mark.parametrize("version", [2, 0, -1, 2**63, 2**70])
def test_a_version_only_goes_up(episodes: Episodes, version: int) -> None:
    episodes.migrate(plan(3, "mood"))
    episodes.migrate(plan(3, "tone"))
    with pytest.raises(MigrationNotSupported, match="a version goes up from 3"):
        episodes.migrate(plan(version, "late"))
    assert episodes.health().version == 3
    put(episodes, episode("a"))
    assert episodes.recent("ann", limit=1)[0].metadata == {"mood": None, "tone": None}


@pytest.mark.parametrize("version", [0, -1])
def test_a_first_version_is_one_at_least(facts: Facts, version: int) -> None:
    with pytest.raises(MigrationNotSupported):
        facts.migrate(plan(version, "mood"))
    assert facts.health().version == 1


def plain(record_id: str, minute: int, **bent: Any) -> ChronoRecord:
    """A record of the kind of episodes that is none."""
    moment = START + timedelta(minutes=minute)
    data = {
        "@scope": {"agent": "helper", "session": "s1", "user": "ann"},
        "time": utc_text(moment),
        "timestamp": moment.isoformat(),
    }
    return ChronoRecord(id=record_id, kind="episode", data={**data, **bent})


def test_the_latest_are_as_many_as_are_wanted(store: ChronoStore, episodes: Episodes) -> None:
    put(episodes, *(episode(f"e{number}", minute=number) for number in range(6)))
    for number in range(5):
        store.everyone().upsert(plain(f"note {number}", 9 + number))
    for as_of in (None, store.engine.last_seq()):
        for limit in (1, 2, 5, 6, 7):
            found = episodes.recent("ann", limit=limit, as_of=as_of)
            assert [one.id for one in found] == [f"e{5 - number}" for number in range(min(limit, 6))]


def test_a_bad_rule_stops_no_other(store: ChronoStore, episodes: Episodes, facts: Facts) -> None:
    put(episodes, episode("a"), episode("c", minute=1))
    bad = [rule(f"no_such_{name} = 1", name=name) for name in ("b", "d")]
    with pytest.raises(ConsolidationRuleError, match=r"no_such_b.*no_such_d") as caught:
        run(store, rule("id = 'a'", name="first"), *bad, rule("id = 'c'", name="last"))
    assert caught.value.rule_id == "b"
    report = caught.value.report
    assert [(one.rule_id, one.added) for one in report.rules] == [("first", 1), ("last", 1)]
    assert ids(facts) == ["a", "c"]


STEP = {"rule_id": "r", "source_episode_ids": ["a"], "promotion_ts": START.isoformat()}


@pytest.mark.parametrize(
    "bent",
    [
        {"source_episode_ids": None},
        {"source_episode_ids": "a"},
        {"source_episode_ids": ["a", 7]},
        {"source_episode_ids": [" "]},
        {"rule_id": None},
        {"rule_id": ""},
        {"promotion_ts": None},
        {"promotion_ts": "yesterday"},
        {"promotion_ts": "2026-05-18T09:00:00"},
    ],
    ids=str,
)
def test_a_lineage_that_tells_nothing_is_not_pinned(facts: Facts, bent: dict[str, Any]) -> None:
    given = {"id": "f", "user": "ann", "agent": "a", "payload": {}, "confidence": 1.0, "pinned_at": START}
    (name,) = bent
    missing = {key: value for key, value in STEP.items() if key != name}
    for step in ({**STEP, **bent}, missing):
        with pytest.raises(ConsolidationRuleError, match=rf"^pin: lineage\[1\]: {name}"):
            facts.pin(Fact(lineage=[STEP, step], **given))
    assert ids(facts) == []
    facts.pin(Fact(lineage=[STEP], **given))


@pytest.mark.parametrize(
    "at",
    [
        "9999-12-31T23:59:59+00:00",
        "9999-12-31T23:00:00-14:00",
        "0001-01-01T00:00:00+14:00",
        "0001-01-01T00:00:00+00:00",
    ],
)
def test_a_cron_goes_on_from_the_ends_of_the_calendar(
    store: ChronoStore, episodes: Episodes, facts: Facts, at: str
) -> None:
    put(episodes, episode("a"))
    facts.handle.run(lambda conn: put_progress(conn, "default", "rule", Progress(0, at)))
    (done,) = run(store, rule(cron="0 3 * * *"))
    assert (done.due, done.added) == (True, 1)


@pytest.mark.parametrize(
    "text", ["SELECT 1", "content = ", "(", "'", "json_extract(metadata, '$[') = 1", f"content = {'(' * 999}"]
)
def test_a_parser_keeps_its_words_to_itself(
    episodes: Episodes, text: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConsolidationRuleError, match="when_filter") as caught:
        episodes.consolidate(rule(text))
    said = f"{caught.value}{caplog.text}{capfd.readouterr().err}"
    assert "sqlglot" not in said and "JSON path" not in said and len(said) < 200


def test_nobody_takes_a_turn_of_another_out_of_the_way(store: ChronoStore, episodes: Episodes) -> None:
    said = {"subject": "ann", "predicate": "lives in"}
    put(
        episodes,
        episode("rome", "in Rome", minute=0, object="Rome", **said),
        episode("bob", "away", user="bob", minute=1, intent="delete", replaces=["rome"]),
        episode("oslo", "in Oslo", minute=2, object="Oslo", **said),
    )
    deltas = asyncio.run(ChronoMemoryStore(store).consolidate(rule()))
    (last,) = [delta for delta in deltas if "oslo" in delta.source_episode_ids]
    assert last.kind == "update" and last.replaces == ["rome"]
