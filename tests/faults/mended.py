"""After any single damage and a repair, everything is true that something in the folder proves.

Every third time the log is struck where it hurts most instead, at its beginning or its end: `strikes.py`.

Small stores of every make are damaged in one place, at random, in one file: bits, bytes, lines, whole
files. Then they are repaired and compared with books of what they held. A record must have its true
value, or the repair must have named it: an event that stays lost, a record on hold, a state that nothing
proves. Where a hash still tells what was there (one altered byte, a base with its archive, a line that a
backup has) nothing may be missing at all.
"""

from __future__ import annotations

import os
import random
import shutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import harness
import numpy as np
import strikes
from chronomemory import ChronoStore
from chronomemory.errors import ChronoError, UnknownSpace

FOLDER = ".chronomemory"
#: Files whose damage costs nothing, for nothing stands on them.
FREE = ("snapshot.json", "synced", "index/", "lock", "care.lock", "backup/")


@dataclass
class Truth:
    """What a store held before it was damaged."""

    make: str
    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    vectors: dict[str, bytes] = field(default_factory=dict)
    has_archive: bool = False
    has_backup: bool = False
    #: What the log starts from and no line of it wrote since; whatever becomes of the log, it is there.
    below: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: What a backup holds of this very log and nothing wrote since: lines that were cut come back from it.
    copied: dict[str, dict[str, Any]] = field(default_factory=dict)


def held(project: Path) -> tuple[dict[str, dict[str, Any]], dict[str, bytes]]:
    """What a store holds now."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        with ChronoStore(project) as store:
            records = {row["id"]: row for row in store.export_records(status="")}
            vectors = {}
            for name in records:
                try:
                    row = store.vectors.get(name)
                except UnknownSpace:
                    # Blocks keep theirs in a space of their own.
                    row = None
                if row is not None:
                    vectors[name] = np.asarray(row).tobytes()
    return records, vectors


def write_some(store: ChronoStore, dice: random.Random, rows: int) -> None:
    for _ in range(rows):
        name = f"R-{dice.randrange(30)}"
        label = f"value {dice.randrange(10**9)} of {name}"
        match dice.randrange(6):
            case 0:
                others = [f"R-{dice.randrange(30)}" for _ in range(3)]
                store.upsert_many([{"id": other, "label": f"{label} and {other}"} for other in others])
            case 1:
                store.delete(name)
            case _:
                store.upsert({"id": name, "label": label, "data": {"n": dice.random()}})


def attach_some(store: ChronoStore, dice: random.Random, rows: int) -> None:
    for _ in range(rows):
        name = f"R-{dice.randrange(30)}"
        record = store.get(name)
        if record is not None and record.status == "active":
            store.vectors.attach(name, [dice.random() for _ in range(4)], model="dice")


def make(project: Path, what: str, seed: str) -> Truth:
    """Make a store of one kind, and the books of what it holds."""
    dice = random.Random(f"{what}-{seed}")
    truth = Truth(what)
    if "foreign" in what:
        strikes.make_foreign(project / FOLDER, dice)
        if "adopted" in what:
            with ChronoStore(project) as store:
                write_some(store, dice, 6)
        truth.records, truth.vectors = held(project)
        truth.below = strikes.untouched(project / FOLDER, truth.records)
        return truth
    with ChronoStore(project) as store:
        write_some(store, dice, 12)
        if "vectors" in what:
            attach_some(store, dice, 12)
        if "backup" in what:
            store.backup()
            truth.has_backup = True
        if "compacted" in what:
            store.compact(keep_history="dropped" not in what)
            truth.has_archive = "dropped" not in what
            write_some(store, dice, 6)
        if "twice" in what:
            store.compact()
            write_some(store, dice, 4)
        if "vectors" in what:
            attach_some(store, dice, 8)
        if "restored" in what:
            copy = store.backup()
            truth.has_backup = True
            write_some(store, dice, 5)
            store.upkeep.restore(copy)
            write_some(store, dice, 4)
        if "later" in what:
            write_some(store, dice, 6)
    truth.records, truth.vectors = held(project)
    if "compacted" in what:
        truth.below = strikes.untouched(project / FOLDER, truth.records)
    elif truth.has_backup and "restored" not in what:
        # Where somebody went back, a copy may hold what was left: lines that nothing leads to prove nothing.
        truth.copied = strikes.untouched(project / FOLDER, truth.records, strikes.backed_up(project / FOLDER))
    return truth


MAKES = (
    "plain",
    "plain with backup",
    "plain with backup, later",
    "vectors",
    "compacted",
    "compacted twice",
    "compacted, dropped",
    "compacted, dropped, backup",
    "compacted twice, vectors",
    "foreign",
    "foreign, adopted",
    "restored",
    "compacted, restored",
)


@dataclass(frozen=True)
class Damage:
    """What was done to which file, and whether a hash still tells what was there."""

    name: str
    what: str
    is_told: bool

    def __str__(self) -> str:
        return f"{self.what} of {self.name}"


def of_one_byte(data: bytearray, dice: random.Random) -> str:
    at = dice.randrange(len(data))
    match dice.randrange(3):
        case 0:
            data[at] ^= 1 << dice.randrange(8)
            return f"bit at {at}"
        case 1:
            data[at] = (data[at] + dice.randrange(1, 256)) % 256
            return f"byte at {at}"
        case _:
            del data[at]
            return f"loss at {at}"


def of_some_bytes(data: bytearray, dice: random.Random) -> str:
    at = dice.randrange(len(data))
    length = min(dice.choice((2, 8, 60, 600)), len(data) - at)
    match dice.randrange(3):
        case 0:
            data[at : at + length] = bytes(length)
            return f"{length} zeros at {at}"
        case 1:
            del data[at : at + length]
            return f"loss of {length} at {at}"
        case _:
            data[at:at] = dice.randbytes(length)
            return f"{length} more at {at}"


def of_lines(data: bytearray, dice: random.Random) -> str:
    lines = bytes(data).splitlines(keepends=True)
    at, other = dice.randrange(len(lines)), dice.randrange(len(lines))
    match dice.randrange(3):
        case 0:
            # A cut at the end is missed by who remembers the head, not by a chain.
            del lines[min(at, max(len(lines) - 2, 0))]
            what = f"line {at} gone"
        case 1:
            lines[at], lines[other] = lines[other], lines[at]
            what = f"lines {at} and {other} swapped"
        case _:
            lines.insert(other, lines[at])
            what = f"line {at} again at {other}"
    data[:] = b"".join(lines)
    return what


def damage(project: Path, dice: random.Random) -> Damage | None:
    """Do one thing to one file."""
    home = project / FOLDER
    files = [path for path in sorted(home.rglob("*")) if path.is_file() and path.stat().st_size]
    # The files that count are damaged more often than the others.
    weights = [1 if path.relative_to(home).as_posix().startswith(FREE) else 6 for path in files]
    path = dice.choices(files, weights)[0]
    name = path.relative_to(home).as_posix()
    data = bytearray(path.read_bytes())
    before = bytes(data)
    ways: list[tuple[Callable[[bytearray, random.Random], str], bool]] = [(of_one_byte, True)] * 5
    ways += [(of_some_bytes, False)] * 3
    if name == "events.wal":
        ways += [(of_lines, False)] * 2
    if dice.randrange(12) == 0:
        path.unlink()
        return Damage(name, "removal", False)
    way, is_told = dice.choice(ways)
    what = way(data, dice)
    if bytes(data) == before:
        return None
    path.write_bytes(data)
    return Damage(name, what, is_told)


def differing(truth: Truth, records: dict[str, dict[str, Any]]) -> list[str]:
    names = truth.records.keys() | records.keys()
    return sorted(name for name in names if truth.records.get(name) != records.get(name))


def is_marked(record: dict[str, Any] | None) -> bool:
    return record is not None and bool({"@unproven", "@unsettled"} & record.get("data", {}).keys())


def wrongs(truth: Truth, done: Damage, told: dict[str, Any], project: Path) -> list[str]:
    """Compare what is there after a repair with the books."""
    records, vectors = held(project)
    wrong = []
    report = ChronoStore(project).verify()
    if not report.valid:
        wrong.append(f"still damaged: {report.damage[0]}")
    other = differing(truth, records)
    is_log = done.name == "events.wal"
    if not is_log and not told["unproven"] and other and "base" not in done.name:
        wrong.append(f"damage outside the log changed {other[:3]}")
    if done.name.startswith("base/") and other and not told["unproven"]:
        wrong.append(f"{other[:3]} are not what the base held, and nothing says so")
    if is_log and done.is_told and other and "removal" not in done.what:
        wrong.append(f"one byte, and {other[:3]} are other than they were; lost {told['lost'][:2]}")
    unnamed = [name for name in other if not is_marked(records.get(name))]
    if unnamed and not told["lost"] and not told["unproven"]:
        wrong.append(f"{unnamed[:3]} are other than they were, and nothing is said to be lost")
    for name, row in vectors.items():
        is_named = told["lost"] or told["unproven"]
        if row != truth.vectors.get(name) and not is_named:
            wrong.append(f"{name} has an embedding that was replaced, or never was")
    missing = truth.vectors.keys() - vectors.keys()
    if missing and not told["lost"] and not told["unproven"] and not done.name.startswith("vectors/"):
        wrong.append(f"the embeddings of {sorted(missing)[:3]} are gone")
    return wrong


def of_strike(truth: Truth, told: dict[str, Any], project: Path) -> list[str]:
    """The same where the log was struck at its beginning or its end: nothing is left out."""
    records, _ = held(project)
    wrong = []
    if not ChronoStore(project).verify().valid:
        wrong.append("still damaged")
    for name, record in (truth.below | truth.copied).items():
        if strikes.unmarked(records.get(name)) != record:
            wrong.append(f"{name} is {records.get(name)} and was {record}, which a file of the folder holds")
    other = [name for name in differing(truth, records) if not is_marked(records.get(name))]
    if other and not told["lost"] and not told["unproven"]:
        wrong.append(f"{other[:3]} are other than they were, and nothing is said to be lost")
    return wrong


def run(seed: str, rounds: int, outcome: harness.Outcome) -> None:
    dice = random.Random(seed)
    what = MAKES[int(seed.split("-")[1]) % len(MAKES)]
    with harness.project(f"mended-{seed}", outcome) as folder:
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        whole, broken = folder / "whole", folder / "broken"
        truth = make(whole, what, seed)

        def once(number: int) -> list[str]:
            shutil.rmtree(broken, ignore_errors=True)
            shutil.copytree(whole, broken)
            struck = ""
            if what == "foreign" or dice.randrange(3) == 0:
                struck = strikes.strike(broken / FOLDER, dice, has_copy=bool(truth.copied))
            done = Damage("events.wal", struck, False) if struck else damage(broken, dice)
            if done is None:
                return []
            outcome.count(
                "struck"
                if struck
                else "in the log"
                if done.name == "events.wal"
                else f"in {done.name.split('/')[0]}"
            )
            try:
                told = harness.repaired(broken, outcome)
                outcome.count("healed", told["healed"])
                outcome.count("repairs", bool(told["damage"]))
                outcome.count("with something lost", bool(told["lost"]))
                wrong = of_strike(truth, told, broken) if struck else wrongs(truth, done, told, broken)
            except (ChronoError, OSError) as error:
                wrong = [f"{type(error).__name__}: {error}"]
            return [f"{what}, {done}: {one}" for one in wrong]

        harness.live(seed, rounds, outcome, once)


def work(order: harness.Order, outcome: harness.Outcome) -> None:
    """Damage stores in one place and repair them."""
    harness.in_projects(order, outcome, 250 if order.thorough else 4, run)


if __name__ == "__main__":
    harness.main("damage and repair", work)
