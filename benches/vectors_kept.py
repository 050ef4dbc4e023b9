"""Measures keeping embeddings: adding, opening, and searching where every row is alike.

``python -m benches.vectors_kept [ROWS]`` prints a table. Adding takes turns with writing the same bytes to a
plain file and syncing them. Rows that are all alike defeat every bound: there a search is held against
scoring every float, which ``rust/engine/benches/probes/vector_scan.rs`` does.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
from chronomemory import ChronoRecord, ChronoStore

from benches.vectors import Engine, filled

DIM = 384
ROUNDS = 5
PIECE_ROWS = 1024


def seconds(work: Any) -> float:
    began = perf_counter()
    work()
    return perf_counter() - began


def write_plainly(path: Path, rows: Any) -> None:
    """The bytes, and nothing but the bytes, on disk."""
    with path.open("wb") as file:
        for start in range(0, len(rows), PIECE_ROWS):
            file.write(memoryview(rows[start : start + PIECE_ROWS]).cast("B"))
        file.flush()
        os.fdatasync(file.fileno())


def adding(folder: Path, rows: Any) -> None:
    """Print what a round of both takes, and how an open store begins."""
    ids = [f"R{row}" for row in range(len(rows))]
    project = {"project_root": folder / "project", "head_file": folder / "head"}
    plain, ours = [], []
    with ChronoStore(**project) as store:
        for start in range(0, len(ids), 100_000):
            store.upsert_many([ChronoRecord(id=name) for name in ids[start : start + 100_000]])
        store.sync()
        for turn in range(ROUNDS):
            plain.append(seconds(lambda: write_plainly(folder / "plain", rows)))
            (folder / "plain").unlink()

            def attach(space: str = f"space{turn}") -> None:
                store.vectors.attach_many(ids, rows, space=space, model="random")
                store.sync()

            ours.append(seconds(attach))
            assert store.vectors.spaces()[-1].rows == len(rows)
    print(f"\nadding {len(rows):,} x {DIM}, {ROUNDS} rounds, seconds")
    print(f"  writing the bytes    {median(plain):.2f} ({', '.join(f'{each:.2f}' for each in plain)})")
    print(f"  attaching them       {median(ours):.2f} ({', '.join(f'{each:.2f}' for each in ours)})")
    print(f"  times as long        {median(ours) / median(plain):.2f}")


def one_opening(folder: Path, rows: Any) -> dict[str, float]:
    """Open a store that is there, and ask it, and NumPy the same file."""
    with ChronoStore(folder / "project", head_file=folder / "head") as store:
        steps = {
            "the spaces": store.vectors.spaces,
            "the first search": lambda: store.vectors.nearest(rows[3], k=1),
            "the second": lambda: store.vectors.nearest(rows[4], k=1),
            "one embedding": lambda: store.vectors.get("R7"),
        }
        taken = {name: seconds(step) for name, step in steps.items()}
    (path,) = (folder / "project" / ".chronomemory" / "vectors").glob("*.f32")
    mapped = np.memmap(path, dtype=np.float32, mode="r").reshape(rows.shape)
    return {**taken, "NumPy's first product, file mapped": seconds(lambda: mapped @ rows[3])}


def opening(folder: Path, rows: Any) -> None:
    """Print how long a process waits for its first answer."""
    filled(folder, rows).close()
    rounds = [one_opening(folder, rows) for _ in range(ROUNDS)]
    print(f"\n{len(rows):,} x {DIM}, opened anew {ROUNDS} times, milliseconds: median (least)")
    for name in rounds[0]:
        each = [taken[name] for taken in rounds]
        print(f"  {name:36} {median(each) * 1e3:9.2f} ({min(each) * 1e3:.2f})")


def all_alike(folder: Path, count: int) -> None:
    """Print what a search takes where no bound rules anything out."""
    rows = np.tile(np.random.default_rng(1).standard_normal((1, DIM), dtype=np.float32), (count, 1))
    with filled(folder, rows) as store, Engine(folder, rows, rows[:64]) as engine:
        ours, brute = [], []
        for _ in range(21):
            ours.append(seconds(lambda: store.vectors.nearest(rows[0], k=10)))
            brute.append(engine.ask("brute 0")[0])
        assert [near.row for near in store.vectors.nearest(rows[0], k=10)] == list(range(10))
    print(f"\n{count:,} x {DIM}, all rows alike, milliseconds")
    print(f"  ours                 {median(ours) * 1e3:9.2f}")
    print(f"  every float          {median(brute) * 1e3:9.2f}")
    print(f"  times as long        {median(ours) / median(brute):9.2f}")


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    matrix = np.random.default_rng(count).standard_normal((count, DIM), dtype=np.float32)
    for work in (adding, opening):
        with TemporaryDirectory() as scratch:
            work(Path(scratch), matrix)
    with TemporaryDirectory() as scratch:
        all_alike(Path(scratch), min(count, 100_000))
