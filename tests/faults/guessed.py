"""Nobody who knows all but a salted number can confirm a guess at it by what an erasure left.

A record says a number of six digits, in its text and in its embedding. It is said in a log that is retired,
in a base and in the live log; then it is erased. The guesser has the folder as it is now, and knows what it
was before, byte by byte, but for the number and for salts that went. For each number they compute what the
hashes of lines, of rows and groups of rows, of bases and archives would be, and look for them in whatever is
left. Without salt the number is found. With salt, or with a history that was dropped, it never is.
"""

from __future__ import annotations

import hashlib
import random
import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import harness
import numpy as np
from chronomemory import ChronoStore
from forging import unpacked
from traces import contents
from verdicts import verify_log

FOLDER = ".chronomemory"
DIGITS = 6
SALT = re.compile(rb'"(?:~|salt)":"([A-Za-z0-9_-]{16,22})"')
HEX = re.compile(rb"(?=([0-9a-f]{64}))")
#: Of an archive all of it must be packed for each guess: fewer are tried.
PACKED_GUESSES = 400
OTHER_SALT = b"abcdefghijklmnopqrstuv"

#: Gives the digest that a number would lead to.
Way = Callable[[int], bytes]


def spelled(number: int) -> bytes:
    return f"{number:0{DIGITS}}".encode()


def row_of(number: int) -> bytes:
    return struct.pack("<4f", 1.0, number, -number, 0.5)


def make(project: Path, number: int, salt: Any) -> None:
    """A store that says the number at several places."""
    said = {"id": "mia", "label": f"the number is {number:0{DIGITS}}"}
    with ChronoStore(project, salt=salt, head_file=project / "head") as store:
        store.upsert({"id": "tea", "label": "tea at four"})
        store.upsert(said)
        store.vectors.attach("mia", np.frombuffer(row_of(number), dtype=np.float32), model="m")
        store.compact()
        store.upsert({"id": "tea", "label": "tea at five"})
        store.upsert({**said, "confidence": 0.5})
        store.compact()
        store.upsert({"id": "tea", "label": "tea at six"})
        store.upsert({**said, "confidence": 0.9})
        store.upsert({"id": "cup", "label": "green"})


def without_salts(data: bytes) -> bytes:
    """What a guesser knows of bytes that went: of a salt nothing but its length."""
    return SALT.sub(lambda found: found[0].replace(found[1], OTHER_SALT[: len(found[1])]), data)


def hashed(template: bytes, number: int, row: str) -> Iterator[Way]:
    """The digest of some bytes, with another number in the places of the true one."""
    for true, guess in ((spelled(number), spelled), (row.encode(), lambda n: digest_of_row(n).encode())):
        parts = template.split(true)
        if len(parts) == 2:
            begun, rest = hashlib.sha256(parts[0]), parts[1]

            def way(n: int, begun: Any = begun, rest: bytes = rest, guess: Any = guess) -> bytes:
                found = begun.copy()
                found.update(guess(n) + rest)
                return bytes(found.digest())

            yield way


def digest_of_row(number: int) -> str:
    return hashlib.sha256(row_of(number)).hexdigest()


def ways(before: Path, number: int) -> dict[str, list[Way]]:
    """Everything that a guess can be turned into, by what it is."""
    row = digest_of_row(number)
    found: dict[str, list[Way]] = {"rows": [lambda n: hashlib.sha256(row_of(n)).digest()]}
    logs = [unpacked(path) for path in before.glob("archive/*.zst")] + [(before / "events.wal").read_bytes()]
    lines = [line for log in logs for line in log.splitlines()]
    payloads = [b"{" + without_salts(line[75:]) for line in lines]
    found["lines"] = [way for payload in payloads for way in hashed(payload, number, row)]
    bases = [without_salts(contents(path)) for path in before.glob("base/*.json")]
    bases += [without_salts(unpacked(path)) for path in before.glob("base/*.zst")]
    found["bases"] = [way for base in bases for way in hashed(base, number, row)]
    return found


def packed_ways(before: Path, number: int) -> list[Way]:
    """The digests of archives: packed as the engine packs them, if that can be done here."""
    found = []
    for path in before.glob("archive/*.zst"):
        log = unpacked(path)
        packed = next((pack for pack in packers() if pack(log) == path.read_bytes()), None)
        if packed is not None:
            log = without_salts(log)

            def way(n: int, log: bytes = log, packed: Any = packed) -> bytes:
                # Hashes of lines follow from the number too; whoever is right about it is right about them.
                guess = log if n == number else log.replace(spelled(number), spelled(n))
                return hashlib.sha256(packed(guess)).digest()

            found.append(way)
    return found


def packers() -> Iterator[Callable[[bytes], bytes]]:
    zstd = verify_log.PACKED_LOG.zstd
    parameter = zstd.CompressionParameter
    for level in range(1, 20):
        options = {parameter.compression_level: level, parameter.checksum_flag: 1}
        yield lambda data, options=options: zstd.compress(data, options=options)


def left_in(project: Path) -> set[bytes]:
    """Every digest that is left: spelled in any file or name, beside the folder too, or as 32 bytes."""
    found = set[bytes]()
    for path in project.rglob("*"):
        data = path.name.encode() + b" " + (contents(path) if path.is_file() else b"")
        found |= {bytes.fromhex(some.decode()) for some in HEX.findall(data)}
        if path.name == "synced":
            found |= {path.read_bytes()[24:56], path.read_bytes()[56:88]}
    return found


def guess(
    project: Path, number: int, tried: range, left: set[bytes], outcome: harness.Outcome
) -> dict[str, set[int]]:
    """The numbers that something confirms, by what does."""
    confirmed: dict[str, set[int]] = {}
    before = project.parent / "before"
    for kind, each in ways(before, number).items():
        hits = {n for way in each for n in tried if way(n) in left}
        outcome.count(f"guesses at {kind}", len(each) * len(tried))
        if hits:
            confirmed[kind] = hits
    few = range(max(number - PACKED_GUESSES // 2, 0), number + PACKED_GUESSES // 2)
    each = packed_ways(before, number)
    outcome.count("guesses at archives", len(each) * len(few))
    if hits := {n for way in each for n in few if way(n) in left}:
        confirmed["archives"] = hits
    return confirmed


def run(seed: str, guesses: int, outcome: harness.Outcome) -> None:
    dice = random.Random(seed)
    for salt in (False, True):
        for history in ("redact", "drop"):
            number = dice.randrange(guesses)
            with harness.project(f"guessed-{seed}", outcome) as root:
                project = root / "now"
                make(project, number, salt)
                for path in (project / FOLDER).rglob("*"):
                    if path.is_file():
                        target = root / "before" / path.relative_to(project / FOLDER)
                        target.parent.mkdir(parents=True, exist_ok=True)
                        target.write_bytes(path.read_bytes())
                if not guess_all(project, number, guesses, outcome, salted=salt):
                    outcome.found.append(f"seed {seed}: the guesser does not find what is there")
                with ChronoStore(project, salt=salt, head_file=project / "head") as store:
                    told = store.erase(ids=["mia"], reason="asked for", history=history)
                found = guess(project, number, range(guesses), left_in(project), outcome)
                wanted = {"lines", "bases"} if not salt and history == "redact" else set()
                words = f"seed {seed}, salt {salt}, {history}"
                if any(hits != {number} for hits in found.values()):
                    outcome.found.append(f"{words}: another number was confirmed: {found}")
                if not wanted <= found.keys() or (not wanted and found):
                    outcome.found.append(f"{words}: confirmed by {sorted(found)}, and not {sorted(wanted)}")
                if (told.unsalted == 0) != salt:
                    outcome.found.append(f"{words}: {told.unsalted} lines are said to be without salt")
                outcome.runs += 1


def guess_all(project: Path, number: int, guesses: int, outcome: harness.Outcome, *, salted: bool) -> bool:
    """Whether the guesser, before anything went, finds the number by all that has no salt."""
    left = left_in(project)
    found = {
        kind
        for kind, each in ways(project.parent / "before", number).items()
        for way in each
        if way(number) in left
    }
    return found == ({"rows"} if salted else {"rows", "lines", "bases"})


def work(order: harness.Order, outcome: harness.Outcome) -> None:
    """Guess at what was erased."""
    run(str(order.seed), 1_000_000 if order.thorough else 10_000, outcome)


if __name__ == "__main__":
    harness.main("guessers", work)
