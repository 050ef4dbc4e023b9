"""What a writer does all day, and what a store may hold after it was stopped in the middle.

A plan is a row of actions made from a seed. Whoever performs it reports which actions were acknowledged.
The ledger keeps, for each id, the values that the store may show then: an acknowledged action leaves one,
an action that failed or was under way adds one. A batch that was not acknowledged must be there whole or
not at all.
"""

from __future__ import annotations

import random
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from chronomemory import ChronoStore

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from verdicts import verify_log

#: What unpacks archives; None where nothing does.
zstd = verify_log.PACKED_LOG.zstd

#: What a record may be: which action wrote it, and its status. None is no record.
Value = tuple[str, str] | None

VERBS = {"put": 60, "batch": 14, "delete": 12, "sync": 4, "compact": 6, "drop": 2, "backup": 2}


@dataclass(frozen=True)
class Action:
    """One call; its name is unique and becomes the label of what it writes."""

    name: str
    verb: str
    ids: tuple[str, ...] = ()


def plan(dice: random.Random, life: str, length: int, verbs: dict[str, int] = VERBS) -> list[Action]:
    """Make a row of actions; the ids begin with the writer's letter: each has records of its own."""
    actions = []
    names = [f"{life[0]}{number}" for number in range(700)]
    for number, verb in enumerate(dice.choices(list(verbs), weights=list(verbs.values()), k=length)):
        ids: list[str] = []
        if verb in ("put", "delete"):
            ids = [dice.choice(names)]
        elif verb == "batch":
            ids = dice.sample(names, dice.choice([1, 2, 3, 10, 10, 40, 40, 600]))
        actions.append(Action(f"{life}.{number}", verb, tuple(ids)))
    return actions


def body(action: Action, record_id: str) -> dict[str, object]:
    """A record that says which action wrote it; some are larger than a page, in small batches."""
    weight = len(action.ids) * 7 + sum(action.name.encode()) * 31 % 700
    if len(action.ids) > 40:
        weight = 4
    padding = "ä\u2028x" * (3000 if weight % 29 == 0 else weight)
    return {"id": record_id, "label": action.name, "data": {"padding": padding}}


def perform(store: ChronoStore, action: Action) -> None:
    """Do it; whatever goes wrong is the caller's to report."""
    if action.verb == "put":
        store.upsert(body(action, action.ids[0]))
    elif action.verb == "batch":
        store.upsert_many([body(action, record_id) for record_id in action.ids])
    elif action.verb == "delete":
        store.delete(action.ids[0])
    elif action.verb == "sync":
        store.sync()
    elif action.verb == "backup":
        store.backup()
    else:
        store.compact(keep_history=action.verb == "compact")


def act(store: ChronoStore, actions: list[Action], tell: Callable[[int], None]) -> None:
    """Perform a plan and tell the number of each action once it was acknowledged."""
    for number, action in enumerate(actions):
        perform(store, action)
        tell(number)


def read(project: Path) -> tuple[dict[str, Value], list[str]]:
    """What a fresh look at a store shows, and what is wrong with it; an interrupted write is not."""
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        report = ChronoStore(project).verify()
        if not report.valid:
            wrong.append(f"not valid: {report.damage[0]}")
        if report.remembered == "lost":
            wrong.append(f"a head is missed: {report.remembered_reason}")
        with ChronoStore(project) as store:
            records = store.query(status=None)
        seen: dict[str, Value] = {record.id: (record.label, record.status) for record in records}
    return seen, wrong


def second_opinion(project: Path) -> list[str]:
    """What the independent verifier has against a store."""
    report = verify_log.verify_folder(project / ".chronomemory")
    return [] if report["valid"] else [f"the second verifier says: {report['damage'][0]}"]


@dataclass
class Ledger:
    """Which values a store may show."""

    allowed: dict[str, set[Value]] = field(default_factory=dict)
    unsure: list[Action] = field(default_factory=list)
    order: dict[str, int] = field(default_factory=dict)

    def note(self, action: Action, *, acknowledged: bool) -> None:
        """Take in how an action ended."""
        self.order[action.name] = len(self.order)
        for record_id in action.ids:
            before = self.allowed.get(record_id, {None})
            after: set[Value] = {(action.name, "active")}
            if action.verb == "delete":
                after = {value and (value[0], "tombstone") for value in before}
            self.allowed[record_id] = after if acknowledged else before | after
        if action.verb == "batch" and not acknowledged:
            self.unsure.append(action)

    def judge(self, seen: dict[str, Value]) -> list[str]:
        """Compare with what was read; what was read once is all that may be read from now on."""
        wrong = []
        for record_id in self.allowed.keys() | seen.keys():
            value, allowed = seen.get(record_id), self.allowed.get(record_id, {None})
            if value not in allowed:
                wrong.append(f"{record_id} is {value}, not one of {sorted(map(str, allowed))}")
            self.allowed[record_id] = {value}
        for batch in self.unsure:
            places = {self.place(seen.get(record_id)) for record_id in batch.ids}
            own = self.order[batch.name]
            if own in places and min(places) < own:
                wrong.append(f"batch {batch.name} is there by halves")
        self.unsure.clear()
        return wrong

    def place(self, value: Value) -> int:
        return -1 if value is None else self.order.get(value[0], -1)


def check(project: Path, ledger: Ledger, marker: str) -> list[str]:
    """Look at a store that was stopped: is everything there that must be, and does it go on?"""
    seen, wrong = read(project)
    wrong += ledger.judge(seen)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        after = Action(marker, "put", ("after",))
        with ChronoStore(project, durability="full") as store:
            perform(store, after)
        ledger.note(after, acknowledged=True)
        report = ChronoStore(project).verify()
    if not report.valid or report.tail:
        wrong.append(f"after going on: {report.lines()}")
    seen, worse = read(project)
    return wrong + worse + ledger.judge(seen)
