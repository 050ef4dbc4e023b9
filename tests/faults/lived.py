"""After a life over records and blocks, and damage, all is true, marked or told, and seen by nobody else.

Stores in which three have lived (`lives.py`) are hurt in one to three places (`wounds.py`), looked at,
repaired, and looked at again, through all doors. Afterwards every record has its true value, or is marked, or
is named; or it is said that nobody knows which record a lost event spoke of, and then it is one that a lost
line may have spoken of. Nothing is there that never was. Before and after the repair nobody sees what was
another's.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import warnings
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import harness
import lives
import wounds
from chronomemory import ChronoStore
from chronomemory.blocks import Memory
from chronomemory.errors import ChronoError, HistoryUnavailable, LogCorrupted
from chronomemory.store import Records

#: Records of rows: what is lost of them is told by `lost`, and marks no belief.
ROWS = "vector:"
#: Records whose values acts change, each from what the others are.
OF_BLOCKS = ("block:", "bedge:", "config:", "frame:", "session:")
#: The events that something said of a loss is about.
SEQS = re.compile(r"\bevents? (\d+)(?:–(\d+))? lost")
DAMAGES_A_LIFE = 10


@dataclass
class Told:
    """What a repair said."""

    lost: list[str] = field(default_factory=list)
    named: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, report: dict[str, Any]) -> Told:
        named = {name for key in ("unsettled", "unproven", "changed") for name in report[key]}
        return cls(list(report["lost"]), named)

    @property
    def unknown(self) -> list[str]:
        """Where it said that events are lost: what they said is not known."""
        words = ("not known", "nothing proves", "unknown number of events")
        return [one for one in self.lost if SEQS.search(one) or any(word in one for word in words)]

    def may_mean(self, seq: int) -> bool:
        """Whether the event with this seq is said to be lost: it is one of these, or any."""
        spans = [SEQS.search(one) for one in self.unknown]
        return any(span is None or int(span[1]) <= seq <= int(span[2] or span[1]) for span in spans)

    def names(self, name: str) -> bool:
        return name in self.named or any(json.dumps(name, ensure_ascii=False) in one for one in self.lost)


def is_marked(record: lives.Row) -> bool:
    return bool({"@unproven", "@unsettled"} & record.get("data", {}).keys())


def reach(log: Iterable[bytes], wound: wounds.Wound, told: Told) -> set[str] | None:
    """The records that lines of which nobody knows may have had a part in; None if that is all of them."""
    if wound.is_base_gone:
        return None
    lost = {seq for line in wound.gone if told.may_mean(seq := json.loads(line)["seq"])}
    hurt = [batch for batch in wounds.batches(log) if lost & {event["seq"] for event in batch}]
    return {str(event["record_id"]) for batch in hurt for event in batch}


def is_reached(name: str, reached: set[str] | None) -> bool:
    if reached is None or name in reached:
        return True
    # Acts reckon one record of blocks by the others.
    return name.startswith(OF_BLOCKS) and any(one.startswith(("act:", *OF_BLOCKS)) for one in reached)


def is_told_by_its_ends(name: str, records: dict[str, lives.Row], told: Told) -> bool:
    """Whether it is a link of a block in doubt: an act that met another block than there was made no link."""
    ends = [f"block:{end}" for end in name.split(":")[1:]] if name.startswith("bedge:") else []
    return any(told.names(end) or (end in records and is_marked(records[end])) for end in ends)


def judge(
    truth: lives.Truth, records: dict[str, lives.Row], told: Told, reached: set[str] | None
) -> list[str]:
    """Compare what is there after a repair with what was there before the damage."""
    wrong = [f"{name} is named, and never was" for name in sorted(told.named - truth.owners.keys())]
    for name in sorted(truth.records.keys() | records.keys()):
        was, now = truth.records.get(name), records.get(name)
        if was == now or name.startswith(ROWS):
            continue
        if name not in truth.owners:
            wrong.append(f"{name} never was: {now}")
            continue
        if now is None:
            is_told = told.names(name) or is_told_by_its_ends(name, records, told)
        else:
            is_told = is_marked(now)
            if lives.owner_of(now) != truth.owners[name]:
                wrong.append(f"{name} was of {truth.owners[name]} and is of {lives.owner_of(now)}")
        if not is_told and not told.unknown:
            wrong.append(f"{name} is {now}, was {was}, and is neither marked nor named")
        elif not is_told and not is_reached(name, reached):
            wrong.append(f"{name} is {now}, was {was}, and no lost line spoke of it")
    return wrong


def leaks(door: str, user: str | None, seen: dict[str, str], owners: dict[str, str | None]) -> list[str]:
    """What somebody saw that was another's; ``seen`` is by id, or by the question that was asked."""
    wrong = []
    others = [one for one in lives.USERS if one is not None and one != user]
    for name, text in seen.items():
        owner = owners.get(name)
        if owner is not None and owner != user:
            wrong.append(f"{door} sees {name} of {owner}: {text[:300]}")
        for other in others:
            if lives.word_of(other) in text:
                wrong.append(f"{door} hears {other} in {name}: {text[:300]}")
    return wrong


def seen_through(records: Records, names: Iterable[str]) -> dict[str, dict[str, str]]:
    """Everything that a handle shows, by how it was asked."""
    found = records.query(status=None, faces=True, expired=True)
    seen = {"query": {record.id: str(record) for record in found}, "get": {}, "history": {}, "search": {}}
    for name in names:
        if (record := records.get(name, expired=True)) is not None:
            seen["get"][name] = str(record)
        if events := records.history(name):
            seen["history"][name] = str([event.record for event in events])
    # A repair may keep no history, and where nothing proves the beginning there is none.
    with suppress(HistoryUnavailable, LogCorrupted):
        seen["changed_since"] = dict.fromkeys(records.changed_since(0), "")
    with suppress(HistoryUnavailable, LogCorrupted):
        past = records.as_of(records.engine.last_seq() // 2).query(status=None)
        seen["as_of"] = {record.id: str(record) for record in past}
    for user in filter(None, lives.USERS):
        for hit in records.search(lives.word_of(user), limit=100):
            seen["search"][hit.record.id] = str(hit.record)
    return seen


def seen_by_all(store: ChronoStore, truth: lives.Truth) -> list[str]:
    """Look through every door for what is another's."""
    wrong = []
    for user in lives.USERS:
        records: Records = store if user is None else store.scoped(user=user)
        for how, seen in seen_through(records, truth.owners).items():
            wrong += leaks(f"{user or 'everybody'} by {how}", user, seen, truth.owners)
    return wrong


def remembered_by_all(store: ChronoStore, truth: lives.Truth, *, goes_on: bool) -> list[str]:
    """Look into what each remembers, and go on living with it if that is wanted."""
    wrong = []
    for user in lives.USERS:
        with Memory(store, **({} if user is None else {"user": user})) as memory:
            seen = {f"block:{row['id']}": str(row) for row in memory.list(status=None)}
            if goes_on:
                seen["a frame"] = str(memory.frame("attention", "tea and rain whisper").to_dict())
                memory.remember("life goes on")
            wrong += leaks(f"the memory of {user or 'everybody'}", user, seen, truth.owners)
    return wrong


def looked_at(project: Path, truth: lives.Truth, outcome: harness.Outcome) -> list[str]:
    """The look before the repair: it may be wrong, but nobody's else's, and not silently."""
    with ChronoStore(project) as store:
        report = store.verify()
        outcome.count("said to be damaged", not report.valid)
        wrong = seen_by_all(store, truth) + remembered_by_all(store, truth, goes_on=False)
        found = lives.rows(store)
        wrong += [f"{name} never was: {found[name]}" for name in found.keys() - truth.owners.keys()]
        others = {
            name for name in found.keys() | truth.records.keys() if found.get(name) != truth.records.get(name)
        }
        if others and report.valid and report.remembered == "kept":
            wrong.append(f"{sorted(others)[:3]} are other than they were, and verify() says that all is well")
    return [f"before the repair {one}" for one in wrong]


def mended(
    project: Path, truth: lives.Truth, log: list[bytes], wound: wounds.Wound, outcome: harness.Outcome
) -> list[str]:
    """Repair, and the look after it."""
    report = harness.repaired(project, outcome)
    told = Told.of(report)
    outcome.count("healed", report["healed"])
    outcome.count("with something lost", bool(told.lost))
    outcome.count("where it is not known which", bool(told.unknown))
    with ChronoStore(project) as store:
        found = lives.rows(store)
        wrong = seen_by_all(store, truth) + remembered_by_all(store, truth, goes_on=True)
        verdict = store.verify()
    outcome.count("marked", sum(map(is_marked, found.values())))
    wrong += judge(truth, found, told, reach(log, wound, told))
    if not verdict.valid:
        wrong.append(f"still damaged: {verdict.damage[0]}")
    return [f"after the repair {one}; told {told.lost}" for one in wrong]


def run(seed: str, rounds: int, outcome: harness.Outcome) -> None:
    with harness.project(f"lived-{seed}", outcome) as folder:
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        whole = folder / "whole"
        truth = lives.live(whole, seed)
        log = (whole / lives.FOLDER / lives.LOG).read_bytes().splitlines()

        def once(number: int) -> list[str]:
            dice = random.Random(f"damage {seed} {number}")
            # Each has a place of its own: whoever was there before is remembered.
            hurt = folder / f"hurt {number}"
            shutil.copytree(whole, hurt)
            path = hurt / lives.FOLDER / lives.LOG
            wound = wounds.wound(path, dice)
            struck = path.read_bytes()
            outcome.count("records", len(truth.records))
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", RuntimeWarning)
                    wrong = looked_at(hurt, truth, outcome)
                    wrong += mended(hurt, truth, log, wound, outcome)
            except (ChronoError, OSError) as error:
                wrong = [f"{type(error).__name__}: {error}"]
            if wrong:
                (folder / f"struck {number}.wal").write_bytes(struck)
            else:
                shutil.rmtree(hurt)
            return [f"{wound.what}: {one}" for one in wrong]

        harness.live(seed, rounds, outcome, once)


def work(order: harness.Order, outcome: harness.Outcome) -> None:
    """Let stores live, damage them and repair them, and look through every door."""
    harness.in_projects(order, outcome, DAMAGES_A_LIFE, run)


if __name__ == "__main__":
    harness.main("lives, damage and repair", work)
