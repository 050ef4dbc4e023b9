"""A copy outside that is killed at any moment is whole or none, and every place of one is known.

A child copies a store to a folder outside and is killed (SIGKILL) after a random moment, while another child
writes and compacts. Then what has the name of a copy must verify, by both verifiers; the store
must hold all that was acknowledged; and an erasure must name every folder outside that holds a byte of what
it is to erase.
"""

from __future__ import annotations

import os
import random
import time
import warnings
from pathlib import Path

import harness
from children import Tell, start
from chronomemory import ChronoStore
from chronomemory._core import file_holds
from workload import verify_log

RECORDS = 300
COPIES_A_PROJECT = 8
SECRET = "only one record ever said this"


def copy_elsewhere(project: Path, outside: Path, kill_after: float | None) -> bool:
    """Let a child copy; say whether it was killed before it was done."""
    child = start(lambda tell: ChronoStore(project, lock_timeout=60).backup(to=outside, keep=2))
    if kill_after is None:
        child.end()
    else:
        time.sleep(kill_after)
        child.kill()
    return child.was_killed


def write_on(project: Path, number: int, tell: Tell) -> None:
    with ChronoStore(project, lock_timeout=60) as store:
        for each in range(20):
            store.upsert({"id": f"W-{number}-{each}", "label": "meanwhile"})
            tell(each)
        store.compact()


def holds_secret(folder: Path) -> bool:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return any(file_holds(path, [SECRET.encode()]) for path in files)


def judge(project: Path, outside: Path, number: int) -> list[str]:
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        report = ChronoStore(project).verify()
        wrong += [] if report.valid else [f"not valid: {report.damage[0]}"]
        with ChronoStore(project, lock_timeout=60) as store:
            missing = [n for n in range(20) if store.get(f"W-{number}-{n}") is None]
            told = store.erase(ids=["secret"], reason="asked for", dry_run=True)
    wrong += [f"writes lost: {missing}"] if missing else []
    for folder in sorted(outside.iterdir()) if outside.exists() else []:
        if holds_secret(folder) and str(folder) not in told.copies:
            wrong.append(f"nobody knows of {folder.name}")
        if folder.name.endswith(".tmp"):
            continue
        copied = ChronoStore(folder).verify()
        if not copied.valid or copied.tail is not None:
            wrong.append(f"{folder.name} looks like a copy and is none: {copied.damage or copied.tail}")
        second = verify_log.verify_folder(folder)
        wrong += [] if second["valid"] else [f"{folder.name}, the second verifier: {second['damage'][0]}"]
    return wrong


def live(seed: str, copies: int, outcome: harness.Outcome) -> None:
    dice = random.Random(seed)
    with harness.project(f"copied-{seed}", outcome) as project:
        os.environ["XDG_STATE_HOME"] = str(project / "state")
        outside = project / "outside"
        with ChronoStore(project) as store:
            rows = [{"id": f"R-{n}", "label": "x", "data": {"text": "y" * 300}} for n in range(RECORDS)]
            store.upsert_many([*rows, {"id": "secret", "label": SECRET}])
            store.compact()
        began = time.perf_counter()
        copy_elsewhere(project, outside, None)
        usual = time.perf_counter() - began

        def copy_once(number: int) -> list[str]:
            writer = start(lambda tell: write_on(project, number, tell))
            killed = copy_elsewhere(project, outside, dice.random() * usual * 2.5)
            writer.end()
            outcome.count("killed at work", killed)
            outcome.count("copies there", len([each for each in outside.iterdir() if each.suffix != ".tmp"]))
            return judge(project, outside, number)

        harness.live(seed, copies, outcome, copy_once)


def work(order: harness.Order, outcome: harness.Outcome) -> None:
    """Kill copies, one after the other, and look at what they left."""
    harness.in_projects(order, outcome, COPIES_A_PROJECT, live)


if __name__ == "__main__":
    harness.main("killed copies", work)
