"""Measures opening a store, the memory it takes, and reading from it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import count as numbers
from pathlib import Path
from typing import Any

from benches.data import KIND, KIND_EVERY, SCORE, identifier
from benches.harness import MODULES, ROOT, Job, Work, dataset, task
from benches.keep import batches, decoded, log_file, open_keep

PEERS = ("rocksdict", "lmdb", "sqlite")
GETS = 10_000


def proc(pid: int | str, file: str, name: str) -> int:
    """Return a size from the kernel's figures of a process, in bytes."""
    lines = Path(f"/proc/{pid}/{file}").read_text().splitlines()
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:")), 0)


def megabytes(size: float) -> float:
    return round(size / 1e6, 1)


@dataset("store")
def fill(job: Job) -> None:
    keep = open_keep(job.family, job.dataset(job.task))
    for batch in batches(job.size):
        keep.put_many(batch)
    if job.family == "sqlite":
        keep.index()
    keep.close()


@dataset("compacted")
def fill_and_compact(job: Job) -> None:
    fill(job)
    keep = open_keep(job.family, job.dataset(job.task))
    keep.store.compact()
    keep.close()


dataset("killed")(fill)


def kill_while_writing(job: Job) -> None:
    """Write records again, one call after the other, and end without any notice."""
    keep = open_keep(job.family, job.dataset("killed"))
    for batch in batches(job.scaled(50_000)):
        for at in range(0, len(batch), 100):
            keep.put_many(batch[at : at + 100])
    os.kill(os.getpid(), signal.SIGKILL)


def _open_and_get(job: Job, name: str) -> Work:
    # The import is measured on its own.
    open_keep(job.family, job.folder / "other").close()
    before, wanted = proc("self", "status", "VmRSS"), identifier(job.size // 2)

    def work() -> str:
        keep = open_keep(job.family, job.dataset(name))
        found = keep.get(wanted)
        job.finish = lambda: weigh(keep)
        return str(found.id if job.family == "ours" else decoded(found)["id"])

    def weigh(keep: Any) -> None:
        after = proc("self", "status", "VmRSS")
        job.notes |= {"resident MB": megabytes(after), "of it by opening": megabytes(after - before)}
        keep.close()

    return work


for _name, _of, _systems in (
    ("open and first get", "store", ("ours", *PEERS)),
    ("open and first get, compacted", "compacted", ("ours",)),
    ("open and first get, killed", "killed", ("ours", *PEERS)),
):
    task(
        "open",
        _name,
        *_systems,
        sizes="records",
        dataset=_of,
        fresh=True,
        before=kill_while_writing if _of == "killed" else None,
    )(lambda job, _of=_of: _open_and_get(job, _of))

READER = """
import random, sys
from pathlib import Path
from benches.data import identifier
from benches.keep import open_keep
family, folder, other, size = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
open_keep(family, other).close()
print(flush=True)
input()
keep = open_keep(family, folder)
assert all(keep.get(identifier(number)) for number in random.Random(3).sample(range(size), min(size, 1000)))
print(flush=True)
input()
"""


def _shared_memory(job: Job, readers: int) -> int:
    """Return by how many bytes opening a store makes so many processes larger (Pss, so pages count once)."""

    def reader(number: int) -> subprocess.Popen[str]:
        words = [job.family, job.dataset("store"), job.folder / f"other-{readers}-{number}", job.size]
        command = [sys.executable, "-c", READER, *map(str, words)]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True, bufsize=1)

    children, sums = [reader(number) for number in range(readers)], []
    for _ in ("imported", "opened"):
        for child in children:
            assert child.stdout is not None and child.stdout.readline()
        sums.append(sum(proc(child.pid, "smaps_rollup", "Pss") for child in children))
        for child in children:
            assert child.stdin is not None
            child.stdin.write("on\n")
    for child in children:
        child.communicate()
    return sums[1] - sums[0]


@task(
    "open",
    "memory of readers",
    "ours",
    "lmdb",
    "sqlite",
    sizes="largest",
    dataset="store",
    fresh=True,
    unit="",
)
def readers(job: Job) -> Work:
    def work() -> None:
        one, four = _shared_memory(job, 1), _shared_memory(job, 4)
        job.notes |= {"one, MB": megabytes(one), "four, MB": megabytes(four), "ratio": round(four / one, 2)}

    return work


def sizes_of(folder: Path) -> dict[str, int]:
    """Return bytes by the first name in a folder."""
    found: dict[str, int] = {}
    for path in folder.rglob("*"):
        if path.is_file():
            first = "/".join(path.relative_to(folder).parts[:2]) if path.parent != folder else path.name
            found[first] = found.get(first, 0) + path.stat().st_size
    return found


@task(
    "open",
    "size on disk",
    "ours",
    *PEERS,
    "duckdb",
    sizes="largest",
    dataset="store",
    fresh=True,
    unit="",
    rounds=1,
)
def on_disk(job: Job) -> Work:
    def work() -> None:
        folder = job.dataset("store")
        total = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        job.notes["bytes a record"] = round(total / job.size)
        if job.family == "ours":
            log = log_file(folder).stat().st_size
            segments = [*folder.rglob("index/state/*")]
            beside = sum(path.stat().st_size for path in segments if path.suffix != ".words")
            job.notes |= {"log": round(log / job.size), "segments": round(beside / job.size)}
            job.notes["segments to log"] = round(beside / log, 3)

    return work


IMPORTS = ("ours", "rocksdict", "lmdb", "sqlite", "duckdb", "tantivy", "lancedb", "limit")


@task("open", "import in a new process", *IMPORTS, fresh=True, rounds=3)
def importing(job: Job) -> Work:
    module = {"ours": "chronomemory", "limit": "sys"}.get(job.family) or MODULES.get(job.family, job.family)
    words = ["-c", f"import {module}" + "; chronomemory.ChronoStore" * (job.family == "ours")]
    _run(words)
    return lambda: _run(words)


@task("open", "import in a new process, --version", "ours", fresh=True)
def version(job: Job) -> Work:
    _run(words := ["-m", "chronomemory", "--version"])
    return lambda: _run(words)


def _run(words: list[str]) -> None:
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)


# Reading from an open store.


def opened(job: Job, name: str = "store") -> Any:
    """Open a dataset for a task of many rounds, without the verification in the background."""
    options: dict[str, Any] = {"verify": "quick"} if job.family == "ours" else {}
    keep = open_keep(job.family, job.dataset(name), **options)
    job.stack.callback(keep.close)
    return keep


def _gets(job: Job, *, hot: bool, decode: bool = False) -> Work:
    keep, turn = opened(job), numbers()
    job.count = min(GETS, job.size)
    get, label = keep.get, _label(job)
    assert label(get(identifier(5))).endswith("née")

    def work() -> None:
        chance = random.Random(0 if hot else next(turn))
        # The ids are made beforehand in both cases: their making is not part of the work below.
        ids = prepared.pop() if prepared else sample(chance)
        for name in ids:
            found = get(name)
            if decode:
                label(found)
        assert found is not None

    def sample(chance: random.Random) -> list[str]:
        return [identifier(number) for number in chance.sample(range(job.size), job.count)]

    prepared: list[list[str]] = []
    if hot:
        ids = sample(random.Random(0))
        random.Random(1).shuffle(ids)
        prepared = [ids] * 100
    else:
        prepared = [sample(random.Random(number)) for number in range(40)]
    return work


def _label(job: Job) -> Callable[[Any], str]:
    if job.family == "ours":
        return lambda record: str(record.label)
    return lambda body: str(decoded(body)["label"])


@task("read", "get, 10,000 hot", "ours", *PEERS, sizes="largest", dataset="store", unit="/s")
def hot_gets(job: Job) -> Work:
    return _gets(job, hot=True)


@task("read", "get, random", "ours", *PEERS, sizes="largest", dataset="store", unit="/s")
def random_gets(job: Job) -> Work:
    return _gets(job, hot=False)


@task("read", "get, random, a field decoded", "ours", *PEERS, sizes="largest", dataset="store", unit="/s")
def decoded_gets(job: Job) -> Work:
    return _gets(job, hot=False, decode=True)


def _query(job: Job, decode: bool) -> Work:
    keep, label = opened(job), _label(job)
    ask = (lambda: keep.store.query(kind=KIND)) if job.family == "ours" else keep.of_kind

    def work() -> int:
        found = ask()
        if decode:
            for one in found:
                label(one)
        assert len(found) == job.size // KIND_EVERY
        return len(found)

    return work


@task("read", "query of 1 % by kind", "ours", "sqlite", "duckdb", sizes="largest", dataset="store")
def query(job: Job) -> Work:
    return _query(job, decode=False)


@task(
    "read",
    "query of 1 % by kind, fields decoded",
    "ours",
    "sqlite",
    "duckdb",
    sizes="largest",
    dataset="store",
)
def decoded_query(job: Job) -> Work:
    return _query(job, decode=True)


@task(
    "read", "where without an index", "ours", "sqlite", "duckdb", sizes="largest", dataset="store", rounds=3
)
def where(job: Job) -> Work:
    keep = opened(job)
    if job.family == "ours":
        return lambda: len(keep.store.query(where={"data.score": {"gte": SCORE}}))
    return lambda: len(keep.at_least(SCORE))


@task("read", "page of 100, first and late", "ours/first", "ours/late", sizes="largest", dataset="store")
def pages(job: Job) -> Work:
    store, cursor = opened(job).store, None
    if job.setting == "late":
        cursor = store.query(limit=max(1, job.size - 200)).cursor
    return lambda: len(store.query(limit=100, after=cursor))


@task(
    "read",
    "export",
    "ours",
    *PEERS,
    "duckdb",
    sizes="largest",
    dataset="store",
    fresh=True,
    unit="s",
    rounds=3,
)
def export(job: Job) -> Work:
    """Write all records to a file as NDJSON; ours is the command, which verifies the chain before."""
    target = job.folder / "export.ndjson"
    if job.family == "ours":
        words = ["-m", "chronomemory", "export", target, "--project", job.dataset("store")]

        def write() -> None:
            subprocess.run([sys.executable, *map(str, words)], check=True, stdout=subprocess.DEVNULL)

    else:
        keep = open_keep(job.family, job.dataset("store"))

        def write() -> None:
            with target.open("wb") as file:
                for body in keep.bodies():
                    file.write(body + b"\n")

    def work() -> int:
        write()
        return job.size

    def check() -> None:
        job.notes["peak MB"] = megabytes(_peak(job.family == "ours"))
        with target.open("rb") as file:
            assert sum(1 for _ in file) == job.size

    job.finish = check
    return work


def _peak(children: bool) -> int:
    import resource  # noqa: PLC0415

    who = resource.RUSAGE_CHILDREN if children else resource.RUSAGE_SELF
    return resource.getrusage(who).ru_maxrss * 1024
