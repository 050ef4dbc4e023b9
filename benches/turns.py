"""Compares several ways of doing the same, so that whatever else the machine does meets all of them.

Each has a process of its own, which does the work whenever it is asked and says how much processor time it
took, of all its threads together: where others work, the clock says little. They are asked in turn, back and
forth, and what is compared is what they took in the same round: what slows the machine down for a while slows
all of them.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import process_time

__all__ = ["Took", "Way", "asked", "compared", "serve", "table", "used"]

_ROOT = Path(__file__).parent.parent
#: How many rounds a process lives.
_A_LIFE = 4

#: What a process says of one run: the processor time of each thing that it did, in seconds.
Took = dict[str, float]


@dataclass
class Way:
    """One of the ways: who does it, and what the process is told."""

    name: str
    given: tuple[str, ...]
    python: str = sys.executable
    took: list[Took] = field(default_factory=list)

    def start(self, module: str, home: Path) -> subprocess.Popen[str]:
        """Start the process; it remembers heads in its own folder only."""
        environment = {**os.environ, "XDG_STATE_HOME": str(home / "state")}
        command = [self.python, "-m", module, "serve", str(home), *self.given]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command, cwd=_ROOT, env=environment, stdin=pipe, stdout=pipe, text=True, bufsize=1
        )


def serve(work: Callable[[int], Took]) -> None:
    """Be such a process: do the work once for every line, and say what it took."""
    for number, _ in enumerate(sys.stdin):
        print(json.dumps(work(number)), flush=True)


def used(work: Callable[[], object]) -> float:
    """Return the processor time that a work takes; the collector looks at the benches' own objects before."""
    gc.collect()
    gc.disable()
    try:
        began = process_time()
        work()
        return process_time() - began
    finally:
        gc.enable()


def compared(module: str, ways: list[Way], rounds: int) -> None:
    """Ask each way so many times, and note what it took.

    After a few rounds all processes are started anew: where in memory one of them lies makes a difference
    that stays as long as it lives, and is as large as what is looked for.
    """
    for done in range(0, rounds, _A_LIFE):
        _in_one_life(module, ways, min(_A_LIFE, rounds - done))


def _in_one_life(module: str, ways: list[Way], rounds: int) -> None:
    """Do so for a while; the first round warms up and does not count."""
    with ExitStack() as stack:
        several = []
        for way in ways:
            home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            several.append((way, stack.enter_context(way.start(module, home))))
        for turn in range(rounds + 1):
            for way, process in several[:: 1 if turn % 2 else -1]:
                assert process.stdin is not None and process.stdout is not None
                process.stdin.write("again\n")
                told = json.loads(process.stdout.readline())
                way.took += [told] if turn else []
        for _, process in several:
            process.communicate()


def table(ways: list[Way], scale: float, unit: str) -> str:
    """Show the best and the middle of each, and by how much it differs from the first in the middle round."""
    first, lines = ways[0], []
    for what in first.took[0]:
        lines.append(what)
        base = [took[what] for took in first.took]
        for way in ways:
            times = [took[what] for took in way.took]
            said = f"best {min(times) * scale:9.2f} {unit}, middle {median(times) * scale:9.2f} {unit}"
            if way is not first:
                more = median(its / theirs for its, theirs in zip(times, base, strict=True)) - 1
                said += f"   {more:+6.1%}, of the best {min(times) / min(base) - 1:+6.1%}"
            lines.append(f"    {way.name:24} {said}")
    return "\n".join(lines)


def asked(description: str | None) -> argparse.Namespace:
    """Return how many records and rounds are wanted, and beside which other build."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--peer", help="the Python of an environment with another build")
    return parser.parse_args()
