"""An id of somebody else is answered as one that was never there, by every verb that takes an id."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chronomemory import ChronoStore, DepGraph, Memory
from chronomemory.store import ScopedStore
from twin_worlds import comparable, without_exempt

#: As long as the ids of bob that it is compared with.
NEVER = "NEVER-{}"
STATES = ("living", "deleted", "expired", "embedded", "withdrawn")

VERBS: dict[str, Callable[[ScopedStore, str], Any]] = {
    "get": lambda ann, name: ann.get(name),
    "get expired": lambda ann, name: ann.get(name, expired=True),
    "get_many": lambda ann, name: ann.get_many([name, "A"]),
    "history": lambda ann, name: ann.history(name),
    "as_of": lambda ann, name: ann.as_of(ann.history("A")[-1].seq).get(name),
    "why": lambda ann, name: ann.why(name),
    "rollbacks": lambda ann, name: ann.rollbacks(name),
    "reinstate": lambda ann, name: ann.reinstate(f"ROLLBACK-{name}", "it was so"),
    "update": lambda ann, name: ann.update(name, label="mine"),
    "update version": lambda ann, name: ann.update(name, label="mine", if_version="0" * 16),
    "delete": lambda ann, name: ann.delete(name),
    "delete version": lambda ann, name: ann.delete(name, if_version="0" * 16),
    "delete_many": lambda ann, name: ann.delete_many([name]),
    "invalidate": lambda ann, name: ann.invalidate(name, "it was not so"),
    "attach": lambda ann, name: ann.vectors.attach(name, [1.0, 0.0]),
    "attach_many": lambda ann, name: ann.vectors.attach_many(["A", name], np.eye(2)),
    "attach_tokens": lambda ann, name: ann.vectors.attach_tokens(name, np.eye(2)),
    "detach": lambda ann, name: ann.vectors.detach(name),
    "embedding": lambda ann, name: ann.vectors.get(name),
    "nearest among": lambda ann, name: ann.vectors.nearest([1.0, 0.0], among=[name, "A"]),
    "query": lambda ann, name: ann.query(where={"id": name}, status=None, faces=True, explain=True),
    "search": lambda ann, name: ann.search(name, where={"id": {"in": [name, "A"]}}),
    "edge to": lambda ann, name: DepGraph(ann).add_edge("A", name, "depends_on"),  # type: ignore[arg-type]
    "edge from": lambda ann, name: DepGraph(ann).add_edge(name, "A", "depends_on"),  # type: ignore[arg-type]
    "named": lambda ann, name: ann.upsert({"id": "A", "evidence": [name], "data": {"previous": name}}),
    "why named": lambda ann, name: ann.why("A"),
    "search named": lambda ann, name: [
        (hit.id, hit.score, hit.why) for hit in ann.search("tea", explain=True)
    ],
}
BLOCK_VERBS: dict[str, Callable[[Memory, str], Any]] = {
    "history": lambda memory, name: memory.history(name),
    "edit": lambda memory, name: memory.edit(name, "mine now"),
    "forget": lambda memory, name: memory.forget(name),
    "outcome": lambda memory, name: memory.outcome([name], 0.9),
    "keep": lambda memory, name: memory.keep([name]),
    "connect": lambda memory, name: memory.connect(name, "0" * 32),
    "disconnect": lambda memory, name: memory.disconnect(name, "0" * 32),
    "supersedes": lambda memory, name: memory.learn("black tea", supersedes=name),
    "previous": lambda memory, name: memory.learn(f"white tea {name}", previous=name),
    "recall": lambda memory, name: memory.recall("tea", where={"id": f"block:{name}"}),
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ChronoStore]:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "S"})
        store.vectors.attach("S", [1.0, 0.0], model="m")
        store.vectors.attach_tokens("S", np.eye(2), model="t")
        bob, ann = store.scoped(user="bob"), store.scoped(user="ann")
        ann.upsert({"id": "A", "label": "tea"})
        for state in STATES:
            bob.upsert({"id": f"BOB-{state}", "label": "secret tea"})
        bob.vectors.attach("BOB-embedded", [0.0, 1.0])
        bob.vectors.attach_tokens("BOB-embedded", np.eye(2))
        bob.upsert({"id": "BOB-expired", "data": {"expires_at": "2020-01-01T00:00:00Z"}})
        bob.delete("BOB-deleted")
        bob.invalidate("BOB-withdrawn", "secret reason")
        yield store


def said(work: Callable[[Any, str], Any], handle: Any, name: str, shown: str) -> str:
    try:
        outcome = comparable(work(handle, name))
    except Exception as error:
        outcome = [type(error).__name__, str(error), repr(vars(error))]
    return without_exempt(json.dumps(outcome, sort_keys=True).replace(name, shown))


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_answers_alike(store: ChronoStore, verb: str) -> None:
    ann = store.scoped(user="ann")
    for state in STATES:
        told = [said(VERBS[verb], ann, name.format(state), "ID") for name in (NEVER, "BOB-{}")]
        assert told[0] == told[1], state
        assert "secret" not in told[1]


@pytest.mark.parametrize("verb", BLOCK_VERBS)
def test_a_verb_of_a_memory_answers_alike(store: ChronoStore, verb: str) -> None:
    theirs = Memory(store, user="bob").remember("green tea of bob").block_id
    forgotten = Memory(store, user="bob").remember("a house on the hill").block_id
    Memory(store, user="bob").forget(forgotten)
    memory = Memory(store, user="ann")
    for name in (theirs, forgotten):
        never = name[:-4] + ("0000" if name[-4:] != "0000" else "0001")
        assert said(BLOCK_VERBS[verb], memory, name, "ID") == said(BLOCK_VERBS[verb], memory, never, "ID")


def test_a_sweep_changes_no_record_that_its_handle_does_not_see(tmp_path: Path) -> None:
    """Not even one that names an id which is erased: only an operator's erasure cuts that."""
    with ChronoStore(tmp_path) as store:
        ann, bob = store.scoped(user="ann"), store.scoped(user="bob")
        named = {"data": {"from_id": "ann-1", "to_id": "q", "edge_type": "depends_on"}}
        records = [
            {"id": "B1", "label": "first", "evidence": ["ann-1"]},
            {"id": "B1", "label": "second", "evidence": ["ann-1"]},
            {"id": "B2", "kind": "edge", "label": "x", **named},
            {"id": "B3", "kind": "rollback_event", "label": "x", "data": {"target_id": "ann-1"}},
        ]
        for record in records:
            bob.upsert(record)
        ann.upsert({"id": "A2", "label": "of ann", "evidence": ["ann-1"]})
        ann.upsert({"id": "ann-1", "label": "x", "data": {"expires_at": "2020-01-01T00:00:00Z"}})
        before = [[event.to_json_line() for event in bob.history(name)] for name in ("B1", "B2", "B3")]
        assert ann.sweep(erase=True).ids == ("ann-1",)
        assert [
            [event.to_json_line() for event in bob.history(name)] for name in ("B1", "B2", "B3")
        ] == before
        own = ann.get("A2")
        assert own is not None and own.evidence == []
        assert store.verify().valid
        store.erase(ids=["ann-1"], reason="asked for")
        kept = bob.get("B1")
        assert kept is not None and kept.evidence == []
