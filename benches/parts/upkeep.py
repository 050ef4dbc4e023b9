"""Measures compaction, verification and erasure, and writes beside a compaction."""

from __future__ import annotations

import hashlib
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
from statistics import quantiles
from time import perf_counter
from typing import Any

from benches.data import fields
from benches.harness import Job, Work, dataset, task
from benches.keep import log_file, open_keep
from benches.parts.reading import megabytes, proc

#: One of so many users is erased.
USERS = 1_000


def copied(job: Job, name: str) -> Any:
    """Open a copy of a dataset."""
    shutil.copytree(job.dataset(name), job.folder / "store")
    return open_keep(job.family, job.folder / "store")


@task(
    "upkeep",
    "compact",
    "ours",
    "lmdb",
    "sqlite",
    sizes="largest",
    dataset="store",
    fresh=True,
    unit="s",
    rounds=3,
)
def compact(job: Job) -> Work:
    """Rocksdict compacts in the background, and has nothing left to do here."""
    keep = copied(job, "store")
    job.finish = keep.close
    ready = keep.count()
    assert ready == job.size
    if job.family != "ours":
        return lambda: keep.compact()
    return lambda: keep.store.compact() and None


@task("upkeep", "verify", "ours", "sqlite", "limit", sizes="largest", dataset="store", fresh=True, unit="s")
def verify(job: Job) -> Work:
    """Ours checks lines and chain, sqlite the structure of pages; the limit hashes the log on all cores."""
    if job.system == "limit":
        cores = cpu_count() or 1
        # A limit has no dataset of its own: it hashes our log.
        whole = memoryview(log_file(job.datasets / f"store-{job.size}-ours").read_bytes())
        parts = [whole[len(whole) * at // cores : len(whole) * (at + 1) // cores] for at in range(cores)]

        def work() -> None:
            with ThreadPoolExecutor(cores) as pool:
                assert len(list(pool.map(hashlib.sha256, parts))) == cores

        return work
    if job.family == "sqlite":
        verified: Work = open_keep("sqlite", job.dataset("store")).verify
        return verified
    from chronomemory import ChronoStore  # noqa: PLC0415

    return lambda: ChronoStore(job.dataset("store")).verify().valid


@task("upkeep", 'open, verify="full"', "ours", sizes="largest", dataset="store", fresh=True, unit="s")
def open_in_full(job: Job) -> Work:
    from chronomemory import ChronoStore  # noqa: PLC0415

    def work() -> int:
        store = job.enter(ChronoStore(job.dataset("store"), verify="full"))
        return int(store.count())

    return work


@dataset("users")
def of_users(job: Job) -> None:
    keep = open_keep("ours", job.dataset("users"))
    each = max(1, job.size // USERS)
    for user in range(USERS):
        handle = keep.store.scoped(user=f"user-{user}")
        handle.upsert_many({**fields(number), "id": f"u{user}-{number}"} for number in range(each))
    keep.close()


@task(
    "upkeep",
    "erase one user of 1,000",
    "ours",
    "ours/compact",
    sizes="largest",
    dataset="users",
    fresh=True,
    unit="s",
    rounds=3,
)
def erase(job: Job) -> Work:
    """Beside it a compaction of an equal store, which rewrites as much."""
    keep = copied(job, "users")
    store = keep.store
    store.get("nothing")

    def work() -> None:
        if job.setting == "compact":
            store.compact()
        else:
            assert store.erase(scope={"user": f"user-{USERS // 2}"}, reason="asked for").lines

    def finish() -> None:
        job.notes["peak MB"] = megabytes(proc("self", "status", "VmHWM"))
        keep.close()

    job.finish = finish
    return work


@task(
    "upkeep",
    "single writes beside a compaction",
    "ours",
    sizes="largest",
    dataset="store",
    fresh=True,
    unit="s",
    rounds=3,
)
def writes_beside(job: Job) -> Work:
    """The time is that of the compaction; the longest of the writes of another thread is noted."""
    keep = copied(job, "store")
    keep.store.get("nothing")
    waits: list[float] = []
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            began = perf_counter()
            keep.put({"id": f"beside-{number % 1_000}", "label": f"write {number}"})
            waits.append(perf_counter() - began)
            number += 1

    def work() -> None:
        writer = threading.Thread(target=write)
        writer.start()
        keep.store.compact()
        stop.set()
        writer.join()

    def finish() -> None:
        job.notes |= {"writes": len(waits), "longest ms": round(max(waits) * 1e3, 1)}
        job.notes["p99 ms"] = round(quantiles(waits, n=100)[98] * 1e3, 3)
        keep.close()

    job.finish = finish
    return work
