"""Records come in from files, open files, tables and anything that yields dicts; a bad row is named."""

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoRecord, ChronoStore, InvalidArgument, InvalidRecord
from chronomemory.errors import IdTaken
from chronomemory.types import RowError


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with ChronoStore(tmp_path) as store:
        yield store


def rows(*records: Any) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


NOTES = [{"id": f"N-{n}", "kind": "note", "data": {"n": n}} for n in range(5)]


@pytest.mark.parametrize("newline", [True, False])
@pytest.mark.parametrize(
    "opened",
    [
        lambda file: io.StringIO(file.read_text()),
        lambda file: io.BytesIO(file.read_bytes()),
        lambda file: file.open(encoding="utf-8"),
        lambda file: file.open("rb"),
    ],
)
def test_an_open_file_is_read_to_its_end(
    store: ChronoStore, tmp_path: Path, opened: Any, newline: bool
) -> None:
    file = tmp_path / "notes.ndjson"
    file.write_text(rows(*NOTES).rstrip("\n") + "\n" * newline + "\n \n" * newline)
    with opened(file) as source:
        report = store.ingest(source)
    assert report.records == 5 and report.skipped == 0 and report.errors == []
    assert [record.data["n"] for record in store.query(kind="note")] == [0, 1, 2, 3, 4]
    assert (report.first_seq, report.last_seq) == (2, 6)


def test_a_packed_file_is_an_open_file_too(store: ChronoStore, tmp_path: Path) -> None:
    with gzip.open(tmp_path / "notes.gz", "wb") as packed:
        packed.write(rows(*NOTES).encode())
    with gzip.open(tmp_path / "notes.gz") as packed:
        assert store.ingest(packed).records == 5


def written_to(project: Path) -> list[bytes]:
    with (project / ".chronomemory" / "events.wal").open("rb") as log:
        lines = [line for line in log if b'"op":"begin"' not in line]
    return [line[line.index(b'"record":') : line.index(b',"seq":')] for line in lines]


def test_the_spelling_of_a_row_makes_no_difference(tmp_path: Path) -> None:
    records = [
        {
            "confidence": (n % 3) / 2,
            "data": {"a": {"y": [1, -2.5, None], "z": "née"}, "n": n},
            "evidence": ['say "no"', "\n\u2028"],
            "id": f"R-{n % 7_000}",
            "label": f"über {n} – \\ \u0001",
        }
        | ({"is_hypothesis": n % 2 == 0, "status": "superseded"} if n % 5 == 0 else {})
        for n in range(9_000)
    ]
    spelled = {
        "canonical": [
            json.dumps(r, sort_keys=True, ensure_ascii=False, separators=(",", ":")) for r in records
        ],
        "turned": [
            json.dumps(dict(reversed(r.items())), ensure_ascii=False, separators=(",", ":")) for r in records
        ],
        "spaced": [json.dumps(r) for r in records],
    }
    spelled["mixed"] = [spelled[("canonical", "turned", "spaced")[n % 3]][n] for n in range(len(records))]
    logs = []
    for name, lines in spelled.items():
        file = tmp_path / f"{name}.ndjson"
        file.write_text("\n".join(lines))
        with ChronoStore(tmp_path / name) as store:
            assert store.ingest(file).records == len(records)
            assert store["R-0"].label == "über 7000 – \\ \u0001"  # the last of two, in another batch
            assert store.record_count() == 5_600
        logs.append(written_to(tmp_path / name))
    assert logs[1:] == logs[:1] * 3


def test_what_was_loaded_is_there_at_once(store: ChronoStore, tmp_path: Path) -> None:
    file = tmp_path / "notes.ndjson"
    file.write_text(rows(*({"id": f"N-{n}", "label": "x" * 300} for n in range(20_000))))
    seen: list[tuple[int, int]] = []
    report = store.ingest(file, progress=lambda done, total: seen.append((done, total)))
    assert report.records == 20_000 and len(seen) > 2
    assert store.record_count() == 20_000
    assert len(store.history("N-19999")) == 1
    assert [store.upsert({"id": "N-19999", "label": "y"}).seq - 1] == [report.last_seq]
    assert store.chain_valid()


def test_a_row_refused_behind_other_batches_keeps_those(store: ChronoStore, tmp_path: Path) -> None:
    store.scoped(user="ann").upsert({"id": "N-15000"})
    file = tmp_path / "notes.ndjson"
    file.write_text(rows(*({"id": f"N-{n}", "label": "x" * 300} for n in range(20_000))))
    with pytest.raises(IdTaken, match="line 15001"):
        store.ingest(file)
    kept = store.record_count()
    assert 5_000 < kept < 15_000
    assert f"N-{kept - 1}" in store and f"N-{kept}" not in store
    report = store.ingest(file, on_error="skip")
    assert (report.records, report.skipped) == (19_999, 1)
    assert store.record_count() == 19_999


def test_lines_longer_than_a_piece_are_whole(store: ChronoStore) -> None:
    long = [{"id": f"L-{n}", "label": "x" * 3_000_000} for n in range(3)]
    assert store.ingest(io.StringIO(rows(*long))).records == 3
    assert [len(record.label) for record in store.query()] == [3_000_000] * 3


@pytest.mark.parametrize("source", [io.StringIO(""), io.BytesIO(b"\n\n"), [], iter(()), ()])
def test_nothing_is_loaded_from_nothing(store: ChronoStore, source: Any) -> None:
    report = store.ingest(source)
    assert (report.records, report.first_seq, report.last_seq) == (0, None, None)
    assert store.wal_seq() == 0


def test_anything_that_yields_dicts_or_records(store: ChronoStore) -> None:
    assert store.ingest(dict(note) for note in NOTES).records == 5
    assert store.ingest([ChronoRecord(id="R-1"), {"id": "R-2"}]).records == 2
    assert store.record_count() == 7


def test_a_table_gives_its_rows(store: ChronoStore) -> None:
    class Table:
        columns = ("id", "label")

        def to_dict(self, orient: str) -> list[dict[str, str]]:
            assert orient == "records"
            return [{"id": "T-1", "label": "one"}, {"id": "T-2", "label": "two"}]

    table: Any = Table()
    assert store.ingest(table).records == 2
    with pytest.raises(InvalidArgument, match=r"records must be a list of records, such as table\.to_dict"):
        store.upsert_many(table)
    with pytest.raises(InvalidArgument, match=r"upsert\(\) takes one"):
        store.upsert_many({"id": "A"})


def test_an_arrow_table_gives_its_rows_part_by_part(store: ChronoStore) -> None:
    class Part:
        def __init__(self, first: int) -> None:
            self.first = first

        def to_pylist(self) -> list[dict[str, str]]:
            return [{"id": f"T-{n}", "label": "one"} for n in range(self.first, self.first + 1_000)]

    class Table:
        columns = ("id", "label")

        def to_batches(self, max_chunksize: int) -> list[Part]:
            assert max_chunksize == 1_000
            return [Part(0), Part(1_000)]

    table: Any = Table()
    assert store.ingest(table).records == 2_000
    assert [record.id for record in store.query(limit=2)] == ["T-0", "T-1"]


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (7, "source must be a list"),
        ({"id": "A"}, "source must be a path, an open file or a list of records, got dict"),
        (b"{}", "source must be a path, an open file or a list of records"),
        ('{"id": "A"}', "source: this is JSON and not the name of a file"),
        (['{"id": "A"}'], "source: this is JSON and not the name of a file"),
    ],
)
def test_what_holds_no_rows_is_refused(store: ChronoStore, source: Any, says: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        store.ingest(source)
    assert str(refused.value).startswith(says) and refused.value.field == "source"


def test_a_file_that_is_none(store: ChronoStore, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        store.ingest(tmp_path / "none.ndjson")
    with pytest.raises(OSError, match="not a regular file"):
        store.ingest(tmp_path)
    with pytest.raises(InvalidArgument, match="on_error must be one of raise, skip, got 'ignore'"):
        store.ingest([], on_error="ignore")


BAD = [
    {"id": "A"},
    {"id": "B", "confidence": 7},
    {"id": "C", "data": {"items": [{}, {"price": float("nan")}]}},
    {"id": "D", "lable": "x"},
    {"id": "E"},
]


def test_the_first_bad_row_of_objects_is_named(store: ChronoStore) -> None:
    many = [{"id": f"R-{n}"} for n in range(1500)]
    bad = {"id": "R-1500", "data": {"items": [1, 2, 3, {"price": float("nan")}]}}
    with pytest.raises(InvalidRecord) as refused:
        store.ingest([*many, bad])
    assert str(refused.value) == (
        'row 1500 (id "R-1500"), data.items[3].price: NaN is no JSON number '
        "(1000 records before it were kept)"
    )
    assert (refused.value.row, refused.value.id, refused.value.path) == (
        1500,
        "R-1500",
        "data.items[3].price",
    )
    assert (refused.value.field, refused.value.line) == ("data", None)
    assert store.record_count() == 1000


def test_the_first_bad_line_is_named(store: ChronoStore, tmp_path: Path) -> None:
    (tmp_path / "bad.ndjson").write_text(rows(BAD[0]) + "\n" + rows(BAD[1]))
    for source in (tmp_path / "bad.ndjson", io.BytesIO((tmp_path / "bad.ndjson").read_bytes())):
        with pytest.raises(InvalidRecord) as refused:
            store.ingest(source)
        assert str(refused.value).endswith(
            ' line 3 (id "B"), confidence must be from 0 to 1, got 7 (0 records before it were kept)'
        )
        assert (refused.value.line, refused.value.id, refused.value.path) == (3, "B", "confidence")


def test_bad_rows_are_left_out_and_told(store: ChronoStore, tmp_path: Path) -> None:
    report = store.ingest(BAD, on_error="skip")
    assert (report.records, report.skipped) == (2, 3)
    assert report.errors == [
        RowError(1, None, "", "B", "confidence", "confidence must be from 0 to 1, got 7"),
        RowError(2, None, "", "C", "data.items[1].price", "data.items[1].price: NaN is no JSON number"),
        RowError(3, None, "", "D", "lable", "lable: not a field of a record; put it under data"),
    ]
    assert str(report.errors[0]) == 'row 1 (id "B"), confidence must be from 0 to 1, got 7'
    assert json.loads(json.dumps(report.to_dict()))["errors"][0]["row"] == 1
    file = tmp_path / "bad.ndjson"
    file.write_text(rows(BAD[0], BAD[1]) + "{\n" + rows(BAD[3], BAD[4]))
    for source in (file, file.open("rb")):
        told = store.ingest(source, on_error="skip")
        assert (told.records, told.skipped) == (2, 3)
        assert [(error.line, error.id, error.path) for error in told.errors] == [
            (2, "B", "confidence"),
            (3, None, "record"),
            (4, "D", "lable"),
        ]
        assert str(told.errors[0]).endswith(
            'bad.ndjson line 2 (id "B"), confidence must be from 0 to 1, got 7'
        )
        if source is not file:
            source.close()


def test_a_report_keeps_the_first_thousand(store: ChronoStore, tmp_path: Path) -> None:
    many = [{"id": f"X-{n}", "confidence": 2} for n in range(2500)]
    (tmp_path / "many.ndjson").write_text(rows(*many, {"id": "GOOD"}))
    for source in (many, tmp_path / "many.ndjson"):
        report = store.ingest(source, on_error="skip")
        assert report.skipped == 2500 and len(report.errors) == 1000
    assert report.errors[-1].id == "X-999" and store.record_count() == 1


def test_an_id_that_is_taken_names_its_row_and_line(store: ChronoStore, tmp_path: Path) -> None:
    ann, bob = store.scoped(user="ann"), store.scoped(user="bob")
    ann.upsert({"id": "T-1"})
    records = [{"id": "B-1"}, {"id": "T-1"}, {"id": "B-2"}]
    (tmp_path / "rows.ndjson").write_text(rows(*records))
    with pytest.raises(IdTaken) as refused:
        bob.ingest(tmp_path / "rows.ndjson")
    assert str(refused.value) == (
        'rows.ndjson line 2 (id "T-1"), id: taken in this store; use handle.id("T-1"), or leave the id out '
        "(0 records before it were kept)"
    )
    assert (refused.value.line, refused.value.id) == (2, "T-1")
    with pytest.raises(IdTaken, match=r'^row 1 \(id "T-1"\), id: taken in this store') as taken:
        bob.upsert_many(records)
    assert (taken.value.row, taken.value.id) == (1, "T-1")
    assert bob.query() == []
    for source in (records, tmp_path / "rows.ndjson"):
        report = bob.ingest(source, on_error="skip")
        assert (report.records, report.skipped, report.errors[0].id) == (2, 1, "T-1")
        assert report.errors[0].path == "id" and "taken in this store" in report.errors[0].reason
    assert [record.id for record in bob.query()] == ["B-1", "B-2"]
    assert store.everyone().get("T-1").scope == ann.scope  # type: ignore[union-attr]


def test_a_large_batch_names_the_row_that_is_taken(store: ChronoStore) -> None:
    store.scoped(user="ann").upsert({"id": "R-1234"})
    with pytest.raises(IdTaken, match=r'^row 1234 \(id "R-1234"\), id: taken'):
        store.upsert_many([{"id": f"R-{n}"} for n in range(3000)])
    assert store.record_count() == 0


# Fields of somebody else's rows.

SHOP = [
    {"key": "P-1", "title": "Tea", "cost": {"net": 3}, "stock": 7},
    {"key": "P-2", "title": "Cup", "cost": {"net": 9}, "a.b": 1},
]
MADE = {"id": "key", "label": "title", "data.price": "cost.net"}


def test_fields_are_made_of_keys_and_paths(store: ChronoStore, tmp_path: Path) -> None:
    (tmp_path / "shop.ndjson").write_text(rows(*SHOP))
    with (tmp_path / "shop.ndjson").open("rb") as opened:
        for source in (SHOP, tmp_path / "shop.ndjson", opened):
            assert store.ingest(source, fields=MADE).records == 2
            assert store.get("P-1") == ChronoRecord(id="P-1", label="Tea", data={"price": 3})
    store.ingest(SHOP, fields={"id": lambda row: f"{row['key']}!", "data": "*", "data.dotted": "a.b"})
    assert store.get("P-1!").data == SHOP[0]  # type: ignore[union-attr]
    store.ingest(SHOP, fields={"id": "key", "data": "*", "data.price": "cost.net"})
    kept = {"title": "Tea", "cost": {"net": 3}, "stock": 7, "price": 3}
    assert store.get("P-1").data == kept  # type: ignore[union-attr]
    assert store.get("P-2!").data["dotted"] == 1  # type: ignore[union-attr]


def test_a_row_without_what_its_id_is_made_of_is_refused(store: ChronoStore, tmp_path: Path) -> None:
    bad = [*SHOP, {"title": "nameless"}]
    with pytest.raises(InvalidArgument, match=r"^row 2, id: the row has no 'key'"):
        store.ingest(bad, fields=MADE)
    (tmp_path / "bad.ndjson").write_text("\n" + rows(*bad) + "[]\n{\n")
    with pytest.raises(InvalidArgument, match=r"^bad\.ndjson line 4, id: the row has no 'key'") as refused:
        store.ingest(tmp_path / "bad.ndjson", fields=MADE)
    assert refused.value.line == 4
    report = store.ingest(tmp_path / "bad.ndjson", fields=MADE, on_error="skip")
    assert (report.records, report.skipped) == (2, 3)
    assert [(error.line, error.path) for error in report.errors] == [(4, "id"), (5, "record"), (6, "record")]
    twice = store.ingest([{"key": 7}, *SHOP], fields=MADE, on_error="skip")
    assert str(twice.errors[0]) == "row 0, id must be a string, got 7"


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ("id", "fields must be a dict"),
        ({"lable": "x"}, "fields must name fields of a record, or places such as data.price, got 'lable'"),
        ({"label.x": "x"}, "fields must name fields of a record"),
        ({7: "x"}, "fields must name fields of a record"),
        ({"data.": "x"}, "fields must name fields of a record"),
        ({"recursion_depth": "x"}, "fields must name fields of a record"),
        ({"id": 7}, "fields must say by a key or a function what id is made of, got 7"),
        ({"id": ""}, "fields must say by a key or a function what id is made of, got ''"),
        ({"label": "*"}, 'fields: "*" is all the rest of a row'),
        ({"data": "x", "data.y": "z"}, "fields: data is given whole and by data.y"),
    ],
)
def test_fields_that_make_no_record(store: ChronoStore, fields: Any, says: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        store.ingest([], fields=fields)
    assert str(refused.value).startswith(says)


def test_a_place_in_data_cannot_be_inside_of_a_value(store: ChronoStore) -> None:
    made = {"id": "id", "data.a": "x", "data.a.b": "x"}
    with pytest.raises(InvalidArgument, match=r"a is both a value and what data\.a\.b stands in"):
        store.ingest([{"id": "A", "x": 1}], fields=made)


def test_a_first_row_of_nothing_is_refused_like_any_other(store: ChronoStore) -> None:
    with pytest.raises(InvalidRecord, match="row 0"):
        store.ingest([None, {"id": "A"}])
    report = store.ingest([None, {"id": 7}, {"id": "A"}], on_error="skip")
    assert (report.records, report.skipped, [error.row for error in report.errors]) == (1, 2, [0, 1])
    assert store.ingest([]).records == 0
