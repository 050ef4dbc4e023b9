"""If many processes write, read, compact and back up at once, every write is there exactly once.

Each writer reports what it wrote; readers look all the time and must never meet an error or see less than
before; one process compacts again and again, one makes backups and verifies each. At the end the events of
all archives and of the log are read as plain JSON: every id once, the seqs without a gap, the chain valid
for both verifiers.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import harness
from children import die_with_parent
from chronomemory import ChronoStore
from workload import second_opinion, zstd

WRITERS = 8
READERS = 2
WRITES_THOROUGH = 2000
#: A compactor and backups that never rest would be a denial of service, not a neighbour.
REST_SECONDS = 0.05
#: Nor are readers that take every processor there is.
READER_REST_SECONDS = 0.001
#: A crowd on a machine that others use waits for its turn: what is asked here is whether anything is lost.
LOCK_SECONDS = 120.0

Work = Callable[[ChronoStore, Path], None]


def writer(letter: int, writes: int) -> Work:
    def work(store: ChronoStore, _: Path) -> None:
        for number in range(writes):
            store.upsert({"id": f"w{letter}-{number}", "label": "x" * (number % 200)})

    return work


def reader(store: ChronoStore, stop: Path) -> None:
    seen, head = 0, 0
    while not stop.exists():
        count, seq = store.record_count(), store.wal_seq()
        assert count >= seen, f"{count} records after {seen}"
        assert seq >= head, f"seq {seq} after {head}"
        seen, head = count, seq
        records = store.query(limit=20)
        for record in records:
            assert store.get(record.id) == record, f"{record.id} is not what it was"
        time.sleep(READER_REST_SECONDS)


def compactor(store: ChronoStore, stop: Path) -> None:
    while not stop.exists():
        store.compact()
        time.sleep(REST_SECONDS)


def keeper(store: ChronoStore, stop: Path) -> None:
    while not stop.exists():
        saved = store.backup()
        copy = ChronoStore(saved)
        report = copy.verify()
        assert report.valid and report.tail is None, f"{saved}: {report.lines()}"
        shutil.rmtree(saved)
        time.sleep(REST_SECONDS)


def start(project: Path, name: str, durability: str, work: Work) -> int:
    """Fork a process that does its work and leaves a note only if it failed."""
    pid = os.fork()
    if pid:
        return pid
    code = 0
    try:
        die_with_parent()
        warnings.simplefilter("error")
        # A look beside a running writer may see a line whose batch is still being written.
        warnings.filterwarnings("ignore", ".*uncommitted", RuntimeWarning)
        with ChronoStore(project / "p", durability=durability, lock_timeout=LOCK_SECONDS) as store:
            work(store, project / "stop")
    except BaseException:
        code = 1
        (project / f"failed-{name}").write_text(traceback.format_exc())
    finally:
        os._exit(code)


def wait_for(pids: dict[int, str], seconds: float) -> list[str]:
    """Wait for processes to end; those that do not are ended and named."""
    deadline = time.monotonic() + seconds
    left = dict(pids)
    while left and time.monotonic() < deadline:
        for pid in list(left):
            if os.waitpid(pid, os.WNOHANG)[0]:
                del left[pid]
        time.sleep(0.01)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return [f"{name} did not end" for name in left.values()]


def events(folder: Path) -> list[dict[str, object]]:
    """Every event there ever was, oldest first, read without the engine."""
    archives = sorted((folder / "archive").glob("*.wal.zst"), key=lambda path: int(path.name.split("-")[0]))
    logs = [*(zstd.decompress(path.read_bytes()) for path in archives), (folder / "events.wal").read_bytes()]
    return [json.loads(line) for log in logs for line in log.split(b"\n") if line]


def judge(project: Path, writes: int) -> list[str]:
    """Is everything there, once, in one unbroken row?"""
    wrong = [path.read_text().strip().splitlines()[-1] for path in sorted(project.glob("failed-*"))]
    store = ChronoStore(project / "p")
    report = store.verify()
    if not report.valid or report.tail:
        wrong.append(str(report.lines()))
    wrong += second_opinion(project / "p")
    log = events(project / "p" / ".chronomemory")
    seqs = [event["seq"] for event in log]
    if seqs != list(range(1, len(seqs) + 1)):
        wrong.append("the seqs have a gap")
    times = Counter(event["record_id"] for event in log if event["op"] == "upsert")
    wanted = {f"w{letter}-{number}" for letter in range(WRITERS) for number in range(writes)}
    if times != Counter(wanted):
        wrong.append(f"{len(times)} of {len(wanted)} ids, most often {times.most_common(1)}")
    with store:
        if {record.id for record in store.query()} != wanted:
            wrong.append(f"{store.record_count()} of {len(wanted)} records")
    return wrong


def crowd(project: Path, durability: str, writes: int) -> tuple[list[str], int]:
    """One store and everyone at it; gives what was wrong and how many compactions there were."""
    writers = {
        start(project, f"writer-{number}", durability, writer(number, writes)): f"writer {number}"
        for number in range(WRITERS)
    }
    others: dict[str, Work] = {f"reader-{number}": reader for number in range(READERS)}
    others |= {"compactor": compactor, "keeper": keeper}
    company = {start(project, name, durability, work): name for name, work in others.items()}
    wrong = wait_for(writers, 600)
    (project / "stop").touch()
    wrong += wait_for(company, 60)
    compactions = len(list((project / "p" / ".chronomemory" / "archive").glob("*.wal.zst")))
    return wrong + judge(project, writes), compactions


def work(order: harness.Order, outcome: harness.Outcome) -> None:
    """Let a crowd loose on one store."""
    writes = WRITES_THOROUGH if order.thorough else max(1, order.runs)
    modes = ("normal", "full", "off") if order.thorough else ("normal",)
    for durability in modes:
        with harness.project(f"crowd-{durability}", outcome) as project:
            wrong, compactions = crowd(project, durability, writes)
            outcome.count("events", WRITERS * writes)
            outcome.count("compactions", compactions)
            outcome.runs += WRITERS * writes
            if wrong:
                outcome.found.append(f"{durability}: {'; '.join(wrong[:5])}")
        harness.say(done=outcome.runs, of=WRITERS * writes * len(modes))


if __name__ == "__main__":
    harness.main("many processes", work)
