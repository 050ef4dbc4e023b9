"""Is a question that makes no sense refused by the name of its field, before anything is written?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from chronomemory import ChronoStore, InvalidRecord

LONE = "\ud800"
ONE = [1.0, 0.0]

BAD: list[tuple[str, Callable[[Any], object]]] = [
    ("text", lambda store: store.search(LONE)),
    ("text", lambda store: store.search(3)),
    ("status", lambda store: store.search("a", status=3)),
    ("status", lambda store: store.search("a", status=LONE)),
    ("min_confidence", lambda store: store.search("a", min_confidence="x")),
    ("min_confidence", lambda store: store.search("a", min_confidence=float("nan"))),
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
    ("k", lambda store: store.nearest(ONE, k=10**30)),
    ("k", lambda store: store.nearest(ONE, k=-1)),
    ("k", lambda store: store.nearest(ONE, k="1")),
    ("among", lambda store: store.nearest(ONE, among="abc")),
    ("among", lambda store: store.nearest(ONE, among=[3])),
    ("kind", lambda store: store.nearest(ONE, kind=3)),
    ("status", lambda store: store.nearest(ONE, status=3)),
    ("space", lambda store: store.nearest(ONE, space=3)),
    ("min_score", lambda store: store.nearest(ONE, min_score="x")),
    ("min_score", lambda store: store.nearest(ONE, min_score=float("nan"))),
    ("min_confidence", lambda store: store.nearest(ONE, min_confidence="x")),
    ("tags", lambda store: store.choose_search_fields(tags=[3])),
    ("tags", lambda store: store.choose_search_fields(tags=[""])),
    ("times", lambda store: store.choose_search_fields(times=3)),
    ("text", lambda store: store.choose_search_fields(text={"": 1})),
    ("text", lambda store: store.choose_search_fields(text={3: 1})),
    ("text", lambda store: store.choose_search_fields(text="label")),
    ("text", lambda store: store.choose_search_fields(text={"label": 0})),
    ("id", lambda store: store.attach("search:fields", ONE)),
    ("id", lambda store: store.attach("vector:default", ONE)),
    ("id", lambda store: store.attach(LONE, ONE)),
    ("ids", lambda store: store.attach_many([3], [ONE])),
    ("space", lambda store: store.attach("A", ONE, space=3)),
    ("model", lambda store: store.attach("A", ONE, model=3)),
    ("space", lambda store: store.embedding("A", space=3)),
    ("id", lambda store: store.embedding(3)),
    ("space", lambda store: store.detach("A", space=3)),
    ("space", lambda store: store.matrix(space=3)),
    ("space", lambda store: store.use_space(3)),
    ("space", lambda store: store.drop_space(3)),
]


@pytest.mark.parametrize(("field", "ask"), BAD)
def test_the_field_is_named_and_nothing_is_written(
    store: ChronoStore, field: str, ask: Callable[[Any], object]
) -> None:
    store.upsert({"id": "A", "label": "a"})
    store.attach("A", ONE, model="m")
    store.choose_search_fields(tags=["data.tags"])
    before = store.wal_seq()
    with pytest.raises(InvalidRecord) as caught:
        ask(store)
    assert caught.value.field == field
    assert store.wal_seq() == before
    assert [near.record_id for near in store.nearest(np.asarray(ONE))] == ["A"]
    assert [hit.id for hit in store.search("a", ONE)] == ["A"]
