"""Measures what threads gain that write at the same time, each wanting its write on disk.

``python -m benches.group_commit [--threads N] [--writes N] [--rounds N]`` compares one thread with many
in mode ``full`` and says how many events share a sync; plain syncs of the same disk stand beside them.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from threading import Barrier, Thread
from time import perf_counter

from chronomemory import ChronoStore

from benches.sample import records


def write(project: Path, threads: int, writes: int) -> tuple[float, float]:
    """Let threads write single records; return events a second and events a sync."""
    given = records(0, threads * writes)
    start = Barrier(threads + 1)
    with ChronoStore(project, durability="full") as store:
        store.upsert({"id": "first"})

        def work(number: int) -> None:
            start.wait()
            for record in given[number * writes : (number + 1) * writes]:
                store.upsert(record)

        workers = [Thread(target=work, args=(number,)) for number in range(threads)]
        for worker in workers:
            worker.start()
        before = store.engine.log_status()["syncs"]
        start.wait()
        began = perf_counter()
        for worker in workers:
            worker.join()
        seconds = perf_counter() - began
        syncs = store.engine.log_status()["syncs"] - before
        assert store.record_count() == threads * writes + 1
        assert store.chain_valid()
    return threads * writes / seconds, threads * writes / syncs


def sync_micros(folder: Path, times: int = 200) -> float:
    """How long the disk takes to sync one appended line."""
    with (folder / "plain").open("wb", buffering=0) as file:
        taken = []
        for _ in range(times):
            file.write(b"x" * 690)
            began = perf_counter()
            os.fdatasync(file.fileno())
            taken.append(perf_counter() - began)
    return median(taken) * 1e6


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--writes", type=int, default=200, help="for each thread")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args(given)
    rounds = []
    with TemporaryDirectory(dir=options.folder) as folder:
        for number in range(options.rounds):
            alone = write(Path(folder, f"alone-{number}"), 1, options.writes)
            many = write(Path(folder, f"many-{number}"), options.threads, options.writes)
            rounds.append((alone[0], many[0], many[1], many[0] / alone[0], sync_micros(Path(folder))))
    one, many_speed, shared, gain, sync = (median(column) for column in zip(*rounds, strict=True))
    print("| one thread, events/s | threads | events/s | gain | events a sync | a plain sync |")
    print("| --- | --- | --- | --- | --- | --- |")
    cells = [f"{one:,.0f}", str(options.threads), f"{many_speed:,.0f}", f"{gain:.1f} ×"]
    print("| " + " | ".join([*cells, f"{shared:.1f}", f"{sync:.0f} µs"]) + " |")


if __name__ == "__main__":
    main()
