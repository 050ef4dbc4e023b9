"""Strikes a log where it hurts most: at its beginning, at its end, and at a newline.

The beginning names what came before, and a newline holds two lines apart.

Each strike leaves everything else in the folder whole, but for the newest archive at times: so whatever the
log started from can be found again, and lines that a backup holds too.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chronomemory import ChronoStore, DepGraph, _core
from chronomemory.blocks import Memory

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


@dataclass(frozen=True)
class Seam:
    """A place between two lines that was struck, and the records of those that lost bytes there."""

    what: str
    torn: frozenset[str]


def strike_seam(home: Path, dice: random.Random) -> Seam:
    """Strike the log at a newline: it is altered, or lost, alone or with bytes of the lines on both sides."""
    path = home / LOG
    lines = path.read_bytes().splitlines(keepends=True)
    ends = [sum(map(len, lines[: number + 1])) - 1 for number in range(len(lines))]
    # The lines behind the last one of a backup are followed by nothing that leads back to it.
    likely = [0, len(lines) - 1, *([backed_up(home) - 1] if (home / "backup").exists() else [])]
    chosen = [number for number in likely if number < len(lines)]
    number = dice.choice(chosen) if dice.randrange(2) else dice.randrange(len(lines))
    if not (home / "synced").exists():
        # Nothing tells a last line without its newline from one that nobody finished.
        number = min(number, len(lines) - 2)
    before, behind = dice.choice(
        ((0, 0), (0, 0), (1, 0), (0, 1), (9, 0), (0, 60), (30, 0), (20, 44), (64, 64))
    )
    start, end = ends[number] - before, ends[number] + 1 + behind
    data = path.read_bytes()
    count = dice.choice((0, 1, before + 1 + behind, 5))
    instead = dice.choice((bytes(count), b"J" * count, dice.randbytes(count).replace(b"\n", b"?")))
    path.write_bytes(data[:start] + instead + data[end:])
    spoken = [(lines[number], before)] + [(line, behind) for line in lines[number + 1 : number + 2]]
    torn = {json.loads(line)["record_id"] for line, lost in spoken if lost}
    return Seam(
        f"seam behind line {number + 1}, {before}+1+{behind} bytes, {instead!r} instead", frozenset(torn)
    )


def withdraw_some(store: ChronoStore, dice: random.Random) -> None:
    """Withdraw beliefs that others rest on, each in one batch, and go on."""
    for number in range(dice.randrange(1, 4)):
        names = [f"belief {number}.{step}" for step in range(dice.randrange(1, 5))]
        for name in names:
            store.upsert({"id": name, "label": f"of {name}", "data": {"note": "x" * dice.randrange(300)}})
        graph = DepGraph(store)
        for name, ground in zip(names[1:], names, strict=False):
            graph.add_edge(name, ground, "depends_on")
        store.invalidate(names[0], "it was false")
        if dice.randrange(2):
            store.upsert({"id": f"then {number}", "label": "goes on"})


def tell_some(store: ChronoStore, dice: random.Random) -> None:
    """Let blocks hear how it went, which is one act for all of them, and their links and the clock."""
    with Memory(store) as memory:
        blocks = [memory.remember(f"the kettle of house {number} is blue").block_id for number in range(4)]
        for _ in range(3):
            memory.outcome(dice.sample(blocks, 3), dice.choice((0.1, 0.9)))
            store.upsert({"id": f"between {dice.randrange(9)}"})


def strike_newline(home: Path, dice: random.Random) -> str:
    """Zero a stretch with a newline inside a batch: what is left of two lines, or of more, stands in one."""
    path = home / LOG
    data = bytearray(path.read_bytes())
    places, inside, at = [], 0, 0
    for line in bytes(data).splitlines(keepends=True):
        event = json.loads(line)
        at += len(line)
        inside = event["record"]["events"] + 1 if event["op"] == "begin" else inside
        if inside > 1:
            places.append(at - 1)
        inside -= 1
    length = dice.choice((8, 40, 200, 512, 700, 1024))
    start = max(0, dice.choice(places) - dice.randrange(length))
    data[start : start + length] = bytes(len(data[start : start + length]))
    path.write_bytes(data)
    return f"{length} zeros over a newline at {start}"


def strike_act(home: Path, dice: random.Random) -> str:
    """Spoil the name that an act has in its line, and nothing of what it says."""
    path = home / LOG
    data = bytearray(path.read_bytes())
    name = b'"record_id":"act:blocks"'
    acts = [at for at in range(len(data)) if data.startswith(name, at)]
    start = dice.choice(acts) + dice.randrange(len(name) - 2)
    length = dice.randrange(2, 12)
    data[start : start + length] = dice.choice((bytes(length), b"#" * length))
    path.write_bytes(data)
    return f"{length} bytes of the name of an act at {start}"


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
