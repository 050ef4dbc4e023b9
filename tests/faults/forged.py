"""A forger who erases is found out by a trail that was noted before.

A store is written and its head noted outside; then something is erased, honestly. A forger takes the folder
and changes one thing of what was said before the note: a kept line, a hash in a run, a seq, a base, what the
sentinel says. Everything that follows is made anew as it must be (`forging.py`). Both verifiers judge alike,
and together with the note every forgery is found. Some are perfect but for the note: these show what the
trail is for, for a note without one lets them pass.
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
from forging import Forger, Log, hash_of, is_redacted, redacted, relinked, second_verdict, spelled
from traces import secret
from verdicts import essence

FOLDER = ".chronomemory"
FORGERIES_A_PROJECT = 24
OTHER = "ab" * 32


def make(root: Path, dice: random.Random) -> None:
    """A store with a past, a note from before its erasure, and that erasure."""
    salt = dice.choice([True, False, "scope"])
    with ChronoStore(root, head_file=root / "head", salt=salt) as store:
        for segment in range(dice.randrange(1, 4)):
            for number in range(dice.randrange(8, 20)):
                name = dice.choice("KKKVW") + str(number % 3)
                store.upsert({"id": name, "label": f"{secret(dice)} {segment}"})
            # Something of each, one behind the other: holes side by side, and a kept line before them.
            store.upsert_many([{"id": name, "label": secret(dice)} for name in ("K0", "V0", "V1", "K1")])
            store.upsert_many([{"id": name, "label": secret(dice)} for name in ("K0", "K1", "V0")])
            if dice.random() < 0.6:
                store.compact()
                store.upsert({"id": "K2", "label": secret(dice)})
    shutil.copy(root / "head", root / "note")
    with ChronoStore(root, head_file=root / "head", salt=salt) as store:
        store.erase(
            ids=["V0", "V1", "V2", *(["W0", "W1"] if dice.random() < 0.5 else [])], reason="asked for"
        )
        if dice.random() < 0.5:
            store.upsert({"id": "K9", "label": "said later"})
    note = json.loads((root / "note").read_bytes())
    plain = {key: value for key, value in note.items() if key not in ("trail", "trail_from")}
    (root / "plain").write_text(json.dumps(plain))


# What a forger does; each says whether it found anything to do, and what to count.

Counts = dict[str, int] | None


def before_a_hole(log: Log) -> list[int]:
    """Kept lines with a hole somewhere behind them, that a later line says otherwise."""
    last = max(log.holes(), default=-1)
    found = []
    for at, line in enumerate(log.lines[:last]):
        event = json.loads(line)
        if is_redacted(line) or event["op"] != "upsert":
            continue
        later = [json.loads(one).get("record_id") for one in log.lines[at + 1 :]]
        if event["record_id"] in later:
            found.append(at)
    return found


def _place(forger: Forger, dice: random.Random, places: Callable[[Log], list[int]]) -> tuple[Log, int] | None:
    logs = [log for log in forger.logs if places(log)]
    if not logs:
        return None
    log = dice.choice(logs)
    return log, dice.choice(places(log))


def rewrite_before_a_hole(forger: Forger, dice: random.Random) -> Counts:
    if not (place := _place(forger, dice, before_a_hole)):
        return None
    log, at = place
    event = json.loads(log.lines[at])
    event["record"]["label"] = "what was never said"
    log.lines[at] = spelled(event)
    log.lines = relinked(log.lines, at + 1)
    forger.pack(log)
    return {}


def rewrite_all_the_way(forger: Forger, dice: random.Random) -> Counts:
    """Up to the end of the log, holes too: their hashes are nobody's now."""
    if not (place := _place(forger, dice, before_a_hole)):
        return None
    log, at = place
    event = json.loads(log.lines[at])
    event["record"]["label"] = "what was never said"
    log.lines[at] = spelled(event)
    for behind in range(at + 1, len(log.lines)):
        line, head = log.lines[behind], hash_of(log.lines[behind - 1])
        if is_redacted(line):
            log.lines[behind] = line.replace(hash_of(line).encode(), dice.randbytes(32).hex().encode())
        else:
            log.lines[behind] = spelled(json.loads(line), head)
    forger.pack(log)
    return {}


def in_a_run(log: Log) -> list[int]:
    """Holes that another follows: nothing links to their hash."""
    holes = {*log.holes()}
    return [at for at in sorted(holes) if at + 1 in holes]


def change_a_hash_in_a_run(forger: Forger, dice: random.Random) -> Counts:
    if not (place := _place(forger, dice, in_a_run)):
        return None
    log, at = place
    log.lines[at] = log.lines[at].replace(hash_of(log.lines[at]).encode(), OTHER.encode())
    forger.pack(log)
    return {}


def swap_hashes_in_a_run(forger: Forger, dice: random.Random) -> Counts:
    if not (place := _place(forger, dice, in_a_run)):
        return None
    log, at = place
    one, other = (hash_of(log.lines[place]).encode() for place in (at, at + 1))
    log.lines[at] = log.lines[at].replace(one, other)
    log.lines[at + 1] = log.lines[at + 1].replace(other, one)
    forger.pack(log)
    return {}


def change_a_seq(forger: Forger, dice: random.Random) -> Counts:
    if not (place := _place(forger, dice, Log.holes)):
        return None
    log, at = place
    seq = json.loads(log.lines[at])["erased"]
    log.lines[at] = log.lines[at].replace(
        f":{seq},".encode(), f":{seq + dice.choice([-1, 1, 40])},".encode(), 1
    )
    forger.pack(log)
    return {}


def redact_more_than_is_counted(forger: Forger, dice: random.Random) -> Counts:
    if not (place := _place(forger, dice, before_a_hole)):
        return None
    log, at = place
    log.lines[at] = redacted(log.lines[at])
    forger.pack(log)
    return {}


def redact_what_still_counts(forger: Forger, dice: random.Random) -> Counts:
    """Counted, but a base holds what the line said: history does not add up to it any more."""

    def lasting(log: Log) -> list[int]:
        last = {json.loads(line).get("record_id"): at for at, line in enumerate(log.lines)}
        return [last[name] for name in ("K0", "K1") if name in last]

    log = forger.logs[-1]
    if not lasting(log):
        return None
    at = dice.choice(lasting(log))
    log.lines[at] = redacted(log.lines[at])
    forger.pack(log)
    return {"lines": forger.erasure()["lines"] + 1}


def leave_out_a_line(forger: Forger, dice: random.Random) -> Counts:
    if not (place := _place(forger, dice, before_a_hole)):
        return None
    log, at = place
    del log.lines[at]
    log.lines = relinked(log.lines, max(at, 1))
    forger.pack(log)
    return {}


def leave_out_a_hole(forger: Forger, dice: random.Random) -> Counts:
    if not (place := _place(forger, dice, in_a_run)):
        return None
    log, at = place
    del log.lines[at]
    forger.pack(log)
    return {"lines": forger.erasure()["lines"] - 1}


def fill_a_hole(forger: Forger, dice: random.Random) -> Counts:
    """Put content of one's own where something was erased."""
    if not (place := _place(forger, dice, in_a_run)):
        return None
    log, at = place
    seq = json.loads(log.lines[at])["erased"]
    line = next((one for one in log.lines if b'"op":"upsert"' in one), None)
    if line is None or at == 0:
        return None
    log.lines[at] = spelled({**json.loads(line), "seq": seq}, hash_of(log.lines[at - 1]))
    forger.pack(log)
    return {"lines": forger.erasure()["lines"] - 1}


def change_the_base(forger: Forger, dice: random.Random) -> Counts:
    forger.change_base(dice.choice(["K0", "K1"]), {"label": "what was never said"})
    return {}


def change_the_trail(forger: Forger, dice: random.Random) -> Counts:
    forger.data |= dice.choice([{"trail": OTHER}, {"trail_from": 2}, {"trail": None}, {"trail_from": "1"}])
    return {}


def change_what_was_replaced(forger: Forger, dice: random.Random) -> Counts:
    listed: list[dict[str, Any]] = forger.data["replaced"]
    if not listed:
        listed.append({"old": OTHER, "new": None})
        return {}
    one = dice.choice(listed)
    match dice.randrange(4):
        case 0:
            listed.append(dict(one))
        case 1:
            one["old"] = OTHER
        case 2 if "erased" in one:
            one["erased"] += 1
        case _:
            listed.remove(one)
    return {}


def change_the_counts(forger: Forger, dice: random.Random) -> Counts:
    if dice.random() < 0.3:
        forger.data["erased"] += dice.choice([-1, 1])
        return {}
    return {"lines": forger.erasure()["lines"] + dice.choice([-1, 1])}


def say_that_history_was_dropped(forger: Forger, dice: random.Random) -> Counts:
    for log in forger.logs:
        log.path.unlink()
    forger.data |= {"archive": None, "archive_sha256": None, "erased": 0, "replaced": []}
    forger.data.pop("trail", None)
    forger.data.pop("trail_from", None)
    event = json.loads(forger.live[1])
    event["record"]["data"]["history"] = "dropped"
    forger.live[1] = spelled(event)
    return {}


def take_the_event_away(forger: Forger, dice: random.Random) -> Counts:
    if dice.random() < 0.5:
        for key in ("erased", "replaced"):
            forger.data.pop(key)
    else:
        forger.live.pop(1)
    return {}


FORGERIES = (
    rewrite_before_a_hole,
    rewrite_before_a_hole,
    rewrite_all_the_way,
    change_a_hash_in_a_run,
    swap_hashes_in_a_run,
    change_a_seq,
    redact_more_than_is_counted,
    redact_what_still_counts,
    leave_out_a_line,
    leave_out_a_hole,
    fill_a_hole,
    change_the_base,
    change_the_trail,
    change_what_was_replaced,
    change_the_counts,
    say_that_history_was_dropped,
    take_the_event_away,
)
#: What nothing in the folder tells of, if it is done to the log that was retired last.
PERFECT = (rewrite_before_a_hole, change_a_hash_in_a_run, swap_hashes_in_a_run)


def is_accepted(report: dict[str, Any]) -> bool:
    return report["valid"] and not report["returned"] and report["remembered"] == "kept"


def forge(root: Path, dice: random.Random, outcome: harness.Outcome) -> list[str]:
    forged, way = root / "forged", dice.choice(FORGERIES)
    shutil.rmtree(forged, ignore_errors=True)
    shutil.copytree(root / "whole" / FOLDER, forged)
    forger = Forger(forged)
    counts = way(forger, dice)
    if counts is None:
        return []
    forger.finish(**counts)
    outcome.count(way.__name__.replace("_", " "))
    noted, plain = (_core.verify_path(str(forged), None, root / "whole" / name) for name in ("note", "plain"))
    second, wrong = second_verdict(forged), []
    if essence(noted) != essence(second):
        wrong.append(f"the verifiers differ: {essence(noted)} and {essence(second)}")
    if is_accepted(noted):
        wrong.append("nobody saw it")
    if noted["valid"]:
        outcome.count("found by the note alone")
        if way in PERFECT and not is_accepted(plain):
            wrong.append(f"a note without a trail found it: {plain['remembered_reason']}")
    return [f"{way.__name__.replace('_', ' ')}: {one}" for one in wrong]


def live(seed: str, forgeries: int, outcome: harness.Outcome) -> None:
    """One store, and those who forge it."""
    dice = random.Random(seed)
    with harness.project(f"forged-{seed}", outcome) as root, warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        (root / "whole").mkdir()
        make(root / "whole", dice)
        honest = _core.verify_path(str(root / "whole" / FOLDER), None, root / "whole" / "note")
        if not is_accepted(honest):
            outcome.found.append(f"seed {seed}: an honest erasure is not accepted: {honest}")
            return
        harness.live(seed, forgeries, outcome, lambda _: forge(root, dice, outcome))


def work(order: harness.Order, outcome: harness.Outcome) -> None:
    """Forge what stands before a note, and let both verifiers look."""
    harness.in_projects(order, outcome, FORGERIES_A_PROJECT, live)


if __name__ == "__main__":
    harness.main("forgers", work)
