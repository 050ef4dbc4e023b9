"""A memory of blocks that is killed at any moment forgets nothing that it acknowledged.

A child learns, consolidates, is shown frames and hears of outcomes, and reports each acknowledgement through
a pipe. The parent keeps books of its own, kills the child (SIGKILL), opens the memory and compares: what was
acknowledged is there, what was under way is there whole or not at all, and what the log gives back is what
the living memory says, to the last score.
"""

from __future__ import annotations

import random
import string
import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import harness
from children import FAILED, Tell, start
from chronomemory.blocks import Frame, Memory, ScoringWeights, content_hash, sync
from workload import read

LIVES_A_PROJECT = 6
ACTIONS_A_LIFE = 40
VERBS = {
    "learn": 30, "consolidate": 10, "frame": 20, "outcome": 20, "connect": 8, "forget": 4, "relearn": 3,
    "edit": 5, "session": 4, "curate": 2,
}  # fmt: skip
#: Shows the one block that says what was asked.
EXACT = Frame(
    name="exact",
    weights=ScoringWeights(similarity=1.0, confidence=0.0, recency=0.0, centrality=0.0, reinforcement=0.0),
)


@dataclass
class Known:
    """What must be true of one block."""

    status: str = "inbox"
    uses: int = 0
    evidence: float = 0.0


@dataclass
class Books:
    """What a memory must hold, by content; links are pairs of contents."""

    blocks: dict[str, Known] = field(default_factory=dict)
    links: set[frozenset[str]] = field(default_factory=set)
    hours: float = 0.0

    def of(self, status: str) -> list[str]:
        return [content for content, known in self.blocks.items() if known.status == status]


@dataclass(frozen=True)
class Action:
    """One call on some contents."""

    verb: str
    contents: tuple[str, ...] = ()

    def perform(self, memory: Memory) -> None:
        ids = [content_hash(content) for content in self.contents]
        calls: dict[str, Callable[[], Any]] = {
            "learn": lambda: memory.learn(self.contents[0], ["work"]),
            "relearn": lambda: memory.learn(self.contents[0]),
            "consolidate": memory.consolidate,
            "frame": lambda: memory.frame(EXACT.name, self.contents[0], top_k=1),
            "outcome": lambda: memory.outcome(ids, 0.9),
            "connect": lambda: memory.connect(*ids),
            "forget": lambda: memory.forget(ids[0]),
            "edit": lambda: memory.edit(ids[0], self.contents[1]),
            "session": lambda: (memory.end_session(), memory.begin_session()),
            "curate": memory.curate,
        }
        calls[self.verb]()

    def enter(self, books: Books) -> None:
        """Enter into the books what this does."""
        known = [books.blocks.setdefault(content, Known()) for content in self.contents]
        if self.verb == "relearn":
            books.blocks[self.contents[0]] = Known()
        elif self.verb == "consolidate":
            for content in books.of("inbox"):
                books.blocks[content].status = "active"
                books.blocks[content].uses += 1
        elif self.verb in ("frame", "outcome"):
            for block in known:
                block.uses += 1
                block.evidence += self.verb == "outcome"
        elif self.verb == "forget":
            known[0].status = "archived"
        elif self.verb == "edit":
            is_active = known[0].status == "active"
            known[1].status = known[0].status
            known[1].uses, known[1].evidence = known[0].uses + is_active, known[0].evidence
            known[0].status = "archived"
        if self.verb in ("connect", "outcome"):
            books.links |= {frozenset(pair) for pair in combinations(self.contents, 2)}
        elif self.verb == "edit":
            old, new = self.contents
            moved = {frozenset(link ^ {old, new}) for link in books.links if old in link}
            books.links = {link for link in books.links if old not in link} | moved
        elif self.verb in ("forget", "relearn"):
            books.links = {link for link in books.links if self.contents[0] not in link}


def words(dice: random.Random) -> str:
    """A content that is like no other."""
    return " ".join("".join(dice.choices(string.ascii_lowercase, k=9)) for _ in range(4))


def plan(dice: random.Random, books: Books) -> list[Action]:
    """Make a row of actions, each of which makes sense after those before it."""
    books, actions = deepcopy(books), []
    while len(actions) < ACTIONS_A_LIFE:
        (verb,) = dice.choices(list(VERBS), weights=list(VERBS.values()))
        active, archived = books.of("active"), books.of("archived")
        needs = {"frame": 1, "outcome": 3, "connect": 2, "forget": 1, "edit": 1}.get(verb, 0)
        if len(active) < needs or (verb == "relearn" and not archived):
            continue
        contents = dice.sample(active, needs)
        if verb in ("learn", "edit"):
            contents.append(words(dice))
        elif verb == "relearn":
            contents = [dice.choice(archived)]
        actions.append(Action(verb, tuple(contents)))
        actions[-1].enter(books)
    return actions


def live_on(project: Path, actions: list[Action], tell: Tell) -> None:
    with Memory(project) as memory:
        for number, action in enumerate(actions):
            action.perform(memory)
            tell(number)


def shown(memory: Memory) -> Books:
    """What a memory says that it holds."""
    books, contents = Books(hours=memory.status().active_hours), {}
    for row in memory.list(status=None):
        record = memory.blocks.store.get(f"block:{row['id']}")
        assert record is not None
        known = Known(row["status"], row["reinforcement_count"], record.data.get("evidence", 0.0))
        books.blocks[row["content"]], contents[row["id"]] = known, row["content"]
    with memory.blocks.connect() as conn:
        for block_id, content in contents.items():
            others = sync.get_neighbours(conn, [block_id])
            books.links |= {frozenset((content, contents[other])) for other in others}
    return books


def compare(seen: Books, before: Books, pending: Action | None) -> list[str]:
    """Say what is not as it must be. The pending action was done or not; to consolidate is many such."""
    after = deepcopy(before)
    if pending is not None:
        pending.enter(after)
    wrong = []
    touched = {content for content in after.blocks if after.blocks[content] != before.blocks.get(content)}
    for content in seen.blocks.keys() | after.blocks.keys():
        allowed = [before.blocks.get(content), after.blocks.get(content)]
        if seen.blocks.get(content) not in allowed:
            wrong.append(f"{content!r} is {seen.blocks.get(content)}, not one of {allowed}")
    done = {content for content in touched if seen.blocks.get(content) == after.blocks[content]}
    if pending is not None and pending.verb != "consolidate" and done not in (set(), touched):
        wrong.append(f"{pending.verb} is there by halves")
    links = after.links if done else before.links
    if pending is not None and pending.verb == "connect":
        links = before.links  # it touches no block: its link may be there or not
    if lost := links - seen.links:
        wrong.append(f"{len(lost)} links are lost")
    if added := seen.links - before.links - after.links:
        wrong.append(f"{len(added)} links were never made")
    if seen.hours < before.hours:
        wrong.append(f"the clock went back from {before.hours} to {seen.hours}")
    return wrong


def scores(memory: Memory) -> list[tuple[Any, ...]]:
    """All that a recall says; without a query every block is a candidate."""
    return [(found.id, found.score, *found.components) for found in memory.recall(top_k=1000)]


def go_on(project: Path, dice: random.Random, active: list[str]) -> tuple[Books, list[str]]:
    """Live on after a kill: what the living memory says, the log gives back."""
    wrong = []
    with Memory(project) as memory:
        memory.remember(words(dice))
        if active:
            memory.frame(EXACT.name, active[0], top_k=1)
        store = memory.blocks.store
        replayed = store.as_of(store.wal_seq()).query(status=None, kind="block")
        if not replayed or replayed != store.query(status=None, kind="block"):
            wrong.append("a replay of the log gives other blocks")
        with memory.blocks.connect() as conn:
            bare = [row["id"] for row in sync.get_active_blocks(conn)]
            bare = [block_id for block_id in bare if not sync.get_block(conn, block_id)["embedding"]]
        if bare:
            wrong.append(f"{len(bare)} active blocks have no embedding")
        told = scores(memory)
    with Memory(project) as memory:
        if scores(memory) != told:
            wrong.append("the log gives other scores")
        return shown(memory), wrong


def live_once(project: Path, books: Books, dice: random.Random, outcome: harness.Outcome) -> list[str]:
    actions = plan(dice, books)
    child = start(lambda tell: live_on(project, actions, tell))
    acknowledged = child.kill_after(dice.randrange(ACTIONS_A_LIFE + 1), dice)
    wrong = ["a memory failed"] if FAILED in acknowledged else []
    done = len(acknowledged) - len(wrong)
    outcome.count("acknowledged", done)
    outcome.count("killed at work", done < ACTIONS_A_LIFE)
    for action in actions[:done]:
        action.enter(books)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        wrong += read(project)[1]
        with Memory(project) as memory:
            seen = shown(memory)
        wrong += compare(seen, books, actions[done] if done < len(actions) else None)
        after, worse = go_on(project, dice, seen.of("active"))
    books.blocks, books.links, books.hours = after.blocks, after.links, after.hours
    return wrong + worse


def live(seed: str, lives: int, outcome: harness.Outcome) -> None:
    """One memory and its lives."""
    dice, books = random.Random(seed), Books()
    with harness.project(f"remembered-{seed}", outcome) as project:
        with Memory(project) as memory:
            memory.define_frame(EXACT)
        harness.live(seed, lives, outcome, lambda _: live_once(project, books, dice, outcome))


def work(order: harness.Order, outcome: harness.Outcome) -> None:
    """Kill memories, one after the other, and count what they forgot."""
    harness.in_projects(order, outcome, LIVES_A_PROJECT, live)


if __name__ == "__main__":
    harness.main("killed memories", work)
