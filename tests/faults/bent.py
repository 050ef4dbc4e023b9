"""Both verifiers judge erasures alike whatever becomes of their bytes, and neither breaks.

A store with erasures is bent in one place: a redacted line, a sentinel or the event behind it, the file
`erasing`, or any byte of any file. Where a digest or a hash would tell at once, it is made anew first
(`forging.py`), so that what lies behind it is looked at too. Both verifiers must find the same. Where
`erasing` is bent, the store is opened: whatever that file says, no file goes that the log names.
"""

from __future__ import annotations

import json
import random
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import harness
from chronomemory import ChronoStore, _core
from forged import make
from forging import Forger, second_verdict
from mended import of_one_byte, of_some_bytes
from verdicts import essence

FOLDER = ".chronomemory"
BENDS_A_PROJECT = 40
OTHER = "cd" * 32
#: What may stand in the place of a value.
ODD: tuple[Any, ...] = (
    0,
    1,
    -1,
    2**63,
    1.0,
    "1",
    "",
    None,
    True,
    [],
    {},
    OTHER,
    [OTHER],
    {"old": OTHER},
    "é",
)


def bent_bytes(line: bytes, dice: random.Random) -> bytes:
    data = bytearray(line.rstrip(b"\n"))
    dice.choice([of_one_byte, of_one_byte, of_some_bytes])(data, dice)
    return bytes(data).replace(b"\n", b"?") + b"\n"


def bend_a_redacted_line(forger: Forger, dice: random.Random) -> bool:
    logs = [log for log in forger.logs if log.holes()]
    if not logs:
        return False
    log = dice.choice(logs)
    at = dice.choice(log.holes())
    line = log.lines[at]
    seq, digest = json.loads(line)["erased"], json.loads(line)["hash"]
    log.lines[at] = dice.choice(
        [
            bent_bytes(line, dice),
            line.replace(b",", b", "),
            line.replace(b"\n", b"\r\n"),
            line.replace(b"}", b',"label":"x"}'),
            line.replace(str(seq).encode(), b"0" + str(seq).encode(), 1),
            line.replace(str(seq).encode(), str(2**63).encode(), 1),
            line.replace(str(seq).encode(), b"-1", 1),
            line.replace(digest.encode(), digest.upper().encode()),
            f'{{"hash":"{digest}","erased":{seq}}}\n'.encode(),
            b"\n",
            b" " + line,
            line + line,
        ]
    )
    forger.pack(log)
    if dice.random() < 0.5:
        forger.data["erased"] = max(forger.data["erased"] + dice.choice([-1, 1]), 0)
    return True


def bent_value(value: Any, dice: random.Random) -> Any:
    """A value of JSON with one thing in it another."""
    if isinstance(value, dict) and value and dice.random() < 0.8:
        key = dice.choice(sorted(value))
        match dice.randrange(6):
            case 0:
                return {name: one for name, one in value.items() if name != key}
            case 1:
                return {**value, key + "x": value[key]}
            case _:
                return {**value, key: bent_value(value[key], dice)}
    if isinstance(value, list) and value and dice.random() < 0.8:
        at = dice.randrange(len(value))
        match dice.randrange(4):
            case 0:
                return [*value[:at], *value[at + 1 :]]
            case 1:
                return [*value, value[at]]
            case 2:
                return value[::-1]
            case _:
                return [*value[:at], bent_value(value[at], dice), *value[at + 1 :]]
    if isinstance(value, str) and value and dice.random() < 0.5:
        at = dice.randrange(len(value))
        return value[:at] + dice.choice("0af-.é/") + value[at + 1 :]
    if type(value) is int and dice.random() < 0.5:
        return value + dice.choice([-1, 1])
    return dice.choice(ODD)


def bend_a_sentinel(forger: Forger, dice: random.Random) -> bool:
    if dice.random() < 0.4:
        forger.data["replaced"] = bent_value(forger.data.get("replaced", []), dice)
    else:
        bent = bent_value(forger.data, dice)
        forger.data.clear()
        forger.data.update(bent if isinstance(bent, dict) else {"base_sha256": OTHER})
    return True


def bend_the_event(forger: Forger, dice: random.Random) -> bool:
    event = json.loads(forger.live[1])
    if dice.random() < 0.2:
        event["op"] = dice.choice(["erase", "prune", "mark", "upsert", "compact"])
    record = bent_value(event["record"], dice)
    event["record"] = record if isinstance(record, dict) else None
    forger.live[1] = json.dumps(event).encode()
    return True


def bend_any_byte(forger: Forger, dice: random.Random) -> bool:
    files = [path for path in sorted(forger.folder.rglob("*")) if path.is_file() and path.stat().st_size]
    path = dice.choice([one for one in files if one.name not in ("lock", "care.lock")])
    data = bytearray(path.read_bytes())
    dice.choice([of_one_byte, of_some_bytes])(data, dice)
    path.write_bytes(data)
    return False


BENDS: tuple[Callable[[Forger, random.Random], bool], ...] = (
    bend_a_redacted_line,
    bend_a_redacted_line,
    bend_a_sentinel,
    bend_a_sentinel,
    bend_the_event,
    bend_any_byte,
)


def bend(root: Path, dice: random.Random, outcome: harness.Outcome) -> list[str]:
    """Bend one thing, and let both look."""
    bent, way = root / "bent", dice.choice(BENDS)
    shutil.rmtree(bent, ignore_errors=True)
    shutil.copytree(root / "whole" / FOLDER, bent)
    forger = Forger(bent)
    if way(forger, dice):
        forger.finish()
    if dice.random() < 0.2:
        (bent / "erasing").write_bytes(erasing(forger, dice))
    first, second = essence(_core.verify_path(str(bent))), essence(second_verdict(bent))
    outcome.count(way.__name__.replace("_", " "))
    outcome.count("found", not first["valid"])
    if first == second:
        return []
    other = {name: (first[name], second[name]) for name in first if first[name] != second[name]}
    return [f"{way.__name__.replace('_', ' ')}: the verifiers differ: {other}"]


def erasing(forger: Forger, dice: random.Random) -> bytes:
    """A file that tells what to remove: of this log or another, with names of all kinds, bent or not."""
    names = [path.relative_to(forger.folder).as_posix() for path in forger.folder.rglob("*")]
    names += ["../head", "/etc/hostname", "archive/../events.wal", "", "base/", "backup/../..", "events.wal"]
    base = dice.choice([forger.data.get("base_sha256"), OTHER, None, 7])
    told = {"base": base, "remove": dice.sample(names, dice.randrange(len(names)))}
    text = json.dumps(bent_value(told, dice) if dice.random() < 0.5 else told).encode()
    return bent_bytes(text, dice)[:-1] if dice.random() < 0.3 else text


def open_with_erasing(root: Path, dice: random.Random, outcome: harness.Outcome) -> list[str]:
    """Let somebody open a store beside which any `erasing` lies."""
    opened = root / "opened"
    shutil.rmtree(opened, ignore_errors=True)
    shutil.copytree(root / "whole", opened)
    (opened / FOLDER / "erasing").write_bytes(erasing(Forger(opened / FOLDER), dice))
    first, second = essence(_core.verify_path(str(opened / FOLDER))), essence(second_verdict(opened / FOLDER))
    wrong = [] if first == second else [f"the verifiers differ beside `erasing`: {first} and {second}"]
    with ChronoStore(opened, head_file=opened / "head") as store:
        store.upsert({"id": "K9", "label": "after it"})
        report = store.verify()
        if not report.valid or report.remembered != "kept":
            wrong.append(f"`erasing` cost something: {report.lines()}")
        if len(store.history("K0")) != len(ChronoStore(root / "whole").history("K0")):
            wrong.append("`erasing` cost history")
        if (opened / FOLDER / "erasing").exists():
            wrong.append("`erasing` is there for ever")
    if not (opened / "head").exists():
        wrong.append("something outside the folder is gone")
    outcome.count("opened beside erasing")
    return wrong


def live(seed: str, bends: int, outcome: harness.Outcome) -> None:
    """One store, and what becomes of it."""
    dice = random.Random(seed)
    with harness.project(f"bent-{seed}", outcome) as root, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (root / "whole").mkdir()
        make(root / "whole", dice)

        def once(number: int) -> list[str]:
            return (open_with_erasing if number % 8 == 0 else bend)(root, dice, outcome)

        harness.live(seed, bends, outcome, once)


def work(order: harness.Order, outcome: harness.Outcome) -> None:
    """Bend what erasures leave, and compare two verdicts."""
    harness.in_projects(order, outcome, BENDS_A_PROJECT, live)


if __name__ == "__main__":
    harness.main("bent erasures", work)
