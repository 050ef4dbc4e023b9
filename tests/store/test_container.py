"""A store and its handles are read like a mapping of ids to records."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from chronomemory import ChronoStore, Memory, UnknownRecord
from chronomemory.store import Records

SOON = datetime.now(timezone.utc) + timedelta(hours=1)


def holds(handle: Records, *ids: str) -> None:
    """Check that all four ways to look agree on these ids."""
    assert sorted(handle) == sorted(ids)
    assert len(handle) == len(ids)
    for name in ids:
        assert name in handle
        assert handle[name].id == name


def test_a_store_is_read_by_id(store: ChronoStore) -> None:
    holds(store)
    store.upsert({"id": "A", "label": "tea"})
    store.upsert({"id": "B", "status": "hypothesis"})
    holds(store, "A", "B")
    assert store["A"].label == "tea"
    assert list(store) == ["A", "B"], "in the order they came"
    assert {name: store[name].status for name in store} == {"A": "active", "B": "hypothesis"}


def test_an_unknown_id_is_a_key_error_that_names_it(store: ChronoStore) -> None:
    with pytest.raises(KeyError) as missing:
        store["NOBODY"]
    assert isinstance(missing.value, UnknownRecord)
    assert (missing.value.id, str(missing.value)) == ("NOBODY", 'id "NOBODY": there is no such record')
    assert "NOBODY" not in store
    assert 5 not in store, "an id is text"
    assert None not in store


def test_a_deleted_record_is_gone(store: ChronoStore) -> None:
    store.upsert_many([{"id": "A"}, {"id": "B"}])
    store.delete("A")
    holds(store, "B")
    assert "A" not in store
    with pytest.raises(UnknownRecord):
        store["A"]
    gone = store.get("A")
    assert gone is not None and gone.status == "tombstone", "get still shows it"
    store.upsert({"id": "A"})
    holds(store, "A", "B")


def test_an_expired_record_is_gone(store: ChronoStore) -> None:
    store.upsert_many([{"id": "A", "data": {"expires_at": SOON.isoformat()}}, {"id": "B"}])
    holds(store, "A", "B")
    store.upkeep.set_now(SOON + timedelta(seconds=1))
    holds(store, "B")
    assert "A" not in store
    with pytest.raises(UnknownRecord):
        store["A"]


def test_a_handle_holds_what_it_sees(store: ChronoStore) -> None:
    ann, bob = store.scoped(user="ann"), store.scoped(user="bob")
    ann.upsert({"id": "ANN"})
    bob.upsert({"id": "BOB"})
    bob.upsert({"id": "GONE"})
    bob.delete("GONE")
    store.upsert({"id": "ALL"})
    holds(ann, "ANN", "ALL")
    holds(bob, "BOB", "ALL")
    holds(store, "ALL")
    holds(store.everyone(), "ANN", "BOB", "ALL")
    holds(store.scoped(user="ann", shared=False), "ANN")
    holds(store.scoped(user="nobody"), "ALL")
    for name in ("BOB", "GONE", "NEVER"):
        assert name not in ann
        with pytest.raises(UnknownRecord) as hidden:
            ann[name]
        assert str(hidden.value) == f'id "{name}": there is no such record', "hidden and absent look the same"


def test_records_of_other_faces_are_there_too(tmp_path: Path) -> None:
    with Memory(tmp_path) as memory:
        memory.remember("Deploys run from main")
        memory.dream()
    with ChronoStore(tmp_path) as store:
        for hit in store.search("deploys"):
            assert hit.id in store
            assert store[hit.id] == hit.record
        assert len(store) == len(list(store)) > 0


def test_iteration_shows_one_moment(store: ChronoStore) -> None:
    store.upsert_many([{"id": f"R-{n}"} for n in range(100)])
    walk = iter(store)
    first = next(walk)
    store.upsert({"id": "LATER"})
    assert [first, *walk] == [f"R-{n}" for n in range(100)]


def test_an_empty_store_is_true(store: ChronoStore) -> None:
    assert bool(store)
    assert bool(store.scoped(user="ann"))
    assert len(store) == 0
