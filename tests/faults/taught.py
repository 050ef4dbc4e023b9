"""What a block taught others stays when it is erased, and all else is as if it had never been.

Two people's blocks and those of all are learned, shown together, told how it went, linked and put away, some
of them with a word that nobody else says. Another store is told, once, what all the others have become. Then
the blocks with such words are erased, with embeddings, links and all acts that named them. Both must recall
the same, to the twelfth digit of a score, at once and after they have lived on alike.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import harness
from chance import Hours, alike
from chronomemory import ChronoRecord, ChronoStore
from chronomemory.blocks import Memory, sync
from chronomemory.errors import OutOfScope
from speech import WORDS
from traces import contents, found_in, secret
from twin import first_difference
from workload import second_opinion

LIVES_A_PROJECT = 4
ACTIONS_A_LIFE = 14
MINDS: tuple[str | None, ...] = (None, "ann", "bob")
#: Links are summed up in the order in which they came to count, and in a store that was opened anew in the
#: order of their records; what was said again comes last. So the last digits of a score may differ.
DIGITS = 12
FOLDER, SPACE = ".chronomemory", "blocks.lexical-384-v1"
#: What the store says of itself.
OWN = ("erasure:", "vector:")


class Pupils:
    """A store of blocks, some of which will go."""

    def __init__(self, root: Path, seed: str) -> None:
        self.root, self.seed, self.dice, self.steps = root, seed, random.Random(seed), 0
        self.store = ChronoStore(root / "a", head_file=root / "a.head", durability="off")
        self.secrets: dict[str, str] = {}
        self.rows: dict[str, bytes] = {}
        self.gone: list[str] = []
        self.gone_rows: list[bytes] = []
        #: The id of a block is a digest of what it says: who can guess that could confirm it.
        self.gone_ids: list[str] = []

    def memory(self, store: ChronoStore, user: str | None) -> Memory:
        return Memory(store, seconds=Hours(), **({} if user is None else {"user": user}))

    def text(self) -> str:
        return " ".join(self.dice.choices(WORDS, k=4)) + f" {self.dice.randrange(10**6)}"

    def act(self, stores: list[ChronoStore]) -> None:
        """Do one thing, in each of the stores alike."""
        self.steps += 1
        user, text, signal = self.dice.choice(MINDS), self.text(), self.dice.choice([0.1, 0.9])
        way, at, word = self.dice.randrange(12), self.dice.random(), secret(self.dice)
        goes = len(stores) == 1 and self.dice.random() < 0.4

        def some(memory: Memory, number: int) -> list[str]:
            names = sorted(row["id"] for row in memory.list())
            return random.Random(at).sample(names, min(number, len(names)))

        def work(store: ChronoStore) -> None:
            with self.memory(store, user) as memory, memory.session():
                few = some(memory, 3)
                if way < 4 or len(few) < 3:
                    learned = memory.remember(f"{text} {word}" if goes else text).block_id
                    if goes:
                        self.note(store, f"block:{learned}", word)
                elif way < 7:
                    memory.outcome(few, signal)
                elif way < 9:
                    memory.frame("attention", text, top_k=4)
                elif way in (9, 10):
                    with suppress(OutOfScope):  # what joins two that all share is not one's own to say
                        memory.connect(*few[:2], relation="x") if way == 9 else memory.disconnect(*few[:2])
                else:
                    memory.curate()

        for store in stores:
            with alike(self.seed, self.steps):
                work(store)

    def note(self, store: ChronoStore, name: str, word: str) -> None:
        self.secrets[name] = word
        row = store.everyone().vectors.get(name, space=SPACE)
        if row is not None:
            self.rows[name] = row.tobytes()

    def upkeep(self) -> None:
        verbs: list[Callable[[], Any]] = [self.store.compact, self.store.backup, lambda: None]
        self.dice.choice(verbs)()

    def part(self) -> ChronoStore:
        """Tell another store all that there is but what will go, then erase that here; return the other."""
        everyone = self.store.everyone()
        records = [
            one
            for one in everyone.query(status=None, faces=True)
            if not one.id.startswith(OWN)
            and not any(name.partition(":")[2] in one.id for name in self.secrets)
        ]
        other = ChronoStore(
            self.root / f"b{self.steps}", head_file=self.root / f"b{self.steps}.head", durability="off"
        )
        other.everyone().engine.upsert_many([self.without(one) for one in records], "blocks")
        for one in records:
            row = everyone.vectors.get(one.id, space=SPACE) if self.has_rows() else None
            if row is not None:
                other.everyone().vectors.attach(one.id, row, space=SPACE, model="lexical-384-v1")
        if self.secrets:
            self.store.erase(ids=sorted(self.secrets), reason="it was asked for")
        return other

    def has_rows(self) -> bool:
        return SPACE in {known.name for known in self.store.vectors.spaces()}

    def without(self, record: ChronoRecord) -> ChronoRecord:
        """A record as it is, but for links in the making to what will go."""
        going = {name.partition(":")[2] for name in self.secrets}
        left = [name for name in record.data.pop("forming", []) if name not in going]
        record.data |= {"forming": left} if left else {}
        return record

    def forget(self) -> None:
        self.gone += self.secrets.values()
        self.gone_rows += self.rows.values()
        self.gone_ids += [name.partition(":")[2] for name in self.secrets]
        self.secrets, self.rows = {}, {}


def shown(pupils: Pupils, store: ChronoStore, without: set[str]) -> dict[str, Any]:
    """What a store recalls, and how its blocks are linked."""
    told: dict[str, Any] = {}
    for user in MINDS:
        with pupils.memory(store, user) as memory:
            rows = [row for row in memory.list(status=None) if f"block:{row['id']}" not in without]
            # A block that referred to an erased one was written again, and comes last.
            told[f"blocks of {user}"] = sorted(rows, key=lambda row: row["id"])
            for question in (None, WORDS[0], " ".join(WORDS[2:5])):
                found = memory.recall(question, top_k=1000)
                told[f"recall of {user} for {question}"] = [
                    (one.id, *(round(part, DIGITS) for part in (one.score, *one.components))) for one in found
                ]
            with memory.blocks.connect() as conn:
                told[f"links of {user}"] = {
                    row["id"]: sorted(sync.get_neighbours(conn, [row["id"]])) for row in rows
                }
    return told


def compared(pupils: Pupils, copy: ChronoStore, without: set[str]) -> list[str]:
    """What the two say otherwise."""
    one, other = (shown(pupils, store, without) for store in (pupils.store, copy))
    return [said for what in other for said in first_difference(what, one[what], other[what])]


def judged(pupils: Pupils) -> list[str]:
    """Whether the store is sound, and nothing of what went is left."""
    report = pupils.store.verify()
    wrong = [str(damage) for damage in (*report.damage, *report.returned)]
    wrong += second_opinion(pupils.store.project_root)
    home = pupils.store.project_root / FOLDER
    places = found_in(home, pupils.gone, pupils.gone_rows)
    wrong += [f"what was erased is in {place}" for place in places]
    return wrong + [f"the id of what was erased is in {place}" for place in named_in(home, pupils.gone_ids)]


def named_in(home: Path, ids: list[str]) -> list[str]:
    """The files that name one of some blocks."""
    files = [path for path in sorted(home.rglob("*")) if path.is_file()]
    texts = {path.name: contents(path) for path in files}
    return [name for name, text in texts.items() if any(one.encode() in text for one in ids)]


def still_listed(pupils: Pupils) -> int:
    """How many blocks list a link in the making to one that was erased."""
    gone = set(pupils.gone_ids)
    blocks = pupils.store.everyone().query(kind="block", status=None, faces=True)
    return sum(not gone.isdisjoint(one.data.get("forming", [])) for one in blocks)


def live_once(pupils: Pupils, outcome: harness.Outcome) -> list[str]:
    for _ in range(ACTIONS_A_LIFE):
        pupils.act([pupils.store])
        if pupils.dice.random() < 0.15:
            pupils.upkeep()
    went = set(pupils.secrets)
    copy = pupils.part()
    pupils.forget()
    outcome.count("blocks erased", len(went))
    try:
        wrong = going_on(pupils, copy, went)
    except Exception as error:  # whatever it is, the seed must be told
        wrong = [f"{type(error).__name__}: {error}"]
    copy.close()
    outcome.count("lists that still name one", still_listed(pupils))
    return wrong + judged(pupils)


def going_on(pupils: Pupils, copy: ChronoStore, went: set[str]) -> list[str]:
    """What the two say otherwise, at once and having lived on alike."""
    wrong = compared(pupils, copy, went)
    for _ in range(ACTIONS_A_LIFE // 3 if not wrong else 0):
        pupils.act([pupils.store, copy])
    if not wrong:
        wrong = [f"having lived on: {one}" for one in compared(pupils, copy, went)]
    return wrong


def live(seed: str, lives: int, outcome: harness.Outcome) -> None:
    """One store and its lives; the first that goes wrong is the last."""
    with harness.project(f"taught-{seed}", outcome) as root, warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        pupils = Pupils(root, seed)
        harness.live(seed, lives, outcome, lambda _: live_once(pupils, outcome))
        pupils.store.close()


def work(order: harness.Order, outcome: harness.Outcome) -> None:
    """Erase blocks that taught others, beside a store that never had them."""
    harness.in_projects(order, outcome, LIVES_A_PROJECT, live)


if __name__ == "__main__":
    harness.main("erased teachers", work)
