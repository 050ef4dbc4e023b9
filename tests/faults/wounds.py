"""Hurts the lines of a log, one to three times.

Some bytes of one line, anywhere or where it counts: in the name of the record, in whose it is, in a clock, in
what holds the chain together. Lines that go, are overwritten, grow together, change places or stand twice.
Whoever hurts them says which lines are no longer there.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

LETTERS = b"zqkw5#"
#: Words in front of what a line cannot do without.
PLACES = (
    b'"record_id":"', b'"id":"', b'"@scope":{"user":"', b'"op":"', b'"prev_hash":"', b'"hash":"', b'"seq":',
    b'"ts":"', b'"status":"', b'"data":{', b'"ids":["', b'"scope":{"user":"',
)  # fmt: skip
#: What records are called, in any place of a line.
NAMES = re.compile(rb'(?:"(?:record_id|id)":|[\[,])"(?P<name>[^"]+)"(?!:)')
#: How many lines are beside each other.
NEAR = 4
CLOCKS = (b"total_active_hours", b"last_arrival")


@dataclass(frozen=True)
class Wound:
    """What was done to a log, and what was in the lines that are not there any more."""

    what: str
    #: The lines that are no longer there as they were.
    gone: tuple[bytes, ...] = ()
    #: Whether the line is among them that tells what the log starts from.
    is_base_gone: bool = False


def altered(line: bytes, start: int, length: int, dice: random.Random) -> bytes:
    """A line with other letters in one place."""
    length = min(length, len(line) - start)
    other = bytes(length) if dice.randrange(5) == 0 else bytes(dice.choices(LETTERS, k=length))
    return line[:start] + other + line[start + length :]


def anywhere(line: bytes, dice: random.Random) -> bytes:
    return altered(line, dice.randrange(max(len(line), 1)), dice.choice((1, 2, 3, 8, 20, 40)), dice)


def at_a_place(line: bytes, dice: random.Random) -> bytes:
    """Hurt what stands behind a word that counts, or the word itself."""
    places = [place for place in PLACES if place in line]
    if not places:
        return anywhere(line, dice)
    place = dice.choice(places)
    start = line.rindex(place) if dice.randrange(2) else line.index(place)
    return altered(line, start + dice.randrange(len(place) + 12), dice.choice((1, 2, 3, 5)), dice)


def hurt_line(lines: list[bytes], dice: random.Random) -> str:
    """Hurt bytes of one line."""
    at = dice.randrange(len(lines))
    if dice.randrange(4) == 0:
        at = dice.choice([n for n, line in enumerate(lines) if any(c in line for c in CLOCKS)] or [at])
    elif dice.randrange(2):
        op = dice.choice((b'"op":"patch"', b'"op":"act"'))
        at = dice.choice([n for n, line in enumerate(lines) if op in line] or [at])
    way = dice.choice((anywhere, at_a_place))
    lines[at] = way(lines[at], dice)
    return f"{way.__name__} in line {at + 1}"


def hurt_name(lines: list[bytes], dice: random.Random) -> str:
    """Spoil some letters of a name: of the record, or of one of those that an act is about."""
    at = dice.randrange(len(lines))
    if dice.randrange(2):
        at = dice.choice([n for n, line in enumerate(lines) if b'"op":"act"' in line] or [at])
    names = [found.span("name") for found in NAMES.finditer(lines[at])]
    start, end = dice.choice(names or [(0, len(lines[at]))])
    length = min(dice.randrange(2, 6), end - start)
    lines[at] = altered(lines[at], start + dice.randrange(end - start - length + 1), length, dice)
    return f"a name in line {at + 1}"


def take_out(lines: list[bytes], dice: random.Random) -> str:
    at, count = dice.randrange(len(lines)), dice.choice((1, 1, 1, 2, 4))
    if dice.randrange(2):
        # What makes a record of somebody's own: without it others may be shown what was changed in it later.
        at = dice.choice([n for n, line in enumerate(lines) if b'"@scope"' in line] or [at])
    del lines[at : at + count]
    return f"{count} taken out at line {at + 1}"


def overwrite(lines: list[bytes], dice: random.Random) -> str:
    at = dice.randrange(len(lines))
    lines[at] = b"x" * dice.choice((1, 40, len(lines[at])))
    return f"line {at + 1} overwritten"


def cut(lines: list[bytes], dice: random.Random) -> str:
    at = dice.randrange(len(lines))
    lines[at] = lines[at][: dice.randrange(max(len(lines[at]), 1))]
    return f"line {at + 1} cut"


def swap(lines: list[bytes], dice: random.Random) -> str:
    at, other = dice.randrange(len(lines)), dice.randrange(len(lines))
    lines[at], lines[other] = lines[other], lines[at]
    return f"lines {at + 1} and {other + 1} swapped"


def join(lines: list[bytes], dice: random.Random) -> str:
    """Two lines grow together, with bytes lost on both sides or on none."""
    at = dice.randrange(len(lines))
    less, more = dice.choice(((0, 0), (0, 9), (9, 0), (30, 30)))
    lines[at : at + 2] = [
        b"".join(lines[at : at + 1])[: -less or None] + b"".join(lines[at + 1 : at + 2])[more:]
    ]
    return f"line {at + 1} joined to the next, {less}+{more} bytes lost"


def repeat(lines: list[bytes], dice: random.Random) -> str:
    at, other = dice.randrange(len(lines)), dice.randrange(len(lines))
    lines.insert(other, lines[at])
    return f"line {at + 1} again at {other + 1}"


WAYS: dict[Callable[[list[bytes], random.Random], str], int] = {
    hurt_line: 9,
    hurt_name: 4,
    take_out: 5,
    overwrite: 3,
    cut: 1,
    swap: 2,
    join: 1,
    repeat: 1,
}


def wound(log: Path, dice: random.Random) -> Wound:
    """Hurt a log."""
    before = log.read_bytes().split(b"\n")[:-1]
    # Half of the time all wounds are beside each other: what is left of one may be taken for the other.
    start = dice.randrange(len(before)) if dice.randrange(2) else 0
    end = start + NEAR if start else len(before)
    hurt, what = before[start:end], []
    for _ in range(dice.choice((1, 1, 2, 2, 3))):
        (way,) = dice.choices(list(WAYS), list(WAYS.values()))
        what.append(way(hurt, dice))
        hurt = hurt or [b"x"]
    lines = before[:start] + hurt + before[end:]
    log.write_bytes(b"\n".join(lines) + b"\n")
    gone = tuple((Counter(before) - Counter(lines)).elements())
    return Wound(
        f"{', '.join(what)}, behind line {start}", gone, any(b'"op":"compact"' in line for line in gone)
    )


def batches(lines: Iterable[bytes]) -> list[list[dict[str, object]]]:
    """The events of a whole log, those of one batch together."""
    found: list[list[dict[str, object]]] = []
    left = 0
    for event in map(json.loads, lines):
        if left:
            found[-1].append(event)
            left -= 1
        else:
            found.append([event])
        if event["op"] == "begin":
            left = event["record"]["events"]
    return found
