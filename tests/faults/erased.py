"""An erasure that is killed at any moment is either done to the last byte, or not begun.

A project has records that each say what nobody else does. A child erases one of them, and the parent kills it
(SIGKILL) a random moment later, while another child writes. Then the store is opened: the record is there as
it was, or no byte of the folder holds what it said; and all else is as it was acknowledged. Before that the
store is compacted and copied, and one project goes through several lives.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import harness
import numpy as np
from children import FAILED, Tell, start
from chronomemory import ChronoStore
from chronomemory._core import file_holds
from workload import second_opinion

LIVES_A_PROJECT = 6
WRITES = 12
SECOND_OPINION_EVERY = 3


@dataclass
class Past:
    """What was said, and what of it must be found nowhere any more."""

    labels: dict[str, str] = field(default_factory=dict)
    gone: list[bytes] = field(default_factory=list)


def secret_of(dice: random.Random, name: str) -> str:
    return f"only {name} said {dice.getrandbits(64):016x}"


def row_of(text: str) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.frombuffer(text[-16:].encode(), dtype=np.float32)


def populate(project: Path, past: Past, dice: random.Random, life: int) -> dict[str, list[bytes]]:
    """Write what may be erased, with a history; return the bytes that only each of them has."""
    said: dict[str, list[bytes]] = {}
    with ChronoStore(project, salt=dice.choice([True, False, "scope"]), lock_timeout=60) as store:
        for number in range(3):
            name = f"S{life}-{number}"
            texts = [secret_of(dice, name) for _ in range(2)]
            for text in texts:
                store.upsert({"id": name, "label": text, "data": {"life": life}})
                store.vectors.attach(name, row_of(text), model="digits")
                if dice.random() < 0.3:
                    store.compact()
                if dice.random() < 0.2:
                    store.backup()
            store.upsert({"id": f"E{name}", "kind": "edge", "data": {"from_id": name, "to_id": "tea"}})
            said[name] = [part for text in texts for part in (text.encode(), row_of(text).tobytes())]
            past.labels[name] = texts[1]
    return said


def found_in(project: Path, gone: list[bytes]) -> list[str]:
    """The files that hold any of it, unpacked where they are packed."""
    files = [path for path in sorted((project / ".chronomemory").rglob("*")) if path.is_file()]
    texts = [part.lower() for part in gone]
    raw = [path.name for path in files if any(part in path.read_bytes() for part in gone)]
    return raw + [path.name for path in files if file_holds(path, texts)]


def live_once(
    project: Path, past: Past, dice: random.Random, life: int, outcome: harness.Outcome
) -> list[str]:
    said = populate(project, past, dice, life)
    victim = dice.choice(sorted(said))
    history, again = dice.choice(["redact", "redact", "drop"]), [victim] if dice.random() < 0.2 else []

    def erasing(tell: Tell) -> None:
        with ChronoStore(project, lock_timeout=60) as store:
            tell(0)
            store.erase(ids=[victim], reason="asked for", history=history, again=again)
            tell(1)

    def writing(tell: Tell) -> None:
        with ChronoStore(project, lock_timeout=60) as store:
            for number in range(WRITES):
                store.upsert({"id": f"W{life}-{number}", "label": f"written {life} {number}"})
                store.vectors.attach(f"W{life}-{number}", np.ones(4, dtype=np.float32), model="digits")
                tell(number)

    eraser, writer = start(erasing), start(writing)
    deadline = time.monotonic() + 60
    while not eraser.told() and time.monotonic() < deadline and eraser.listen(1):
        pass
    time.sleep(dice.random() * dice.choice([0.02, 0.2, 0.6]))
    done, written = eraser.kill(), writer.end()
    wrong = ["a child failed"] if FAILED in (*done, *written) else []
    for number in range(len(written)):
        past.labels[f"W{life}-{number}"] = f"written {life} {number}"
    with ChronoStore(project, lock_timeout=60) as store:
        left = store.history(victim)
        is_whole = len(left) == 2
        if 1 in done and is_whole:
            wrong.append(f"{victim}: erased, and there")
        if not is_whole:
            kept = said[victim][2:] if again else []
            past.gone += said[victim][: len(said[victim]) - len(kept)]
            if not again:
                del past.labels[victim]
                if store.get(victim) is not None or left:
                    wrong.append(f"{victim}: neither there nor gone")
                if (edge := store.get(f"E{victim}")) is not None:
                    wrong.append(f"{edge.id} is left")
        for name, label in past.labels.items():
            record = store.get(name)
            if record is None or record.label != label or store.vectors.get(name) is None:
                wrong.append(f"{name} is another: {record}")
        report = store.verify()
        wrong += [str(damage) for damage in (*report.damage, *report.returned)]
        outcome.count("erased", not is_whole)
        outcome.count("killed before", is_whole)
        outcome.count("killed behind the commit", not is_whole and 1 not in done)
    wrong += [f"left in {name}" for name in found_in(project, past.gone)]
    if life % SECOND_OPINION_EVERY == 0:
        wrong += second_opinion(project)
    return wrong


def live(seed: str, lives: int, outcome: harness.Outcome) -> None:
    """One project and its lives; the first that goes wrong is the last."""
    dice, past = random.Random(seed), Past()
    with harness.project(f"erased-{seed}", outcome) as project:
        with ChronoStore(project) as store:
            store.upsert({"id": "tea", "label": "tea"})
        harness.live(seed, lives, outcome, lambda life: live_once(project, past, dice, life, outcome))


def work(order: harness.Order, outcome: harness.Outcome) -> None:
    """Kill erasers, one after the other, and look for what they left."""
    harness.in_projects(order, outcome, LIVES_A_PROJECT, live)


if __name__ == "__main__":
    harness.main("killed erasures", work)
