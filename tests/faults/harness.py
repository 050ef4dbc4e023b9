"""Says how far a harness has come and what it found.

Each harness is a script of its own, so that it may fork, be traced and mount things without doing so to
whoever asked. It tells its progress on standard output, one JSON object a line; the last one is its
outcome. What it found is a list of sentences, each with the seed that brings it back; an empty list is what
everyone hopes for.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from chronomemory import ChronoStore
from chronomemory.engines import ENGINES
from chronomemory.errors import LogCorrupted

#: A fast selection works in memory where it can: neither a kill nor a refused call reaches beyond the page
#: cache, and nobody has to wait for a disk that others use.
MEMORY = "/dev/shm"

# Stores are small here: their state is sealed after 32 events, and whenever they are closed.
ENGINES.seal = (32, 1, 1)


class Skipped(Exception):  # noqa: N818 (nothing went wrong)
    """This machine does not let the harness do its work; the message says why."""


@dataclass
class Outcome:
    """What came of a harness."""

    harness: str
    runs: int = 0
    found: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    skipped: str | None = None
    seconds: float = 0.0

    def count(self, what: str, number: int = 1) -> None:
        """Count something that a reader may want to know, such as how often a fault was met."""
        self.counts[what] = self.counts.get(what, 0) + number


@dataclass(frozen=True)
class Order:
    """What a harness is asked to do."""

    runs: int
    seed: int
    thorough: bool


def say(**words: object) -> None:
    """Tell one thing to whoever listens."""
    print(json.dumps(words), flush=True)


@contextmanager
def project(keep_as: str, outcome: Outcome) -> Iterator[Path]:
    """Lend an empty folder; if something was found in the meantime, it is kept for a closer look."""
    before = len(outcome.found)
    folder = Path(tempfile.mkdtemp(prefix="chronomemory-"))
    try:
        yield folder
    finally:
        if len(outcome.found) > before:
            kept = Path(tempfile.gettempdir()) / f"chronomemory-found-{keep_as}"
            shutil.rmtree(kept, ignore_errors=True)
            shutil.move(folder, kept)
            outcome.found[-1] += f" (kept in {kept})"
        else:
            shutil.rmtree(folder, ignore_errors=True)


def live(seed: str, lives: int, outcome: Outcome, live_once: Callable[[int], list[str]]) -> None:
    """Let one project go through several lives; the first that goes wrong is the last."""
    for life in range(lives):
        wrong = live_once(life)
        outcome.runs += 1
        if wrong:
            outcome.found.append(f"seed {seed}, life {life}: {'; '.join(wrong[:5])}")
            return


def in_projects(order: Order, outcome: Outcome, lives: int, run: Callable[[str, int, Outcome], None]) -> None:
    """Divide the runs among projects, each with a seed of its own and so many lives."""
    for begun in range(0, order.runs, lives):
        number = min(lives, order.runs - begun)
        run(f"{order.seed}-{begun // lives}", number, outcome)
        say(done=begun + number, of=order.runs)


def main(name: str, work: Callable[[Order, Outcome], None]) -> None:
    """Run a harness as a command."""
    parser = argparse.ArgumentParser(description=work.__doc__)
    parser.add_argument(
        "--runs", type=int, default=40, help="how many runs, where the harness counts in runs"
    )
    parser.add_argument("--seed", type=int, default=1, help="where chance begins")
    parser.add_argument("--thorough", action="store_true", help="everything, not a fast selection")
    options = parser.parse_args()
    if not options.thorough and os.access(MEMORY, os.W_OK):
        tempfile.tempdir = MEMORY
    outcome = Outcome(name)
    began = time.perf_counter()
    try:
        work(Order(options.runs, options.seed, options.thorough), outcome)
    except Skipped as reason:
        outcome.skipped = str(reason)
    outcome.seconds = round(time.perf_counter() - began, 2)
    say(**asdict(outcome))
    sys.exit(1 if outcome.found else 0)


def repaired(project: Path, outcome: Outcome) -> dict[str, Any]:
    """Repair a store, also from what nothing proves, or restore its newest backup; count both."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        with ChronoStore(project) as store:
            try:
                return store.upkeep.repair()
            except LogCorrupted as refused:
                if "unproven=True" not in refused.recovery:
                    raise
                outcome.count("refused without unproven=True")
            try:
                return store.upkeep.repair(unproven=True)
            except LogCorrupted as missing:
                outcome.count("restored from a backup")
                store.upkeep.restore(max((project / ".chronomemory" / "backup").iterdir()))
                empty: dict[str, Any] = {key: [] for key in ("damage", "unsettled", "unproven", "changed")}
                return empty | {"healed": 0, "lost": [str(missing)]}
