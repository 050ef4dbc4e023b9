"""Every verdict is true that is given while others write, compact, move vectors and restore.

The store is never damaged here, so `valid` and `kept` are the only true verdicts. Processes make a storm: one
replaces embeddings and compacts, with or without history, so that rows move; some write batches; one makes
backups and restores them. Beside them a store is verified without opening it, through an open handle, by the
command line and by the second verifier, and opened again and again, where no warning is true.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import crowd
import harness
import numpy as np
from chronomemory import ChronoStore
from workload import second_opinion

DIM = 16
#: How many versions of the records lie in archives before the storm begins: the longer the past, the longer a
#: verdict takes, and the more happens beside it.
VERSIONS = 40
SECONDS_THOROUGH = 60.0
#: A storm is about who comes between what; one that writes faster than anybody reads only fills the disk.
REST_SECONDS = 0.005
#: Whoever restores compacts now and then: each restore sets a whole log aside.
RESTORES_A_LOG = 5

Judge = Callable[[Path], list[str]]


def ids(records: int) -> list[str]:
    return [f"r-{number}" for number in range(records)]


def embed(store: ChronoStore, records: int) -> None:
    rows = np.random.default_rng().standard_normal((records, DIM), dtype=np.float32)
    store.vectors.attach_many(ids(records), rows, model="chance")


def build(project: Path, records: int) -> None:
    """A store with a long past."""
    with ChronoStore(project, durability="off") as store:
        for version in range(VERSIONS):
            label = f"version {version}"
            store.upsert_many([{"id": one, "label": label} for one in ids(records)])
            embed(store, records)
            if version % 4 == 3:
                store.compact()


def compactor(records: int, drops: Callable[[int], bool]) -> crowd.Work:
    def work(store: ChronoStore, stop: Path) -> None:
        number = 0
        while not stop.exists():
            embed(store, records)
            store.upsert({"id": "compactor", "label": str(number)})
            store.compact(keep_history=not drops(number))
            number += 1

    return work


def writer(store: ChronoStore, stop: Path) -> None:
    number = 0
    while not stop.exists():
        store.upsert_many([{"id": f"w-{number % 7}-{one}", "label": "x" * 500} for one in range(40)])
        number += 1
        time.sleep(REST_SECONDS)


def restorer(store: ChronoStore, stop: Path) -> None:
    number = 0
    while not stop.exists():
        saved = store.backup()
        time.sleep(0.02)
        store.upkeep.restore(saved)
        number += 1
        if number % RESTORES_A_LOG == 0:
            store.compact()


#: Who makes each storm. All share one note of the last head: a restore is meant only to whoever shares it.
STORMS: dict[str, Callable[[int], dict[str, crowd.Work]]] = {
    "vectors move": lambda records: {"compactor": compactor(records, lambda _: False)},
    "history is dropped": lambda records: {"compactor": compactor(records, lambda _: True)},
    "all at once": lambda records: {
        "compactor": compactor(records, lambda number: number % 3 == 0),
        "other compactor": compactor(records, lambda number: number % 2 == 0),
        "writer": writer,
    },
    "restores": lambda _: {"restorer": restorer, "writer": writer},
}


def _of_report(who: str, report: dict[str, object]) -> list[str]:
    """Only this is true of a store that nobody damaged."""
    is_true = report["valid"] and report["remembered"] == "kept" and not report["altered_indexes"]
    told = (report["damage"], report["altered_indexes"], report["remembered"], report["remembered_reason"])
    return [] if is_true else [f"{who}: {told}"]


def closed(project: Path) -> list[str]:
    return _of_report("closed", ChronoStore(project).verify().to_dict())


def opened(project: Path) -> list[str]:
    """Open, and look from inside. Whoever opens is warned of nothing, and goes on noting heads."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with ChronoStore(project, lock_timeout=crowd.LOCK_SECONDS) as store:
            found = _of_report("opened", store.verify().to_dict())
            found += [
                f"opened: stands as {standing}"
                for standing in [store.engine.upkeep.findings()["remembered"]]
                if standing != "kept"
            ]
    return found + [f"opened: {warning.message}" for warning in told]


def command(project: Path) -> list[str]:
    line = [sys.executable, "-m", "chronomemory", "verify", "--project", str(project), "--json"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode and not done.stdout:
        return [f"command line: {done.returncode}: {done.stderr}"]
    return _of_report(f"command line, exit code {done.returncode}", json.loads(done.stdout))


JUDGES: dict[str, tuple[Judge, int]] = {
    "closed": (closed, 6),
    "opened": (opened, 6),
    "second": (second_opinion, 2),
    "command": (command, 1),
}


def storm(
    project: Path,
    makers: dict[str, crowd.Work],
    seconds: float,
    dice: random.Random,
    outcome: harness.Outcome,
) -> list[str]:
    """Judge as long as the storm blows; what was said that is not true."""
    company = {crowd.start(project, name, "normal", work): name for name, work in makers.items()}
    # It does not wait for the verdict that is given when its time is over: a slow one would let it grow on.
    over = threading.Timer(seconds, (project / "stop").touch)
    over.start()
    names, weights = list(JUDGES), [weight for _, weight in JUDGES.values()]
    wrong: list[str] = []
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end and not wrong:
            name = dice.choices(names, weights=weights)[0]
            wrong += JUDGES[name][0](project / "p")
            outcome.count(f"verdicts, {name}")
            outcome.runs += 1
    finally:
        over.cancel()
        over.join()
        (project / "stop").touch()  # whoever makes the storm must not outlive it
        wrong += crowd.wait_for(company, 60)
    wrong += [path.read_text().strip().splitlines()[-1] for path in sorted(project.glob("failed-*"))]
    return wrong + closed(project / "p")


def work(order: harness.Order, outcome: harness.Outcome) -> None:
    """Give verdicts in storms; `--runs` is how many seconds all of them last together."""
    records = 300 if order.thorough else 100
    seconds = SECONDS_THOROUGH if order.thorough else order.runs / len(STORMS)
    past = Path(tempfile.mkdtemp(prefix="chronomemory-"))
    os.environ["XDG_STATE_HOME"] = str(past / "state")
    build(past / "p", records)
    for number, (name, makers) in enumerate(STORMS.items()):
        dice = random.Random(f"{order.seed}-{name}")
        with harness.project(f"judged-{number}", outcome) as project:
            os.environ["XDG_STATE_HOME"] = str(project / "state")
            shutil.copytree(past / "p", project / "p")
            ChronoStore(project / "p").open().close()
            wrong = storm(project, makers(records), seconds, dice, outcome)
            if wrong:
                outcome.found.append(f"seed {order.seed}, {name}: {'; '.join(wrong[:5])}")
        harness.say(done=number + 1, of=len(STORMS))
    shutil.rmtree(past)


if __name__ == "__main__":
    harness.main("verdicts in storms", work)
