"""Changes in part, of several records, and only of what was read; every refusal tells why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chronomemory import ChronoStore, Conflict, InvalidArgument, InvalidRecord, UnknownRecord
from chronomemory.errors import OutOfScope
from hypothesis import given, settings
from hypothesis import strategies as st
from shares import share


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3)


leaves = st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2)
values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=2) | objects(inner), max_leaves=6)


def merged(old: Any, patch: Any) -> Any:
    """RFC 7396, section 2, line by line."""
    if not isinstance(patch, dict):
        return patch
    target = dict(old) if isinstance(old, dict) else {}
    for name, value in patch.items():
        if value is None:
            target.pop(name, None)
        else:
            target[name] = merged(target.get(name), value)
    return target


@settings(max_examples=share(30, 500), deadline=None)
@given(old=objects(values), patch=objects(values))
def test_data_is_merged_as_the_rfc_says(
    old: dict[str, Any], patch: dict[str, Any], tmp_path_factory: Any
) -> None:
    with ChronoStore(tmp_path_factory.mktemp("merged"), durability="off") as store:
        store.upsert({"id": "A", "label": "kept", "data": old})
        event = store.update("A", data=patch)
        record = store.get("A")
        # As text: to Python true is 1.
        before, after = (json.dumps(data, sort_keys=True) for data in (old, merged(old, patch)))
        assert record is not None and json.dumps(record.data, sort_keys=True) == after
        assert record.label == "kept"
        assert (event is None) == (before == after)


def test_true_is_no_number(store: ChronoStore) -> None:
    store.upsert({"id": "A", "data": {"paid": 0, "n": 1, "list": [1]}})
    assert store.update("A", data={"paid": False, "list": [True]}) is not None
    assert [record.id for record in store.query(where={"data.paid": False})] == ["A"]
    with pytest.raises(InvalidRecord, match="is_hypothesis"):
        store.update("A", is_hypothesis=0)


#: Equal to Python or NumPy, or nearly, and written in several ways.
numbers = st.sampled_from(
    [
        *(0, 0.0, -0.0, False, np.False_, np.float32(0), np.float64(-0.0), np.int8(0)),
        *(1, 1.0, True, np.True_, np.int64(1), np.uint8(1), np.float16(1)),
        *(0.1, np.float32(0.1), np.float16(0.1), np.float64(0.1)),
        *(2**53, 2.0**53, 2**53 + 1, np.int64(2**53 + 1), np.uint64(2**53), 16777217, np.float32(16777216)),
    ]
)


@settings(max_examples=share(60, 1000), deadline=None)
@given(old=numbers, new=numbers, field=st.sampled_from(["data", "model_assumptions", "evidence", "both"]))
def test_an_update_is_nothing_only_if_an_upsert_would_be(
    old: Any, new: Any, field: str, tmp_path_factory: Any
) -> None:
    def told(number: Any) -> dict[str, Any]:
        if field == "evidence":
            return {"evidence": (number, [number])}
        told = {"n": number, "inside": [{"n": number}]}
        return {"data": told, "model_assumptions": told} if field == "both" else {field: told}

    with ChronoStore(tmp_path_factory.mktemp("same"), durability="off") as store:
        store.upsert({"id": "A", **told(old)})
        before = store.get("A")
        event = store.update("A", **told(new))
        after = store.get("A")
        store.upsert({"id": "A", **told(new)})
        wanted = store.get("A")
        assert before is not None and after is not None and wanted is not None
        assert after.version == wanted.version
        assert (event is None) == (before.version == wanted.version)


@pytest.mark.parametrize("same", [1, 1.0, np.int64(1), np.float32(1)])
def test_a_confidence_is_the_same_in_whatever_number(store: ChronoStore, same: Any) -> None:
    store.upsert({"id": "A", "confidence": 1})
    assert store.update("A", confidence=same) is None
    store.upsert({"id": "A", "confidence": 0.0})
    assert store.update("A", confidence=-0.0) is None
    store.upsert({"id": "A", "confidence": 0.1})
    assert store.update("A", confidence=np.float32(0.1)) is not None
    assert (known := store.get("A")) is not None and known.confidence == float(np.float32(0.1))
    for wrong in (True, np.True_, "1", 10**400, float("nan")):
        with pytest.raises(InvalidRecord, match="confidence"):
            store.update("A", confidence=wrong)


def test_an_array_is_refused_in_the_words_of_upsert(store: ChronoStore) -> None:
    store.upsert({"id": "A", "data": {"list": [1, 2]}})
    with pytest.raises(InvalidRecord, match="tolist"):
        store.update("A", data={"list": np.array([1, 2])})


def test_what_is_wider_is_only_read(store: ChronoStore) -> None:
    store.upsert({"id": "SHARED"})
    store.scoped(agent="sup").upsert({"id": "SUP"})
    handle = store.scoped(user="ann", agent="sup")
    for name in ("SHARED", "SUP"):
        with pytest.raises(OutOfScope):
            handle.update(name, label="mine")


def test_whose_a_record_is_stays_as_it_is(store: ChronoStore) -> None:
    narrow, wide = store.scoped(user="ann", session="s1"), store.scoped(user="ann")
    narrow.upsert({"id": "A", "data": {"n": 1}})
    assert wide.update("A", data={"@scope": None}) is None
    assert wide.update("A", data={"n": 2}) is not None
    assert store.everyone().update("A", label="said by everyone") is not None
    record = narrow.get("A")
    assert record is not None
    assert record.data == {"@scope": {"session": "s1", "user": "ann"}, "n": 2}


def test_other_fields_are_given_whole(store: ChronoStore) -> None:
    store.upsert({"id": "A", "label": "x", "evidence": ["e"], "data": {"n": 1}})
    assert store.update("A", confidence=0.9, evidence=["f"]) is not None
    record = store.get("A")
    assert record is not None
    assert (record.label, record.confidence, record.evidence, record.data) == ("x", 0.9, ["f"], {"n": 1})
    assert store.update("A", confidence=0.9) is None and store.wal_seq() == 2
    for wrong in ("id", "recursion_depth", "colour"):
        with pytest.raises(InvalidArgument if wrong != "id" else TypeError):
            store.update("A", **{wrong if wrong != "id" else "record_id": "B"})
    with pytest.raises(InvalidRecord):
        store.update("A", confidence=7)
    with pytest.raises(UnknownRecord) as unknown:
        store.update("NOBODY", label="y")
    assert (
        isinstance(unknown.value, KeyError) and str(unknown.value) == 'id "NOBODY": there is no such record'
    )


def test_a_version_is_a_condition(store: ChronoStore) -> None:
    store.upsert({"id": "A", "label": "1"})
    first = store.get("A")
    assert first is not None
    store.update("A", label="2", if_version=first.version)
    with pytest.raises(Conflict) as refused:
        store.update("A", label="3", if_version=first.version)
    now = store.get("A")
    assert now is not None and now.label == "2"
    assert (refused.value.id, refused.value.expected, refused.value.found) == (
        "A",
        first.version,
        now.version,
    )
    with pytest.raises(Conflict):
        store.upsert({"id": "A", "label": "3"}, if_version=first.version)
    with pytest.raises(Conflict):
        store.delete("A", if_version=first.version)
    with pytest.raises(Conflict):
        store.upsert({"id": "A"}, if_new=True)
    with pytest.raises(Conflict):
        store.upsert({"id": "B"}, if_version=first.version)
    assert store.upsert({"id": "B"}, if_new=True).record_id == "B"
    assert store.upsert({"id": "A", "label": "1"}, if_version=now.version).seq == 4
    back = store.get("A")
    # What returns to its old content is its old version.
    assert back is not None and back.version == first.version
    store.delete("A", if_version=back.version)
    assert store.query(kind="fact") == [store.get("B")]


def test_many_are_fetched_in_the_order_asked(store: ChronoStore) -> None:
    store.upsert_many([{"id": name} for name in "abc"])
    store.scoped(user="ann").upsert({"id": "x"})
    found = store.get_many(["c", "x", "a", "nobody", "c"])
    assert [record and record.id for record in found] == ["c", None, "a", None, "c"]
    assert store.get_many([]) == []


def test_many_are_deleted_as_one_batch(store: ChronoStore) -> None:
    store.upsert_many([{"id": f"R-{n}", "data": {"n": n}} for n in range(6)])
    assert store.delete_many(where={"data.n": {"gte": 3}}, dry_run=True) == ["R-3", "R-4", "R-5"]
    assert store.record_count() == 6
    assert store.delete_many(where={"data.n": {"gte": 3}}) == ["R-3", "R-4", "R-5"]
    assert store.delete_many(["R-0", "nobody", "R-3", "R-0"]) == ["R-0"]
    assert [record.id for record in store.query()] == ["R-1", "R-2"]
    for wrong in ({}, {"where": {}}, {"record_ids": ["R-1"], "where": {"data.n": 1}}):
        with pytest.raises(InvalidArgument):
            store.delete_many(**wrong)  # type: ignore[arg-type]
    assert store.delete_many(where={}, all=True) == ["R-1", "R-2"]


def test_in_a_scope_only_own_records_are_deleted(store: ChronoStore) -> None:
    ann, bob = store.scoped(user="ann"), store.scoped(user="bob")
    for handle, name in ((store, "S"), (ann, "A"), (bob, "B")):
        handle.upsert({"id": name, "data": {"tea": True}})
    assert ann.delete_many(["A", "B"], dry_run=True) == ["A"]
    with pytest.raises(OutOfScope):
        ann.delete_many(["A", "S"])
    assert ann.delete_many(where={"data.tea": True}) == ["A"]
    assert {record.id for record in store.everyone().query()} == {"S", "B"}


def test_a_refused_row_of_a_batch_is_named(store: ChronoStore) -> None:
    rows: list[dict[str, Any]] = [{"id": f"R-{n + 1}"} for n in range(1000)]
    rows[777]["confidence"] = 7
    with pytest.raises(InvalidRecord) as refused:
        store.upsert_many(rows)
    assert (refused.value.row, refused.value.id, refused.value.field) == (777, "R-778", "confidence")
    assert str(refused.value).startswith('row 777 (id "R-778"), confidence must be')
    with pytest.raises(InvalidRecord, match=r"^row 0, "):
        store.upsert_many([{"label": "without an id", "confidence": -1}])
    assert store.record_count() == 0


def test_an_update_loses_nothing_beside_another_process(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as one, ChronoStore(tmp_path) as other:
        one.upsert({"id": "A"})
        for n in range(20):
            (one, other)[n % 2].update("A", data={f"n{n}": n})
        record = one.get("A")
        assert record is not None and len(record.data) == 20
