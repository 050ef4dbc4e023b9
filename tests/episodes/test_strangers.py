"""Nobody is stopped by what another tool wrote under the prefixes of this face."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoStore
from chronomemory.episodes import (
    ChronoFactStore,
    ChronoMemoryStore,
    ChronoSession,
    Episodes,
    FactPattern,
    Facts,
)
from chronomemory.episodes.ids import columns_key, run_key
from chronomemory.episodes.runner import Runner, RunReport
from conversing import START, episode, put, rule
from recovering import chained

GOOD = "good"


def episode_like(**bent: Any) -> dict[str, Any]:
    """An episode as it stands in the log, with some parts of its data changed, or taken away by None."""
    data = {
        "@scope": {"agent": "helper", "session": "s1", "user": "ann"},
        "content": "strange",
        "metadata": {},
        "source_node": "chat",
        "time": "2026-05-18T09:00:00.000000Z",
        "timestamp": "2026-05-18T09:00:00+00:00",
    }
    record_id = bent.pop("id", "episode:strange")
    kept = {name: value for name, value in {**data, **bent}.items() if value is not None}
    return {"id": record_id, "kind": "episode", "status": "active", "label": "x", "data": kept}


def fact_like(**bent: Any) -> dict[str, Any]:
    data = {
        "@scope": {"agent": "helper", "user": "ann"},
        "lineage": [{"rule_id": "r", "source_episode_ids": ["e"], "promotion_ts": "2026"}],
        "metadata": {},
        "payload": {},
        "timestamp": "2026-05-18T09:00:00+00:00",
    }
    record_id = bent.pop("id", "fact:strange")
    kept = {name: value for name, value in {**data, **bent}.items() if value is not None}
    return {"id": record_id, "kind": "fact", "status": "active", "label": "x", "data": kept}


STRANGE_EPISODES = [
    {"id": "episode:"},
    {"id": "episode: \t"},
    {"@scope": None},
    {"@scope": 7},
    {"@scope": {"user": "ann"}},
    {"@scope": {"agent": "helper", "session": "s1", "user": 5}},
    {"@scope": {"agent": "helper", "session": "s1", "user": ""}},
    {"@scope": {"agent": "helper", "session": "s1", "user": "ann", "tenant": "x"}},
    {"content": None},
    {"content": 7},
    {"metadata": None},
    {"metadata": []},
    {"source_node": None},
    {"timestamp": None},
]


@pytest.fixture
def log(store: ChronoStore, tmp_path: Path) -> Path:
    with Episodes(store) as episodes:
        put(episodes, episode(GOOD, minute=1))
    return tmp_path / ".chronomemory" / "events.wal"


def written(log: Path, store: ChronoStore, *records: dict[str, Any]) -> None:
    """Add what another tool wrote to a log."""
    store.close()
    lines = log.read_bytes().splitlines()
    event = json.loads(lines[-1])
    for seq, record in enumerate(records, start=event["seq"] + 1):
        lines.append(json.dumps(event | {"seq": seq, "record": record, "record_id": record["id"]}).encode())
    log.write_bytes(chained(lines))


def run(store: ChronoStore) -> RunReport:
    return Runner(ChronoMemoryStore(store), ChronoFactStore(store), [rule()], clock=lambda: START).run()


@pytest.fixture(params=STRANGE_EPISODES, ids=str)
def stranger(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    yield episode_like(**request.param)


def test_what_is_no_episode_is_passed_over(log: Path, store: ChronoStore, stranger: dict[str, Any]) -> None:
    for intent in (None, "noop", "delete"):
        if isinstance(stranger["data"].get("metadata"), dict) and intent is not None:
            stranger["data"]["metadata"] = {"intent": intent, "replaces": GOOD}
        written(log, store, stranger)
        with Episodes(store) as episodes, Facts(store) as facts:
            assert [one.id for one in episodes.recent("ann", limit=9)] == [GOOD]
            assert [delta.source_episode_ids for delta in episodes.consolidate(rule())] == [[GOOD]]
            first = run(store).rules[0]
            assert first.matched == (1 if intent is None else 0)
            assert [fact.id for fact in facts.query(FactPattern())] == [GOOD]
            put(episodes, episode(f"later {intent}", minute=2))
            assert run(store).rules[0].added == 1
            episodes.forget(f"later {intent}", user="ann", session="s1", agent="helper")
            facts.unpin(f"later {intent}")


def test_a_moment_that_nobody_can_read_has_no_place_among_the_latest(log: Path, store: ChronoStore) -> None:
    for place, moment in enumerate(("yesterday", "2026-05-18T09:00:00", "")):
        written(log, store, episode_like(id=f"episode:{place}", timestamp=moment))
    with Episodes(store) as episodes:
        assert [one.id for one in episodes.recent("ann", limit=9)] == [GOOD]
    # What is nobody's turn there makes no fact either: it would rest on what nobody can show.
    assert run(store).rules[0].added == 1


def test_strangers_among_the_latest_are_read_over(log: Path, store: ChronoStore) -> None:
    late = "2027-05-18T09:00:00.000000Z"
    strange = [
        episode_like(id=f"episode:{place}", content=7, time=late, timestamp=late) for place in range(5)
    ]
    written(log, store, *strange)
    with Episodes(store) as episodes:
        assert [one.id for one in episodes.recent("ann", limit=1)] == [GOOD]
        names = {"user": "ann", "session": "s1", "agent": "helper"}
        assert episodes.next_moment(START, **names) > START
        session = ChronoSession("s1", ChronoMemoryStore(store), user="ann", agent="helper")
        put(episodes, episode("turn", minute=2, item={"n": 1}))
        assert asyncio.run(session.get_items(1)) == [{"n": 1}]
        assert asyncio.run(session.pop_item()) == {"n": 1}


@pytest.mark.parametrize(
    "bent",
    [
        {"id": "fact:"},
        {"@scope": None},
        {"@scope": {"user": "ann"}},
        {"@scope": {"agent": "helper", "session": "s1", "user": "ann"}},
        {"lineage": None},
        {"lineage": ["a step"]},
        {"payload": 7},
        {"timestamp": "yesterday"},
        {"timestamp": "2026-05-18T09:00:00"},
        {"timestamp": None},
    ],
    ids=str,
)
def test_what_is_no_fact_is_passed_over(log: Path, store: ChronoStore, bent: dict[str, Any]) -> None:
    written(log, store, fact_like(**bent))
    with Facts(store) as facts, Episodes(store) as episodes:
        put(episodes, episode("new", minute=2, intent="update", replaces="strange"))
        assert run(store).rules[0].due
        assert run(store).applied == 0
        found = [fact.id for fact in facts.query(FactPattern())]
        assert GOOD in found and "strange" not in found
        assert facts.get("strange") is None


@pytest.mark.parametrize("data", [{}, {"seq": "7", "at": 7}, {"seq": -1, "at": "x"}, {"columns": 7}])
def test_books_that_make_no_sense_are_as_none(log: Path, store: ChronoStore, data: dict[str, Any]) -> None:
    ids = (run_key("default", "rule"), columns_key("episode"), columns_key("fact"))
    written(log, store, *({"id": name, "kind": "rule", "status": "archived", "data": data} for name in ids))
    assert run(store).rules[0].added == 1
    assert run(store).applied == 0
    with Episodes(store) as episodes:
        assert [one.id for one in episodes.recent("ann", limit=9)] == [GOOD]
        assert episodes.health().version == 1


def test_a_fact_that_no_record_can_hold_is_refused_alone(log: Path, store: ChronoStore) -> None:
    with Episodes(store) as episodes, Facts(store) as facts:
        # What is said stands in a fact twice: as what it says, and to be found.
        put(episodes, episode("long", "x" * 9 * 1024 * 1024, minute=2))
        (done,) = run(store).rules
        assert (done.added, done.refused_episode_ids) == (1, ("long",))
        assert [fact.id for fact in facts.query(FactPattern())] == [GOOD]
        assert run(store).applied == 0
