"""Tables come in by columns; every value of theirs becomes what a record can hold, or its row is refused."""

import json
import math
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from chronomemory import ChronoStore, InvalidArgument
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with ChronoStore(tmp_path) as store:
        yield store


def test_columns_become_fields_and_data(store: ChronoStore) -> None:
    frame = pl.DataFrame({"key": ["A", "B"], "title": ["tea", None], "n": [1, 2], "cost": [{"net": 3}, None]})
    seen: list[tuple[int, int]] = []
    made = {"id": "key", "label": "title", "data.price.net": "cost.net", "data": "*"}
    report = store.ingest(frame, fields=made, progress=lambda done, total: seen.append((done, total)))
    assert (report.records, report.skipped, report.vectors) == (2, 0, 0)
    first, second = store.get("A"), store.get("B")
    assert first is not None and second is not None
    assert first.label == "tea" and first.data == {"n": 1, "cost": {"net": 3}, "price": {"net": 3}}
    assert second.label == "" and second.data == {"n": 2, "price": {}}
    assert seen == [(2, 2)]


def test_a_table_without_fields_is_one_of_records(store: ChronoStore) -> None:
    frame = pl.DataFrame({"id": ["A"], "kind": ["note"], "confidence": [0.25], "evidence": [["x", "y"]]})
    assert store.ingest(frame.lazy()).records == 1
    record = store.get("A")
    assert record is not None
    assert (record.kind, record.confidence, record.evidence) == ("note", 0.25, ["x", "y"])
    with pytest.raises(InvalidArgument, match=r"row 0.*colour"):
        store.ingest(pl.DataFrame({"id": ["B"], "colour": ["red"]}))


def test_values_of_every_type(store: ChronoStore) -> None:
    moment = datetime(2026, 5, 1, 10, 30, 0, 250_000)
    columns: dict[str, Any] = {
        "id": ["A"],
        "moment": [moment],
        "zoned": pl.Series([moment.replace(tzinfo=timezone.utc)]).dt.convert_time_zone("Europe/Berlin"),
        "day": [date(2026, 5, 1)],
        "short": pl.Series([Decimal("1.25")], dtype=pl.Decimal(10, 2)),
        "long": pl.Series([Decimal("12345678901234567890.25")], dtype=pl.Decimal(38, 2)),
        "colour": pl.Series(["red"], dtype=pl.Categorical),
        "small": pl.Series([0.5], dtype=pl.Float32),
        "big": pl.Series([2**63], dtype=pl.UInt64),
        "flag": [True],
        "inner": [{"a": [1, None], "b": math.nan}],
        "missing": pl.Series([None], dtype=pl.Null),
        "nan": [math.nan],
    }
    store.ingest(pl.DataFrame(columns), fields={"id": "id", "data": "*"})
    record = store.get("A")
    assert record is not None
    assert record.data == {
        "moment": "2026-05-01T10:30:00.250Z",
        "zoned": "2026-05-01T10:30:00.250Z",
        "day": "2026-05-01",
        "short": 1.25,
        "long": "12345678901234567890.25",
        "colour": "red",
        "small": 0.5,
        "big": 2**63,
        "flag": True,
        "inner": {"a": [1, None]},
    }


CELL = st.one_of(st.none(), st.text(max_size=8))
ROW = st.tuples(
    CELL, st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), st.one_of(st.none(), st.floats())
)


@settings(deadline=None, max_examples=30)
@given(st.lists(ROW, max_size=40), st.integers(1, 7))
def test_a_table_is_loaded_like_its_lines(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any], part: int
) -> None:
    records = []
    for number, (text, whole, real) in enumerate(rows):
        cells = {"text": text, "whole": whole, "real": real}
        data = {name: cell for name, cell in cells.items() if cell is not None and cell == cell}
        records.append({"id": f"R-{number}", "data": data})
    kept = [record for record in records if not math.isinf(record["data"].get("real", 0.0))]
    schema = {"text": pl.String, "whole": pl.Int64, "real": pl.Float64}
    frame = pl.DataFrame(rows, schema=schema, orient="row").with_columns(
        pl.Series("id", [record["id"] for record in records], dtype=pl.String)
    )
    parts = [frame[at : at + part] for at in range(0, len(frame), part)]
    frame = pl.concat(parts, rechunk=False) if parts else frame
    folder = tmp_path_factory.mktemp("tables")
    lines = folder / "rows.ndjson"
    lines.write_text("".join(json.dumps(record) + "\n" for record in kept))
    with ChronoStore(folder / "table") as table, ChronoStore(folder / "lines") as other:
        report = table.ingest(frame, fields={"id": "id", "data": "*"}, on_error="skip")
        other.ingest(lines)
        assert (report.records, report.skipped) == (len(kept), len(rows) - len(kept))
        assert [error.row for error in report.errors] == [
            number for number, record in enumerate(records) if record not in kept
        ]
        assert [record.to_dict() for record in table.query()] == [
            record.to_dict() for record in other.query()
        ]


@pytest.mark.parametrize("kind", [pl.Array(pl.Float32, 3), pl.List(pl.Float64)])
def test_embeddings_are_attached(store: ChronoStore, kind: Any) -> None:
    vectors = np.random.default_rng(1).standard_normal((2_500, 3)).astype(np.float32)
    values = [row.tolist() if number % 5 else None for number, row in enumerate(vectors)]
    frame = pl.DataFrame({"id": [f"R-{n}" for n in range(2_500)], "v": pl.Series(values, dtype=kind)})
    report = store.ingest(frame, vector="v", space="s", model="m")
    assert (report.records, report.vectors) == (2_500, 2_000)
    assert store.vectors.get("R-0", space="s") is None
    found = store.vectors.get("R-7", space="s")
    assert found is not None and found.tobytes() == vectors[7].tobytes()


def test_a_row_with_an_unusable_vector_is_refused(store: ChronoStore) -> None:
    vectors = [[1.0, 0.0], [1.0], [math.nan, 1.0], [None, 1.0], None, [0.0, 1.0]]
    frame = pl.DataFrame({"id": list("ABCDEF"), "v": vectors})
    with pytest.raises(InvalidArgument, match=r"row 1 \(id \"B\"\).*1 numbers, expected 2") as caught:
        store.ingest(frame, vector="v", model="m")
    assert (caught.value.row, caught.value.id, caught.value.field) == (1, "B", "vector")
    assert store.record_count() == 0
    report = store.ingest(frame, vector="v", model="m", on_error="skip")
    assert (report.records, report.vectors, report.skipped) == (3, 2, 3)
    assert [(error.row, error.id) for error in report.errors] == [(1, "B"), (2, "C"), (3, "D")]


def test_rows_that_the_engine_refuses_are_named_and_get_no_vector(store: ChronoStore) -> None:
    frame = pl.DataFrame(
        {"id": ["A", "", "C"], "confidence": [0.5, 0.5, 7.0], "v": [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]}
    )
    with pytest.raises(InvalidArgument, match=r"^row 1 \(id \"\"\), id must") as caught:
        store.ingest(frame, vector="v", model="m")
    assert caught.value.row == 1 and caught.value.line is None
    report = store.ingest(frame, vector="v", model="m", on_error="skip")
    assert (report.records, report.vectors, report.skipped) == (1, 1, 2)
    assert [(error.row, error.line) for error in report.errors] == [(1, None), (2, None)]


@pytest.mark.parametrize(
    ("columns", "options", "says"),
    [
        ({"id": ["A"], "e": [[0.5] * 40]}, {"fields": {"id": "id", "data": "*"}}, "vector='?\"?e"),
        ({"id": ["A"], "b": [b"x"]}, {"fields": {"id": "id", "data": "*"}}, "JSON has no form for bytes"),
        ({"id": ["A"]}, {"fields": {"id": "key"}}, 'no column "key"; it has id'),
        ({"id": ["A"]}, {"vector": "v"}, 'no column "v"'),
        ({"id": ["A"], "v": ["x"]}, {"vector": "v"}, "lists of numbers"),
        ({"id": [7]}, {"vector": None, "fields": {"id": "id"}}, "ids must be text"),
        ({"n": [7], "v": [[1.0]]}, {"vector": "v", "fields": {"data": "*"}}, "column of their ids"),
        ({"id": ["A"]}, {"model": "m"}, "name their column with vector="),
        ({"id": ["A", None]}, {}, "row 1, .*no id"),
        ({"id": ["A"], "x": [math.inf]}, {"fields": {"id": "id", "data": "*"}}, "row 0.*infinite"),
    ],
)
def test_what_cannot_be_loaded_is_said(
    store: ChronoStore, columns: dict[str, Any], options: dict[str, Any], says: str
) -> None:
    with pytest.raises(InvalidArgument, match=says):
        store.ingest(pl.DataFrame(columns), **options)
    assert store.record_count() == 0


def test_a_function_of_the_row_gets_rows(store: ChronoStore) -> None:
    frame = pl.DataFrame({"key": ["A"], "at": [datetime(2026, 5, 1)], "n": [None]})
    store.ingest(frame, fields={"id": "key", "data.keys": lambda row: sorted(row), "data.at": "at"})
    record = store.get("A")
    assert record is not None and record.data == {"keys": ["at", "key"], "at": "2026-05-01T00:00:00Z"}
    with pytest.raises(InvalidArgument, match="column of an Arrow table"):
        store.ingest([{"id": "A"}], vector="v")
