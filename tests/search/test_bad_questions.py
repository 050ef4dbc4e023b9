"""A question that makes no sense is refused by the name of its field, before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from chronomemory import ChronoStore, InvalidArgument

LONE = "\ud800"
ONE = [1.0, 0.0]
NAN = float("nan")

BAD: list[tuple[str, Callable[[Any], object]]] = [
    ("text", lambda store: store.search(LONE)),
    ("text", lambda store: store.search(3)),
    ("status", lambda store: store.search("a", status=3)),
    ("status", lambda store: store.search("a", status=LONE)),
    ("min_confidence", lambda store: store.search("a", min_confidence="x")),
    ("min_confidence", lambda store: store.search("a", min_confidence=NAN)),
    ("min_confidence", lambda store: store.search("a", min_confidence=10**400)),
    ("context", lambda store: store.search("a", context="x")),
    ("explain", lambda store: store.search("a", explain="x")),
    ("space", lambda store: store.search("a", ONE, space=3)),
    ("kind", lambda store: store.search("a", kind=3)),
    ("tags", lambda store: store.search("a", tags=[LONE])),
    ("tags", lambda store: store.search("a", tags=3)),
    ("as_of", lambda store: store.search("a", as_of="x")),
    ("as_of", lambda store: store.search("a", as_of=True)),
    ("since", lambda store: store.search("a", since="2026")),
    ("as_of", lambda store: store.search("a", as_of=-1)),
    ("as_of", lambda store: store.as_of(-1)),
    ("limit", lambda store: store.query(limit=-1)),
    ("limit", lambda store: store.query(limit=2**70)),
    ("limit", lambda store: store.query(limit="1")),
    ("limit", lambda store: store.as_of(1).query(limit=-1)),
    ("min_confidence", lambda store: store.query(min_confidence=NAN)),
    ("min_confidence", lambda store: store.query(min_confidence=NAN, rag_filter=True)),
    ("min_confidence", lambda store: store.query(min_confidence="x")),
    ("min_confidence", lambda store: store.as_of(1).query(min_confidence=NAN)),
    ("kind", lambda store: store.query(kind=3)),
    ("kind", lambda store: store.query(kind=LONE)),
    ("status", lambda store: store.query(status=3)),
    ("status", lambda store: store.export_records(status=3)),
    ("faces", lambda store: store.query(faces="x")),
    ("seq", lambda store: store.changed_since(-1)),
    ("seq", lambda store: store.changed_since(2**70)),
    ("seq", lambda store: store.changed_since("1")),
    ("from_seq", lambda store: store.replay(from_seq=-1)),
    ("from_seq", lambda store: store.replay(from_seq="x")),
    ("id", lambda store: store.history(LONE)),
    ("id", lambda store: store.history(3)),
    ("id", lambda store: store.as_of(1).get(LONE)),
    ("id", lambda store: store.invalidate("", "")),
    ("id", lambda store: store.invalidate(3, "wrong")),
    ("reason", lambda store: store.invalidate("A", 3)),
    ("reason", lambda store: store.invalidate("A", LONE)),
    ("recursion_depth", lambda store: ChronoStore(store.project_root, recursion_depth=2**63)),
    ("recursion_depth", lambda store: ChronoStore(store.project_root, recursion_depth=-1)),
    ("recursion_depth", lambda store: type(store)(store.project_root, recursion_depth="1")),
    ("k", lambda store: store.vectors.nearest(ONE, k=10**30)),
    ("k", lambda store: store.vectors.nearest(ONE, k=-1)),
    ("k", lambda store: store.vectors.nearest(ONE, k="1")),
    ("among", lambda store: store.vectors.nearest(ONE, among="abc")),
    ("among", lambda store: store.vectors.nearest(ONE, among=[3])),
    ("kind", lambda store: store.vectors.nearest(ONE, kind=3)),
    ("status", lambda store: store.vectors.nearest(ONE, status=3)),
    ("space", lambda store: store.vectors.nearest(ONE, space=3)),
    ("min_score", lambda store: store.vectors.nearest(ONE, min_score="x")),
    ("min_score", lambda store: store.vectors.nearest(ONE, min_score=NAN)),
    ("min_confidence", lambda store: store.vectors.nearest(ONE, min_confidence="x")),
    ("tags", lambda store: store.upkeep.set_search_fields(tags=[3])),
    ("tags", lambda store: store.upkeep.set_search_fields(tags=[""])),
    ("times", lambda store: store.upkeep.set_search_fields(times=3)),
    ("text", lambda store: store.upkeep.set_search_fields(text={"": 1})),
    ("text", lambda store: store.upkeep.set_search_fields(text={3: 1})),
    ("text", lambda store: store.upkeep.set_search_fields(text="label")),
    ("text", lambda store: store.upkeep.set_search_fields(text={"label": 0})),
    ("id", lambda store: store.vectors.attach("search:fields", ONE)),
    ("id", lambda store: store.vectors.attach("vector:default", ONE)),
    ("id", lambda store: store.vectors.attach(LONE, ONE)),
    ("ids", lambda store: store.vectors.attach_many([3], [ONE])),
    ("space", lambda store: store.vectors.attach("A", ONE, space=3)),
    ("model", lambda store: store.vectors.attach("A", ONE, model=3)),
    ("space", lambda store: store.vectors.get("A", space=3)),
    ("id", lambda store: store.vectors.get(3)),
    ("space", lambda store: store.vectors.detach("A", space=3)),
    ("space", lambda store: store.vectors.matrix(space=3)),
    ("space", lambda store: store.vectors.use(3)),
    ("space", lambda store: store.vectors.drop(3)),
]


@pytest.mark.parametrize(("field", "ask"), BAD)
def test_the_field_is_named_and_nothing_is_written(
    store: ChronoStore, field: str, ask: Callable[[Any], object]
) -> None:
    store.upsert({"id": "A", "label": "a"})
    store.vectors.attach("A", ONE, model="m")
    store.upkeep.set_search_fields(tags=["data.tags"])
    before = store.wal_seq()
    with pytest.raises(InvalidArgument) as caught:
        ask(store)
    assert caught.value.field == field
    assert store.wal_seq() == before
    assert [near.record_id for near in store.vectors.nearest(np.asarray(ONE))] == ["A"]
    assert [hit.id for hit in store.search("a", ONE)] == ["A"]
