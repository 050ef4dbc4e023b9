"""Measures the erasure of one user of a thousand, beside a compaction.

    python -m benches.erasure [RECORDS] [ROUNDS] [PAST]      1,000,000, 3 and `live` unless named

Both retire the log and write the state anew, so a compaction of an equal store is the measure. Each runs in a
process of its own, which says what it took and the most memory it had; the two take turns, so that whatever
else the machine does meets both. All lines are in the live log; with the word `archived` the store was
compacted before and a tenth of it written again, so that the user is in an archive and in a base too.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from chronomemory import ChronoStore

USERS = 1000
#: In the middle: what is erased has neighbours on both sides.
ERASED = {"user": f"user-{USERS // 2}"}
WORKS = ("compact", "erase")


def said(user: int, number: int, turn: int) -> dict[str, object]:
    """A memory of a user, other words for each of them."""
    return {
        "id": f"u{user}-{number}",
        "label": f"memory {number} of user {user}, told {turn} times: the kettle number"
        f" {number * 7919 % 1000} is blue and the garden gate {number % 97} squeaks",
        "data": {"n": number, "topic": f"t{number % 50}"},
    }


def fill(folder: Path, records: int, past: str) -> None:
    """Builds a store of some users."""
    each = records // USERS
    with ChronoStore(folder) as store:
        for user in range(USERS):
            store.scoped(user=f"user-{user}").upsert_many(said(user, n, 1) for n in range(each))
        if past == "archived":
            store.compact()
            for user in range(USERS):
                store.scoped(user=f"user-{user}").upsert_many(said(user, n, 2) for n in range(each // 10))


def work(what: str, folder: Path) -> dict[str, float]:
    """Does it in this process; gives its seconds by the clock and of the processor, and its peak."""
    with ChronoStore(folder) as store:
        store.record_count()
        used, began = time.process_time(), time.perf_counter()
        if what == "compact":
            assert store.compact()
        else:
            assert store.erase(scope=ERASED, reason="asked for").lines
        took = {"clock": time.perf_counter() - began, "processor": time.process_time() - used}
    return {**took, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def elsewhere(*given: str, home: Path) -> str:
    """Calls this file in another process, which remembers heads nowhere else."""
    command = [sys.executable, "-m", "benches.erasure", *given]
    environment = {**os.environ, "XDG_STATE_HOME": str(home)}
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


def main(records: int, rounds: int, past: str) -> None:
    found: dict[str, list[dict[str, float]]] = {what: [] for what in WORKS}
    for turn in range(rounds):
        for what in WORKS[:: 1 if turn % 2 else -1]:
            with tempfile.TemporaryDirectory() as root:
                folder, home = Path(root) / "project", Path(root) / "state"
                elsewhere("fill", str(folder), str(records), past, home=home)
                found[what].append(json.loads(elsewhere(what, str(folder), home=home)))
    print(f"{records:,} records of {USERS:,} users, {past}; the middle of {rounds}")
    for name, unit in (("clock", "s"), ("processor", "s"), ("peak", "MiB")):
        compacted, erased = (statistics.median(one[name] for one in found[what]) for what in WORKS)
        ratio = erased / compacted
        print(f"{name:10} compact {compacted:8.2f} {unit:4} erase {erased:8.2f} {unit:4} {ratio:5.2f} x")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["fill", folder, count, past]:
            fill(Path(folder), int(count), past)
        case [("compact" | "erase") as what, folder]:
            print(json.dumps(work(what, Path(folder))))
        case given:
            count, turns, past = [*given, *("1000000", "3", "live")[len(given) :]]
            main(int(count), int(turns), past)
