"""A where chooses who may be found by words, vectors and recalls, and changes nothing else."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from chronomemory import ChronoStore
from chronomemory.blocks import Memory
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shares import share

WORDS = ("river", "stone", "light", "wind", "salt")
COLOURS = ("red", "green", "blue")


@pytest.fixture(params=["no index", "index"])
def found(store: ChronoStore, request: pytest.FixtureRequest) -> ChronoStore:
    choice = random.Random(7)
    store.upsert_many(
        {
            "id": f"R{number:03}",
            "label": " ".join(choice.choices(WORDS, k=4)),
            "kind": choice.choice(["fact", "note"]),
            "data": {
                "colour": choice.choice(COLOURS),
                "size": choice.randint(0, 20),
                "links": [f"R{choice.randrange(300):03}"],
            },
        }
        for number in range(300)
    )
    rows = np.random.default_rng(5).standard_normal((300, 8)).astype(np.float32)
    store.vectors.attach_many([f"R{number:03}" for number in range(300)], rows, model="m")
    if request.param == "index":
        store.upkeep.create_index("data.colour")
        store.upkeep.create_index("data.size")
    return store


WHERES: list[dict[str, Any]] = [
    {},
    {"data.colour": "red"},
    {"data.colour": {"in": ["red", "blue"]}, "data.size": {"gte": 10}},
    {"or": [{"data.size": 3}, {"kind": "note"}]},
    {"not": {"data.colour": "red"}},
    {"data.colour": "none"},
]


@pytest.mark.parametrize("where", WHERES)
def test_words_find_what_a_where_lets_through(found: ChronoStore, where: dict[str, Any]) -> None:
    allowed = {record.id for record in found.query(where=where)}
    everyone = found.search("river stone", limit=1000, context=False)
    told = found.search("river stone", limit=1000, context=False, where=where)
    # The same scores, to the last bit: who may not be found still says what a word is worth.
    assert [(hit.id, hit.score) for hit in told] == [
        (hit.id, hit.score) for hit in everyone if hit.id in allowed
    ]
    few = found.search("river stone", limit=3, context=False, where=where)
    assert [hit.id for hit in few] == [hit.id for hit in told[:3]]
    then = found.search("river stone", limit=3, context=False, where=where, as_of=found.wal_seq())
    assert [hit.id for hit in then] == [hit.id for hit in few]
    lifted = found.search("river stone", limit=1000, where=where)
    assert {hit.id for hit in lifted} <= allowed
    assert {hit.id for hit in told} <= {hit.id for hit in lifted}


@pytest.mark.parametrize("where", WHERES)
def test_vectors_find_what_a_where_lets_through(found: ChronoStore, where: dict[str, Any]) -> None:
    allowed = {record.id for record in found.query(where=where)}
    vector = np.random.default_rng(6).standard_normal(8).astype(np.float32)
    everyone = [hit for hit in found.vectors.nearest(vector, k=300) if hit.record_id in allowed]
    assert found.vectors.nearest(vector, k=300, where=where) == everyone
    assert found.vectors.nearest(vector, k=4, where=where) == everyone[:4]
    some = ["R001", "R002", "R003", "R004"]
    among = [hit for hit in everyone if hit.record_id in some]
    assert found.vectors.nearest(vector, k=9, where=where, among=some) == among
    hits = found.search(vector=vector, limit=300, context=False, where=where)
    assert [hit.id for hit in hits] == [hit.record_id for hit in everyone]
    both = found.search("river", vector, limit=300, where=where)
    assert {hit.id for hit in both} <= allowed


def test_what_is_written_is_filtered_at_once(found: ChronoStore) -> None:
    where = {"data.colour": "violet"}
    assert found.search("river", where=where) == []
    found.upsert({"id": "NEW", "label": "river", "data": {"colour": "violet"}})
    assert [hit.id for hit in found.search("river", where=where)] == ["NEW"]
    found.upsert({"id": "NEW", "label": "river", "data": {"colour": "red"}})
    assert found.search("river", where=where) == []


@settings(max_examples=share(10, 200), deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 10_000))
def test_recalls_find_what_a_where_lets_through(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    choice = random.Random(seed)
    # Without a floor: whether a question has an answer depends on what the filter leaves.
    with Memory(tmp_path_factory.mktemp("blocks"), min_similarity=0.0) as memory:
        for number in range(12):
            text = f"{number} " + " ".join(choice.choices(WORDS, k=3))
            memory.learn(text, choice.sample(["x", "y"], choice.randint(0, 2)), choice.choice(COLOURS))
        memory.consolidate()
        for where, fits in (
            ({"data.category": "red"}, lambda block: block.category == "red"),
            ({"tags": {"any": ["x"]}}, lambda block: "x" in block.tags),
            ({"data.content": {"starts": "1"}}, lambda block: block.content.startswith("1")),
            ({"or": []}, lambda block: False),
        ):
            for query in (None, "river wind"):
                everyone = memory.recall(query, top_k=50, expansion=0)
                told = memory.recall(query, top_k=50, expansion=0, where=where)
                assert {block.id for block in told} == {block.id for block in everyone if fits(block)}


def test_what_a_frame_guarantees_is_exempt(tmp_path_factory: pytest.TempPathFactory) -> None:
    with Memory(tmp_path_factory.mktemp("blocks")) as memory:
        memory.learn("I am careful with salt", ["self/value"])
        memory.learn("The river is cold", ["nature"])
        memory.learn("The wind is warm", ["nature"])
        memory.consolidate()
        with memory.blocks.connect():
            whole = memory.frame("self")
            none = memory.frame("self", where={"or": []})
        assert set(none.guaranteed) == set(whole.guaranteed)
        assert [block.id for block in none.blocks] == list(none.guaranteed)
        river = memory.frame("attention", "river wind", where={"data.content": {"like": "%river%"}})
        assert [block.content for block in river.blocks if not block.guaranteed] == ["The river is cold"]
        # What was shown for one where is not given out for another.
        both = memory.frame("attention", "river wind")
        assert len(both.blocks) > len(river.blocks)


def test_questions_and_writers_keep_nobody_waiting(
    store: ChronoStore, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rows = np.random.default_rng(3).standard_normal((200, 8)).astype(np.float32)
    store.upsert_many(
        {"id": f"R{number}", "label": "river", "data": {"n": number, "c": number % 3}}
        for number in range(200)
    )
    store.vectors.attach_many([f"R{number}" for number in range(200)], rows, model="m")
    store.upkeep.create_index("data.c")
    where = {"data.c": 1, "happened_at": {"gt": "2020-01-01T00:00:00Z"}}
    with Memory(tmp_path_factory.mktemp("blocks")) as memory:
        memory.remember("The river is cold", ["x"])
        acts: list[Callable[[int], Any]] = [
            lambda n: store.upsert({"id": f"R{n % 200}", "label": "river", "data": {"c": n % 3}}),
            lambda n: store.compact() if n % 50 == 0 else time.sleep(0.001),
            lambda _: [hit.record.data["c"] for hit in store.search("river", where=where)],
            lambda _: [hit.record.data["c"] for hit in store.search("river", rows[0], where=where)],
            lambda _: store.vectors.nearest(rows[1], where=where),
            lambda n: memory.learn(f"The river is {n} metres wide", ["x"]),
            lambda _: memory.recall("river", where={"tags": {"any": ["x"]}}),
            lambda _: memory.recall(where={"tags": {"any": ["x"]}}),
        ]
        until = time.monotonic() + 2
        done: list[bool] = []

        def run(act: Callable[[int], Any]) -> None:
            number = 0
            while time.monotonic() < until:
                found = act(number)
                assert not isinstance(found, list) or all(one == 1 for one in found if isinstance(one, int))
                number += 1
            done.append(True)

        threads = [threading.Thread(target=run, args=(act,), daemon=True) for act in acts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(done) == len(acts)
