"""Does a writer that is killed at any moment lose anything that it acknowledged?

A child writes and reports each acknowledgement through a pipe. The parent kills it (SIGKILL) after a random
number of them and a random moment more, opens the store and compares. One project goes through several
lives, so that recovery is followed by recovery; now and then a second writer is at work that is not killed
and must not be disturbed.
"""

from __future__ import annotations

import os
import random
import select
import signal
import struct
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

import harness
from chronomemory import ChronoStore
from workload import Action, Ledger, act, check, plan, second_opinion

LIVES_A_PROJECT = 8
ACTIONS_A_LIFE = 60
#: One in so many lives is also judged by the independent verifier, which takes its time.
SECOND_OPINION_EVERY = 8
NUMBER = struct.Struct("<i")
#: What a child reports when an action failed: nothing may fail here.
FAILED = -1


@dataclass
class Writer:
    """A child at work."""

    pid: int
    pipe: int
    actions: list[Action]
    said: bytes = b""

    def listen(self, seconds: float) -> bool:
        """Take in what the child reported; False once it is gone."""
        if not select.select([self.pipe], [], [], seconds)[0]:
            return True
        heard = os.read(self.pipe, 65536)
        self.said += heard
        return bool(heard)

    def told(self) -> int:
        return len(self.said) // NUMBER.size

    def end(self) -> list[int]:
        """Wait until the child is gone, and return what it acknowledged."""
        while self.listen(60):
            pass
        os.close(self.pipe)
        os.waitpid(self.pid, 0)
        whole = self.told() * NUMBER.size
        return [number for (number,) in NUMBER.iter_unpack(self.said[:whole])]


def start(project: Path, actions: list[Action], durability: str, *, exclusive: bool) -> Writer:
    """Fork a writer. The parent has no threads, and the child never returns."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return Writer(pid, reading, actions)
    code = 1
    try:
        os.close(reading)
        with ChronoStore(project, durability=durability, exclusive=exclusive, lock_timeout=60) as store:
            act(store, actions, lambda number: void(os.write(writing, NUMBER.pack(number))))
        code = 0
    except BaseException:
        traceback.print_exc()
        os.write(writing, NUMBER.pack(FAILED))
    finally:
        os._exit(code)


def void(_: object) -> None:
    """Take no notice of a value."""


def note(ledger: Ledger, writer: Writer, acknowledged: list[int], what: str) -> list[str]:
    """Enter into the ledger what a writer did; the action after the last one told may have been under way."""
    wrong = [f"{what}: a writer failed"] if FAILED in acknowledged else []
    done = len([number for number in acknowledged if number != FAILED])
    for number, action in enumerate(writer.actions[: done + 1]):
        ledger.note(action, acknowledged=number < done)
    return wrong


def live_once(
    project: Path, ledger: Ledger, dice: random.Random, life: int, outcome: harness.Outcome
) -> list[str]:
    durability = dice.choice(["full", "normal", "normal", "off"])
    company = dice.random() < 0.3
    exclusive = not company and dice.random() < 0.2
    doomed = start(project, plan(dice, f"a{life}", ACTIONS_A_LIFE), durability, exclusive=exclusive)
    other = start(project, plan(dice, f"b{life}", 25), durability, exclusive=False) if company else None
    wanted = dice.randrange(ACTIONS_A_LIFE + 1)
    deadline = time.monotonic() + 60
    while doomed.told() < wanted and time.monotonic() < deadline and doomed.listen(1):
        pass
    time.sleep(dice.choice([0, dice.random() * 0.001, dice.random() * 0.02]))
    os.kill(doomed.pid, signal.SIGKILL)
    acknowledged = doomed.end()
    wrong = note(ledger, doomed, acknowledged, "the killed one")
    outcome.count("acknowledged", len(acknowledged))
    outcome.count("killed at work", len(acknowledged) < ACTIONS_A_LIFE)
    if other:
        finished = other.end()
        wrong += note(ledger, other, finished, "the other one")
        outcome.count("acknowledged", len(finished))
        if len(finished) < len(other.actions):
            wrong.append(f"the other writer only did {len(finished)} of {len(other.actions)} actions")
    wrong += check(project, ledger, f"c{life}.0")
    if life % SECOND_OPINION_EVERY == 0:
        wrong += second_opinion(project)
    return wrong


def live(seed: str, lives: int, outcome: harness.Outcome) -> None:
    """One project and its lives; the first that goes wrong is the last."""
    dice, ledger = random.Random(seed), Ledger()
    with harness.project(f"killed-{seed}", outcome) as project:
        for life in range(lives):
            wrong = live_once(project, ledger, dice, life, outcome)
            outcome.runs += 1
            if wrong:
                outcome.found.append(f"seed {seed}, life {life}: {'; '.join(wrong[:5])}")
                return


def work(order: harness.Order, outcome: harness.Outcome) -> None:
    """Kill writers, one after the other, and count what they lost."""
    for begun in range(0, order.runs, LIVES_A_PROJECT):
        lives = min(LIVES_A_PROJECT, order.runs - begun)
        live(f"{order.seed}-{begun // LIVES_A_PROJECT}", lives, outcome)
        harness.say(done=begun + lives, of=order.runs)


if __name__ == "__main__":
    harness.main("kill -9", work)
