"""The engine finds what the reference finds, in the same order, for the same five reasons."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import reference
from chronomemory.blocks import open_test_blocks, sync
from chronomemory.face.batch import Connection
from hypothesis import given, settings
from hypothesis import strategies as st
from recalling import assert_agrees, write_memory
from reference import Block, Memory, Question
from shares import share

TAGS = ("self/constitutional", "self/goal", "mind/other", "work", "Self/value")
CATEGORIES = ("knowledge", "observation", "mind")
DIM = 5
#: Few words, so that many blocks match alike; the last ones stand nowhere, or in every question.
WORDS = ("river", "rivers", "stone", "lamp", "salt", "winter", "knowledge", "mind", "otter", "what")

#: Few values, so that ties are common.
grid = st.sampled_from((0.0, 0.25, 0.5, 0.75, 1.0))
HOURS = (0.0, 1.0, 10.0, 50.0, 199.0, 250.0)
hours = st.sampled_from(HOURS)
texts = st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join)
vectors = st.lists(st.sampled_from((-1.0, 0.0, 0.5, 1.0, 2.0)), min_size=DIM, max_size=DIM).map(
    lambda values: np.array(values, dtype=np.float32)
)


@st.composite
def memories(draw: st.DrawFn) -> Memory:
    names = draw(st.lists(st.sampled_from([f"{n:03d}block" for n in range(60)]), unique=True, max_size=40))
    blocks = [
        Block(
            id=name,
            status=draw(st.sampled_from(("active", "active", "active", "inbox", "archived"))),
            category=draw(st.sampled_from(CATEGORIES)),
            confidence=draw(grid),
            last_reinforced_at=draw(hours),
            decay_lambda=draw(st.sampled_from((1e-5, 1e-3, 1e-2, 5e-2))),
            reinforcement_count=draw(st.integers(0, 6)),
            tags=tuple(draw(st.sets(st.sampled_from(TAGS), max_size=2))),
            embedding=draw(st.none() | vectors),
            evidence=draw(st.sampled_from((0.0, 3.0))),
            content=draw(texts),
        )
        for name in names
    ]
    pairs = (
        st.lists(st.tuples(st.sampled_from(names), st.sampled_from(names)), max_size=40)
        if names
        else st.just([])
    )
    linked = {reference.canonical(pair) for pair in draw(pairs) if pair[0] != pair[1]}
    against = {reference.canonical(pair) for pair in draw(pairs) if pair[0] != pair[1]}
    edges = [(*pair, draw(grid), draw(st.integers(0, 2))) for pair in sorted(linked)]
    alike = {pair for pair in linked if draw(st.booleans())}
    return Memory(blocks, edges, sorted(against), alike)


@st.composite
def questions(draw: st.DrawFn) -> Question:
    return Question(
        hours=draw(hours) + draw(hours),
        k=draw(st.integers(1, 6)),
        weights=draw(
            st.sampled_from(((0.35, 0.15, 0.25, 0.15, 0.10), (0.2,) * 5, (0.10, 0.30, 0.05, 0.25, 0.30)))
        ),
        tag_patterns=draw(st.sampled_from(((), (), ("self/%",), ("%/%", "wor_")))),
        categories=draw(st.sampled_from(((), (), ("knowledge", "mind")))),
        window=draw(st.sampled_from((None, 200.0, 30.0))),
        min_confidence=draw(st.sampled_from((0.0, 0.0, 0.5))),
        guarantees=draw(st.sampled_from(((), ("self/constitutional",), ("SELF/%", "mind/%")))),
        query=draw(st.none() | vectors),
        text=draw(st.none() | texts),
        by_words=draw(st.booleans()),
        expansion=draw(st.sampled_from((0, 2, 20))),
        diversify=draw(st.booleans()),
        exploration=draw(st.sampled_from((0.0, 0.3))),
        frame=draw(st.booleans()),
    )


@settings(max_examples=share(20, 500), deadline=None)
@given(st.data())
def test_it_agrees_with_the_reference(data: st.DataObject) -> None:
    memory = data.draw(memories())
    with open_test_blocks() as blocks:
        write_memory(blocks, memory)
        for _ in range(4):
            assert_agrees(blocks, memory, data.draw(questions()))


class Dice:
    """Draws from a seed what hypothesis would draw, without its bookkeeping: there can be thousands."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def pick(self, *values: Any) -> Any:
        return self.random.choice(values)

    def vector(self) -> np.ndarray:
        return np.array([self.pick(-1.0, 0.0, 0.5, 1.0, 2.0) for _ in range(DIM)], dtype=np.float32)

    def text(self) -> str:
        return " ".join(self.pick(*WORDS) for _ in range(self.random.randrange(6)))

    def pairs(self, names: list[str]) -> list[tuple[str, str]]:
        drawn = ((self.pick(*names), self.pick(*names)) for _ in range(self.random.randrange(40)))
        return sorted({reference.canonical(pair) for pair in drawn if pair[0] != pair[1]})

    def memory(self) -> Memory:
        names = self.random.sample([f"{n:03d}block" for n in range(60)], self.random.randint(2, 40))
        blocks = [
            Block(
                id=name,
                status=self.pick("active", "active", "active", "inbox", "archived"),
                category=self.pick(*CATEGORIES),
                confidence=self.pick(0.0, 0.25, 0.5, 0.75, 1.0),
                last_reinforced_at=self.pick(*HOURS),
                decay_lambda=self.pick(1e-5, 1e-3, 1e-2, 5e-2),
                reinforcement_count=self.random.randrange(6),
                tags=tuple(self.random.sample(TAGS, self.random.randrange(3))),
                embedding=self.pick(None, self.vector(), self.vector(), self.vector()),
                evidence=self.pick(0.0, 3.0),
                content=self.text(),
            )
            for name in names
        ]
        edges = [(*pair, self.random.random(), self.random.randrange(3)) for pair in self.pairs(names)]
        alike = {edge[:2] for edge in edges if self.pick(True, False)}
        return Memory(blocks, edges, self.pairs(names), alike)

    def question(self) -> Question:
        return Question(
            hours=self.pick(*HOURS) + self.pick(*HOURS),
            k=self.random.randint(1, 6),
            weights=self.pick((0.35, 0.15, 0.25, 0.15, 0.10), (0.2,) * 5, (0.10, 0.30, 0.05, 0.25, 0.30)),
            tag_patterns=self.pick((), (), ("self/%",), ("%/%", "wor_")),
            categories=self.pick((), (), ("knowledge", "mind")),
            window=self.pick(None, 200.0, 30.0),
            min_confidence=self.pick(0.0, 0.0, 0.5),
            guarantees=self.pick((), ("self/constitutional",), ("SELF/%", "mind/%")),
            query=self.pick(None, self.vector(), self.vector()),
            text=self.pick(None, self.text(), self.text()),
            by_words=self.pick(True, False),
            expansion=self.pick(0, 2, 20),
            diversify=self.pick(True, False),
            exploration=self.pick(0.0, 0.3),
            frame=self.pick(True, False),
        )


@pytest.mark.parametrize("part", range(4))
def test_it_agrees_on_many_stores(part: int) -> None:
    """A failure names its seed."""
    stores = share(24, 5000)
    for seed in range(part, stores, 4):
        dice = Dice(seed)
        memory = dice.memory()
        with open_test_blocks() as blocks:
            write_memory(blocks, memory)
            for number in range(5):
                question = dice.question()
                assert_agrees(blocks, memory, question, f"seed {seed}, question {number}: {question}")


@pytest.mark.parametrize("seed", range(share(1, 20)))
def test_it_agrees_on_larger_stores(seed: int) -> None:
    """Random floats and hundreds of blocks: no ties, long lists, many links."""
    chance = np.random.default_rng(seed)
    number = int(chance.integers(150, 400))
    memory = Memory(
        [
            Block(
                id=f"{chance.integers(0, 2**63):016x}",
                status="active" if chance.random() < 0.9 else "archived",
                confidence=float(chance.random()),
                last_reinforced_at=float(chance.random() * 300),
                decay_lambda=float(chance.choice((1e-5, 1e-3, 1e-2, 5e-2))),
                reinforcement_count=int(chance.integers(0, 30)),
                tags=("self/constitutional",) if chance.random() < 0.01 else (),
                embedding=chance.standard_normal(16).astype(np.float32) if chance.random() < 0.95 else None,
                content=" ".join(chance.choice(WORDS, int(chance.integers(1, 9)))),
            )
            for _ in range(number)
        ]
    )
    ids = [block.id for block in memory.blocks]
    pairs = {reference.canonical(tuple(chance.choice(ids, 2, replace=False))) for _ in range(number)}
    memory.edges = [(*pair, float(chance.random()), int(chance.integers(0, 3))) for pair in sorted(pairs)]
    memory.contradictions = sorted(
        {reference.canonical(tuple(chance.choice(ids, 2, replace=False))) for _ in range(number // 2)}
    )
    with open_test_blocks() as blocks:
        write_memory(blocks, memory)
        for frame in (False, True):
            for query in (None, chance.standard_normal(16).astype(np.float32)):
                for text in (None, "a lamp by the river", "what salt"):
                    question = Question(
                        hours=300.0,
                        k=10,
                        window=200.0,
                        query=query,
                        text=text,
                        guarantees=("self/constitutional",),
                        frame=frame,
                        diversify=True,
                    )
                    assert_agrees(blocks, memory, question)


def test_the_columns_follow_every_change() -> None:
    """After each write the engine answers as if it had read the whole store."""
    chance = np.random.default_rng(7)
    memory = Memory(
        [
            Block(
                f"b{n:02d}",
                embedding=chance.standard_normal(4).astype(np.float32),
                content=" ".join(chance.choice(WORDS, 4)),
            )
            for n in range(20)
        ]
    )
    with open_test_blocks() as blocks:
        write_memory(blocks, memory)
        for step in range(share(24, 600)):
            with blocks.begin() as conn:
                change(conn, memory, chance, step)
            query = chance.standard_normal(4).astype(np.float32)
            text = str(chance.choice(WORDS))
            asked = Question(hours=5.0, query=query, text=text, guarantees=("g",), frame=step % 2 == 0)
            assert_agrees(blocks, memory, asked)


def change(conn: Connection, memory: Memory, chance: np.random.Generator, step: int) -> None:
    """One change of the store, and the same one of the reference's memory."""
    block = memory.blocks[int(chance.integers(len(memory.blocks)))]
    other = memory.blocks[int(chance.integers(len(memory.blocks)))]
    pair = reference.canonical((block.id, other.id))
    match step % 6:
        case 0:
            block.status = str(chance.choice(("active", "archived")))
            sync.update_block_status(conn, block.id, block.status)
        case 1:
            block.reinforcement_count += 1
            block.last_reinforced_at = max(block.last_reinforced_at, 4.0)
            sync.reinforce_blocks(conn, [block.id], 4.0)
        case 2:
            tags = {*block.tags} ^ {"g"}
            (sync.add_tags if "g" in tags else sync.remove_tags)(conn, block.id, ["g"])
            block.tags = tuple(tags)
        case 3 if pair[0] != pair[1] and pair not in [edge[:2] for edge in memory.edges]:
            memory.edges.append((*pair, 0.6, 0))
            sync.insert_edge(conn, from_id=pair[0], to_id=pair[1], weight=0.6)
        case 4:
            block.embedding = chance.standard_normal(4).astype(np.float32)
            block.confidence = float(chance.random())
            sync.update_block_scoring(conn, block.id, embedding=block.embedding, confidence=block.confidence)
        case 5 if pair[0] != pair[1] and pair not in memory.contradictions:
            memory.contradictions.append(pair)
            sync.insert_contradiction(conn, block_a_id=pair[0], block_b_id=pair[1], score=0.9)
