"""A process of version 1 brings nothing back that was erased while it had the store open.

It knows nothing of erasing. It reads all it can and holds on to it; then records are erased by this version;
then it goes on: it reads, writes, attaches, compacts, copies, opens anew and ends, in any order, beside this
version. Nothing of what was erased may be in any byte of the folder afterwards, nothing that it acknowledged
may be lost, and both verifiers accept. An interpreter with such an engine is named by
CHRONOMEMORY_VERSION_1_PYTHON; where there is none the harness is left out.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import warnings
from pathlib import Path
from typing import Any

import harness
import numpy as np
from chronomemory import ChronoStore
from traces import found_in, secret
from workload import second_opinion

FOLDER = ".chronomemory"
ELDER = Path(__file__).with_name("elder.py")
INTERPRETER = "CHRONOMEMORY_VERSION_1_PYTHON"
LIVES_A_PROJECT = 5
#: What version 1 may say against a log of version 2: the past is not to be had for it.
EXPECTED = ("HistoryUnavailable", "Conflict")


class Elder:
    """A process of version 1."""

    def __init__(self, project: Path) -> None:
        command = [os.environ[INTERPRETER], str(ELDER), str(project), str(project / "head")]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def do(self, *words: Any) -> Any:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()
        told: dict[str, Any] = json.loads(self.process.stdout.readline())
        if "error" in told and not told["error"].startswith(EXPECTED):
            raise RuntimeError(f"version 1, {words[0]}: {told['error']}")
        return told.get("answer")

    def end(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait(60)


def row(dice: random.Random) -> list[float]:
    return [dice.gauss(0, 1) for _ in range(4)]


class Life:
    """A project in which both versions are at work."""

    def __init__(self, project: Path, dice: random.Random) -> None:
        self.project, self.dice = project, dice
        self.kept: dict[str, str] = {}
        self.gone: list[str] = []
        self.gone_rows: list[bytes] = []
        self.did: list[str] = []

    def opened(self) -> ChronoStore:
        salt = self.dice.choice([True, False, "scope"])
        return ChronoStore(self.project, head_file=self.project / "head", lock_timeout=60, salt=salt)

    def populate(self, elder: Elder, life: int) -> tuple[list[str], list[str], list[bytes]]:
        """Both say something, in both kinds of records."""
        names, words, rows = [f"V{life}-{number}" for number in range(3)], [], []
        with self.opened() as store:
            for number in range(12):
                word = secret(self.dice)
                name = self.dice.choice(names) if number % 2 else f"K{number}"
                label = f"{word} harbour"
                if name in names:
                    words.append(word)
                else:
                    self.kept[name] = label
                if self.dice.random() < 0.5:
                    elder.do("put", name, label)
                else:
                    store.upsert({"id": name, "label": label})
                if self.dice.random() < 0.4:
                    given = row(self.dice)
                    store.vectors.attach(name, np.array(given, dtype=np.float32), model="m")
                    rows += [np.array(given, dtype=np.float32).tobytes()] if name in names else []
                match self.dice.randrange(10):
                    case 0:
                        elder.do("compact", True)
                    case 1:
                        store.compact()
                    case 2:
                        elder.do("backup")
                    case 3:
                        elder.do("read")
        return names, words, rows

    def go_on(self, elder: Elder, names: list[str]) -> None:
        """What version 1 does after the erasure."""
        for _ in range(self.dice.randrange(2, 9)):
            verb = self.dice.choice(["read", "get", "history", "views", "put", "put", "attach", "compact"])
            verb = self.dice.choice([verb, verb, "backup", "verify", "sync", "reopen"])
            self.did.append(verb)
            name = self.dice.choice([*names, *self.kept])
            match verb:
                case "get" | "history":
                    found = elder.do(verb, name)
                    if found and any(word in str(found) for word in self.gone):
                        raise RuntimeError(f"version 1 still says it: {verb} {name}")
                case "put":
                    name = f"K{self.dice.randrange(12)}"
                    label = f"{secret(self.dice)} harbour"
                    elder.do("put", name, label)
                    self.kept[name] = label
                case "attach":
                    elder.do("attach", self.dice.choice(sorted(self.kept)), row(self.dice))
                case "compact":
                    elder.do("compact", self.dice.random() < 0.7)
                case _:
                    elder.do(verb)

    def once(self, life: int, outcome: harness.Outcome) -> list[str]:
        elder = Elder(self.project)
        try:
            names, words, rows = self.populate(elder, life)
            elder.do("read")
            self.did = []
            with self.opened() as store:
                told = store.erase(
                    ids=names, reason="asked for", history=self.dice.choice(["redact"] * 3 + ["drop"])
                )
                self.gone += words
                self.gone_rows += rows
                outcome.count("lines erased", told.lines)
                if self.dice.random() < 0.5:
                    self.go_on(elder, names)
            self.go_on(elder, names)
        except RuntimeError as error:
            return [f"after {self.did}: {error}"]
        finally:
            elder.end()
        outcome.count("deeds of version 1", len(self.did))
        return [f"after {self.did}: {one}" for one in self.judged(names)]

    def judged(self, names: list[str]) -> list[str]:
        wrong = [
            f"erased, and in {place}" for place in found_in(self.project / FOLDER, self.gone, self.gone_rows)
        ]
        with self.opened() as store:
            for name, label in self.kept.items():
                record = store.get(name)
                if record is None or record.label != label:
                    wrong.append(f"{name} is {record and record.label}, and was {label}")
            wrong += [f"{name} is back" for name in names if store.get(name) is not None]
            report = store.verify()
            wrong += [str(damage) for damage in (*report.damage, *report.returned)]
            if report.remembered == "lost":
                wrong.append(f"the head is lost: {report.remembered_reason}")
        return wrong + second_opinion(self.project)


def live(seed: str, lives: int, outcome: harness.Outcome) -> None:
    """One project and its lives; the first that goes wrong is the last."""
    with harness.project(f"elders-{seed}", outcome) as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        life = Life(folder / "project", random.Random(seed))
        harness.live(seed, lives, outcome, lambda number: life.once(number, outcome))


def work(order: harness.Order, outcome: harness.Outcome) -> None:
    """Erase beside a process of version 1, and see what it does."""
    if not os.access(os.environ.get(INTERPRETER, ""), os.X_OK):
        raise harness.Skipped(f"{INTERPRETER} names no interpreter that has an engine of version 1")
    harness.in_projects(order, outcome, LIVES_A_PROJECT, live)


if __name__ == "__main__":
    harness.main("version 1 beside it", work)
