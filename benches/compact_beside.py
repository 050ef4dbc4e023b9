"""Measures how long others wait while a store of a million records is compacted.

    python -m benches.compact_beside [RECORDS] [DURABILITY]

Other writers are a thread of the same process and another process, each writing one record after the other.
What counts is the longest single write while `compact()` runs, beside the longest one before it. With the
durability `off` no writer waits for a sync of its own: what is left is the wait for others.
"""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
import threading
import time
from pathlib import Path

from chronomemory import ChronoStore

from benches.sample import build_store

QUIET_SECONDS = 2.0


def write_until(
    store: ChronoStore, name: str, stop: threading.Event, waits: list[tuple[float, float]]
) -> None:
    """Writes one record after the other; notes when each began and how long it took."""
    number = 0
    while not stop.is_set():
        began = time.perf_counter()
        store.upsert({"id": f"{name}-{number % 1000}", "label": f"written beside, {number}"})
        waits.append((began, time.perf_counter() - began))
        number += 1


def write_elsewhere(project: str, durability: str, pipe: multiprocessing.connection.Connection) -> None:
    """The same in another process, until told to stop. `perf_counter` is one clock for all processes here."""
    waits: list[tuple[float, float]] = []
    with ChronoStore(project, durability=durability) as store:
        stop = threading.Event()
        writer = threading.Thread(target=write_until, args=(store, "elsewhere", stop, waits))
        writer.start()
        pipe.send("ready")
        pipe.recv()
        stop.set()
        writer.join()
    pipe.send(waits)


def longest(waits: list[tuple[float, float]], start: float, end: float) -> tuple[int, float, float]:
    """How many writes there were in a time, the longest and the 99th percentile, in milliseconds."""
    inside = sorted(took for began, took in waits if start <= began + took and began <= end)
    assert inside, "nobody wrote"
    return len(inside), inside[-1] * 1000, inside[len(inside) * 99 // 100] * 1000


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    durability = sys.argv[2] if len(sys.argv) > 2 else "normal"
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        build_store(Path(folder), count)
        with ChronoStore(folder, durability=durability) as store:
            here, there = context.Pipe()
            process = context.Process(target=write_elsewhere, args=(folder, durability, there))
            process.start()
            assert here.recv() == "ready"
            waits: list[tuple[float, float]] = []
            stop = threading.Event()
            writer = threading.Thread(target=write_until, args=(store, "here", stop, waits))
            writer.start()
            quiet = time.perf_counter()
            time.sleep(QUIET_SECONDS)
            began = time.perf_counter()
            retired = store.compact()
            ended = time.perf_counter()
            copied = time.perf_counter()
            store.backup()
            done = time.perf_counter()
            stop.set()
            writer.join()
            here.send("stop")
            others = here.recv()
            process.join()
            assert store.verify().valid and store.record_count() >= count
        print(
            f"{count} records: compact {ended - began:.2f} s, {retired} events, backup {done - copied:.2f} s"
        )
        for name, noted in (("a thread of this process", waits), ("another process", others)):
            for when, span in (
                ("before", (quiet, began)),
                ("during compact()", (began, ended)),
                ("during backup()", (copied, done)),
            ):
                number, most, usual = longest(noted, *span)
                print(
                    f"{name}, {when}: {number} writes, longest {most:.1f} ms, 99th percentile {usual:.2f} ms"
                )


if __name__ == "__main__":
    main()
