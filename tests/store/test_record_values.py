"""What a record may hold: numbers of NumPy as numbers; what would come back as something else is refused."""

import uuid
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chronomemory import ChronoRecord, ChronoStore, InvalidRecord


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with ChronoStore(tmp_path) as store:
        yield store


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (np.float32(0.1), 0.10000000149011612),
        (np.float64(0.1), 0.1),
        (np.float16(0.5), 0.5),
        (np.longdouble(0.25), 0.25),
        (np.int64(2**62), 2**62),
        (np.uint64(2**64 - 1), 2**64 - 1),
        (np.int8(-1), -1),
        (np.bool_(True), True),
        (np.bool_(False), False),
        (np.str_("tea"), "tea"),
    ],
)
def test_scalars_of_numpy_are_what_they_equal(store: ChronoStore, given: Any, kept: Any) -> None:
    store.upsert({"id": "A", "data": {"x": given, "list": [given]}})
    data = store.get("A").data  # type: ignore[union-attr]
    assert data == {"x": kept, "list": [kept]} and type(data["x"]) is type(kept)
    assert data["x"] == given


def test_fields_take_scalars_of_numpy(store: ChronoStore) -> None:
    given: dict[str, Any] = {"id": "A", "confidence": np.float32(0.5), "is_hypothesis": np.bool_(True)}
    store.upsert(given)
    assert store.get("A") == ChronoRecord(id="A", confidence=0.5, is_hypothesis=True)
    store.upsert({"id": "A", "confidence": np.int64(1)})
    assert store.get("A").confidence == 1.0  # type: ignore[union-attr]
    with pytest.raises(InvalidRecord, match=r"^confidence must be a number, got True$"):
        store.upsert({"id": "A", "confidence": np.bool_(True)})


_CARRY = "is nothing that JSON can carry"
REFUSED: list[tuple[Any, str]] = [
    (np.float32("nan"), "NaN is no JSON number"),
    (float("inf"), "inf is no JSON number"),
    (datetime(2026, 5, 18, tzinfo=timezone.utc), f"a datetime {_CARRY}; write its text, value.isoformat()"),
    (date(2026, 5, 18), f"a date {_CARRY}; write its text, value.isoformat()"),
    (np.datetime64("2026-05-18"), f"a datetime64 {_CARRY}; write its text, str(value)"),
    (uuid.UUID(int=7), f"a UUID {_CARRY}; write its text, str(value)"),
    (
        Decimal("1.5"),
        f"a Decimal {_CARRY}; write its text, str(value), or float(value) if that is near enough",
    ),
    (np.zeros(2), f"a ndarray {_CARRY}; write value.tolist()"),
    ({1, 2}, f"a set {_CARRY}; write a list"),
    (b"x", f"a bytes {_CARRY}; write text, such as value.hex()"),
    (1j, f"a complex {_CARRY}"),
    (object(), f"a object {_CARRY}"),
    ({7: 1}, "JSON keys are strings"),
    ("a\ud800", "the character at 1 is half of a surrogate pair"),
    (10**4300, "an integer of more than 4300 digits"),
]


@pytest.mark.parametrize(("given", "says"), REFUSED, ids=[type(value).__name__ for value, _ in REFUSED])
def test_what_would_come_back_as_something_else_is_refused(store: ChronoStore, given: Any, says: str) -> None:
    with pytest.raises(InvalidRecord) as refused:
        store.upsert({"id": "A", "data": {"items": [{}, {"a.b": given}]}})
    assert str(refused.value) == f'data.items[1]."a.b": {says}'
    assert (refused.value.field, refused.value.path) == ("data", 'data.items[1]."a.b"')
    assert store.wal_seq() == 0


def test_a_place_is_named_as_one_would_write_it(store: ChronoStore) -> None:
    for key, said in [("Käse", "Käse"), ("@x-y_1", "@x-y_1"), ("", '""'), ("a b", '"a b"'), ('"', '"\\""')]:
        with pytest.raises(InvalidRecord) as refused:
            store.upsert({"id": "A", "model_assumptions": {key: {"x": [[float("nan")]]}}})
        assert refused.value.path == f"model_assumptions.{said}.x[0][0]"
    with pytest.raises(InvalidRecord) as refused:
        store.upsert({"id": "A", "evidence": ["x", float("nan")]})
    assert str(refused.value) == "evidence[1]: NaN is no JSON number"


# Ids.


@pytest.mark.parametrize("handle", ["store", "ann", "everyone"])
def test_a_record_without_an_id_gets_a_random_one(store: ChronoStore, handle: str) -> None:
    door: Any = {"store": store, "ann": store.scoped(user="ann"), "everyone": store.everyone()}[handle]
    event, other = door.upsert({"label": "tea"}), door.upsert({"label": "tea"})
    assert len(event.record_id) == 32 and event.record_id != other.record_id
    assert int(event.record_id, 16) >= 0
    assert door.get(event.record_id).label == "tea"
    record = ChronoRecord(label="coffee")
    assert door.upsert(record).record_id == record.id
    assert door.get(record.id).label == "coffee"
    assert door.upsert({"label": "new"}, if_new=True).record_id
    many = [ChronoRecord(label="one"), {"label": "two"}]
    door.upsert_many(many)
    assert door.get(many[0].id).label == "one" and "id" not in many[1]
    assert len({found.id for found in door.query()}) == 6


def test_lines_without_an_id_get_one_each(store: ChronoStore, tmp_path: Path) -> None:
    (tmp_path / "rows.ndjson").write_text('{"label": "tea"}\n' * 3)
    for _ in range(2):
        assert store.ingest(tmp_path / "rows.ndjson").records == 3
    with (tmp_path / "rows.ndjson").open("rb") as opened:
        assert store.ingest(opened).records == 3
    assert store.ingest([{"label": "tea"}] * 2, on_error="skip").records == 2
    assert len({record.id for record in store.query()}) == 11


def test_an_id_that_is_given_is_not_empty(store: ChronoStore, tmp_path: Path) -> None:
    with pytest.raises(InvalidRecord, match=r"^id must not be empty$"):
        store.upsert({"id": ""})
    with pytest.raises(InvalidRecord, match=r"^id must be a string, got None$"):
        store.upsert({"id": None})
    (tmp_path / "rows.ndjson").write_text('{"id": ""}\n')
    with pytest.raises(InvalidRecord, match="line 1"):
        store.ingest(tmp_path / "rows.ndjson")
    with pytest.raises(InvalidRecord, match=r"^id must not be empty$"):
        store.update("A", lambda _: {"label": "without"})
    assert store.wal_seq() == 0


def test_nothing_is_told_of_a_batch_that_was_refused(store: ChronoStore) -> None:
    record = ChronoRecord(label="one")
    with pytest.raises(InvalidRecord):
        store.upsert_many([record, ChronoRecord(confidence=7)])
    assert record.id == ""
