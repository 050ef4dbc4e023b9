"""A record keeps its scope, whoever of its owners changes it and by which verb."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from chronomemory import ChronoStore, Scope
from chronomemory.errors import IdTaken

#: More than a batch that is spelled in one piece.
MANY = 1_200


def _ids() -> list[str]:
    return [f"r{number}" for number in range(MANY)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ChronoStore]:
    with ChronoStore(tmp_path, durability="off") as store:
        store.scoped(user="ann", session="s1").upsert_many({"id": name} for name in _ids()[::2])
        yield store


def _one_by_one(handle: ChronoStore) -> None:
    for name in _ids():
        handle.upsert({"id": name, "label": "new"})


def _at_once(handle: ChronoStore) -> None:
    handle.upsert_many({"id": name, "label": "new"} for name in _ids())


def _few_at_once(handle: ChronoStore) -> None:
    for start in range(0, MANY, 100):
        handle.upsert_many({"id": name, "label": "new"} for name in _ids()[start : start + 100])


def _from_rows(handle: ChronoStore) -> None:
    handle.ingest({"id": name, "label": "new"} for name in _ids())


@pytest.mark.parametrize("write", [_one_by_one, _at_once, _few_at_once, _from_rows])
def test_what_is_of_a_session_stays_there(store: ChronoStore, write: Callable[[ChronoStore], None]) -> None:
    ann = store.scoped(user="ann")
    write(ann)
    for place, name in enumerate(_ids()):
        record = ann.get(name)
        assert record is not None and record.label == "new"
        assert record.scope == (Scope(user="ann") if place % 2 else Scope(user="ann", session="s1"))
    assert store.verify().valid
    other = store.scoped(user="ann", session="s2")
    assert len(other.query(limit=MANY)) == MANY // 2
    store.close()
    with store.open():
        assert len(store.scoped(user="ann", session="s2").query(limit=MANY)) == MANY // 2


def test_twice_in_a_batch_is_the_same_record(store: ChronoStore) -> None:
    ann = store.scoped(user="ann")
    ann.upsert_many([{"id": "r0", "label": "one"}, {"id": "new"}, {"id": "r0", "label": "two"}])
    record = ann.get("r0")
    assert record is not None and record.label == "two" and record.scope == Scope(user="ann", session="s1")


def test_a_refused_row_is_named_beside_records_that_keep_theirs(store: ChronoStore) -> None:
    store.scoped(user="bob").upsert({"id": "bobs"})
    rows = [{"id": "r0", "label": "new"}, {"id": "bobs"}, {"id": "r2", "label": "new"}]
    with pytest.raises(IdTaken, match="bobs"):
        store.scoped(user="ann").upsert_many(rows)
    left = store.scoped(user="ann").ingest(rows, on_error="skip")
    assert left.records == 2 and left.skipped == 1
    record = store.scoped(user="ann").get("r0")
    assert record is not None and record.label == "new" and record.scope == Scope(user="ann", session="s1")


def test_threads_that_share_a_sync_keep_it_too(tmp_path: Path) -> None:
    with ChronoStore(tmp_path, durability="full") as store, ThreadPoolExecutor(8) as pool:
        store.scoped(user="ann", session="s1").upsert_many({"id": f"r{number}"} for number in range(40))
        ann = store.scoped(user="ann")
        list(pool.map(lambda number: ann.upsert({"id": f"r{number}", "label": "new"}), range(40)))
        for number in range(40):
            record = ann.get(f"r{number}")
            assert record is not None and record.label == "new"
            assert record.scope == Scope(user="ann", session="s1")
