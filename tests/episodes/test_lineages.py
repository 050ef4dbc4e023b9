"""The lineage of a fact is whole, however often it was updated, and short in the log."""

from __future__ import annotations

from typing import Any

import pytest
from chronomemory import ChronoStore
from chronomemory.episodes import (
    AddDelta,
    ChronoFactStore,
    ChronoMemoryStore,
    Episodes,
    Fact,
    FactPattern,
    Facts,
    UpdateDelta,
)
from chronomemory.episodes import facts as lineages
from chronomemory.episodes.facts import Lineage, joined, whole
from chronomemory.episodes.runner import Runner
from chronomemory.record import ChronoRecord
from chronomemory.scope import Scope
from conversing import START, episode, put, rule
from hypothesis import given
from hypothesis import strategies as st

ANN = Scope(user="ann", agent="helper")
TIMES = 150


def step(name: str) -> dict[str, Any]:
    return {"rule_id": "r", "source_episode_ids": [name], "promotion_ts": START.isoformat()}


def delta(name: str, *replaces: str) -> AddDelta | UpdateDelta:
    payload = {"id": name, "user": "ann", "agent": "helper", "content": name}
    given: dict[str, Any] = {
        "fact_payload": payload,
        "source_episode_ids": [name],
        "promotion_ts": START,
        "rule_id": "r",
        "confidence": 0.5,
    }
    if replaces:
        return UpdateDelta(kind="update", replaces=list(replaces), **given)
    return AddDelta(kind="add", **given)


def names(fact: Fact | None) -> list[str]:
    assert fact is not None
    return [name for one in fact.lineage for name in one["source_episode_ids"]]


def longest(store: ChronoStore, fact_id: str) -> int:
    """Return how many steps stand in the record of a fact itself."""
    record = store.everyone().get(f"fact:{fact_id}")
    assert record is not None
    return len(record.data["lineage"])


def updated(facts: Facts, times: int) -> None:
    facts.apply_delta(delta("0"))
    for number in range(1, times):
        facts.apply_delta(delta(str(number), str(number - 1)))


def test_a_lineage_is_whole_however_long(facts: Facts, store: ChronoStore) -> None:
    updated(facts, TIMES)
    expected = [str(number) for number in range(TIMES)]
    assert names(facts.get(str(TIMES - 1))) == expected
    (found,) = facts.query(FactPattern(user="ann"))
    assert names(found) == names(facts.query(FactPattern())[0]) == expected
    assert longest(store, str(TIMES - 1)) <= 32
    assert facts.health().fragment_count == 1
    # What comes before is no knowledge of its own.
    assert store.scoped(user="ann").query(kind=None) == []
    assert {hit.id for hit in store.scoped(user="ann").search("steps of a lineage")} <= {f"fact:{TIMES - 1}"}


def test_a_fact_speaks_of_an_episode_however_long_ago(facts: Facts, store: ChronoStore) -> None:
    updated(facts, TIMES)
    living = f"fact:{TIMES - 1}"
    told = store.erase(ids=["episode:1"], reason="asked for", dry_run=True)
    with_derived = store.erase(ids=["episode:1"], reason="asked for", dry_run=True, derived=True)
    assert (living in with_derived.belonging) == (living in told.mentions)
    assert living in told.mentions


def test_so_it_was_at_every_moment(facts: Facts, store: ChronoStore) -> None:
    updated(facts, 40)
    then = store.engine.last_seq()
    for number in range(40, 80):
        facts.apply_delta(delta(str(number), str(number - 1)))
    for pattern in (FactPattern(), FactPattern(user="ann")):
        (past,) = facts.query(pattern, as_of=then)
        assert names(past) == [str(number) for number in range(40)]
    store.compact()
    assert names(facts.get("79")) == [str(number) for number in range(80)]


def test_a_runner_writes_no_more_for_the_last_update_than_for_an_early_one(store: ChronoStore) -> None:
    with Episodes(store) as episodes, Facts(store) as facts:
        told = {"subject": "ann", "predicate": "lives in"}
        put(episodes, *(episode(f"{n:04}", f"in {n}", minute=n, object=str(n), **told) for n in range(400)))
        done = Runner(ChronoMemoryStore(store), ChronoFactStore(store), [rule()], clock=lambda: START).run()
        assert (done.rules[0].added, done.rules[0].updated) == (1, 399)
        assert names(facts.get("0399")) == [f"{n:04}" for n in range(400)]
        sizes = [
            len(event.record["data"]["lineage"])
            for n in range(0, 400, 7)
            for event in store.everyone().history(f"fact:{n:04}")
            if event.record and "data" in event.record
        ]
        assert max(sizes) <= 32


def test_facts_that_were_written_with_all_their_steps_go_on(facts: Facts, store: ChronoStore) -> None:
    steps = [step(f"old {n}") for n in range(100)]
    facts.pin(
        Fact(id="old", user="ann", agent="helper", payload={}, lineage=steps, confidence=1.0, pinned_at=START)
    )
    assert facts.get("old").lineage == steps  # type: ignore[union-attr]
    facts.apply_delta(delta("new", "old"))
    assert names(facts.get("new")) == [*(f"old {n}" for n in range(100)), "new"]
    assert longest(store, "new") == 1


def test_a_fact_of_two_has_the_stories_of_both_in_their_order(facts: Facts) -> None:
    updated(facts, 50)
    facts.apply_delta(delta("a0"))
    for number in range(1, 50):
        facts.apply_delta(delta(f"a{number}", f"a{number - 1}"))
    facts.apply_delta(delta("both", "49", "a49"))
    expected = [*(str(n) for n in range(50)), *(f"a{n}" for n in range(50)), "both"]
    assert names(facts.get("both")) == expected
    facts.apply_delta(delta("both", "both"))
    assert names(facts.get("both")) == expected


def test_why_leads_down_to_the_first_episode(store: ChronoStore) -> None:
    with Episodes(store) as episodes, Facts(store) as facts:
        put(episodes, *(episode(str(n), minute=n) for n in range(40)))
        updated(facts, 40)
        seen: set[str] = set()
        waiting = ["fact:39"]
        while waiting:
            record = store.everyone().get(waiting.pop())
            if record is not None and record.id not in seen:
                seen.add(record.id)
                waiting += [str(name) for name in record.evidence]
        assert {f"episode:{n}" for n in range(40)} <= seen


def test_what_another_tool_left_of_a_lineage_stops_nobody() -> None:
    circle = ChronoRecord(
        id="rule:lineage:x", kind="rule", data={"earlier": ["rule:lineage:x", 7], "lineage": 7}
    )
    told = whole(Lineage([step("a")], ["rule:lineage:x", "rule:lineage:gone"]), {circle.id: circle}.get)
    assert told == [step("a")]


def plain(parts: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for part in parts:
        found += [one for one in part if one not in found]
    return found


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=4), min_size=1, max_size=12),
    st.integers(1, 4),
)
def test_pieces_say_what_whole_lists_would(stories: list[list[tuple[int, int]]], most: int) -> None:
    """Facts are joined from facts, in any order, and each has what plain lists would have."""
    kept: dict[str, ChronoRecord] = {}
    short: list[Lineage] = [Lineage([step(f"first {n}")]) for n in range(4)]
    long: list[list[dict[str, Any]]] = [one.steps for one in short]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lineages, "_MOST_STEPS", most)
        for number, story in enumerate(stories):
            for one, other in story:
                own = [step(f"{number % 5}")]
                made, pieces = joined([short[one], short[other], Lineage(own)], ANN)
                kept.update((piece.id, piece) for piece in pieces)
                short[one], long[one] = made, plain([long[one], long[other], own])
                assert whole(made, kept.get) == long[one]
                assert 1 <= len(made.steps) <= most
