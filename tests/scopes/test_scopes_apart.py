"""What one scope holds changes no answer in another: a store without what a handle cannot see answers alike.

Random handles write, change, delete, link, withdraw and embed, in two processes, beside compactions, restores
and changes of the model. Then only those steps are taken again, in another store, whose records one of them
sees, and everything is asked of both: ids, order, scores to the last bit, and explanations are the same.
"""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chronomemory import ChronoStore
from chronomemory.store import ScopedStore
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scopes_seen import Names, seen
from shares import share

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

#: Words, who says them, and when: what lifts a hit is what its asker sees.
QUESTIONS = (
    "tea",
    "green tea",
    "black coffee cup in May",
    "river house tea garden that Ann likes",
    "what did Bob say of tea yesterday?",
    "coffee, Cy, on 5 May 2023",
)
NOW = datetime(2023, 5, 14, tzinfo=timezone.utc)

scopes = st.sampled_from(range(len(SCOPES)))
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
numbers = st.integers(0, 5)
#: What somebody does to what is his own.
own_steps = st.one_of(
    st.tuples(st.just("write"), scopes, numbers, texts, st.sampled_from(["g1", "g2", ""])),
    st.tuples(st.just("link"), scopes, numbers, numbers, scopes),
    st.tuples(st.just("delete"), scopes, numbers),
    st.tuples(st.just("withdraw"), scopes, numbers),
    st.tuples(st.just("embed"), scopes, numbers, st.integers(0, 50)),
)
steps = st.lists(
    st.one_of(
        own_steps,
        own_steps,
        own_steps.map(lambda step: ("elsewhere", *step)),
        st.sampled_from([("compact",), ("reopen",), ("restore",), ("reembed",)]),
    ),
    min_size=4,
    max_size=40,
)


def name(scope: int, number: int) -> str:
    return f"R-{scope}-{number}"


def by_length(texts: list[str]) -> list[list[float]]:
    """Embed texts by how long they are."""
    return [[np.cos(len(text) / 9), np.sin(len(text) / 9), 0.5] for text in texts]


class Shared:
    """A store that several use, by two handles that are as far apart as two processes."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self.store, self.other = ChronoStore(project), ChronoStore(project)
        self.models = 0
        # An embedding that all see: spaces and their models belong to the store.
        self.store.upsert({"id": "SEED", "label": "a seed"})
        self.store.vectors.attach("SEED", [1.0, 0.0, 0.0], model="m0")
        for path in ("data.session", "label", "confidence"):
            self.store.upkeep.create_index(path)

    def __enter__(self) -> Shared:
        return self

    def __exit__(self, *_: object) -> None:
        self.store.close()
        self.other.close()

    def act(self, step: tuple[Any, ...]) -> None:
        verb, *rest = step
        if verb == "compact":
            self.store.compact(keep_history=True)
        elif verb == "reopen":
            self.store.close()
            self.store = ChronoStore(self.project)
        elif verb == "restore":
            self.store.upkeep.restore(self.store.backup())
        elif verb == "reembed":
            self.models += 1
            new = f"m{self.models}"
            self.store.vectors.reembed(None, model=new, embed=by_length, into=new, default=True)
        elif verb == "elsewhere":
            self.change(self.other, *rest)
        else:
            self.change(self.store, verb, *rest)

    def change(self, store: ChronoStore, verb: str, scope: int, number: int, *rest: Any) -> None:
        handle, own = store.scoped(**SCOPES[scope]), name(scope, number)
        known = handle.get(own)
        if verb == "write":
            text, group = rest
            # Somebody else's record may be named, too: it is followed by those alone who see it.
            data = {
                "previous": name((scope + len(text)) % len(SCOPES), number),
                "speaker": ("Ann", "Bob", "Cy")[(number + len(text)) % 3],
                "time": f"2023-05-{1 + 4 * number:02}",
            } | ({"session": group} if group else {})
            handle.upsert({"id": own, "label": text, "data": data, "confidence": (number + 1) / 8})
        elif verb == "link":
            target = name(rest[1], rest[0])
            edge = {"id": f"E-{own}-{target}", "kind": "dependency_edge", "label": "rests on"}
            handle.upsert(edge | {"data": {"source": own, "target": target, "edge_type": "depends_on"}})
        elif known is None or known.status == "tombstone":
            return
        elif verb == "delete":
            handle.delete(own)
        elif verb == "withdraw":
            handle.invalidate(own, "it was wrong")
        else:
            angle = rest[0] / 8
            handle.vectors.attach(own, [np.cos(angle), np.sin(angle), 0.5], model=f"m{self.models}")


def answers(handle: ScopedStore) -> dict[str, Any]:
    """Return all that a handle is told, but for what is of the store: seqs and rows."""
    told: dict[str, Any] = {
        "query": [record.to_dict() for record in handle.query(status="")],
        "counts": handle.count(by="kind"),
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
    for text in QUESTIONS:
        for context in (True, False):
            for limit in (1, 3, 50):
                hits = handle.search(text, limit=limit, context=context, explain=True, now=NOW)
                told[f"{text} {context} {limit}"] = [
                    (hit.record.id, hit.score.hex(), repr(hit.why)) for hit in hits
                ]
    for space in handle.vectors.spaces():
        ids, rows = handle.vectors.matrix(space=space.name)
        told[f"matrix {space.name}"] = sorted(zip(ids, (row.tobytes() for row in rows), strict=True))
        told[f"space {space.name}"] = (space.model, space.dim, space.living, space.damaged)
    for vector in ([1.0, 0.0, 0.5], [0.0, 1.0, 0.1]):
        near = handle.vectors.nearest(vector, k=20)
        told[f"near {vector}"] = [(one.record_id, float(one.score).hex()) for one in near]
        hits = handle.search("green tea", vector, limit=20, explain=True, now=NOW)
        told[f"both {vector}"] = [(hit.record.id, hit.score.hex(), repr(hit.why)) for hit in hits]
    return told


def is_seen(step: tuple[Any, ...], names: Names) -> bool:
    """Whether a handle that gives these names sees what a step is about; care of a store is about nothing."""
    scope = next((part for part in step if isinstance(part, int)), None)
    return scope is None or seen(SCOPES[scope], names) is not None


@settings(max_examples=share(5, 100), deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=steps)
def test_a_store_without_the_others_answers_alike(
    steps: list[tuple[Any, ...]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    with Shared(tmp_path_factory.mktemp("all")) as everybody:
        for step in steps:
            everybody.act(step)
        for names in SCOPES:
            told = answers(everybody.store.scoped(**names))
            assert answers(everybody.other.scoped(**names)) == told, names
            with Shared(tmp_path_factory.mktemp("alone")) as alone:
                for step in steps:
                    if is_seen(step, names):
                        alone.act(step)
                assert answers(alone.store.scoped(**names)) == told, names
