"""One way to write and read records for all systems: the same records, the same durability.

Peers keep the JSON of a record under its id; encoding it (orjson) is part of what they are timed for, because
the store is given the same dicts. *Normal* is written to the system before the call returns, but not synced;
*durable* is synced.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import orjson

from benches.data import KIND, fields

__all__ = ["SETTINGS", "Keep", "ShaWrite", "batches", "log_file", "log_lines", "open_keep"]

BATCH = 10_000
#: What the page states about each system.
SETTINGS = {
    "rocksdict": "raw mode, write-ahead log on; durable: `WriteOptions.sync`",
    "lmdb": "one transaction a call; normal: `sync=False, metasync=False`; durable: both on",
    "sqlite": "WAL, `synchronous=OFF`, durable: `FULL`; a connection for each thread",
    "duckdb": "one file; columns `id`, `kind` and the JSON `body`",
}

Fields = dict[str, Any]


class Keep(Protocol):
    """A store of records by id."""

    def put(self, record: Fields) -> object: ...
    def put_many(self, records: Sequence[Fields]) -> object: ...
    def get(self, key: str) -> Any: ...
    def count(self) -> int: ...
    def close(self) -> object: ...


def body_of(record: Fields) -> bytes:
    return orjson.dumps(record, option=orjson.OPT_SORT_KEYS)


class Ours:
    def __init__(self, folder: Path, durable: bool, **options: Any) -> None:
        from chronomemory import ChronoStore  # noqa: PLC0415 - workers of peers do without it

        user = options.pop("user", None)
        self.store = ChronoStore(folder, durability="full" if durable else "normal", **options)
        place = self.store.scoped(user=user) if user else self.store
        self.put, self.put_many, self.get = place.upsert, place.upsert_many, place.get
        self.count, self.close = place.count, self.store.close


class Rocks:
    def __init__(self, folder: Path, durable: bool) -> None:
        import rocksdict  # noqa: PLC0415

        self._batch = rocksdict.WriteBatch
        self._base = rocksdict.Rdict(str(folder), rocksdict.Options(raw_mode=True))
        self._options = rocksdict.WriteOptions()
        self._options.sync = durable

    def put(self, record: Fields) -> None:
        self._base.put(record["id"].encode(), body_of(record), write_opt=self._options)

    def put_many(self, records: Sequence[Fields]) -> None:
        batch = self._batch(raw_mode=True)
        for record in records:
            batch.put(record["id"].encode(), body_of(record))
        self._base.write(batch, self._options)

    def get(self, key: str) -> Any:
        return self._base.get(key.encode())

    def bodies(self) -> Iterator[bytes]:
        return iter(self._base.values())

    def count(self) -> int:
        return sum(1 for _ in self._base.keys())  # noqa: SIM118 - it is no dict

    def close(self) -> None:
        self._base.close()


class Lmdb:
    def __init__(self, folder: Path, durable: bool) -> None:
        import lmdb  # noqa: PLC0415

        self._folder = folder
        self._base = lmdb.open(str(folder), map_size=32 << 30, sync=durable, metasync=durable)

    def put(self, record: Fields) -> None:
        key, body = record["id"].encode(), body_of(record)
        with self._base.begin(write=True) as act:
            act.put(key, body)

    def put_many(self, records: Sequence[Fields]) -> None:
        pairs = [(record["id"].encode(), body_of(record)) for record in records]
        with self._base.begin(write=True) as act, act.cursor() as cursor:
            cursor.putmulti(pairs)

    def get(self, key: str) -> Any:
        with self._base.begin() as act:
            return act.get(key.encode())

    def bodies(self) -> Iterator[bytes]:
        with self._base.begin() as act, act.cursor() as cursor:
            yield from cursor.iternext(keys=False)

    def count(self) -> int:
        return int(self._base.stat()["entries"])

    def compact(self) -> None:
        target = self._folder.with_name(self._folder.name + "-copy")
        target.mkdir()
        self._base.copy(str(target), compact=True)

    def close(self) -> None:
        self._base.close()


class Sqlite:
    def __init__(self, folder: Path, durable: bool) -> None:
        folder.mkdir(exist_ok=True)
        self._path, self._durable, self._own = folder / "base.sqlite", durable, threading.local()
        self.base.execute("create table if not exists records (id text primary key, kind text, body blob)")

    @property
    def base(self) -> sqlite3.Connection:
        """The connection of this thread."""
        if not hasattr(self._own, "base"):
            base = sqlite3.connect(self._path, isolation_level=None, timeout=60)
            base.execute("pragma journal_mode=wal")
            base.execute(f"pragma synchronous={'full' if self._durable else 'off'}")
            self._own.base = base
        return self._own.base

    def put(self, record: Fields) -> None:
        row = (record["id"], record["kind"], body_of(record))
        self.base.execute("insert or replace into records values (?, ?, ?)", row)

    def put_many(self, records: Sequence[Fields]) -> None:
        rows = [(record["id"], record["kind"], body_of(record)) for record in records]
        self.base.execute("begin")
        self.base.executemany("insert or replace into records values (?, ?, ?)", rows)
        self.base.execute("commit")

    def get(self, key: str) -> Any:
        row = self.base.execute("select body from records where id = ?", (key,)).fetchone()
        return row and row[0]

    def bodies(self) -> Iterator[bytes]:
        return (body for (body,) in self.base.execute("select body from records order by rowid"))

    def of_kind(self) -> list[bytes]:
        return [body for (body,) in self.base.execute("select body from records where kind = ?", (KIND,))]

    def at_least(self, score: float) -> list[bytes]:
        asked = "select body from records where json_extract(body, '$.data.score') >= ?"
        return [body for (body,) in self.base.execute(asked, (score,))]

    def count(self) -> int:
        return int(self.base.execute("select count(*) from records").fetchone()[0])

    def index(self) -> None:
        self.base.execute("create index by_kind on records (kind)")
        self.base.execute("pragma wal_checkpoint(truncate)")

    def compact(self) -> None:
        self.base.execute("vacuum")

    def verify(self) -> bool:
        return self.base.execute("pragma integrity_check").fetchone() == ("ok",)

    def close(self) -> None:
        self.base.close()


class Duck:
    def __init__(self, folder: Path, durable: bool) -> None:
        import duckdb  # noqa: PLC0415

        folder.mkdir(exist_ok=True)
        self.base = duckdb.connect(str(folder / "base.duckdb"))
        self.base.execute("create table if not exists records (id varchar, kind varchar, body json)")

    def put(self, record: Fields) -> None:
        self.put_many([record])

    def put_many(self, records: Sequence[Fields]) -> None:
        import pyarrow  # noqa: PLC0415

        names = ("id", "kind", "body")
        columns = zip(*((one["id"], one["kind"], body_of(one).decode()) for one in records), strict=True)
        rows = pyarrow.table(dict(zip(names, map(list, columns), strict=True)))  # noqa: F841 - read by name
        self.base.execute("insert into records select * from rows")

    def get(self, key: str) -> Any:
        row = self.base.execute("select body from records where id = ?", [key]).fetchone()
        return row and row[0].encode()

    def bodies(self) -> Iterator[bytes]:
        found = self.base.execute("select body from records")
        while rows := found.fetchmany(BATCH):
            yield from (body.encode() for (body,) in rows)

    def of_kind(self) -> list[bytes]:
        found = self.base.execute("select body from records where kind = ?", [KIND]).fetchall()
        return [body.encode() for (body,) in found]

    def at_least(self, score: float) -> list[bytes]:
        asked = "select body from records where cast(body->>'$.data.score' as double) >= ?"
        return [body.encode() for (body,) in self.base.execute(asked, [score]).fetchall()]

    def count(self) -> int:
        return int((self.base.execute("select count(*) from records").fetchone() or (0,))[0])

    def close(self) -> None:
        self.base.close()


_KEEPS: dict[str, Callable[..., Any]] = {
    "ours": Ours,
    "rocksdict": Rocks,
    "lmdb": Lmdb,
    "sqlite": Sqlite,
    "duckdb": Duck,
}


def open_keep(family: str, folder: Path, *, durable: bool = False, **options: Any) -> Any:
    """Open the store of a system."""
    return _KEEPS[family](folder, durable, **options)


def batches(count: int, first: int = 0) -> Iterator[list[Fields]]:
    """Yield consecutive records in batches."""
    for start in range(first, first + count, BATCH):
        yield [fields(number) for number in range(start, min(start + BATCH, first + count))]


def log_file(project: Path) -> Path:
    return project / ".chronomemory" / "events.wal"


def log_lines(folder: Path, count: int) -> list[bytes]:
    """Return the log lines of so many records: the bytes that a limit hashes and writes."""
    keep = Ours(folder / "lines", durable=False)
    for batch in batches(count):
        keep.put_many(batch)
    keep.close()
    return log_file(folder / "lines").read_bytes().splitlines(keepends=True)


class ShaWrite:
    """The least that a log of these lines costs one core: SHA-256 of its bytes, and writing them.

    The hash is one call over all bytes (OpenSSL), so neither padding nor a call for each line is counted.
    """

    def __init__(self, folder: Path, pieces: Sequence[bytes], *, durable: bool = False) -> None:
        self._whole, self._pieces, self._durable = b"".join(pieces), pieces, durable
        self._path = folder / "plain"

    def __call__(self) -> None:
        import hashlib  # noqa: PLC0415 - it takes 10 ms to import

        hashlib.sha256(self._whole)
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for piece in self._pieces:
            os.write(file, piece)
            if self._durable:
                os.fdatasync(file)
        os.close(file)


def decoded(body: bytes) -> Fields:
    return dict(json.loads(body))
