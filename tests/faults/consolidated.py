"""A runner that is killed at any moment, and run again, ends in the same facts.

Two projects hear the same conversations. In one of them the rules run undisturbed. In the other a child runs
them and is killed (SIGKILL) after a random moment, often more than once, before they run to their end. Then
both must believe the same, for the same reasons, and a further run must find nothing to do.
"""

from __future__ import annotations

import random
import time
import warnings
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import harness
from children import FAILED, start
from chronomemory import ChronoStore
from chronomemory.episodes import (
    ChronoFactStore,
    ChronoMemoryStore,
    ConsolidationRule,
    Episode,
    Episodes,
    Fact,
    FactPattern,
    Facts,
)
from chronomemory.episodes.runner import Runner

LIVES_A_PROJECT = 12
TURNS_A_LIFE = 24
MOST_KILLS = 3
START = datetime(2026, 5, 18, 9, tzinfo=timezone.utc)
USERS = ("ann", "bob", "cleo")
RULES = [
    ConsolidationRule(id="all", cadence={"every": 1}, when_filter="", then_emits=["all"]),
    *(
        ConsolidationRule(
            id=f"of {user}", cadence={"every": 2}, when_filter=f"user = '{user}'", then_emits=[user]
        )
        for user in USERS
    ),
]


def turns(dice: random.Random, life: int) -> list[Episode]:
    """What is said in a life: much of it replaces or denies what was said before."""
    said = []
    for number in range(life * TURNS_A_LIFE, (life + 1) * TURNS_A_LIFE):
        user = dice.choice(USERS)
        metadata: dict[str, Any] = {"subject": user, "predicate": dice.choice("xyz"), "object": number}
        intent = dice.choice(["", "", "", "update", "delete", "noop"])
        if intent:
            replaced = [f"e{dice.randrange(number + 1)}" for _ in range(dice.randrange(3))]
            metadata |= {"intent": intent, "replaces": replaced}
        moment = START + timedelta(minutes=number)
        names = {"user": user, "session": "s1", "agent": "helper"}
        said.append(
            Episode(
                id=f"e{number}",
                content=f"turn {number}",
                timestamp=moment,
                source_node="chat",
                metadata=metadata,
                **names,
            )
        )
    return said


def hear(project: Path, said: list[Episode]) -> None:
    with ChronoStore(project) as store, Episodes(store) as episodes:
        for one in said:
            episodes.put(one, user=one.user, session=one.session, agent=one.agent)


def run_rules(project: Path, life: int) -> int:
    """Run all rules by a clock that stands still for a life, and return how many deltas were applied."""
    with ChronoStore(project) as store:
        clock = START + timedelta(days=life)
        runner = Runner(ChronoMemoryStore(store), ChronoFactStore(store), RULES, clock=lambda: clock)
        return runner.run().applied


def believed(project: Path) -> list[Fact]:
    with ChronoStore(project) as store, Facts(store) as facts:
        return facts.query(FactPattern())


def run_elsewhere(project: Path, life: int, kill_after: float) -> tuple[bool, list[str]]:
    """Let a child run the rules; say whether it was killed at work, and what failed."""
    child = start(lambda tell: tell(run_rules(project, life)))
    time.sleep(kill_after)
    told = child.kill()
    return child.was_killed and not told, ["a runner failed"] if FAILED in told else []


def live(seed: str, lives: int, outcome: harness.Outcome) -> None:
    dice = random.Random(seed)
    with harness.project(f"consolidated-{seed}", outcome) as folder:
        calm, project = folder / "calm", folder / "killed"
        for one in (calm, project):
            one.mkdir()

        def live_once(life: int) -> list[str]:
            said = turns(dice, life)
            for one in (calm, project):
                hear(one, said)
            began = time.perf_counter()
            outcome.count("applied", run_rules(calm, life))
            usual = time.perf_counter() - began
            wrong: list[str] = []
            for _ in range(dice.randint(1, MOST_KILLS)):
                was_killed, failed = run_elsewhere(project, life, dice.random() * usual * 1.2)
                outcome.count("killed at work", was_killed)
                wrong += failed
            run_rules(project, life)
            if believed(project) != believed(calm):
                wrong.append("the facts are others")
            if run_rules(project, life):
                wrong.append("a further run found something to do")
            if not ChronoStore(project).verify().valid:
                wrong.append("the log is not valid")
            return wrong

        with warnings.catch_warnings():
            # What a killed writer leaves behind is told when the store is opened next.
            warnings.simplefilter("ignore", RuntimeWarning)
            harness.live(seed, lives, outcome, live_once)


def work(order: harness.Order, outcome: harness.Outcome) -> None:
    """Kill runners, one after the other, and look at what is believed in the end."""
    harness.in_projects(order, outcome, LIVES_A_PROJECT, live)


if __name__ == "__main__":
    harness.main("killed runners", work)
