"""A log that somebody swapped for an earlier one of its store is found out, whatever happened since.

Stores live through random histories of writes, compactions, backups and restores, and whoever looks in
between must find nothing wrong. Then the log is swapped for one that the same store had before, whole as
it was, and nothing else is touched. Nobody may write to it or compact it as if it were the log; both
verifiers must say the same; and after a repair every record must have its true value or be marked, or the
repair must have said that something is lost.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

import harness
from chronomemory import ChronoStore, _core
from chronomemory.errors import ChronoError, LogCorrupted

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from verdicts import essence, verify_log

FOLDER = ".chronomemory"
LOG = "events.wal"
SWAPS_A_PROJECT = 12


class History:
    """What a store lived through: every log that it had, and what it holds now."""

    def __init__(self, project: Path, dice: random.Random) -> None:
        self.project, self.dice = project, dice
        self.logs: list[bytes] = []
        self.truth: dict[str, dict[str, Any]] = {}
        self.wrong: list[str] = []
        with ChronoStore(project) as store:
            for _ in range(dice.randrange(3, 9)):
                self.step(
                    store, dice.choices(("write", "compact", "drop", "backup", "restore"), (5, 2, 1, 2, 3))[0]
                )
                store.sync()
                self.look()
            if dice.randrange(3):
                self.write(store)
        self.look()
        self.truth = held(project)

    @property
    def log(self) -> Path:
        return self.project / FOLDER / LOG

    def write(self, store: ChronoStore) -> None:
        for _ in range(self.dice.randrange(1, 4)):
            name = f"R-{self.dice.randrange(9)}"
            store.upsert({"id": name, "label": f"value {self.dice.randrange(10**9)}"})

    def step(self, store: ChronoStore, what: str) -> None:
        backups = sorted((self.project / FOLDER).glob("backup/*")) + sorted(
            (self.project / FOLDER).glob("quarantine/*-before-restore")
        )
        if what == "restore" and backups:
            store.upkeep.restore(self.dice.choice(backups))
        elif what in ("compact", "drop") and self.logs:
            store.compact(keep_history=what == "compact")
        elif what == "backup" and self.logs:
            store.backup()
        else:
            self.write(store)

    def look(self) -> None:
        """Nothing is wrong with a store that nobody touched; its log is noted."""
        data = self.log.read_bytes()
        if data not in self.logs:
            self.logs.append(data)
        report = _core.verify_path(str(self.project / FOLDER))
        if not report["valid"]:
            self.wrong.append(f"nobody touched it, and it is not valid: {report['damage'][0]}")


def held(project: Path) -> dict[str, dict[str, Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        with ChronoStore(project) as store:
            return {row["id"]: row for row in store.export_records(status="")}


def is_marked(record: dict[str, Any] | None) -> bool:
    return record is not None and bool({"@unproven", "@unsettled"} & record.get("data", {}).keys())


def taken_for_the_log(project: Path) -> list[str]:
    """What somebody could do with a log that is not the one."""
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for what, act in (
            ("written to", lambda store: store.upsert({"id": "new"})),
            ("compacted", lambda store: store.compact()),
        ):
            with ChronoStore(project) as store:
                try:
                    act(store)
                except LogCorrupted:
                    continue
                wrong.append(f"it was {what}")
    return wrong


def of_swap(history: History, project: Path, outcome: harness.Outcome) -> list[str]:
    """Look at a store whose log was swapped, repair it, and compare it with what it held."""
    home = project / FOLDER
    report = _core.verify_path(str(home))
    wrong = []
    if essence(report) != essence(verify_log.verify_folder(project)):
        wrong.append("the verifiers do not agree")
    outcome.count("found out", not report["valid"])
    outcome.count("cut", report["valid"])
    # One whose base is nowhere any more is damaged in any case, and open to writes as others are.
    kinds = {found["kind"] for found in report["damage"]}
    if not kinds or "log-missing" in kinds:
        wrong += taken_for_the_log(project)
    told = harness.repaired(project, outcome)
    outcome.count("nothing lost", not told["lost"] and not told["unproven"])
    if not _core.verify_path(str(home))["valid"]:
        wrong.append("still damaged")
    now = held(project)
    names = sorted(history.truth.keys() | now.keys())
    other = [
        name for name in names if now.get(name) != history.truth.get(name) and not is_marked(now.get(name))
    ]
    if other and not told["lost"] and not told["unproven"]:
        wrong.append(f"{other[:3]} are other than they were, and nothing is said to be lost")
    return wrong


def live(seed: str, swaps: int, outcome: harness.Outcome) -> None:
    dice = random.Random(seed)
    with harness.project(f"swapped-{seed}", outcome) as folder:
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        history = History(folder / "whole", dice)
        now = history.log.read_bytes()
        earlier = [log for log in history.logs if log != now]

        def swap_once(number: int) -> list[str]:
            if history.wrong or not earlier:
                return history.wrong
            broken = folder / "broken"
            shutil.rmtree(broken, ignore_errors=True)
            shutil.copytree(folder / "whole", broken)
            # Whoever remembers the head misses it anyway.
            shutil.rmtree(folder / "state", ignore_errors=True)
            at = dice.randrange(len(earlier))
            (broken / FOLDER / LOG).write_bytes(earlier[at])
            try:
                wrong = of_swap(history, broken, outcome)
            except (ChronoError, OSError) as error:
                wrong = [f"{type(error).__name__}: {error}"]
            return [f"log {at} of {len(earlier)}: {one}" for one in wrong]

        harness.live(seed, swaps, outcome, swap_once)


def work(order: harness.Order, outcome: harness.Outcome) -> None:
    """Swap logs for earlier ones of their stores, and repair them."""
    harness.in_projects(order, outcome, SWAPS_A_PROJECT if order.thorough else 3, live)


if __name__ == "__main__":
    harness.main("swapped logs", work)
