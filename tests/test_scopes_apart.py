"""What one scope holds changes no answer in another: a store without what a handle cannot see answers alike.

Random handles write, change, delete, link and embed. Then only those steps are taken again, in another store,
whose records one of them sees, and everything is asked of both: ids, order, scores to the last bit, and
explanations are the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chronomemory import ChronoStore
from chronomemory.scoped import ScopedStore
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scopes_seen import Names, seen

WORDS = ("tea", "green", "black", "coffee", "cup", "house", "garden", "river")
SCOPES: list[Names] = [
    {},
    {"user": "ann"},
    {"user": "ann", "agent": "sup"},
    {"user": "ann", "session": "s1"},
    {"user": "bob"},
    {"agent": "sup"},
    {"session": "s1"},
    {"user": "bob", "agent": "sup", "session": "s1"},
]

#: Some of them by an index, some of them not.
WHERES: list[dict[str, Any]] = [
    {"data.session": "g1"},
    {"data.session": {"in": ["g1", "g2"]}, "confidence": {"gt": 0.3}},
    {"label": {"starts": "tea"}},
    {"kind": "fact", "confidence": {"lte": 0.5}},
    {"not": {"data.session": "g2"}},
]

scopes = st.sampled_from(range(len(SCOPES)))
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
numbers = st.integers(0, 5)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), scopes, numbers, texts, st.sampled_from(["g1", "g2", ""])),
        st.tuples(st.just("link"), scopes, numbers, numbers, scopes),
        st.tuples(st.just("delete"), scopes, numbers),
        st.tuples(st.just("embed"), scopes, numbers, st.integers(0, 50)),
        st.tuples(st.just("compact")),
    ),
    min_size=4,
    max_size=40,
)


def name(scope: int, number: int) -> str:
    return f"R-{scope}-{number}"


def act(store: ChronoStore, step: tuple[Any, ...]) -> None:
    verb, *rest = step
    if verb == "compact":
        store.compact(keep_history=True)
        return
    handle, number = store.scoped(**SCOPES[rest[0]]), rest[1]
    own = name(rest[0], number)
    if verb == "write":
        data = {"session": rest[3]} if rest[3] else {}
        handle.upsert({"id": own, "label": rest[2], "data": data, "confidence": (number + 1) / 8})
    elif verb == "link":
        target = name(rest[3], rest[2])
        edge = {"id": f"E-{own}-{target}", "kind": "dependency_edge", "label": "rests on"}
        handle.upsert(edge | {"data": {"source": own, "target": target, "edge_type": "depends_on"}})
    elif handle.get(own) is not None:
        if verb == "delete":
            handle.delete(own)
        elif handle.get(own).status != "tombstone":  # type: ignore[union-attr]
            angle = rest[2] / 8
            handle.attach(own, [np.cos(angle), np.sin(angle), 0.5], model="m")


def answers(handle: ScopedStore) -> dict[str, Any]:
    """Return all that a handle is told, but for what is of the store: seqs and rows."""
    told: dict[str, Any] = {
        "query": [record.to_dict() for record in handle.query(status="")],
        "counts": handle.record_counts(),
        "known": handle.known,
    }
    for number, where in enumerate(WHERES):
        for limit in (None, 2):
            found = handle.query(where=where, limit=limit, explain=True)
            told[f"where {number} {limit}"] = ([record.id for record in found], found.plan)
    for order in ("label", "-label", "data.session", "-confidence"):
        found, ids = handle.query(order_by=order, limit=3), []
        while found:
            ids += [record.id for record in found]
            found = handle.query(order_by=order, limit=3, after=found.cursor) if found.cursor else None
        told[f"order {order}"] = ids
    for text in ("tea", "green tea", "black coffee cup", "river house tea garden"):
        for context in (True, False):
            for limit in (1, 3, 50):
                hits = handle.search(text, limit=limit, context=context, explain=True)
                told[f"{text} {context} {limit}"] = [
                    (hit.record.id, hit.score.hex(), repr(hit.why)) for hit in hits
                ]
    for vector in ([1.0, 0.0, 0.5], [0.0, 1.0, 0.1]):
        near = handle.nearest(vector, k=20)
        told[f"near {vector}"] = [(one.record_id, float(one.score).hex()) for one in near]
        hits = handle.search("green tea", vector, limit=20, explain=True)
        told[f"both {vector}"] = [(hit.record.id, hit.score.hex(), repr(hit.why)) for hit in hits]
    return told


def begun(project: Path) -> ChronoStore:
    """Open a store with an embedding that all see: spaces and their models belong to the store."""
    store = ChronoStore(project)
    store.upsert({"id": "SEED", "label": "a seed"})
    store.attach("SEED", [1.0, 0.0, 0.0], model="m")
    for path in ("data.session", "label", "confidence"):
        store.create_index(path)
    return store


def is_seen(step: tuple[Any, ...], names: Names) -> bool:
    """Whether a handle that gives these names sees what a step is about; a compaction is about nothing."""
    return step[0] == "compact" or seen(SCOPES[step[1]], names) is not None


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=steps)
def test_a_store_without_the_others_answers_alike(
    steps: list[tuple[Any, ...]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    with begun(tmp_path_factory.mktemp("all")) as store:
        for step in steps:
            act(store, step)
        for names in SCOPES:
            told = answers(store.scoped(**names))
            with begun(tmp_path_factory.mktemp("alone")) as alone:
                for step in steps:
                    if is_seen(step, names):
                        act(alone, step)
                assert answers(alone.scoped(**names)) == told, names
