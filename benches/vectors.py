"""Measures an exact vector search, beside others and beside what memory allows.

``python -m benches.vectors [ROWSxDIM ...]`` needs ``pip install --group bench`` and prints a table. All take
turns, so that a busy machine is busy for all of them. Each is given two threads. A turn is a pause and some
calls in a row; the first is not counted: it pays for the caches and threads of the neighbour, which may
keep a core busy for milliseconds after its work is done. *Ours* is a store as any caller opens it. What it
costs to score every float, and to read the bytes of the codes once, tells
``rust/engine/benches/probes/vector_scan.rs``, in a process that measures itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, sleep
from types import TracebackType
from typing import Any

THREADS = 2
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = str(THREADS)

import faiss  # noqa: E402
import numpy as np  # noqa: E402
from chronomemory import ChronoRecord, ChronoStore  # noqa: E402
from usearch.index import MetricKind  # noqa: E402
from usearch.index import search as usearch  # noqa: E402

from benches.probes import built  # noqa: E402

SHAPES = ["10000x384", "100000x384", "1000000x384", "100000x1536"]
BATCH = 64
K = 10
ROUNDS = {"single": 11, "batch": 5}
#: Calls of one turn that count.
CALLS = {"single": 4, "batch": 1}
#: Seconds before a turn: by then the neighbour's threads sleep.
PAUSE = 0.05
#: Scores that float32 arithmetic cannot tell apart.
NEAR = 1e-5
#: Who is no exact peer.
APART = {"reading the codes", "usearch i8 (not exact)"}

Floats = Any
Timed = Callable[[int], tuple[float, list[int]]]


class Engine:
    """The engine, in a process of its own."""

    def __init__(self, folder: Path, rows: Floats, queries: Floats) -> None:
        rows.tofile(folder / "rows")
        queries.tofile(folder / "queries")
        words = [folder / "rows", rows.shape[1], folder / "queries", K, THREADS]
        self._process = subprocess.Popen(
            [built("vector_scan"), *map(str, words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()

    def ask(self, line: str) -> tuple[float, list[int]]:
        """Seconds, and the rows of the last query."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        seconds, *rows = self._process.stdout.readline().split()
        return float(seconds), [int(row) for row in rows]


def timed(work: Callable[[int], Floats]) -> Timed:
    """A call with its seconds and the rows of its last query."""

    def call(turn: int) -> tuple[float, list[int]]:
        began = perf_counter()
        found = work(turn)
        return perf_counter() - began, [int(row) for row in np.atleast_2d(found)[-1]]

    return call


def with_numpy(rows: Floats, queries: Floats) -> Floats:
    """A matrix product, and then the best of each line in order."""
    scores = queries @ rows.T
    best = np.argpartition(scores, -K, axis=1)[:, -K:]
    order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1)
    return np.take_along_axis(best, order, axis=1)


def through_a_store(store: ChronoStore, queries: Floats) -> dict[str, Timed]:
    """What a caller of the package takes for one query and for all."""

    def one(turn: int) -> Floats:
        return [near.row for near in store.vectors.nearest(queries[turn % BATCH], k=K)]

    def many(_: int) -> Floats:
        return [[near.row for near in hits] for hits in store.vectors.nearest(queries, k=K)]

    return {"single": timed(one), "batch": timed(many)}


def filled(folder: Path, rows: Floats) -> ChronoStore:
    """A store with a record for each row, ready to be searched."""
    store = ChronoStore(folder / "project", head_file=folder / "head").open()
    ids = [f"R{row}" for row in range(len(rows))]
    for start in range(0, len(ids), 100_000):
        store.upsert_many([ChronoRecord(id=name) for name in ids[start : start + 100_000]])
    store.vectors.attach_many(ids, rows, model="random")
    store.vectors.nearest(rows[0], k=1)
    return store


def peers(rows: Floats, queries: Floats) -> dict[str, dict[str, Timed]]:
    """What others take for one query and for all."""
    flat = faiss.IndexFlatIP(rows.shape[1])
    flat.add(rows)
    faiss.omp_set_num_threads(THREADS)
    coarse_rows, coarse = (
        (values * 127 / np.abs(values).max()).astype(np.int8) for values in (rows, queries)
    )

    def exactly(rows: Floats, queries: Floats) -> Floats:
        return usearch(rows, queries, K, MetricKind.IP, exact=True, threads=THREADS).keys

    def one(turn: int) -> slice:
        return slice(turn % BATCH, turn % BATCH + 1)

    return {
        "single": {
            "NumPy": timed(lambda turn: with_numpy(rows, queries[one(turn)])),
            "faiss IndexFlatIP": timed(lambda turn: flat.search(queries[one(turn)], K)[1]),
            "usearch f32": timed(lambda turn: exactly(rows, queries[one(turn)])),
            "usearch i8 (not exact)": timed(lambda turn: exactly(coarse_rows, coarse[one(turn)])),
        },
        "batch": {
            "NumPy": timed(lambda _: with_numpy(rows, queries)),
            "faiss IndexFlatIP": timed(lambda _: flat.search(queries, K)[1]),
            "usearch f32": timed(lambda _: exactly(rows, queries)),
            "usearch i8 (not exact)": timed(lambda _: exactly(coarse_rows, coarse)),
        },
    }


def agree(rows: Floats, query: Floats, left: list[int], right: list[int]) -> bool:
    """Whether both found the same scores, up to rounding."""
    exact = rows[[*left, *right]].astype(np.float64) @ query.astype(np.float64)
    return len(left) == len(right) == K and bool(np.abs(exact[:K] - exact[K:]).max() < NEAR)


def one_turn(call: Timed, turn: int, calls: int) -> tuple[float, list[int]]:
    """The median of some calls in a row, and what the last of them found."""
    sleep(PAUSE)
    call(turn)
    took = [call(turn) for _ in range(calls)]
    return median(seconds for seconds, _ in took), took[-1][1]


def measure(count: int, dim: int) -> None:
    """Prints milliseconds for one shape: median, and the least in brackets."""
    numbers = np.random.default_rng(count + dim)
    rows = numbers.standard_normal((count, dim), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    queries = numbers.standard_normal((BATCH, dim), dtype=np.float32)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    with (
        TemporaryDirectory() as folder,
        Engine(Path(folder), rows, queries) as engine,
        filled(Path(folder), rows) as store,
    ):
        others = peers(rows, queries)
        ours = through_a_store(store, queries)
        for kind, rounds in ROUNDS.items():
            calls: dict[str, Timed] = {
                "ours": ours[kind],
                "ours, every float": lambda turn: engine.ask(f"brute {turn % BATCH}"),
                "reading the codes": lambda _: engine.ask("bytes"),
                **others[kind],
            }
            if kind == "batch":
                del calls["ours, every float"]
            seconds: dict[str, list[float]] = {name: [] for name in calls}
            for turn in range(rounds):
                found = {}
                for name, call in calls.items():
                    taken, found[name] = one_turn(call, turn, CALLS[kind])
                    seconds[name].append(taken)
                query = queries[-1 if kind == "batch" else turn % BATCH]
                for name, answer in found.items():
                    if name not in APART:
                        assert agree(rows, query, found["ours"], answer), name
            print(f"\n{count:,} x {dim}, {kind}, {rounds} rounds, milliseconds: median (least)")
            for name, times in sorted(seconds.items(), key=lambda item: median(item[1])):
                print(f"  {name:24} {median(times) * 1e3:9.2f} ({min(times) * 1e3:.2f})")
            exact = {
                name: times for name, times in seconds.items() if name in others[kind] and name not in APART
            }
            fastest = min(exact, key=lambda name: median(exact[name]))
            ratios = [theirs / mine for theirs, mine in zip(exact[fastest], seconds["ours"], strict=True)]
            print(f"  ours is {median(ratios):.2f} x as fast as {fastest} (median of the rounds' ratios)")
            sys.stdout.flush()


if __name__ == "__main__":
    for shape in sys.argv[1:] or SHAPES:
        measure(*map(int, shape.split("x")))
