"""A writer that is killed at any moment loses nothing that it acknowledged.

A child writes and reports each acknowledgement through a pipe. The parent kills it (SIGKILL) after a random
number of them and a random moment more, opens the store and compares. One project goes through several
lives, so that recovery is followed by recovery; now and then a second writer is at work that is not killed
and must not be disturbed.
"""

from __future__ import annotations

import random
from pathlib import Path

import harness
from children import FAILED, Child, Tell, start
from chronomemory import ChronoStore
from workload import Action, Ledger, act, check, plan, second_opinion

LIVES_A_PROJECT = 8
ACTIONS_A_LIFE = 60
#: One in so many lives is also judged by the independent verifier, which takes its time.
SECOND_OPINION_EVERY = 8


def writer(project: Path, actions: list[Action], durability: str, *, exclusive: bool) -> Child:
    """Start a writer."""

    def work(tell: Tell) -> None:
        with ChronoStore(project, durability=durability, exclusive=exclusive, lock_timeout=60) as store:
            act(store, actions, tell)

    return start(work)


def note(ledger: Ledger, actions: list[Action], acknowledged: list[int], what: str) -> list[str]:
    """Enter into the ledger what a writer did; the action after the last one told may have been under way."""
    wrong = [f"{what}: a writer failed"] if FAILED in acknowledged else []
    done = len([number for number in acknowledged if number != FAILED])
    for number, action in enumerate(actions[: done + 1]):
        ledger.note(action, acknowledged=number < done)
    return wrong


def live_once(
    project: Path, ledger: Ledger, dice: random.Random, life: int, outcome: harness.Outcome
) -> list[str]:
    durability = dice.choice(["full", "normal", "normal", "off"])
    company = dice.random() < 0.3
    exclusive = not company and dice.random() < 0.2
    actions, others = plan(dice, f"a{life}", ACTIONS_A_LIFE), plan(dice, f"b{life}", 25)
    doomed = writer(project, actions, durability, exclusive=exclusive)
    other = writer(project, others, durability, exclusive=False) if company else None
    acknowledged = doomed.kill_after(dice.randrange(ACTIONS_A_LIFE + 1), dice)
    wrong = note(ledger, actions, acknowledged, "the killed one")
    outcome.count("acknowledged", len(acknowledged))
    outcome.count("killed at work", len(acknowledged) < ACTIONS_A_LIFE)
    if other:
        finished = other.end()
        wrong += note(ledger, others, finished, "the other one")
        outcome.count("acknowledged", len(finished))
        if len(finished) < len(others):
            wrong.append(f"the other writer only did {len(finished)} of {len(others)} actions")
    wrong += check(project, ledger, f"c{life}.0")
    if life % SECOND_OPINION_EVERY == 0:
        wrong += second_opinion(project)
    return wrong


def live(seed: str, lives: int, outcome: harness.Outcome) -> None:
    """One project and its lives; the first that goes wrong is the last."""
    dice, ledger = random.Random(seed), Ledger()
    with harness.project(f"killed-{seed}", outcome) as project:
        harness.live(seed, lives, outcome, lambda life: live_once(project, ledger, dice, life, outcome))


def work(order: harness.Order, outcome: harness.Outcome) -> None:
    """Kill writers, one after the other, and count what they lost."""
    harness.in_projects(order, outcome, LIVES_A_PROJECT, live)


if __name__ == "__main__":
    harness.main("kill -9", work)
