"""Bad input is refused before anything is written, with an error that names the field."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoRecord, ChronoStore, InvalidArgument, InvalidRecord

Contents = Callable[[Path], "dict[str, bytes]"]


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


BAD: list[tuple[str, Any, str]] = [
    ("id", 7, "number"),
    ("id", None, "none"),
    ("id", "lone \ud800", "surrogate"),
    ("id", "block:1", "prefix of a face"),
    ("kind", 7, "number"),
    ("status", None, "none"),
    ("label", b"bytes", "bytes"),
    ("label", "lone \udfff", "surrogate"),
    ("source_type", ["observed"], "list"),
    ("confidence", -0.001, "below 0"),
    ("confidence", 1.001, "above 1"),
    ("confidence", float("nan"), "nan"),
    ("confidence", float("inf"), "infinite"),
    ("confidence", "high", "text"),
    ("confidence", None, "none"),
    ("evidence", "a text", "text"),
    ("evidence", {"a", "b"}, "set"),
    ("epistemic_boundary", None, "none"),
    ("is_hypothesis", "yes", "text"),
    ("model_assumptions", ["m"], "list"),
    ("model_assumptions", {"temperature": float("nan")}, "nan inside"),
    ("data", ["a"], "list"),
    ("data", {"x": {1, 2}}, "set inside"),
    ("data", {"x": object()}, "object inside"),
    ("data", {"x": b"bytes"}, "bytes inside"),
    ("data", {"x": [float("-inf")]}, "infinity inside"),
    ("data", {7: "x"}, "key that is no text"),
    ("data", {"x": "\ud800"}, "surrogate inside"),
    ("data", {"\ud800": "x"}, "surrogate key"),
    ("data", {"x": nested(250)}, "too deep"),
    ("data", {"x": nested(100_000)}, "far too deep"),
    ("data", {"x": 10**4400}, "too many digits"),
]
WRITES: dict[str, Callable[[ChronoStore, Any], object]] = {
    "upsert": lambda store, record: store.upsert(record),
    "upsert a dict": lambda store, record: store.upsert(
        {name: getattr(record, name) for name in ChronoRecord.__slots__}
    ),
    "upsert_many": lambda store, record: store.upsert_many([ChronoRecord(id="GOOD"), record]),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
@pytest.mark.parametrize(
    ("field", "value"),
    [pytest.param(field, value, id=f"{field}: {what}") for field, value, what in BAD],
)
def test_a_bad_field_is_named_and_nothing_is_written(
    tmp_path: Path,
    contents: Contents,
    field: str,
    value: Any,
    write: Callable[[ChronoStore, Any], object],
) -> None:
    record = ChronoRecord(id="BAD")
    setattr(record, field, value)
    with ChronoStore(tmp_path) as store:
        store.upsert(ChronoRecord(id="A", label="before"))
        store.sync()
        before = contents(tmp_path)
        with pytest.raises(InvalidRecord) as caught:
            write(store, record)
        assert caught.value.field is not None
        assert caught.value.field.split(".")[0].split("[")[0] == field
        assert field in str(caught.value)
        assert isinstance(caught.value, ValueError)
        assert contents(tmp_path) == before
        assert store.query() == [ChronoRecord(id="A", label="before")]
        assert store.upsert(ChronoRecord(id="after")).seq == 2
        assert store.chain_valid()


def test_a_refused_first_write_does_not_even_make_the_folder(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        with pytest.raises(InvalidRecord):
            store.upsert(ChronoRecord(id="A", confidence=2.0))
        with pytest.raises(InvalidRecord):
            store.upsert_many([ChronoRecord(id="A"), {"id": ""}])
    assert list(tmp_path.iterdir()) == []


def test_a_line_may_be_long_but_not_too_long(store: ChronoStore) -> None:
    store.upsert(ChronoRecord(id="LONG", label="x" * 2**20))
    with pytest.raises(InvalidRecord):
        store.upsert(ChronoRecord(id="TOO-LONG", label="x" * 2**24))
    assert [len(record.label) for record in store.query()] == [2**20]
    assert store.chain_valid()


def test_the_greatest_depth_that_is_allowed(store: ChronoStore) -> None:
    deep = ChronoRecord(id="DEEP", data={"x": nested(197)})
    store.upsert(deep)
    store.close()
    assert store.query() == [deep]
    with pytest.raises(InvalidRecord):
        store.upsert(ChronoRecord(id="DEEPER", data={"x": nested(198)}))


@pytest.mark.parametrize("record_id", ["", None, 7, "\ud800", "block:1"])
def test_delete_needs_an_id(store: ChronoStore, record_id: Any) -> None:
    with pytest.raises(InvalidArgument) as caught:
        store.delete(record_id)
    assert caught.value.field in ("id", "record_id")
    assert store.wal_seq() == 0


@pytest.mark.parametrize("thing", [None, 7, "text", ["id"], object()])
def test_what_is_no_record_is_refused(store: ChronoStore, thing: Any) -> None:
    with pytest.raises((InvalidRecord, TypeError)):
        store.upsert(thing)
    with pytest.raises((InvalidRecord, TypeError)):
        store.upsert_many([thing])
    assert store.wal_seq() == 0


def test_a_batch_whose_source_fails_writes_nothing(store: ChronoStore) -> None:
    def source() -> Any:
        yield ChronoRecord(id="A")
        raise RuntimeError("the source failed")

    with pytest.raises(RuntimeError, match="the source failed"):
        store.upsert_many(source())
    assert store.wal_seq() == 0


@pytest.mark.parametrize(
    "line",
    [b"garbage", b"[1]", b'{"id": ""}', b'{"id": "B", "confidence": 7}'],
)
def test_a_bad_line_stops_its_batch_of_an_ingest(store: ChronoStore, tmp_path: Path, line: bytes) -> None:
    source = tmp_path / "records.ndjson"
    source.write_bytes(b'{"id": "A"}\n' + line + b"\n")
    with pytest.raises(ValueError, match="line 2"):
        store.ingest(source)
    assert store.query() == []
    assert store.chain_valid()
