"""What three who share a store may have lived through, before it is damaged.

Ann, Bob and whoever speaks for all write records, blocks, episodes and nodes, take some of them back, compact
and copy, behind lines of another tool or not. Whatever Ann or Bob says holds a word that nobody else says: so
it is known by its text too, wherever it turns up. Moments and ids that nobody chooses are of their day, all
else comes from the seed.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from chronomemory import ChronoStore, DepGraph
from chronomemory.blocks import Memory
from chronomemory.episodes import Episode, Episodes
from chronomemory.store import Records

FOLDER = ".chronomemory"
LOG = "events.wal"
USERS = (None, "ann", "bob")
WORDS = (
    "tea",
    "cup",
    "red",
    "blue",
    "deploy",
    "branch",
    "main",
    "key",
    "sign",
    "house",
    "rain",
    "bike",
    "cat",
)
Row = dict[str, Any]


def word_of(user: str) -> str:
    """The word that stands in everything that somebody says, and in nothing else."""
    return f"{user}whisper"


def owner_of(record: Row) -> str | None:
    """Who alone may see a record, or None if all may."""
    data = record.get("data")
    scope = data.get("@scope") if isinstance(data, dict) else None
    return scope.get("user") if isinstance(scope, dict) else None


def rows(store: ChronoStore) -> dict[str, Row]:
    """Every record, whosever it is and whatever became of it."""
    found = store.everyone().query(status=None, faces=True, expired=True)
    return {record.id: record.to_dict() for record in found}


@dataclass
class Truth:
    """What a store held before it was damaged."""

    records: dict[str, Row] = field(default_factory=dict)
    #: Whose each record ever was; the keys are all names that there ever were.
    owners: dict[str, str | None] = field(default_factory=dict)

    def note(self, records: dict[str, Row]) -> None:
        """What is there now, until something else is."""
        self.records = records
        self.owners |= {name: owner_of(record) for name, record in records.items()}


@dataclass
class Person:
    """One of those who share a store, and what is his in it."""

    user: str | None
    store: ChronoStore
    dice: random.Random
    seconds: float = 0.0
    blocks: list[str] = field(default_factory=list)
    episodes: int = 0

    def __post_init__(self) -> None:
        names = {} if self.user is None else {"user": self.user}
        self.memory = Memory(self.store, seconds=self._later, **names)
        self.records: Records = self.store if self.user is None else self.store.scoped(**names)

    def _later(self) -> float:
        """A clock that goes on whenever it is asked, and so goes alike whoever hurries."""
        self.seconds += 7.0
        return self.seconds

    def said(self) -> str:
        """Something that nobody said before, as this one says it."""
        spoken = " ".join(self.dice.sample(WORDS, 4))
        own = f"{word_of(self.user)} " if self.user else ""
        return f"{own}{spoken} {self.dice.randrange(10**6)}"

    def names(self) -> list[str]:
        """The ids of records of his own, there or not, in any order."""
        own = "" if self.user is None else f"{self.user}-"
        return [f"{own}R{number}" for number in self.dice.sample(range(6), 6)]

    def held(self, least: int = 1) -> list[str]:
        """The ids of records that hold, if there are so many."""
        found = [self.records.get(name) for name in self.names()]
        names = [record.id for record in found if record is not None and record.status == "active"]
        return names if len(names) >= least else []

    # Records.

    def write(self) -> None:
        name = self.names()[0]
        self.records.upsert({"id": name, "label": self.said(), "data": {"n": self.dice.randrange(99)}})

    def write_many(self) -> None:
        self.records.upsert_many([{"id": name, "label": self.said()} for name in self.names()[:3]])

    def update(self) -> None:
        for name in self.held()[:1]:
            self.records.update(name, data={"note": self.said()})

    def delete(self) -> None:
        for name in self.held()[:1]:
            self.records.delete(name)

    def withdraw(self) -> None:
        """Take back a belief, and what rests on it."""
        if names := self.held(2):
            DepGraph(self.records).add_edge(names[0], names[1], "depends_on")
            self.records.invalidate(names[1], "it was false")

    # Blocks.

    def some(self, most: int) -> list[str]:
        return self.dice.sample(self.blocks, min(len(self.blocks), self.dice.randrange(1, most + 1)))

    def learn(self, *, at_once: bool = False, supersedes: str | None = None) -> None:
        tags = self.dice.choice((None, ["self/value"], ["self/constitutional"], ["work"]))
        verb = self.memory.remember if at_once else self.memory.learn
        learned = verb(self.said(), tags, supersedes=supersedes).block_id
        if at_once:
            self.blocks.append(learned)

    def remember(self) -> None:
        self.learn(at_once=True)

    def supersede(self) -> None:
        self.learn(at_once=True, supersedes=self.blocks.pop(self.dice.randrange(len(self.blocks))))

    def forget(self) -> None:
        self.memory.forget(self.blocks.pop(self.dice.randrange(len(self.blocks))))

    def hear(self) -> None:
        self.memory.outcome(self.some(4), self.dice.choice((0.0, 0.1, 0.5, 0.9, 1.0)))

    def frame(self) -> None:
        self.memory.frame(self.dice.choice(("attention", "self", "task")), self.dice.choice(WORDS))

    def connect(self) -> None:
        if len(pair := self.some(4)[:2]) == 2:
            self.memory.connect(*pair, relation="supports")

    def disconnect(self) -> None:
        if len(pair := self.some(4)[:2]) == 2:
            self.memory.disconnect(*pair)

    def sit(self) -> None:
        """A session, in which time passes; it may stay open."""
        self.memory.begin_session()
        self.frame()
        if self.dice.randrange(4):
            self.memory.end_session()

    # Other faces.

    def tell(self) -> None:
        """An episode, or another in its place."""
        user = self.user or "all"
        told = Episode(
            id=f"{user}-{self.dice.randrange(4)}",
            content=self.said(),
            timestamp=datetime(2026, 1, 1, tzinfo=timezone.utc),
            source_node="told",
            user=user,
            session="s",
            agent="a",
            metadata={},
        )
        Episodes(self.store).put(told, user=user, session="s", agent="a")

    def draw(self) -> None:
        """A node of a graph that all share, or a patch of one."""
        name = f"node:{self.dice.randrange(4)}"
        if self.store.get(name) is None:
            self.store.engine.upsert({"id": name, "kind": "node", "label": "drawn"}, "graph")
        else:
            self.store.engine.write(
                [("patch", (name, {"label": " ".join(self.dice.sample(WORDS, 2))}))], "graph"
            )

    def act(self) -> None:
        """Do any one thing."""
        verbs: list[tuple[Callable[[], None], int, int]] = [
            (self.write, 8, 0), (self.write_many, 3, 0), (self.update, 5, 0), (self.delete, 4, 0),
            (self.withdraw, 3, 0), (self.learn, 4, 0), (self.remember, 10, 0), (self.supersede, 4, 2),
            (self.forget, 5, 2), (self.hear, 7, 1), (self.frame, 8, 1), (self.connect, 4, 2),
            (self.disconnect, 2, 2), (self.sit, 4, 1), (self.memory.consolidate, 2, 0),
            (self.memory.dream, 1, 1), (self.tell, 3, 0), (self.draw, 2, 0),
        ]  # fmt: skip
        able = [(verb, weight) for verb, weight, needed in verbs if len(self.blocks) >= needed]
        (verb,) = self.dice.choices([verb for verb, _ in able], [weight for _, weight in able])
        verb()


def begin_elsewhere(home: Path, dice: random.Random) -> None:
    """The first lines of a log, as another tool writes them."""
    before, log = "", b""
    for number in range(dice.randrange(1, 6)):
        name = f"theirs {dice.randrange(3)}"
        record = {"id": name, "kind": "fact", "status": "active", "label": f"said {number}", "data": {}}
        event = {"op": "upsert", "prev_hash": before, "record": record, "record_id": name}
        event |= {"recursion_depth": 0, "seq": number + 1, "ts": "2024-01-01T00:00:00Z"}
        before = hashlib.sha256(json.dumps(event, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
        log += json.dumps({**event, "hash": before}).encode() + b"\n"
    home.mkdir(parents=True)
    (home / LOG).write_bytes(log)


def live(project: Path, seed: str) -> Truth:
    """Let a store live, and keep the books of what it holds."""
    dice = random.Random(f"life {seed}")
    truth = Truth()
    if dice.randrange(3) == 0:
        begin_elsewhere(project / FOLDER, dice)
    users = USERS[: dice.choice((1, 2, 2, 3))]
    with ExitStack() as closing:
        store = closing.enter_context(ChronoStore(project))
        people = [Person(user, store, dice) for user in users]
        for person in people:
            closing.enter_context(person.memory)
        for chapter in range(dice.choice((1, 2, 2, 3))):
            if chapter:
                truth.note(rows(store))
                dice.choice((store.backup, store.compact))()
            for _ in range(dice.randrange(5, 22)):
                dice.choice(people).act()
    with ChronoStore(project) as store:
        truth.note(rows(store))
    return truth
