"""An erasure that is killed in a crowd is done or not begun, and nobody there brings anything back.

Four writers are at work, two of them on the very records that are erased; a reader holds mappings and views;
one who searches much is stopped (SIGSTOP) in the middle of whatever it does, and goes on later; another
compacts, copies and restores, in place or elsewhere. In the midst of it a child erases, and is killed
(SIGKILL) or not. Then everything acknowledged is there, both verifiers accept, and what was erased is in no
byte of the folder, although all of them have gone on since.
"""

from __future__ import annotations

import os
import random
import select
import signal
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import harness
import numpy as np
from children import FAILED, Child, Tell, start
from chronomemory import ChronoStore
from chronomemory.errors import ChronoError, HistoryUnavailable
from traces import found_in, secret
from workload import second_opinion

FOLDER = ".chronomemory"
LIVES_A_PROJECT = 4
WRITES = 36
VICTIMS = 3
DIM = 8
#: So many seconds an erasure has at most until it is killed: it takes some hundredths, or longer in a crowd.
PATIENCE = (0.02, 0.1, 0.8)


@dataclass
class Past:
    """What was acknowledged in all lives of a project, and what must be nowhere any more."""

    labels: dict[str, str] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    gone_rows: list[bytes] = field(default_factory=list)
    erasures: int = 0


def row_of(text: str) -> np.ndarray[Any, np.dtype[np.float32]]:
    dice = random.Random(text)
    return np.array([dice.gauss(0, 1) for _ in range(DIM)], dtype=np.float32)


def opened(project: Path) -> ChronoStore:
    return ChronoStore(project, head_file=project / "head", lock_timeout=60, salt=True)


def say(store: ChronoStore, name: str, text: str) -> None:
    store.upsert({"id": name, "label": f"{text} harbour", "data": {"padding": "lantern " * 20}})


def populate(project: Path, dice: random.Random, victims: list[str]) -> dict[str, list[str]]:
    said: dict[str, list[str]] = {name: [] for name in victims}
    with opened(project) as store:
        for name in victims * 2:
            said[name].append(secret(dice))
            say(store, name, said[name][-1])
            store.vectors.attach(name, row_of(said[name][-1]), model="m")
            if dice.random() < 0.3:
                store.compact()
        store.backup()
    return said


def writing(project: Path, words: list[str], name_of: Callable[[int], str]) -> Callable[[Tell], None]:
    """One who writes, each word once, and says so."""

    def work(tell: Tell) -> None:
        with opened(project) as store:
            for number, word in enumerate(words):
                say(store, name_of(number), word)
                tell(number)
                if number % 5 == 0:
                    store.search("harbour lantern")

    return work


def reading(project: Path, history: str) -> Callable[[Tell], None]:
    """A process that keeps what it has read: rows, and views of the past.

    An erasure that drops the history may finish between reading the seq and asking for its view.
    """

    def work(tell: Tell) -> None:
        with opened(project) as store:
            held: list[object] = []
            while True:
                held = [*held[-3:], store.vectors.matrix()]
                with suppress(*([HistoryUnavailable] if history == "drop" else [])):
                    held.append(store.as_of(store.wal_seq()))
                store.vectors.nearest(np.ones(DIM, dtype=np.float32), k=5)
                store.search("harbour")
                store.verify()

    return work


def sealing(project: Path) -> Callable[[Tell], None]:
    """One who makes files of words again and again, and is stopped while it does."""

    def work(tell: Tell) -> None:
        while True:
            with opened(project) as store:
                store.search("harbour lantern")
                store.history("nobody")

    return work


def is_going(copy: Path, seconds: float = 5.0) -> bool:
    """Whether somebody takes a copy away: its files go one after the other."""
    deadline = time.monotonic() + seconds
    while copy.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    return not copy.exists()


def caring(project: Path, seed: int, *, in_place: bool) -> Callable[[Tell], None]:
    """One who compacts, copies, and puts copies back: here, or elsewhere."""

    def work(tell: Tell) -> None:
        dice = random.Random(seed)
        elsewhere = project.with_name(project.name + "-elsewhere")
        with opened(project) as store:
            for number in range(1000):
                copy = store.backup()
                if dice.random() < 0.5:
                    store.compact()
                if dice.random() < 0.3:
                    try:
                        if in_place:
                            store.upkeep.restore(copy)
                        else:
                            with ChronoStore(elsewhere, head_file=elsewhere / "head") as other:
                                other.upkeep.restore(copy)
                    except (ChronoError, OSError) as error:
                        # An erasure has taken the copy away, or does not let it come back.
                        if "erased" not in str(error) and not is_going(copy):
                            raise
                time.sleep(dice.random() * 0.05)
                tell(number)

    return work


def stopped_now_and_then(child: Child, dice: random.Random, until: float) -> None:
    """Stop a child in the middle of what it does, and let it go on."""

    def rest(seconds: float) -> None:
        time.sleep(max(0.0, min(seconds, until - time.monotonic())))

    while time.monotonic() < until:
        rest(dice.random() * 0.02)
        os.kill(child.pid, signal.SIGSTOP)
        rest(dice.random() * 0.2)
        os.kill(child.pid, signal.SIGCONT)


def live_once(
    project: Path, past: Past, dice: random.Random, life: int, outcome: harness.Outcome
) -> list[str]:
    victims = [f"V{life}-{number}" for number in range(VICTIMS)]
    said = populate(project, dice, victims)
    history = dice.choice(["redact", "redact", "redact", "drop"])
    in_place = dice.random() < 0.3

    def erasing(tell: Tell) -> None:
        with opened(project) as store:
            tell(0)
            store.erase(ids=victims, reason="asked for", history=history)
            tell(1)

    words = [[secret(dice) for _ in range(WRITES)] for _ in range(4)]
    names: list[Callable[[int], str]] = [
        lambda number: f"A{life}-{number % 7}",
        lambda number: f"B{life}-{number % 7}",
        lambda number: victims[number % VICTIMS],
        lambda number: victims[number * 5 % VICTIMS],
    ]
    # Two writers of the same record: who was last is told by the log alone.
    writers = [start(writing(project, *pair)) for pair in zip(words, names, strict=True)]
    others = [
        start(reading(project, history)),
        start(caring(project, dice.getrandbits(32), in_place=in_place)),
    ]
    sealer = start(sealing(project))
    eraser = start(erasing)
    while not eraser.told() and eraser.listen(1):
        pass
    is_killed = dice.random() < 0.6
    stopped_now_and_then(sealer, dice, time.monotonic() + dice.random() * dice.choice(PATIENCE))
    done = eraser.kill() if is_killed else eraser.end()
    for writer in writers:
        # Whatever was acknowledged before the erasure was over lies in the pipe by now.
        while select.select([writer.pipe], [], [], 0)[0] and writer.listen(0):
            pass
    known_then = [writer.told() for writer in writers]
    written = [writer.end() for writer in writers]
    time.sleep(0.1)
    ended = [child.kill() for child in (*others, sealer)]
    children = [*writers, *others, sealer, eraser]
    wrong = [f"a child failed: {fault}" for child in children if (fault := child.fault())]
    if not wrong and FAILED in [number for told in (done, *written, *ended) for number in told]:
        wrong = ["a child failed"]
    wrong += judged(
        project, past, said, Told(victims, words, names, known_then, written, done), in_place, outcome
    )
    return wrong


@dataclass
class Told:
    """What the children were to say, and what they acknowledged."""

    victims: list[str]
    words: list[list[str]]
    names: list[Callable[[int], str]]
    known_then: list[int]
    written: list[list[int]]
    done: list[int]


def judged(
    project: Path,
    past: Past,
    said: dict[str, list[str]],
    told: Told,
    in_place: bool,
    outcome: harness.Outcome,
) -> list[str]:
    """What is wrong once all of them are gone."""
    wrong: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        with opened(project) as store:
            everyone = store.everyone()
            erasures = len(everyone.query(kind="erasure", status=None, faces=True))
            is_erased = erasures > past.erasures
            past.erasures = erasures
            if 1 in told.done and not is_erased:
                wrong.append("erased, and nothing tells of it")
            left = {
                str((event.record or {}).get("label", "")).split(" ")[0]
                for name in told.victims
                for event in everyone.history(name)
            }
            first = [word for name in told.victims for word in said[name]]
            if is_erased:
                back = [word for word in first if word in left]
                wrong += [f"{back} were erased, and are there"] if back else []
                past.gone += first
                past.gone_rows += [row_of(word).tobytes() for word in first]
                if not in_place:
                    past.gone += [word for one in told.words[2:] for word in one if word not in left]
            elif not in_place and not set(first) <= left:
                wrong.append("not erased, and not there")
            if not in_place:
                wrong += missed(everyone, past, told, left, is_erased=is_erased)
            report = store.verify()
            wrong += [str(damage) for damage in (*report.damage, *report.returned)]
            if report.remembered == "lost":
                wrong.append(f"the head is lost: {report.remembered_reason}")
            if not in_place:
                for name, label in past.labels.items():
                    record = store.get(name)
                    if record is None or record.label != label:
                        wrong.append(f"{name} is {record and record.label}, and was {label}")
            else:
                past.labels = {
                    name: record.label for name in past.labels if (record := store.get(name)) is not None
                }
    outcome.count("erased", is_erased)
    outcome.count("killed before", not is_erased)
    outcome.count("killed behind the commit", is_erased and 1 not in told.done)
    outcome.count("acknowledged", sum(map(len, told.written)))
    wrong += [
        f"what was erased is in {place}" for place in found_in(project / FOLDER, past.gone, past.gone_rows)
    ]
    return wrong + second_opinion(project)


def missed(everyone: Any, past: Past, told: Told, left: set[str], *, is_erased: bool) -> list[str]:
    """Acknowledged writes that are not there, although no erasure may have taken them."""
    wrong = []
    for writer in (0, 1):
        for number in range(len(told.written[writer])):
            past.labels[told.names[writer](number)] = f"{told.words[writer][number]} harbour"
    for writer in (2, 3):
        # What was begun after the erasure was known to be over is not its business.
        since = told.known_then[writer] + 1 if is_erased and 1 in told.done else 0
        if is_erased and 1 not in told.done:
            continue
        for number in range(since, len(told.written[writer])):
            if told.words[writer][number] not in left:
                wrong.append(f"write {number} of writer {writer} was acknowledged, and is lost")
    return wrong


def live(seed: str, lives: int, outcome: harness.Outcome) -> None:
    """One project and its lives; the first that goes wrong is the last."""
    dice, past = random.Random(seed), Past()
    with harness.project(f"crowded-{seed}", outcome) as folder:
        project = folder / "project"
        harness.live(seed, lives, outcome, lambda life: live_once(project, past, dice, life, outcome))


def work(order: harness.Order, outcome: harness.Outcome) -> None:
    """Erase in a crowd, kill who does it, and look for what came back."""
    harness.in_projects(order, outcome, LIVES_A_PROJECT, live)


if __name__ == "__main__":
    harness.main("erasures in crowds", work)
