"""A where leaves the records that it should, indexed or not, before and after writes, now and then."""

from __future__ import annotations

import tempfile
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoStore
from chronomemory.errors import InvalidArgument, Limit
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shares import share
from where_model import RECORDS, WHERES, holds

#: How many random stores are asked.
EXAMPLES = share(12, 1000)
INDEXED = ["data.x", "data.y", "data.z.a", "tags", "label", "confidence", "evidence", "data.z.b\\.c"]
WRITTEN = st.lists(st.tuples(st.integers(0, 11), RECORDS), min_size=1, max_size=12)


def expected(records: dict[str, Any], where: dict[str, Any]) -> list[str]:
    return [name for name, record in records.items() if holds(where, record)]


def asked(store: Any, where: dict[str, Any]) -> list[str]:
    return [record.id for record in store.query(where=where, status=None)]


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    before=WRITTEN,
    after=WRITTEN,
    wheres=st.lists(WHERES, min_size=1, max_size=12),
    paths=st.lists(st.sampled_from(INDEXED), max_size=4, unique=True),
)
def test_the_engine_means_what_forty_lines_of_python_mean(
    before: list[Any], after: list[Any], wheres: list[dict[str, Any]], paths: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as folder, ChronoStore(Path(folder), durability="off") as store:
        known: dict[str, Any] = {}
        for number, record in before:
            store.upsert({"id": f"R{number}", **record})
            known[f"R{number}"] = {"id": f"R{number}", **record}
        for where in wheres:
            assert asked(store, where) == expected(known, where), where
        for path in paths:
            store.upkeep.create_index(path)
        then, seq = dict(known), store.wal_seq()
        for where in wheres:
            assert asked(store, where) == expected(known, where), where
        for number, record in after:
            store.upsert({"id": f"R{number}", **record})
            known[f"R{number}"] = {"id": f"R{number}", **record}
        view = store.as_of(seq)
        for where in wheres:
            assert asked(store, where) == expected(known, where), where
            assert asked(view, where) == expected(then, where), where
        if store.compact():
            for where in wheres:
                assert asked(store, where) == expected(known, where), where


@pytest.fixture
def people(store: ChronoStore) -> ChronoStore:
    store.upsert_many(
        {
            "id": f"P-{number:03}",
            "label": f"person {number}",
            "confidence": number % 10 / 10,
            "data": {
                "age": number,
                "customer": f"c{number % 10}",
                "tags": ["even" if number % 2 == 0 else "odd", *(["third"] if number % 3 == 0 else [])],
                "time": (datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(days=number)).isoformat(),
            },
        }
        for number in range(100)
    )
    return store


def ids(records: Any) -> list[int]:
    return [int(record.id[2:]) for record in records]


def test_short_forms_are_joined_with_a_where(people: ChronoStore) -> None:
    assert ids(people.query(tags=["even", "third"], where={"data.age": {"lt": 20}})) == [0, 6, 12, 18]
    assert ids(people.query(min_confidence=0.9, where={"data.age": {"lt": 20}})) == [9, 19]
    first, last = datetime(2026, 1, 11, tzinfo=timezone.utc), datetime(2026, 1, 13, tzinfo=timezone.utc)
    assert ids(people.query(since=first, until=last)) == [10, 11, 12]
    assert ids(people.query(where={"happened_at": {"gte": first, "lte": last}})) == [10, 11, 12]
    assert ids(people.query(where={"data.time": {"in": [first, last]}})) == [10, 12]
    assert ids(people.query(where={}, limit=3)) == [0, 1, 2]
    assert people.query(kind="note", where={}) == []
    assert people.query(status="archived", where={"data.age": 1}) == []


def test_a_record_without_a_time_happened_when_it_was_written(store: ChronoStore) -> None:
    store.upsert({"id": "A"})
    between = datetime.now(timezone.utc)
    while datetime.now(timezone.utc) <= between:
        pass
    store.upsert({"id": "B"})
    assert [record.id for record in store.query(since=between)] == ["B"]
    assert [record.id for record in store.query(until=between)] == ["A"]
    assert [record.id for record in store.query(where={"updated_at": {"gt": between}})] == ["B"]
    store.compact()
    assert [record.id for record in store.query(since=between)] == ["B"]


def test_fields_of_the_store_say_when_something_happened(store: ChronoStore) -> None:
    store.upsert({"id": "A", "data": {"day": "2020-05-05", "time": "1999-01-01"}})
    year = datetime(2020, 1, 1, tzinfo=timezone.utc)
    assert store.query(since=year, until=datetime(2021, 1, 1, tzinfo=timezone.utc)) == []
    store.upkeep.set_search_fields(times=["data.day"])
    assert len(store.query(since=year, until=datetime(2021, 1, 1, tzinfo=timezone.utc))) == 1


def test_a_plan_tells_how_many_records_were_looked_at(people: ChronoStore) -> None:
    where = {"data.customer": "c3", "data.age": {"gt": 50}}
    plain = people.query(where=where, explain=True)
    assert plain.plan == "no index: 100 records of the scope"
    people.upkeep.create_index("data.customer")
    people.upkeep.create_index("data.age")
    indexed = people.query(where=where, explain=True)
    assert indexed.plan == "index data.customer: 10 of 100 records, 2 tests each"
    assert indexed == plain
    assert ids(indexed) == [53, 63, 73, 83, 93]
    narrow = people.query(where={"data.age": {"gte": 97}, "data.customer": "c8"}, explain=True)
    assert narrow.plan == "index data.age: 3 of 100 records, 2 tests each"
    assert people.query(where={"data.age": {"in": [1, 2.0, "x"]}}, explain=True).plan == (
        "index data.age: 2 of 100 records, 1 test each"
    )
    assert people.query(where={"not": {"data.age": 1}}, explain=True).plan.startswith("no index: ")
    assert people.query(where={"kind": "note"}, explain=True).plan == (
        "kind and status: 0 of 100 records, 1 test each"
    )
    people.upkeep.drop_index("data.customer")
    assert people.query(where={"data.customer": "c3"}, explain=True).plan == (
        "no index: 100 records of the scope"
    )
    assert people.query(where=where).plan == ""


def test_indexes_belong_to_the_store(store: ChronoStore, tmp_path: Path) -> None:
    assert store.upkeep.create_index("data.a\\.b")
    assert not store.upkeep.create_index("data.a\\.b")
    with ChronoStore(tmp_path) as other:
        assert other.upkeep.indexes() == ["data.a\\.b"]
        other.upsert({"id": "A", "data": {"a.b": ["x", 1]}})
        other.upsert({"id": "B"})
        found = other.query(where={"path": ["data", "a.b"], "any": [1.0]}, explain=True)
        assert (len(found), found.plan) == (1, "index data.a\\.b: 1 of 2 records, 1 test each")
        assert other.upkeep.create_index("tags")
    assert store.upkeep.indexes() == ["data.a\\.b", "tags"]
    assert store.upkeep.drop_index("data.a\\.b")
    assert not store.upkeep.drop_index("data.a\\.b")
    assert store.upkeep.indexes() == ["tags"]
    assert store.query(faces=False) == store.query(where={})


def test_a_store_has_at_most_64_indexes(store: ChronoStore) -> None:
    for number in range(64):
        assert store.upkeep.create_index(f"data.field{number}")
    with pytest.raises(Limit, match="64 indexes"):
        store.upkeep.create_index("data.more")
    assert len(store.upkeep.indexes()) == 64
    store.upkeep.drop_index("data.field0")
    assert store.upkeep.create_index("data.more")


@pytest.mark.parametrize("path", ["dat.x", "created_at", "data..x", "", "data.x\\"])
def test_there_is_no_index_of_what_is_no_field(store: ChronoStore, path: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        store.upkeep.create_index(path)
    assert caught.value.field == "path"
    assert store.upkeep.indexes() == []


def test_export_takes_a_where(people: ChronoStore) -> None:
    rows = people.export_records(where={"data.age": {"lt": 2}})
    assert [row["id"] for row in rows] == ["P-000", "P-001"]
    assert people.export_records(where={"data.age": -1}, status=None) == []


# Indexes and scopes.


def test_an_index_serves_every_handle(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upkeep.create_index("data.n")
        handles = {user: store.scoped(user=user) for user in ("ann", "bob")}
        for user, handle in handles.items():
            handle.upsert_many([{"id": f"{user}-{n}", "data": {"n": n % 10}} for n in range(100)])
        store.upsert_many([{"id": f"all-{n}", "data": {"n": n % 10}} for n in range(50)])
        where = {"data.n": 3}
        for asker, plan in (
            (store, "index data.n: 5 of 50 records, 1 test each"),
            (handles["ann"], "index data.n: 15 of 150 records, 1 test each"),
            (store.scoped(user="ann", shared=False), "index data.n: 10 of 100 records, 1 test each"),
            (store.scoped(user="nobody"), "index data.n: 5 of 50 records, 1 test each"),
            (store.everyone(), "index data.n: 25 of 250 records, 1 test each"),
        ):
            found = asker.query(where=where, explain=True)
            assert found.plan == plan
            assert [record.id for record in found] == [
                record.id for record in asker.query() if record.data["n"] == 3
            ]
        handles["ann"].update("ann-3", data={"n": 4})
        handles["ann"].delete("ann-13")
        assert len(handles["ann"].query(where=where)) == 13
        assert len(handles["bob"].query(where=where)) == 15


def test_records_come_in_the_order_of_a_field(tmp_path: Path) -> None:
    values: list[Any] = [3, None, "b", True, 1.5, "a", [1], {"x": 1}, 2**60, -1, False, "a"]
    with ChronoStore(tmp_path) as store:
        store.upsert_many([{"id": f"R-{n:02}", "data": {"v": value}} for n, value in enumerate(values)])
        store.upsert({"id": "MISSING"})
        for order in ("data.v", "-data.v"):
            with pytest.raises(
                InvalidArgument, match=r"there is no index of .data\.v. to order by"
            ) as refused:
                store.query(order_by=order)
            assert refused.value.field == "order_by"
        store.upkeep.create_index("data.v")
        sorted_ids = ["R-01", "R-10", "R-03", "R-09", "R-04", "R-00", "R-08", "R-05", "R-11", "R-02"]
        last = ["R-06", "R-07", "MISSING"]
        turned = ["R-02", "R-05", "R-11", "R-08", "R-00", "R-04", "R-09", "R-03", "R-10", "R-01"]
        for order, expected in (("data.v", [*sorted_ids, *last]), ("-data.v", [*turned, *last])):
            assert [record.id for record in store.query(order_by=order)] == expected
            assert [record.id for record in store.stream(order_by=order)] == expected
            paged, cursor = [], None
            while True:
                page = store.query(order_by=order, limit=2, after=cursor)
                paged += [record.id for record in page]
                if (cursor := page.cursor) is None:
                    break
            assert paged == expected
        half = store.query(order_by="data.v", limit=4, where={"data.v": {"type": "number"}})
        assert [record.id for record in half] == ["R-09", "R-04", "R-00", "R-08"]
        assert store.as_of(store.wal_seq()).query(order_by="data.v", limit=1)[0].id == "R-01"
        with pytest.raises(InvalidArgument, match="order_by must be one of created"):
            store.query(order_by="size")
