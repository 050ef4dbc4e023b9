"""Strikes a log where it hurts most: at its beginning, which names what came before, and at its end.

Each strike leaves everything else in the folder whole, but for the newest archive at times: so whatever the
log started from can be found again, and lines that a backup holds too.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from chronomemory import _core

LOG = "events.wal"
STAMP = "2026-01-01T00:00:00.000000Z"


def spelled(event: dict[str, Any]) -> bytes:
    """An event of another tool as a line."""
    return bytes(_core.canonical_json(event | {"hash": _core.event_hash(event)})) + b"\n"


def make_foreign(home: Path, dice: random.Random) -> None:
    """A log that another tool compacted: what it starts from is in its snapshot, and nowhere else."""
    home.mkdir(parents=True)
    seq = dice.randrange(3, 40)
    records = [{"id": f"R-{number}", "label": f"first {dice.random()}", "data": {}} for number in range(20)]
    state = {"seq": seq, "last_hash": "f" * 64, "ts": STAMP, "records": records}
    (home / "snapshot.json").write_text(json.dumps(state))
    rest = {"recursion_depth": 0, "ts": STAMP}
    head = {"op": "compact", "record_id": "__compact__", "record": {"id": "__compact__"}, "prev_hash": ""}
    lines = [spelled(head | rest | {"seq": seq + 1})]
    for number in range(dice.randrange(1, 6)):
        name = f"R-{dice.randrange(30)}"
        event = {"op": "upsert", "record_id": name, "record": {"id": name, "label": f"then {number}"}}
        before = json.loads(lines[-1])["hash"]
        lines.append(spelled(event | rest | {"seq": seq + 2 + number, "prev_hash": before}))
    (home / LOG).write_bytes(b"".join(lines))


def names_in(lines: Iterable[bytes]) -> set[str]:
    """The records that lines write."""
    return {json.loads(line)["record_id"] for line in lines}


def backed_up(home: Path) -> int:
    """How many lines of the log the newest backup holds."""
    newest = max((home / "backup").iterdir())
    return len((newest / LOG).read_bytes().splitlines())


def untouched(home: Path, records: dict[str, dict[str, Any]], since: int = 0) -> dict[str, dict[str, Any]]:
    """The records that no line of the log wrote behind the first ones."""
    written = names_in((home / LOG).read_bytes().splitlines()[since:])
    return {name: record for name, record in records.items() if name not in written}


def unmarked(record: dict[str, Any] | None) -> dict[str, Any] | None:
    """A record as it was before a repair put it on hold or said that nothing proves it."""
    if record is None:
        return None
    data = dict(record.get("data", {}))
    data.pop("@unproven", None)
    held = data.pop("@unsettled", None)
    return record | {"data": data} | ({"status": held["status"]} if held else {})


def strike(home: Path, dice: random.Random, *, has_copy: bool) -> str:
    """Strike the log once, or twice; says how."""
    path = home / LOG
    lines = path.read_bytes().splitlines(keepends=True)
    first = len(lines[0])
    data = bytearray(b"".join(lines))
    ways = ["zeros", "hole", "lines", "junk", "newline", "archive", "both ends"]
    if has_copy:
        ways = ["cut", "zero end", "middle", "no newline", "front", "zero front"]
    what = dice.choice(ways)
    match what:
        case "zeros":
            at = dice.randrange(max(first - 600, 0), first)
            data[at : at + 600] = bytes(min(600, len(data) - at))
        case "hole":
            at = dice.randrange(max(first - 300, 0), first)
            del data[at : at + dice.randrange(1, 900)]
        case "lines":
            count = dice.randrange(1, len(lines) + 1)
            data[:] = b"rubbish\n" * dice.randrange(3) + b"".join(lines[count:])
        case "junk":
            at = dice.randrange(first)
            data[at : at + dice.randrange(12)] = dice.choice((b"\xff\n\xfe#", b"\n\n", b"\x00" * 40))
        case "newline":
            data[first - 1] = 32
            data[dice.randrange(first - 1)] ^= 1 << dice.randrange(8)
        case "archive":
            archives = sorted(
                (home / "archive").glob("*-*.wal*"), key=lambda one: int(one.name.split("-")[1])
            )
            if archives:
                archives[-1].write_bytes(b"")
            at = dice.randrange(first - 20)
            data[at : at + dice.randrange(2, 20)] = dice.randbytes(3).replace(b"\n", b"?")
        case "both ends":
            data[:] = b"rubbish\n" + b"".join(lines[dice.randrange(1, 3) : max(3, len(lines) - 2)])
        case "cut":
            data = data[: dice.randrange(first + 1, len(data))]
        case "zero end":
            at = dice.randrange(first + 1, len(data))
            data[at:] = bytes(len(data) - at)
        case "middle":
            begin = dice.randrange(1, len(lines) - 1)
            end = dice.randrange(begin + 1, len(lines))
            lines[begin:end] = [b"rubbish\n"] * dice.randrange(4)
            data[:] = b"".join(lines)
        case "front":
            data[:] = b"".join(lines[dice.randrange(1, len(lines)) :])
        case "zero front":
            end = sum(map(len, lines[: dice.randrange(1, len(lines))])) - dice.randrange(2)
            data[:end] = bytes(end)
        case _:
            lines[-2:] = [b"rubbish\n", lines[-1][:-1]]
            data[:] = b"".join(lines)
    if not data:
        data[:] = b"rubbish\n"
    path.write_bytes(data)
    return what
