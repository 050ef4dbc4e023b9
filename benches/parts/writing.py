"""Measures writing: single records, batches, files and tables, and a store while it grows."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import perf_counter
from typing import Any

from benches.data import fields, identifier, matrix, write_ndjson
from benches.harness import Job, Work, task
from benches.keep import BATCH, ShaWrite, batches, log_lines, open_keep

PEERS = ("rocksdict", "lmdb", "sqlite")
THREADS = 16


def _singles(job: Job, count: int, *, durable: bool, threads: int) -> Work:
    """Write records one by one, each thread a part of them."""
    count = job.scaled(count)
    if job.system == "limit":
        return ShaWrite(job.folder, log_lines(job.folder, count)[:count], durable=durable)
    keep = open_keep(job.family, job.folder / "store", durable=durable)
    given = [fields(number) for number in range(count)]
    keep.put({**fields(0), "id": "first"})  # a store is created by its first write

    def finish() -> None:
        if job.family == "ours" and durable:
            job.notes["writes a sync"] = round(count / (keep.store.engine.log_status()["syncs"] - before), 1)
        keep.close()

    before = keep.store.engine.log_status()["syncs"] if job.family == "ours" else 0
    job.finish = finish

    def write(part: int) -> None:
        put = keep.put
        for record in given[part::threads]:
            put(record)

    def work() -> int:
        if threads == 1:
            write(0)
        else:
            workers = [threading.Thread(target=write, args=(part,)) for part in range(threads)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
        return 0

    job.stack.callback(lambda: _check(job, count + 1, durable))
    return work


def _check(job: Job, count: int, durable: bool = False) -> None:
    keep = open_keep(job.family, job.folder / "store", durable=durable)
    assert keep.count() == count, f"{keep.count()} of {count} records were written"
    keep.close()


for _durable, _threads, _count in (
    (False, 1, 30_000),
    (False, THREADS, 30_000),
    (True, 1, 2_000),
    (True, THREADS, 4_000),
):
    _name = f"upsert, {'durable' if _durable else 'normal'}, {_threads} thread{'s' * (_threads > 1)}"
    _limit = ("limit",) if _threads == 1 else ()
    _how = {"count": _count, "durable": _durable, "threads": _threads}
    task("write", _name, "ours", *PEERS, *_limit, fresh=True, unit="/s")(
        lambda job, _how=_how: _singles(job, **_how)
    )


def _many(job: Job, count: int, **options: Any) -> Work:
    count = job.scaled(count)
    given = list(batches(count))
    if job.setting == "expiring":
        for record in (record for batch in given for record in batch):
            record["data"]["expires_at"] = "2999-01-01T00:00:00Z"
    if job.system == "limit":
        lines = log_lines(job.folder, count)
        return ShaWrite(job.folder, [b"".join(lines[at : at + BATCH]) for at in range(0, len(lines), BATCH)])
    keep = open_keep(job.family, job.folder / "store", **options)
    keep.put({**fields(0), "id": "first"})
    job.finish = keep.close

    def work() -> None:
        for batch in given:
            keep.put_many(batch)

    if "user" not in options:
        job.stack.callback(lambda: _check(job, count + 1))
    return work


@task("write", "upsert_many of 10,000", "ours", *PEERS, "limit", fresh=True, unit="/s")
def in_batches(job: Job) -> Work:
    return _many(job, 200_000)


VARIANTS: dict[str, dict[str, Any]] = {
    "": {},
    "salt=True": {"salt": True},
    "no salt": {"salt": False},
    "of one user": {"user": "ann"},
    "exclusive": {"exclusive": True},
    "expiring": {},
}


@task(
    "write",
    "upsert_many, by option",
    *(f"ours/{name}".rstrip("/") for name in VARIANTS),
    fresh=True,
    unit="/s",
)
def by_option(job: Job) -> Work:
    return _many(job, 50_000, **VARIANTS[job.setting])


@task("write", "attach_many of vectors", "ours", "limit", fresh=True, unit="/s")
def attaching(job: Job) -> Work:
    count = job.scaled(50_000)
    rows = matrix(count, 1)
    if job.system == "limit":
        piece = 1_024
        return ShaWrite(job.folder, [rows[at : at + piece].tobytes() for at in range(0, count, piece)])
    keep = open_keep("ours", job.folder / "store")
    for batch in batches(count):
        keep.put_many(batch)
    ids = [identifier(number) for number in range(count)]
    job.finish = keep.close
    return lambda: keep.store.vectors.attach_many(ids, rows, model="random") and None


@task("write", "upsert_many while it grows", "ours", *PEERS, sizes="largest", fresh=True, unit="", rounds=3)
def growing(job: Job) -> Work:
    """Write to a store until it is large; the rate of each batch is noted."""
    keep = open_keep(job.family, job.folder / "store")
    job.finish = keep.close

    def work() -> None:
        rates = []
        for batch in batches(job.size):
            began = perf_counter()
            keep.put_many(batch)
            rates.append(round(len(batch) / (perf_counter() - began)))
        job.notes |= {"rates": rates, "records/s": round(len(rates) / sum(1 / rate for rate in rates))}

    return work


# Ingestion of files and tables.


def _sources(job: Job) -> int:
    count = job.scaled(200_000)
    write_ndjson(job.folder / "records.ndjson", count)
    return count


def _limit_of_ingest(job: Job, count: int) -> Work:
    lines = log_lines(job.folder, count)
    return ShaWrite(job.folder, [b"".join(lines[at : at + 1_000]) for at in range(0, len(lines), 1_000)])


@task("ingest", "NDJSON file", "ours", "sqlite", "duckdb", "limit", fresh=True, unit="/s")
def ndjson(job: Job) -> Work:
    import orjson  # noqa: PLC0415

    count, source = _sources(job), job.folder / "records.ndjson"
    if job.system == "limit":
        return _limit_of_ingest(job, count)
    keep = open_keep(job.family, job.folder / "store")
    job.finish = keep.close

    def by_hand() -> None:
        with source.open("rb") as file:
            waiting = []
            for line in file:
                waiting.append(orjson.loads(line))
                if len(waiting) == BATCH:
                    keep.put_many(waiting)
                    waiting.clear()
            if waiting:
                keep.put_many(waiting)

    asked = (
        f"insert into records select json->>'id', json->>'kind', json from read_ndjson_objects('{source}')"
    )
    works: dict[str, Callable[[], object]] = {
        "ours": lambda: keep.store.ingest(source),
        "sqlite": by_hand,
        "duckdb": lambda: keep.base.execute(asked),
    }
    job.stack.callback(lambda: _check(job, count))
    return lambda: works[job.family]() and None


@task(
    "ingest",
    "Arrow table",
    "ours",
    "duckdb",
    "lancedb",
    "limit",
    fresh=True,
    unit="/s",
    rounds=3,
    needs="pyarrow",
)
def arrow(job: Job) -> Work:
    from pyarrow import json as arrow_json  # noqa: PLC0415

    count = _sources(job)
    if job.system == "limit":
        return _limit_of_ingest(job, count)
    table = arrow_json.read_json(job.folder / "records.ndjson")
    # Columns without any value have no type in Arrow, and two peers refuse them.
    table = table.drop_columns(["epistemic_boundary", "model_assumptions"])
    if job.system == "lancedb":
        import lancedb  # noqa: PLC0415

        base = lancedb.connect(job.folder / "store")

        def work() -> None:
            assert base.create_table("records", table).count_rows() == count

        return work
    keep = open_keep(job.family, job.folder / "store")
    job.finish = keep.close
    if job.family == "duckdb":
        # It keeps columns as they come: nothing is encoded as JSON.
        keep.base.execute("drop table records")
        asked = "create table records as select * from taken"
        keep.base.register("taken", table)
        job.stack.callback(lambda: _check(job, count))
        return lambda: keep.base.execute(asked) and None
    job.stack.callback(lambda: _check(job, count))
    return lambda: _ingest(keep.store, table)


def _ingest(store: object, table: object) -> None:
    """Load a table; before the store took Arrow tables its rows were made in Python."""
    from chronomemory import InvalidArgument  # noqa: PLC0415

    try:
        store.ingest(table)  # type: ignore[attr-defined]
    except (InvalidArgument, TypeError):
        batches = table.to_batches()  # type: ignore[attr-defined]
        store.ingest(row for batch in batches for row in batch.to_pylist())  # type: ignore[attr-defined]
