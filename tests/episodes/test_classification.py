"""Each episode becomes the delta that the table says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from chronomemory import ChronoStore
from chronomemory.episodes import (
    AddDelta,
    ConsolidationRuleError,
    Episodes,
    MemoryDelta,
    NoopDelta,
    UpdateDelta,
)
from chronomemory.episodes.facts import check_provenance
from conversing import START, episode, put, rule
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

LIVES = {"subject": "ann", "predicate": "lives in"}


def told(episodes: Episodes, when_filter: str = "") -> list[tuple[str, str, list[str]]]:
    deltas = episodes.consolidate(rule(when_filter))
    return [(delta.kind, delta.source_episode_ids[0], getattr(delta, "replaces", [])) for delta in deltas]


@pytest.mark.parametrize(
    ("metadata", "kind", "replaces"),
    [
        ({"intent": "noop"}, "noop", []),
        ({"intent": "noop", "replaces": "f", **LIVES}, "noop", []),
        ({"intent": "delete", "replaces": "f"}, "delete", ["f"]),
        ({"intent": "delete", "replaces": ["f", "g", "f"]}, "delete", ["f", "g"]),
        ({"intent": "update", "replaces": "f"}, "update", ["f"]),
        ({"intent": "update", "replaces": ["f"], **LIVES}, "update", ["f"]),
        ({}, "add", []),
        ({"replaces": "f"}, "add", []),
        ({"intent": "add"}, "add", []),
        ({"intent": "NOOP"}, "add", []),
        ({"intent": None, **LIVES}, "add", []),
    ],
)
def test_the_table_row_by_row(
    episodes: Episodes, metadata: dict[str, Any], kind: str, replaces: list[str]
) -> None:
    put(episodes, episode("e", **metadata))
    assert told(episodes) == [(kind, "e", replaces)]


def test_a_repeat_in_a_batch_is_an_update_of_the_one_before(episodes: Episodes) -> None:
    put(episodes, *(episode(name, minute=minute, **LIVES) for minute, name in enumerate("abc")))
    assert told(episodes) == [("add", "a", []), ("update", "b", ["a"]), ("update", "c", ["b"])]


def test_the_order_is_that_of_time_and_not_of_arrival(episodes: Episodes) -> None:
    put(episodes, episode("late", minute=5, **LIVES), episode("early", minute=1, **LIVES))
    assert told(episodes) == [("add", "early", []), ("update", "late", ["early"])]


@pytest.mark.parametrize(
    "other", [{"user": "bob"}, {"agent": "other"}, {"predicate": "works in"}, {"subject": 1}]
)
def test_what_is_of_somebody_else_or_of_something_else_is_no_repeat(
    episodes: Episodes, other: dict[str, Any]
) -> None:
    put(episodes, episode("a", **LIVES), episode("b", minute=1, **{**LIVES, **other}))
    assert [kind for kind, _, _ in told(episodes)] == ["add", "add"]


def test_half_a_key_is_none(episodes: Episodes) -> None:
    put(episodes, *(episode(name, minute=at, subject="ann", predicate=None) for at, name in enumerate("ab")))
    assert [kind for kind, _, _ in told(episodes)] == ["add", "add"]


def test_keys_need_not_be_text(episodes: Episodes) -> None:
    odd = {"subject": {"a": [1]}, "predicate": 2}
    put(episodes, episode("a", **odd), episode("b", minute=1, **odd))
    assert told(episodes) == [("add", "a", []), ("update", "b", ["a"])]


def test_a_delete_clears_the_key(episodes: Episodes) -> None:
    gone = {"intent": "delete", "replaces": "a"}
    put(episodes, episode("a", **LIVES), episode("d", minute=1, **gone), episode("c", minute=2, **LIVES))
    assert told(episodes) == [("add", "a", []), ("delete", "d", ["a"]), ("add", "c", [])]
    put(episodes, episode("d", minute=1, **{**gone, "replaces": "elsewhere"}, **LIVES))
    assert [kind for kind, _, _ in told(episodes)] == ["add", "delete", "add"]


def test_an_intended_update_counts_as_seen(episodes: Episodes) -> None:
    put(
        episodes,
        episode("a", intent="update", replaces="old", **LIVES),
        episode("b", minute=1, **LIVES),
        episode("c", minute=2, intent="update", replaces="b"),
        episode("d", minute=3, **LIVES),
    )
    wanted = [("update", "a", ["old"]), ("update", "b", ["a"]), ("update", "c", ["b"]), ("add", "d", [])]
    assert told(episodes) == wanted


@pytest.mark.parametrize("replaces", [None, "", " ", [], [""], ["f", 5], 5, {"f": 1}])
@pytest.mark.parametrize("intent", ["update", "delete"])
def test_one_bad_episode_does_not_spoil_the_others(episodes: Episodes, intent: str, replaces: object) -> None:
    put(
        episodes,
        episode("a"),
        episode("bad", minute=1, intent=intent, replaces=replaces),
        episode("z", minute=2),
    )
    with pytest.raises(ConsolidationRuleError) as caught:
        episodes.consolidate(rule())
    assert caught.value.episode_ids == ["bad"]
    assert [delta.source_episode_ids for delta in caught.value.deltas] == [["a"], ["z"]]
    assert told(episodes, "id <> 'bad'") == [("add", "a", []), ("add", "z", [])]


def test_a_payload_is_what_a_fact_needs(episodes: Episodes) -> None:
    put(episodes, episode("e", "I moved to Oslo", **LIVES, object="Oslo", mood="glad"))
    (delta,) = episodes.consolidate(rule(name="moves"))
    assert delta == AddDelta(
        kind="add",
        fact_payload={
            "id": "e",
            "user": "ann",
            "agent": "helper",
            "content": "I moved to Oslo",
            "source_node": "chat",
            "subject": "ann",
            "predicate": "lives in",
            "object": "Oslo",
        },
        source_episode_ids=["e"],
        promotion_ts=START,
        rule_id="moves",
        confidence=1.0,
    )


@pytest.mark.parametrize(
    ("given", "confidence"),
    [(0.5, 0.5), (0, 0.0), (1, 1.0), (True, 1.0), ("0.5", 1.0), (1.5, 1.0), (-0.1, 1.0), (None, 1.0)],
)
def test_confidence_is_a_number_from_0_to_1(episodes: Episodes, given: object, confidence: float) -> None:
    put(episodes, episode("e", confidence=given))
    assert episodes.consolidate(rule())[0].confidence == confidence


def test_consolidating_writes_nothing_and_repeats_itself(episodes: Episodes) -> None:
    put(episodes, episode("e"), episode("f", minute=1))
    head = episodes.store.engine.last_event()[1]
    assert episodes.consolidate(rule()) == episodes.consolidate(rule())
    assert episodes.store.engine.last_event()[1] == head


@pytest.mark.parametrize(
    ("wrong", "violation"),
    [
        ({"rule_id": " "}, "rule_id must not be blank"),
        ({"source_episode_ids": []}, "source_episode_ids must not be empty"),
        ({"source_episode_ids": ["e", ""]}, "source_episode_ids must not hold a blank id"),
        ({"promotion_ts": START.replace(tzinfo=None)}, "promotion_ts must have a time zone"),
        ({"confidence": 1.01}, "confidence must be from 0 to 1, got 1.01"),
        ({"confidence": -0.01}, "confidence must be from 0 to 1, got -0.01"),
        ({"confidence": float("nan")}, "confidence must be from 0 to 1, got nan"),
        ({"confidence": float("inf")}, "confidence must be from 0 to 1, got inf"),
        ({"replaces": []}, "replaces must not be empty"),
        ({"replaces": ["f", " "]}, "replaces must not hold a blank id"),
    ],
)
def test_provenance_is_checked(wrong: dict[str, Any], violation: str) -> None:
    whole = {"source_episode_ids": ["e"], "promotion_ts": START, "rule_id": "r", "confidence": 0.5}
    delta = UpdateDelta(kind="update", **{**whole, "replaces": ["f"], "fact_payload": {}, **wrong})
    with pytest.raises(ConsolidationRuleError) as caught:
        check_provenance(delta)
    assert (caught.value.delta_type, caught.value.violation) == ("update", violation)
    assert caught.value.rule_id == delta.rule_id
    check_provenance(NoopDelta(kind="noop", **whole))  # type: ignore[arg-type]


def test_a_rule_has_an_id(episodes: Episodes) -> None:
    with pytest.raises(ConsolidationRuleError, match="id must not be blank"):
        episodes.consolidate(rule(name=" "))


#: Few enough that they meet.
WORDS = st.sampled_from(["x", "y", "", " ", 1, 1.0, True, None, ["x"], {"x": 1}])
IDS = st.sampled_from([f"e{number}" for number in range(6)])
METADATA = st.fixed_dictionaries(
    {},
    optional={
        "subject": WORDS,
        "predicate": WORDS,
        "object": WORDS,
        "intent": st.sampled_from(["noop", "update", "delete", "sing", None, 7]),
        "replaces": st.one_of(
            IDS, st.lists(IDS, max_size=3), st.sampled_from(["", " ", ["e1", ""], 7, None])
        ),
        "confidence": st.sampled_from([0, 0.25, 1, 1.5, -1, True, "0.5", None]),
    },
)
TURNS = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("cd"), METADATA), max_size=8)


def by_the_table(turns: list[tuple[str, str, dict[str, Any]]]) -> list[tuple[str, list[str], float]]:
    """What the table says, read aloud: of each good episode its kind, what it replaces, how sure it is."""
    told: list[tuple[str, list[str], float]] = []
    latest: dict[tuple[str, ...], str] = {}
    for number, (user, agent, metadata) in enumerate(turns):
        given = metadata.get("confidence")
        is_sure = not isinstance(given, bool) and isinstance(given, int | float) and 0 <= given <= 1
        sure = float(given) if is_sure else 1.0
        said = [metadata.get("subject"), metadata.get("predicate")]
        key = None if None in said else (user, agent, *map(json.dumps, said))
        intent, replaces = metadata.get("intent"), metadata.get("replaces")
        if intent == "noop":
            told.append(("noop", [], sure))
        elif intent in ("update", "delete"):
            named = [replaces] if isinstance(replaces, str) else replaces
            if not isinstance(named, list) or not named or not all(name.strip() for name in named):
                continue
            latest = {one: name for one, name in latest.items() if name not in named}
            told.append((intent, list(dict.fromkeys(named)), sure))
            if key is not None and intent == "delete":
                latest.pop(key, None)
            elif key is not None:
                latest[key] = f"e{number}"
        else:
            before = None if key is None else latest.get(key)
            told.append(("add", [], sure) if before is None else ("update", [before], sure))
            if key is not None:
                latest[key] = f"e{number}"
    return told


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(turns=TURNS)
def test_the_classification_follows_the_table(
    tmp_path_factory: pytest.TempPathFactory, turns: list[tuple[str, str, dict[str, Any]]]
) -> None:
    with (
        ChronoStore(tmp_path_factory.mktemp("table"), durability="off") as store,
        Episodes(store) as episodes,
    ):
        for number, (user, agent, metadata) in enumerate(turns):
            put(episodes, episode(f"e{number}", user=user, agent=agent, minute=number, **metadata))
        deltas = episodes.sort(rule(), START).deltas
        found = [(one.kind, getattr(one, "replaces", []), one.confidence) for one in deltas]
        assert found == by_the_table(turns)
        assert TypeAdapter(list[MemoryDelta]).validate_python([one.model_dump() for one in deltas]) == deltas


def test_many_episodes_of_several_users_are_classified_in_one_pass(store: ChronoStore) -> None:
    total, names = 4_500, ("ann", "bob", "cleo")
    turns = [
        (names[number % 3], "helper", {"subject": "s", "predicate": f"p{number % 500}"} if number % 2 else {})
        for number in range(total)
    ]
    with Episodes(store) as episodes:
        for user in names:
            own = [
                episode(f"e{number}", user=user, minute=number, **metadata)
                for number, (name, _, metadata) in enumerate(turns)
                if name == user
            ]
            episodes.put_many(own, user=user, session="s1", agent="helper")
        told = episodes.sort(rule(), START)
        found = [(one.kind, getattr(one, "replaces", []), one.confidence) for one in told.deltas]
        assert found == by_the_table(turns)
        assert told.users == [user for user, _, _ in turns]
        half = store.engine.last_seq()
        put(episodes, episode("late", minute=total))
        late = episodes.sort(rule(), START, after=half)
        assert [one.source_episode_ids for one in late.deltas] == [["late"]]
