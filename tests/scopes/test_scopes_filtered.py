"""The log, filtered by what a handle sees, chained anew and opened, answers that handle alike.

Nothing is done again here: of the events that were written, those that speak of a seen record are kept as
they stand. So whatever an event says of others, or leaves out, would show.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoStore
from chronomemory.deps import DepGraph
from chronomemory.store import ScopedStore
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recovering import chained
from scopes_seen import Names, seen
from shares import share

WORDS = ("tea", "green", "black", "coffee", "cup", "house")
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

scopes = st.sampled_from(range(len(SCOPES)))
numbers = st.integers(0, 3)
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), scopes, numbers, texts),
        st.tuples(st.just("write"), scopes, numbers, texts),
        st.tuples(st.just("patch"), scopes, numbers, texts),
        st.tuples(st.just("rest on"), scopes, numbers, scopes, numbers),
        st.tuples(st.just("delete"), scopes, numbers),
        st.tuples(st.just("withdraw"), scopes, numbers),
    ),
    min_size=4,
    max_size=40,
)


def name(scope: int, number: int) -> str:
    return f"R-{scope}-{number}"


def act(store: ChronoStore, verb: str, scope: int, number: int, *rest: Any) -> None:
    handle, own = store.scoped(**SCOPES[scope]), name(scope, number)
    known = handle.get(own)
    if verb == "write":
        handle.upsert({"id": own, "label": rest[0], "confidence": (number + 1) / 8})
    elif known is None or known.status == "tombstone":
        return
    elif verb == "patch":
        handle.update(own, data={"note": rest[0]})
    elif verb == "rest on":
        target = name(*rest)
        if target != own and handle.get(target) is not None:
            DepGraph(handle).add_edge(own, target, "depends_on")
    elif verb == "delete":
        handle.delete(own)
    else:
        handle.invalidate(own, "it was wrong")


def answers(handle: ScopedStore) -> dict[str, Any]:
    """Return all that a handle is told, but for seqs."""
    told: dict[str, Any] = {
        "query": [
            (record.to_dict(), record.created_at, record.updated_at, record.version)
            for record in handle.query(status="")
        ],
        "counts": handle.count(by="kind"),
        "known": handle.known,
        "edges": DepGraph.from_store(handle).edges(),
    }
    for where in (
        {"label": {"starts": "tea"}},
        {"data.note": {"like": "%green%"}},
        {"confidence": {"gt": 0.2}},
    ):
        found = handle.query(where=where, order_by="-happened", explain=True)
        told[f"where {where}"] = ([record.id for record in found], found.plan)
    for text in ("tea", "green tea", "black coffee cup house"):
        for limit in (1, 50):
            hits = handle.search(text, limit=limit, explain=True)
            told[f"{text} {limit}"] = [(hit.record.id, hit.score.hex(), repr(hit.why)) for hit in hits]
    return told


def filtered(log: Path, names: Names) -> bytes:
    """Return the events of a log that speak of what a handle sees, as a log of their own.

    An event is judged by the scope that its record carried then. What held batches together goes: they have
    other lengths now.
    """
    scope_of: dict[str, Names] = {}
    kept: list[dict[str, Any]] = []
    for line in log.read_bytes().splitlines():
        event = json.loads(line)
        if event["op"] == "begin":
            continue
        name, record = event["record_id"], event["record"]
        if "data" in record:
            scope_of[name] = record["data"].get("@scope", {})
        if seen(scope_of[name], names) is not None:
            kept.append(event)
    return chained([json.dumps(event | {"seq": seq}).encode() for seq, event in enumerate(kept, start=1)])


@settings(max_examples=share(12, 300), deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=steps)
def test_the_filtered_log_answers_alike(
    steps: list[tuple[Any, ...]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    project = tmp_path_factory.mktemp("all")
    with ChronoStore(project) as store:
        store.upkeep.create_index("label")
        for step in steps:
            act(store, *step)
        told = [answers(store.scoped(**names)) for names in SCOPES]
    for names, expected in zip(SCOPES, told, strict=True):
        alone = tmp_path_factory.mktemp("alone")
        (alone / ".chronomemory").mkdir()
        log = filtered(project / ".chronomemory" / "events.wal", names)
        (alone / ".chronomemory" / "events.wal").write_bytes(log)
        with ChronoStore(alone) as store:
            assert store.verify().valid
            assert answers(store.scoped(**names)) == expected, names
