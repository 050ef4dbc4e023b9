"""Loads many records: from NDJSON files, tables and rows, mapped to the fields of a record."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timezone
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from chronomemory._core import Engine, TableReader, parse_json
from chronomemory.errors import ChronoError, InvalidArgument
from chronomemory.face.arguments import function_or_none, many, must, path, refuse, string_or_none, word
from chronomemory.record import ChronoRecord
from chronomemory.types import HasEngine, IngestReport, Progress, RowError

#: What a field is made of: a key, a path, a function of the row, or ``"*"`` for the rest of it.
Fields = Mapping[str, "str | Callable[[Mapping[str, Any]], Any]"]

_FIELDS = frozenset(ChronoRecord(id="x").to_dict())
_REST = "*"
_MISSING = object()


def mapped(fields: Fields) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return what makes a record of a row.

    >>> make = mapped({"id": "key", "data.price": "cost.net", "data.seen": lambda row: len(row)})
    >>> make({"key": "A", "cost": {"net": 3}})
    {'id': 'A', 'data': {'price': 3, 'seen': 2}}
    """
    if not isinstance(fields, Mapping):
        raise must("fields", "be a dict", fields)
    for target, source in fields.items():
        root, _, rest = target.partition(".") if isinstance(target, str) else ("", "", "")
        if root not in _FIELDS or (rest and root != "data") or target in ("data.", "recursion_depth"):
            raise must("fields", "name fields of a record, or places such as data.price", target)
        if source == _REST and target != "data":
            raise refuse('"*" is all the rest of a row: only data can be made of it', "fields")
        if not callable(source) and not (isinstance(source, str) and source):
            raise must("fields", f"say by a key or a function what {target} is made of", source)
    whole = fields.get("data")
    inside = [target for target in fields if target.startswith("data.")]
    if whole is not None and whole != _REST and inside:
        raise refuse(f"data is given whole and by {inside[0]}; give one of the two", "fields")
    named = {source for source in fields.values() if isinstance(source, str)}

    def make(row: Mapping[str, Any]) -> dict[str, Any]:
        record: dict[str, Any] = {}
        if whole == _REST:
            record["data"] = {key: value for key, value in row.items() if key not in named}
        for target, source in fields.items():
            if source == _REST:
                continue
            value = source(row) if callable(source) else _found(row, source)
            if value is _MISSING:
                if target == "id":
                    raise refuse(f"the row has no {source!r}", "id")
                continue
            *steps, last = target.split(".")
            inner = record
            for step in steps:
                inner = inner.setdefault(step, {})
                if not isinstance(inner, dict):
                    raise refuse(f"{step} is both a value and what {target} stands in", "fields")
            inner[last] = value
        return record

    return make


def _found(row: Mapping[str, Any], source: str) -> Any:
    if source in row:
        return row[source]
    value: Any = row
    for step in source.split("."):
        if not isinstance(value, Mapping) or step not in value:
            return _MISSING
        value = value[step]
    return value


_BATCH_ROWS = 1_000
_PART_ROWS = 16_384
_PIECE_BYTES = 2 * 1024 * 1024
MOST_LINE_BYTES = 16 << 20
_KEPT_ERRORS = 1_000

Source = str | os.PathLike[str] | IO[str] | IO[bytes] | Iterable[Any]


def ingest(
    store: HasEngine,
    source: Source,
    *,
    fields: Fields | None = None,
    on_error: str = "raise",
    progress: Progress | None = None,
    vector: str | None = None,
    space: str | None = None,
    model: str | None = None,
) -> IngestReport:
    """Load records from NDJSON files (one path or several), an open file, a table or anything with dicts.

    A table has the Arrow interface (polars, also lazy, pyarrow, DuckDB, pandas with pyarrow) or is a
    DataFrame. ``vector`` names its column of embeddings, which are attached in ``space`` as those of
    ``model``. Nulls and NaN are left out, times become text in UTC.

    A bad row ends the load at its batch, and what came before stays; with ``on_error="skip"`` bad rows are
    counted. ``fields`` says what a field of a record is made of: ``{"id": "key", "data.price": "price"}``.
    What ``progress`` raises, or Ctrl-C, ends the load after the current batch.

    >>> import tempfile
    >>> from chronomemory import ChronoStore
    >>> rows = [{"key": "A", "title": "tea", "price": 3}, {"key": "B", "title": "coffee", "price": 4}]
    >>> with ChronoStore(tempfile.mkdtemp()) as store:
    ...     report = store.ingest(rows, fields={"id": "key", "label": "title", "data": "*"})
    ...     report.records, store.get("B").label, store.get("B").data
    (2, 'coffee', {'price': 4})
    """
    progress = function_or_none("progress", progress)
    load = _Load(store.engine, word("on_error", on_error, ("raise", "skip")) == "skip", progress)
    make = None if fields is None else mapped(fields)
    embeddings = string_or_none("space", space), string_or_none("model", model)
    reader = _reader_of(source, fields, string_or_none("vector", vector))
    if vector is None and embeddings != (None, None):
        raise refuse("space and model describe embeddings: name their column with vector=", "vector")
    if vector is not None and reader is None:
        raise refuse("only a column of an Arrow table can hold embeddings; see store.vectors", "vector")
    if isinstance(source, str | os.PathLike):
        load.files([source], make)
    elif reader is not None:
        load.table(reader, embeddings, getattr(source, "height", getattr(source, "num_rows", 0)))
    elif is_table(source) or hasattr(source, "to_batches"):
        load.rows(_rows_of(source), make)
    elif hasattr(source, "read") and hasattr(source, "readline"):
        load.stream(source, make)
    elif isinstance(source, Mapping | ChronoRecord | bytes):
        raise must("source", "be a path, an open file or a list of records", source)
    else:
        each = iter(many("source", source))
        begun = list(islice(each, 1))
        whole = chain(begun, each)
        if begun and isinstance(begun[0], str | os.PathLike):
            load.files(list(whole), make)
        else:
            load.rows(whole, make)
    return load.report()


def lines_of(file: Any, name: str) -> Iterator[Any]:
    """Yield the lines of an open file; one that is longer than any record is refused before it is read."""
    number = 0
    while line := file.readline(MOST_LINE_BYTES + 1):
        number += 1
        if len(line) > MOST_LINE_BYTES:
            raise _too_long(name, number)
        yield line


def _too_long(name: str, number: int) -> InvalidArgument:
    return refuse(f"{name} line {number} is longer than {MOST_LINE_BYTES >> 20} MiB", "record")


def is_table(source: Any) -> bool:
    """Say whether it is a DataFrame, of pandas or polars: it yields the names of its columns."""
    return hasattr(source, "columns") and hasattr(source, "to_dict") and not isinstance(source, Mapping)


def _reader_of(source: Any, fields: Fields | None, vector: str | None) -> TableReader | None:
    """Return a reader of columns; None for other sources and for functions in ``fields``."""
    if hasattr(source, "collect_schema"):  # polars, whose columns of type Null do not fit Arrow's interface
        texts = {name: str for name, kind in source.collect_schema().items() if str(kind) == "Null"}
        source = source.cast(texts) if texts else source
        source = source.collect() if hasattr(source, "collect") else source
    if not hasattr(source, "__arrow_c_stream__"):
        return None
    pairs = [(target, made_of) for target, made_of in (fields or {}).items() if isinstance(made_of, str)]
    if fields is not None and len(pairs) < len(fields):
        return None
    try:
        return TableReader(source, None if fields is None else pairs, vector)
    except ImportError:  # pandas needs pyarrow for its columns
        return None


def _rows_of(table: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table without nulls and NaN, and with times as text in UTC."""
    if hasattr(table, "to_batches"):
        parts = table.to_batches(max_chunksize=_BATCH_ROWS)
        rows = chain.from_iterable(part.to_pylist() for part in parts)
    else:
        rows = table.to_dicts() if hasattr(table, "to_dicts") else table.to_dict("records")
    for row in rows:
        yield {key: _utc_text(value) for key, value in row.items() if value is not None and value == value}


def _utc_text(value: Any) -> Any:
    if not isinstance(value, datetime):
        return value
    moment = value.replace(tzinfo=timezone.utc) if value.tzinfo is None else value.astimezone(timezone.utc)
    return moment.isoformat().replace("+00:00", "Z")


_Made = Callable[[Mapping[str, Any]], dict[str, Any]] | None
#: Where a row comes from: its number (from 0), or its line (from 1) and its file.
_Place = tuple[int | None, int | None, str]


class _Load:
    """What was loaded so far, and how the rest is."""

    def __init__(self, engine: Engine, skips: bool, progress: Progress | None) -> None:
        self._engine = engine
        self._skips = skips
        self._progress = progress
        self._records = self._bytes = self._skipped = self._vectors = 0
        self._seqs: list[int] = []
        self._files: list[str] = []
        self._errors: list[RowError] = []

    def report(self) -> IngestReport:
        first, last = (self._seqs[0], self._seqs[-1]) if self._seqs else (None, None)
        return IngestReport(
            self._records, self._bytes, first, last, self._files, self._skipped, self._errors, self._vectors
        )

    def files(self, sources: list[Any], make: _Made) -> None:
        files = [_existing(name) for name in sources]
        self._files = [str(file) for file in files]
        total = sum(file.stat().st_size for file in files)
        for file in files:
            if make is None:
                loaded = self._engine.ingest(os.fspath(file), self._shifted(total), skips=self._skips)
                self._take(loaded, file.name)
            else:
                with file.open("rb") as lines:
                    self._lines(lines, file.name, make, total)

    def _shifted(self, total: int) -> Progress | None:
        """Let the progress of one file among several count as progress of them all."""
        progress, before = self._progress, self._bytes
        return None if progress is None else lambda done, _: progress(before + done, total)

    def stream(self, source: Any, make: _Made) -> None:
        name = getattr(source, "name", None)
        name = name if isinstance(name, str) else "the file"
        self._files = [name]
        if make is not None:
            self._lines(source, name, make, 0)
            return
        rest, lines, before = b"", 0, self._records
        while True:
            piece = _bytes_of(source.read(_PIECE_BYTES))
            cut = piece.rfind(b"\n") + 1 if piece else 0
            if piece and not cut:
                if len(rest) > MOST_LINE_BYTES:
                    raise _too_long(name, lines + 1)
                rest += piece
                continue
            whole, rest = rest + piece[:cut], piece[cut:]
            if whole:
                text = (whole, lines, self._records - before)
                loaded = self._engine.ingest(name, skips=self._skips, text=text)
                lines += loaded["lines"]
                self._take(loaded, name)
            if not piece:
                return

    def _take(self, loaded: Mapping[str, Any], name: str) -> None:
        self._count(loaded)
        for line, record_id, where, reason in loaded["refusals"]:
            self._keep(RowError(None, line, name, record_id, where, reason))

    def _count(self, loaded: Mapping[str, Any]) -> None:
        self._bytes += loaded["bytes"]
        self._records += loaded["records"]
        self._skipped += loaded["skipped"]
        if loaded["records"]:
            self._seqs += (loaded["first_seq"], loaded["last_seq"])

    def table(self, reader: TableReader, embeddings: tuple[str | None, str | None], total: int) -> None:
        """Load the rows of a table; a refused row has an empty line, so that lines count rows."""
        rows, before = 0, self._records
        while part := reader.next(_KEPT_ERRORS if self._skips else _PART_ROWS):
            refused = []
            for row, record_id, where, reason in part.refusals:
                place = (row, None, "")
                if not self._skips:
                    fault = refuse(reason, where)
                    fault.id = record_id
                    shown = "" if record_id is None else f' (id "{record_id}")'
                    raise _located(fault, place, f"{shown}, {fault}", self._records - before)
                refused.append(row)
                self._keep(RowError(*place, record_id, where, reason))
            self._skipped += len(refused)
            text = (part.text, part.first_row, self._records - before)
            try:
                loaded = self._engine.ingest("table", skips=self._skips, text=text)
            except InvalidArgument as error:
                if error.line is not None:
                    error.row, error.line = error.line - 1, None
                    reason = str(error).removeprefix(f"table line {error.row + 1}")
                    error.args = (f"row {error.row}{reason}",)
                raise
            self._count(loaded)
            for line, record_id, where, reason in loaded["refusals"]:
                refused.append(line - 1)
                self._keep(RowError(line - 1, None, "", record_id, where, reason))
            self._vectors += self._engine.vectors.attach_part(part, refused, *embeddings)
            rows = part.first_row + part.rows
            if self._progress is not None:
                self._progress(rows, total or rows)

    def rows(self, source: Iterable[Any], make: _Made) -> None:
        self._batches((((number, None, ""), row) for number, row in enumerate(source)), make)

    def _lines(self, source: Any, name: str, make: _Made, total: int) -> None:
        def parsed() -> Iterator[tuple[_Place, Any]]:
            for number, line in enumerate(lines_of(source, name), 1):
                spelled = _bytes_of(line)
                self._bytes += len(spelled)
                if not spelled.strip():
                    continue
                try:
                    yield (None, number, name), parse_json(spelled.strip())
                except ValueError as error:
                    yield (None, number, name), refuse(f"not JSON: {error}", "record")

        self._batches(parsed(), make)
        if self._progress is not None:
            self._progress(self._bytes, total or self._bytes)

    def _batches(self, rows: Iterator[tuple[_Place, Any]], make: _Made) -> None:
        before = self._records
        while batch := list(islice(rows, _BATCH_ROWS)):
            good, places = [], []
            for place, row in batch:
                try:
                    if isinstance(row, ChronoError):
                        raise row
                    if make is not None and not isinstance(row, Mapping):
                        raise must("record", "be a dict", row)
                    good.append(row if make is None else make(row))
                    places.append(place)
                except InvalidArgument as error:
                    record_id = row.get("id") if isinstance(row, Mapping) else None
                    error.id = record_id if isinstance(record_id, str) else None
                    if not self._skips:
                        shown = "" if error.id is None else f' (id "{error.id}")'
                        raise _located(error, place, f"{shown}, {error}", self._records - before) from None
                    self._skipped += 1
                    self._keep(RowError(*place, error.id, error.path, str(error)))
            self._write(good, places, before)

    def _write(self, good: list[Any], places: list[_Place], before: int) -> None:
        if self._skips:
            written, first, after, left_out = self._engine.upsert_good(good)
            for row, record_id, where, reason in left_out:
                self._keep(RowError(*places[row], record_id, where, reason))
            self._skipped += len(left_out)
        else:
            try:
                first, after = self._engine.upsert_many(good)
            except InvalidArgument as error:
                if error.row is not None:
                    # The engine counts the rows of its batch.
                    reason = str(error).removeprefix(f"row {error.row}")
                    _located(error, places[error.row], reason, self._records - before)
                raise
            written = len(good)
        self._records += written
        if written:
            self._seqs += (first, after - 1)

    def _keep(self, error: RowError) -> None:
        if len(self._errors) < _KEPT_ERRORS:
            self._errors.append(error)


def _located(error: InvalidArgument, place: _Place, reason: str, kept: int) -> InvalidArgument:
    """Return a refusal that says which row of all it is about."""
    row, line, file = place
    where = f"row {row}" if line is None else f"{file} line {line}"
    error.args = (f"{where}{reason} ({kept} records before it were kept)",)
    error.row, error.line = row, line
    return error


def _bytes_of(piece: Any) -> bytes:
    if isinstance(piece, str):
        return piece.encode("utf-8", "surrogatepass")
    if isinstance(piece, bytes | bytearray | memoryview):
        return bytes(piece)
    raise must("source", "be a file of text or bytes", piece)


def _existing(name: Any) -> Path:
    """Return a file to be read; rows that were passed in place of its name are recognized."""
    if isinstance(name, str) and name.lstrip()[:1] in ("{", "["):
        reason = "this is JSON and not the name of a file; give an open file, or records as dicts"
        raise refuse(reason, "source")
    file = path("source", name)
    if not stat.S_ISREG(file.stat().st_mode):
        raise OSError(errno.EINVAL, "not a regular file; its rows can only be read once", str(file))
    return file
