"""Measures exact search for the nearest vectors, beside other exact searches and beside reading the codes."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benches.data import DIM, identifier, matrix
from benches.harness import Job, Work, dataset, task
from benches.keep import open_keep

BATCH = 64
TOP = 10
#: Queries of one work.
SINGLE = 4
SETTINGS = {
    "faiss": "`IndexFlatIP`",
    "usearch": "`search(…, exact=True)`, inner product of float32",
    "sqlite-vec": "`vec0` table, cosine distance, through apsw",
    "lancedb": "no vector index (`bypass_vector_index`), cosine distance",
    "numpy": "matrix product, `argpartition`, then a sort",
}

Found = list[list[int]]


def best(scores: np.ndarray) -> Found:
    top = np.argpartition(scores, -TOP, axis=1)[:, -TOP:]
    order = np.argsort(-np.take_along_axis(scores, top, axis=1), axis=1)
    return list(np.take_along_axis(top, order, axis=1).tolist())


class OurRows:
    def __init__(self, folder: Path) -> None:
        self.keep = open_keep("ours", folder, verify="quick")
        self.close = self.keep.close

    @classmethod
    def fill(cls, folder: Path, rows: np.ndarray) -> None:
        keep = open_keep("ours", folder)
        ids = [identifier(number) for number in range(len(rows))]
        for start in range(0, len(ids), 10_000):
            keep.put_many([{"id": name} for name in ids[start : start + 10_000]])
        keep.store.vectors.attach_many(ids, rows, model="random")
        keep.store.vectors.nearest(rows[0], k=1)
        keep.close()

    def search(self, queries: np.ndarray) -> Found:
        asked = queries[0] if len(queries) == 1 else queries
        answer = self.keep.store.vectors.nearest(asked, k=TOP)
        hits = [answer] if len(queries) == 1 else answer
        return [[int(hit.record_id[4:]) for hit in each] for each in hits]


class NumPy:
    def __init__(self, folder: Path, *, mapped: bool = False) -> None:
        self._rows = np.load(folder / "rows.npy", mmap_mode="r" if mapped else None)

    @classmethod
    def fill(cls, folder: Path, rows: np.ndarray) -> None:
        folder.mkdir()
        np.save(folder / "rows.npy", rows)

    def search(self, queries: np.ndarray) -> Found:
        return best(queries @ self._rows.T)

    def close(self) -> None:
        pass


class Usearch(NumPy):
    def __init__(self, folder: Path) -> None:
        from usearch.index import MetricKind, search  # noqa: PLC0415

        super().__init__(folder)
        self._search, self._metric = search, MetricKind.IP

    def search(self, queries: np.ndarray) -> Found:
        cores = os.cpu_count() or 1
        found = self._search(self._rows, queries, TOP, self._metric, exact=True, threads=cores)
        return list(np.atleast_2d(found.keys).astype(int).tolist())


class Faiss:
    def __init__(self, folder: Path) -> None:
        import faiss  # noqa: PLC0415

        self._index = faiss.read_index(str(folder / "flat"))

    @classmethod
    def fill(cls, folder: Path, rows: np.ndarray) -> None:
        import faiss  # noqa: PLC0415

        folder.mkdir()
        index = faiss.IndexFlatIP(rows.shape[1])
        index.add(rows)
        faiss.write_index(index, str(folder / "flat"))

    def search(self, queries: np.ndarray) -> Found:
        return list(self._index.search(queries, TOP)[1].tolist())

    def close(self) -> None:
        pass


class SqliteVec:
    def __init__(self, folder: Path) -> None:
        import apsw  # noqa: PLC0415 - many builds of Python's own sqlite3 load no extensions
        import sqlite_vec  # noqa: PLC0415

        folder.mkdir(exist_ok=True)
        self.base = apsw.Connection(str(folder / "base.sqlite"))
        self.base.enable_load_extension(True)
        self.base.load_extension(sqlite_vec.loadable_path())
        self.close = self.base.close

    @classmethod
    def fill(cls, folder: Path, rows: np.ndarray) -> None:
        base = cls(folder).base
        base.execute("pragma synchronous=off")
        base.execute(f"create virtual table v using vec0(e float[{rows.shape[1]}] distance_metric=cosine)")
        base.execute("begin")
        base.executemany(
            "insert into v(rowid, e) values (?, ?)", ((at, row.tobytes()) for at, row in enumerate(rows))
        )
        base.execute("commit")
        base.close()

    def search(self, queries: np.ndarray) -> Found:
        asked = "select rowid from v where e match ? and k = ? order by distance"
        return [[at for (at,) in self.base.execute(asked, (query.tobytes(), TOP))] for query in queries]


class Lance:
    def __init__(self, folder: Path) -> None:
        import lancedb  # noqa: PLC0415

        self._table = lancedb.connect(folder).open_table("v")

    @classmethod
    def fill(cls, folder: Path, rows: np.ndarray) -> None:
        import lancedb  # noqa: PLC0415
        import pyarrow as pa  # noqa: PLC0415

        values = pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), rows.shape[1])
        lancedb.connect(folder).create_table("v", pa.table({"at": np.arange(len(rows)), "vector": values}))

    def search(self, queries: np.ndarray) -> Found:
        found = []
        for query in queries:
            asked = self._table.search(query).distance_type("cosine").bypass_vector_index().limit(TOP)
            found.append(asked.select(["at", "_distance"]).to_arrow()["at"].to_pylist())
        return found

    def close(self) -> None:
        pass


class Codes:
    """The limit: every byte of codes of four bits is read once, by all cores."""

    def __init__(self, rows: int) -> None:
        self._codes = np.ones(max(1, rows * DIM // 16), dtype=np.uint64)
        # Starting a thread takes longer than reading little.
        cores = (os.cpu_count() or 1) if self._codes.nbytes > 1 << 21 else 1
        self._parts = np.array_split(self._codes, cores)
        self._pool = ThreadPoolExecutor(cores)

    def search(self, _: np.ndarray) -> None:
        others = [self._pool.submit(np.sum, part) for part in self._parts[1:]]
        np.sum(self._parts[0])
        for other in others:
            other.result()


_KINDS: dict[str, Any] = {
    "ours": OurRows,
    "numpy": NumPy,
    "usearch": Usearch,
    "faiss": Faiss,
    "sqlite-vec": SqliteVec,
    "lancedb": Lance,
}


@dataset("rows")
def fill(job: Job) -> None:
    if job.family != "limit":
        _KINDS[job.family].fill(job.dataset("rows"), matrix(job.size, job.size))


def _exact(job: Job, batch: int, calls: int) -> Work:
    queries = [matrix(batch, 1_000 + at) for at in range(calls)]
    job.count = calls
    if job.system == "limit":
        codes = Codes(job.size)

        def read() -> None:
            for each in queries:
                codes.search(each)

        return read
    kind = _KINDS[job.family](job.dataset("rows"))
    job.stack.callback(kind.close)

    def work() -> list[Found]:
        return [kind.search(each) for each in queries]

    return work


EXACT = ("ours", "numpy", "faiss", "usearch", "sqlite-vec", "lancedb", "limit")


@task("vectors", "exact top 10", *EXACT, sizes="rows", dataset="rows")
def single(job: Job) -> Work:
    return _exact(job, 1, SINGLE)


@task(
    "vectors", "exact top 10, batch of 64", "ours", "numpy", "faiss", "usearch", sizes="rows", dataset="rows"
)
def batch(job: Job) -> Work:
    return _exact(job, BATCH, 1)


FIRST = ("ours", "numpy", "faiss", "sqlite-vec", "lancedb")


@task("vectors", "open and first nearest", *FIRST, sizes="rows", dataset="rows", fresh=True, rounds=5)
def first(job: Job) -> Work:
    """Imports are not counted; NumPy maps its file."""
    kind, query = _KINDS[job.family], matrix(1, 1)
    other: Callable[[Path], object] = kind
    warm = job.folder / "other"
    kind.fill(warm, matrix(100, 2))
    other(warm).search(query)  # type: ignore[attr-defined]
    options = {"mapped": True} if job.family == "numpy" else {}
    return lambda: kind(job.dataset("rows"), **options).search(query)


@task("vectors", "all rows alike", "ours", "numpy")
def alike(job: Job) -> Work:
    """No bound excludes a row: the worst case of codes."""
    rows, folder = np.tile(matrix(1, 1), (job.scaled(100_000), 1)), job.folder / "rows"
    job.count = 1
    _KINDS[job.family].fill(folder, rows)
    kind = _KINDS[job.family](folder)
    return lambda: len(kind.search(rows[:1])[0])
