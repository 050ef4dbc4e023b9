"""A record that a store returns holds only bytes until a field of it is read, and no caller can tell."""

from __future__ import annotations

import copy
import dataclasses
import gc
import pickle
import struct
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from chronomemory import ChronoRecord, ChronoStore
from pydantic import TypeAdapter

FIELDS = [field.name for field in dataclasses.fields(ChronoRecord)]

WRITTEN = ChronoRecord(
    id="HYP-1",
    kind="hypothesis",
    status="active",
    label="a label with a “quote” and \\ a backslash",
    confidence=0.75,
    source_type="inferred",
    evidence=["a", "b"],
    epistemic_boundary=["lab only"],
    is_hypothesis=True,
    model_assumptions={"model": "m", "temperature": 0.0},
    recursion_depth=0,
    data={"deep": {"list": [1, 2.5, None, True, "x"]}, "large": 10**30},
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ChronoStore]:
    with ChronoStore(tmp_path) as store:
        store.upsert(dataclasses.replace(WRITTEN))
        yield store


def unread(store: ChronoStore) -> ChronoRecord:
    record = store.get("HYP-1")
    assert record is not None and is_unread(record)
    return record


def is_unread(record: ChronoRecord) -> bool:
    """Say whether the record refers to nothing but its class and one piece of bytes."""
    referents = [one for one in gc.get_referents(record) if one is not ChronoRecord]
    return len(referents) == 1 and isinstance(referents[0], bytes)


def test_every_way_to_records_returns_unread_ones(store: ChronoStore) -> None:
    ways: list[list[Any]] = [
        [store.get("HYP-1")],
        store.get_many(["HYP-1"]),
        store.query(),
        list(store.stream()),
        [hit.record for hit in store.search("label")],
        [store.as_of(1).get("HYP-1")],
        [store.scoped(user="ann").get("HYP-1")],
    ]
    assert all(len(way) == 1 and is_unread(way[0]) for way in ways)


@pytest.mark.parametrize("name", FIELDS)
def test_the_first_field_that_is_read_brings_all(store: ChronoStore, name: str) -> None:
    record = unread(store)
    assert getattr(record, name) == getattr(WRITTEN, name)
    assert not is_unread(record)
    assert all(type(record).__dict__[field].__get__(record) == getattr(WRITTEN, field) for field in FIELDS)
    assert record.evidence is record.evidence


def test_what_is_no_field_leaves_it_unread(store: ChronoStore) -> None:
    record = unread(store)
    assert record.created_at is not None and record.updated_at == record.created_at
    assert record.version is not None and record.created_seq == 1 and record.in_doubt is None
    assert isinstance(record, ChronoRecord) and type(record) is ChronoRecord
    assert not hasattr(record, "colour")
    with pytest.raises(AttributeError, match=r"^'ChronoRecord' object has no attribute 'colour'$") as caught:
        record.colour  # type: ignore[attr-defined]  # noqa: B018
    assert (caught.value.name, caught.value.obj) == ("colour", record)
    with pytest.raises(AttributeError):
        record.colour = "red"  # type: ignore[attr-defined]
    assert is_unread(unread(store))


def test_it_equals_and_shows_as_one_that_was_made_by_hand(store: ChronoStore) -> None:
    assert unread(store) == WRITTEN and unread(store) == unread(store)
    assert WRITTEN.__eq__(unread(store)) is True
    assert unread(store) != dataclasses.replace(WRITTEN, label="other")
    assert unread(store) != "HYP-1"
    assert repr(unread(store)) == repr(WRITTEN)
    assert unread(store).to_dict() == dataclasses.asdict(unread(store)) == WRITTEN.to_dict()
    assert dataclasses.astuple(unread(store)) == dataclasses.astuple(WRITTEN)
    assert dataclasses.replace(unread(store), label="x") == dataclasses.replace(WRITTEN, label="x")
    with pytest.raises(TypeError, match="unhashable"):
        hash(unread(store))
    match unread(store):
        case ChronoRecord(id, kind, label=label):
            assert (id, kind, label) == (WRITTEN.id, WRITTEN.kind, WRITTEN.label)
    assert unread(store).passes_rag_filter() and unread(store).scope == WRITTEN.scope


@pytest.mark.parametrize("length", [0, 5_000])
def test_copies_and_pickles_are_those_of_a_read_record(store: ChronoStore, length: int) -> None:
    store.upsert(dataclasses.replace(WRITTEN, label="x" * length))
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        read = unread(store)
        assert read.label == "x" * length
        assert pickle.dumps(unread(store), protocol) == pickle.dumps(read, protocol)
    twins = [
        copy.copy(unread(store)),
        copy.deepcopy(unread(store)),
        pickle.loads(pickle.dumps(unread(store))),
    ]
    for twin in twins:
        assert twin == read
        assert (twin.version, twin.created_at) == (read.version, read.created_at)
        assert pickle.dumps(twin) == pickle.dumps(read)
    deep = copy.deepcopy(read)
    deep.data["deep"]["list"].append("new")
    assert read == unread(store)


def test_of_a_long_record_only_the_version_is_kept_once_it_is_read(store: ChronoStore) -> None:
    store.upsert(dataclasses.replace(WRITTEN, label="x" * 5_000))
    record = unread(store)
    version = record.version
    assert len(record.label) == 5_000 and record.version == version
    assert sum(len(one) for one in gc.get_referents(record) if isinstance(one, bytes)) < 100


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_that_is_assigned_first_stays(store: ChronoStore, name: str) -> None:
    # The class and True are also what a record may refer to beside its fields.
    for value in ("assigned", True, None, ChronoRecord):
        record = unread(store)
        setattr(record, name, value)
        assert [getattr(record, field) for field in FIELDS] == [
            value if field == name else getattr(WRITTEN, field) for field in FIELDS
        ]


def test_a_record_that_is_assigned_to_and_written_keeps_the_rest(store: ChronoStore) -> None:
    record = unread(store)
    record.label = "changed"
    store.upsert(record)
    assert store.get("HYP-1") == dataclasses.replace(WRITTEN, label="changed")


def test_a_field_that_is_deleted_does_not_come_back(store: ChronoStore) -> None:
    for record in (unread(store), dataclasses.replace(WRITTEN), copy.copy(unread(store))):
        assert record.label == WRITTEN.label
        del record.label
        with pytest.raises(AttributeError, match="label"):
            record.label  # noqa: B018


def test_a_foreign_record_gets_the_defaults_of_what_it_lacks() -> None:
    def foreign(text: bytes) -> ChronoRecord:
        record = object.__new__(ChronoRecord)
        record._unread = struct.pack("<4qB", 1, 1, 1, 1, 0) + text
        return record

    assert foreign(b'{"id":"A"}') == ChronoRecord(id="A")
    lacking = foreign(b'{"confidence":1,"colour":"red","data":{"a":[]},"id":"A"}')
    assert lacking == ChronoRecord(id="A", confidence=1.0, data={"a": []})
    assert type(lacking.confidence) is float
    backwards = foreign(b'{"status":"archived","label":"a\\nb","id":"A"}')
    assert backwards == ChronoRecord(id="A", label="a\nb", status="archived")


def test_what_reads_dataclasses_reads_unread_records(store: ChronoStore) -> None:
    record = ChronoRecord(id="N", label="n", data={"n": 1})
    store.upsert(record)
    found = store.get("N")
    assert orjson.loads(orjson.dumps(found)) == record.to_dict()
    adapter = TypeAdapter(ChronoRecord)
    kept = store.get("N")
    assert adapter.validate_python(kept) is kept
    assert adapter.dump_python(store.get("N")) == record.to_dict()  # type: ignore[arg-type]


def test_threads_that_read_a_record_first_get_the_same_values(store: ChronoStore) -> None:
    count, rounds = 4, 200
    records = [unread(store) for _ in range(rounds)]
    start = threading.Barrier(count)
    found: list[list[tuple[Any, ...]]] = [[] for _ in range(count)]

    def look(place: int) -> None:
        start.wait()
        for number, record in enumerate(records):
            if place == 0 and number % 2:
                record.label = "assigned"
            names = FIELDS[place:] + FIELDS[:place]
            values = {name: getattr(record, name) for name in names if name != "label"}
            values["evidence"].append(place)
            found[place].append(tuple(values[name] for name in FIELDS if name != "label"))

    threads = [threading.Thread(target=look, args=(place,)) for place in range(count)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    for number, record in enumerate(records):
        assert record.label == ("assigned" if number % 2 else WRITTEN.label)
        assert sorted(record.evidence[2:]) == list(range(count))
        values = {id(value) for place in range(count) for value in found[place][number][5:7]}
        assert len(values) == 2
