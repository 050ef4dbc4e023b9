"""The words of a question count in a recall, exactly, and as of the last write."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import reference
from chronomemory.blocks import Frame, FrameFilters, Memory, ScoringWeights, open_test_blocks, sync
from chronomemory.blocks.storage.blocks import new_block
from chronomemory.embedders import CallableEmbedder
from living import REFERENCE_RULES
from recalling import assert_agrees, assert_same, memory_of, words_of
from reference import Question
from shares import share

SUBJECTS = ("ferry", "kettle", "orchard", "ledger", "compass", "violin", "quarry", "lantern")
DEEDS = ("was repaired", "is missing", "belongs to Anna", "needs a permit", "costs nine crowns", "is heavy")
PLACES = ("in the harbour", "behind the mill", "near Lisbon", "on the third floor", "")
TAGS = ("work", "self/goal", "self/value", "home")
DIM = 24
#: More than one span of the text index.
MANY = 17_000


def meanings(texts: list[str]) -> list[list[float]]:
    """A direction for each text that has nothing to do with its words, so that both sides have a say."""
    return [[random.Random(f"{text}{at}").gauss(0.0, 1.0) for at in range(DIM)] for text in texts]


def learned() -> Iterator[Memory]:
    """A memory with a block for each of many sentences."""
    with Memory(
        open_test_blocks(), embedder=CallableEmbedder("noise", meanings), **REFERENCE_RULES
    ) as opened:
        chance = random.Random(5)
        for subject in SUBJECTS:
            for deed in DEEDS:
                for place in chance.sample(PLACES, 3):
                    opened.learn(
                        f"The {subject} {deed} {place}".strip(),
                        tags=chance.sample(TAGS, chance.randrange(3)),
                        category=chance.choice(("knowledge", "observation", "decision")),
                    )
        opened.consolidate()
        yield opened


#: For tests that write.
memory = pytest.fixture(learned, name="memory")
#: For tests that only read.
read_memory = pytest.fixture(learned, name="read_memory", scope="module")


def question(memory: Memory, text: str | None, **terms: object) -> Question:
    query = None if text is None else np.asarray(memory.embedder.embed(text), dtype=np.float32)
    hours = memory.status().active_hours
    asked = Question(hours=hours, query=query, text=text, **terms)  # type: ignore[arg-type]
    asked.words = words_of(memory.blocks.store, text)
    return asked


def right(memory: Memory, text: str | None, **terms: object) -> reference.Answer:
    return reference.recall(memory_of(memory.blocks), question(memory, text, **terms))


@pytest.mark.parametrize(
    ("text", "k"),
    [
        ("which ferry needs a permit?", 1),
        ("which ferry needs a permit?", 40),
        ("Who owns the violin near Lisbon", 5),
        ("lanterns, ledgers and kettles on the third floor behind the mill", 5),
        ("the", 5),
        ("the", 40),
        ("observation", 1),
        ("what is missing", 5),
    ],
)
def test_all_five_components_are_those_of_the_reference(read_memory: Memory, text: str, k: int) -> None:
    assert words_of(read_memory.blocks.store, text)
    assert_same(read_memory.recall(text, top_k=k), right(read_memory, text, k=k))
    found = read_memory.recall(text, top_k=k, diversify=True)
    assert_same(found, right(read_memory, text, k=k, diversify=True))


@pytest.mark.parametrize("text", ["which ferry needs a permit?", "Who owns the violin near Lisbon"])
def test_without_a_model_words_count_alone(read_memory: Memory, text: str) -> None:
    """The lexical embedder reads nothing but words, and the index weighs them better."""
    with Memory(open_test_blocks(), **REFERENCE_RULES) as plain:
        for block in read_memory.list():
            plain.learn(block["content"], category=block["category"])
        plain.consolidate()
        hits = plain.blocks.store.search(text, kind="block", limit=10)
        found = plain.recall(text)
        similarities = sorted((block.similarity for block in found), reverse=True)
        assert similarities == pytest.approx([hit.score / hits[0].score for hit in hits], abs=1e-6)
        assert_same(found, right(plain, text, k=10, by_words=True))
        # Where no word is found, pieces of words are better than nothing.
        assert plain.recall("ferryman", top_k=1)[0].content.startswith("The ferry")


def test_filters_hold_for_words_too(read_memory: Memory) -> None:
    text = "the ferry in the harbour"
    for terms in (
        {"tag_patterns": ("self/%",)},
        {"categories": ("decision",)},
        {"min_confidence": 0.6},
        {"tag_patterns": ("work", "home"), "categories": ("knowledge", "observation")},
    ):
        found = read_memory.recall(
            text,
            top_k=10,
            tag_patterns=terms.get("tag_patterns"),
            categories=terms.get("categories"),
            min_confidence=terms.get("min_confidence"),
        )
        assert_same(found, right(read_memory, text, k=10, **terms))
    outside = {block.id for block in read_memory.recall("ferry", tags=["no such tag"])}
    assert outside == set()


def test_guaranteed_blocks_have_their_words_counted_too(memory: Memory) -> None:
    """They may match better than anything that passes the filter; a share is never above one."""
    frame = Frame(
        name="decided",
        weights=ScoringWeights(
            similarity=0.35, confidence=0.15, recency=0.25, centrality=0.15, reinforcement=0.10
        ),
        filters=FrameFilters(categories=("decision",)),
        guarantees=("self/goal",),
        template="{blocks}",
        token_budget=10_000,
    )
    memory.define_frame(frame)
    text = "the violin near Lisbon costs nine crowns"
    expected = right(memory, text, k=40, categories=("decision",), guarantees=("self/goal",), frame=True)
    assert any(item.guaranteed and item.components[0] > 0 for item in expected.results)
    assert_same(list(memory.frame("decided", text, top_k=40).blocks), expected)


def test_a_text_without_a_known_word_leaves_the_cosine(read_memory: Memory) -> None:
    text = "zzyzx qwfp"
    assert words_of(read_memory.blocks.store, text) == {}
    found = read_memory.recall(text, top_k=5, expansion=0)
    assert_same(found, right(read_memory, text, k=5, expansion=0))
    vector = np.asarray(read_memory.embedder.embed(text), dtype=np.float32)
    cosines = [reference.cosine(vector, block.embedding) for block in memory_of(read_memory.blocks).blocks]
    # What surrounds a block counts here too, and the best of all is as near as the nearest.
    assert max(block.similarity for block in found) == pytest.approx(max(cosines), abs=1e-6)


def test_words_of_blocks_that_are_not_active_say_nothing(memory: Memory) -> None:
    memory.learn("A peculiar theodolite")
    text = "theodolite"
    assert words_of(memory.blocks.store, text) != {}
    assert_same(memory.recall(text, top_k=3), right(memory, text, k=3))


def test_every_write_is_known_to_the_next_recall(memory: Memory) -> None:
    text = "where is the theodolite?"
    memory.recall(text)
    learned = memory.learn("The theodolite stands in the attic")
    assert learned.block_id not in {block.id for block in memory.recall(text)}
    memory.consolidate()
    first = memory.recall(text, top_k=3)
    assert first[0].id == learned.block_id and first[0].similarity >= 4 / 7
    assert_same(first, right(memory, text, k=3))
    edited = memory.edit(learned.block_id, "The sextant stands in the attic")
    assert learned.block_id not in {block.id for block in memory.recall(text)}
    assert_same(memory.recall("sextant", top_k=3), right(memory, "sextant", k=3))
    memory.forget(memory.recall("sextant", top_k=1)[0].id)
    assert edited is not None
    assert "sextant" not in " ".join(block.content for block in memory.recall("sextant", top_k=40))
    assert_same(memory.recall("sextant", top_k=40), right(memory, "sextant", k=40))


def test_writes_of_others_are_known_too(tmp_path: Path) -> None:
    with (
        Memory(tmp_path, embedder=CallableEmbedder("noise", meanings), **REFERENCE_RULES) as one,
        Memory(tmp_path, embedder=CallableEmbedder("noise", meanings), **REFERENCE_RULES) as other,
    ):
        one.remember("The ferry leaves at noon")
        assert one.recall("ferry", top_k=1)[0].similarity >= 4 / 7
        known = other.remember("The funicular leaves at dawn")
        found = one.recall("funicular", top_k=2)
        assert found[0].id == known.block_id
        assert_same(found, right(one, "funicular", k=2))
    with Memory(tmp_path, embedder=CallableEmbedder("noise", meanings), **REFERENCE_RULES) as again:
        assert_same(again.recall("funicular", top_k=2), right(again, "funicular", k=2))


def test_many_blocks_are_chosen_as_if_all_were_scored() -> None:
    """So many that stretches of the index are passed over, with many ties and dead documents."""
    chance = random.Random(11)
    words = [f"w{at}k" for at in range(300)]
    with open_test_blocks() as blocks:
        with blocks.begin() as conn:
            for at in range(MANY):
                content = " ".join(
                    words[int(300 * chance.random() ** 3)] for _ in range(chance.randint(2, 9))
                )
                block_id = f"{chance.getrandbits(40):010x}{at}"
                conn.put(new_block(block_id, content, "knowledge", "test", status="active"))
        for round_, texts in enumerate([("w0k", "w290k w3k w250k"), ("w7k and w120k", "w299k")]):
            memory = memory_of(blocks)
            for text in texts[: share(1, 2)]:
                asked = Question(k=4, query=np.ones(DIM, dtype=np.float32), text=text)
                assert_agrees(blocks, memory, asked, f"{text}, round {round_}")
            with blocks.begin() as conn:
                for block in chance.sample(memory.blocks, 200):
                    sync.update_block_status(conn, block.id, "archived")
