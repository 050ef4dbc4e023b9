"""A restore that is killed at any moment is done or not begun, and nobody is told of a rollback.

A child restores a backup and is killed (SIGKILL) after a random moment. Then the store must hold what the
backup held or what it held before, whole, and the remembered head must not be missed: a legitimate restore
looks like a rollback to whoever only compares heads.
"""

from __future__ import annotations

import os
import random
import time
import warnings
from pathlib import Path

import harness
from children import start
from chronomemory import ChronoStore

RECORDS = 400
RESTORES_A_PROJECT = 10


def rows(label: str) -> list[dict[str, object]]:
    return [{"id": f"R-{number}", "label": label, "data": {"text": "x" * 300}} for number in range(RECORDS)]


def labels(project: Path) -> tuple[set[str], list[str]]:
    """What a fresh look shows, and what is wrong."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        report = ChronoStore(project).verify()
        wrong = [] if report.valid else [f"not valid: {report.damage[0]}"]
        if report.remembered == "lost":
            wrong.append(f"a restore was taken for a rollback: {report.remembered_reason}")
        with ChronoStore(project) as store:
            found = store.query()
    if len(found) != RECORDS:
        wrong.append(f"{len(found)} records instead of {RECORDS}")
    return {record.label for record in found}, wrong


def restore_elsewhere(project: Path, backup: Path, kill_after: float | None) -> bool:
    """Let a child restore; say whether it was killed before it was done."""
    child = start(lambda tell: ChronoStore(project).upkeep.restore(backup))
    if kill_after is None:
        child.end()
    else:
        time.sleep(kill_after)
        child.kill()
    return child.was_killed


def live(seed: str, restores: int, outcome: harness.Outcome) -> None:
    dice = random.Random(seed)
    with harness.project(f"restored-{seed}", outcome) as project:
        # Each project has notes of its own, so that one that is missed is this one's.
        os.environ["XDG_STATE_HOME"] = str(project / "state")
        with ChronoStore(project) as store:
            store.upsert_many(rows("old"))
            backup = store.backup()
        began = time.perf_counter()
        restore_elsewhere(project, backup, None)
        usual = time.perf_counter() - began

        def restore_once(number: int) -> list[str]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                with ChronoStore(project) as store:
                    store.upsert_many(rows(f"new {number}"))
            killed = restore_elsewhere(project, backup, dice.random() * usual * 1.5)
            outcome.count("killed at work", killed)
            seen, wrong = labels(project)
            outcome.count("restored", seen == {"old"})
            if seen not in ({"old"}, {f"new {number}"}):
                wrong.append(f"half a restore: {sorted(seen)[:4]}")
            return wrong

        harness.live(seed, restores, outcome, restore_once)


def work(order: harness.Order, outcome: harness.Outcome) -> None:
    """Kill restores, one after the other, and look at what they left."""
    harness.in_projects(order, outcome, RESTORES_A_PROJECT, live)


if __name__ == "__main__":
    harness.main("killed restores", work)
