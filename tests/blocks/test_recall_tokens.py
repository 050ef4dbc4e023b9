"""Recalls and frames use tokens as a search does, and codes are born with their block."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest
from chronomemory import Memory
from chronomemory.blocks.storage.frames import load_frame
from chronomemory.blocks.types import ScoringWeights
from chronomemory.embedders import CallableEmbedder, Embedder
from verdicts import verify_log
from word_embedder import DIM, Floats, WordEmbedder

SPACE, TOKEN_SPACE = "blocks.words", "blocks-tokens.words"
WORDS = [
    "amber",
    "bread",
    "cedar",
    "delta",
    "ember",
    "flint",
    "grove",
    "heron",
    "ivory",
    "jumper",
    "kettle",
    "lemon",
    "marble",
    "nectar",
    "olive",
]
QUESTIONS = ["what of amber and bread", "Ann kettle lemon", "olive on 5 May 2026", "nothing that is known"]


def plain() -> Embedder:
    """The same vectors, without tokens."""
    return CallableEmbedder("words", WordEmbedder().embed_batch)


def fill(memory: Memory) -> list[str]:
    chance = np.random.default_rng(5)
    made: list[str] = []
    for number in range(60):
        words = " ".join(chance.choice(WORDS, 6))
        learned = memory.learn(
            f"{words} n{number}",
            conversation=f"talk {number // 12}",
            previous=made[-1] if number % 12 else None,
            time=datetime(2026, 5, 1, tzinfo=timezone.utc) + timedelta(days=number // 4),
            speaker=("Ann", "Bob")[number % 2],
        )
        made.append(learned.block_id)
    memory.consolidate()
    return made


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory(tmp_path, embedder=WordEmbedder()) as made:
        fill(made)
        yield made


def searched(memory: Memory, text: str, limit: int = 10) -> dict[str, float]:
    embedder = WordEmbedder()
    hits = memory.blocks.store.search(
        text,
        embedder.embed(text),
        query_tokens=embedder.embed_query_tokens(text),
        space=SPACE,
        token_space=TOKEN_SPACE,
        kind="block",
        limit=limit,
    )
    return {hit.id.removeprefix("block:"): hit.score for hit in hits}


def by_similarity_alone(memory: Memory) -> None:
    with memory.blocks.connect() as conn:
        frame = load_frame(conn, "attention")
    alone = ScoringWeights(similarity=1.0, confidence=0.0, recency=0.0, centrality=0.0, reinforcement=0.0)
    memory.define_frame(frame.model_copy(update={"name": "alike", "weights": alone}))


class TestAsASearchDoes:
    @pytest.mark.parametrize("text", QUESTIONS)
    def test_similarities_are_the_scores_of_a_search(self, memory: Memory, text: str) -> None:
        by_similarity_alone(memory)
        right = searched(memory, text)
        found = memory.recall(text, frame="alike", top_k=10)
        assert [block.id for block in found] == list(right)
        scale = found[0].similarity / right[found[0].id]
        for block in found:
            assert block.similarity == pytest.approx(scale * right[block.id], abs=1e-6)

    @pytest.mark.parametrize("text", QUESTIONS)
    @pytest.mark.parametrize("top_k", [3, 10])
    def test_the_most_alike_are_shown_whatever_else_is_known_of_them(
        self, memory: Memory, text: str, top_k: int
    ) -> None:
        memory.outcome(list(searched(memory, text, 30))[-5:], 1.0)
        for _ in range(5):
            memory.frame("attention", "jumper ivory heron", top_k=8)
        right = list(searched(memory, text, top_k + 1))
        assert {block.id for block in memory.recall(text, top_k=top_k)} == set(right[:-1])
        shown = {block.id for block in memory.frame("attention", text, top_k=top_k).blocks}
        # One near copy may have given its place to the next.
        assert len(shown) == top_k and shown <= set(right)

    def test_tokens_change_what_is_found(self, memory: Memory) -> None:
        with_tokens = [block.id for block in memory.recall(QUESTIONS[0])]
        with Memory(memory.blocks, embedder=plain()) as other:
            assert [block.id for block in other.recall(QUESTIONS[0])] != with_tokens

    def test_a_question_without_tokens_is_asked_without(self, memory: Memory) -> None:
        with Memory(memory.blocks, embedder=plain()) as other:
            assert memory.recall("so it is") == other.recall("so it is")

    def test_nobody_is_the_worse_where_nobody_has_codes(self, tmp_path: Path) -> None:
        with Memory(tmp_path, embedder=plain()) as first:
            fill(first)
            with Memory(first.blocks, embedder=WordEmbedder()) as other:
                for text in QUESTIONS:
                    assert other.recall(text) == first.recall(text)


class TestBornTogether:
    def test_every_active_block_has_its_codes(self, memory: Memory) -> None:
        spaces = {space.name: space for space in memory.blocks.store.vectors.spaces()}
        assert spaces[SPACE].living == spaces[TOKEN_SPACE].living >= memory.status().active > 50
        assert spaces[TOKEN_SPACE].tokens == DIM
        root = memory.blocks.store.project_root
        memory.blocks.store.close()
        assert verify_log.verify_folder(root / ".chronomemory")["valid"]

    def test_what_is_remembered_at_once_has_them_too(self, memory: Memory) -> None:
        kept = memory.remember("cedar amber grove tonight")
        assert memory.blocks.store.vectors.get(f"block:{kept.block_id}", space=TOKEN_SPACE) is not None

    def test_a_text_without_tokens_has_none(self, memory: Memory) -> None:
        kept = memory.remember("so it is")
        store = memory.blocks.store
        assert store.vectors.get(f"block:{kept.block_id}", space=TOKEN_SPACE) is None
        assert store.vectors.get(f"block:{kept.block_id}", space=SPACE) is not None

    def test_a_model_that_fails_leaves_nothing(self, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(self: WordEmbedder, texts: list[str]) -> list[Floats]:
            raise ConnectionError("away")

        memory.learn("delta ember flint again")
        before = memory.status()
        monkeypatch.setattr(WordEmbedder, "embed_tokens", fail)
        with pytest.raises(ConnectionError):
            memory.consolidate()
        assert memory.status() == before
        monkeypatch.undo()
        assert len(memory.consolidate().promoted) == 1

    def test_what_outlives_a_session_keeps_them(self, tmp_path: Path) -> None:
        with Memory(tmp_path, embedder=WordEmbedder(), user="ann", session="s1") as memory:
            memory.remember("delta ember flint again")
            (new,) = memory.keep(where={}).kept.values()
            assert memory.blocks.store.vectors.get(f"block:{new}", space=TOKEN_SPACE) is not None

    def test_what_one_has_changes_nothing_for_another(self, tmp_path: Path) -> None:
        def asked(memory: Memory) -> list[tuple[str, float]]:
            return [(block.id, block.score) for text in QUESTIONS for block in memory.recall(text)]

        with Memory(tmp_path, embedder=plain(), user="ann") as ann:
            fill(ann)
        with Memory(tmp_path, embedder=WordEmbedder(), user="ann") as reader:
            before = asked(reader)
            with Memory(tmp_path, embedder=WordEmbedder(), user="bob") as bob:
                fill(bob)
            assert asked(reader) == before


class TestReembedding:
    def test_older_blocks_get_codes(self, tmp_path: Path) -> None:
        with Memory(tmp_path, embedder=plain()) as first:
            made = fill(first)
            with Memory(first.blocks, embedder=WordEmbedder()) as memory:
                active = memory.status().active
                assert memory.status().not_embedded == active
                assert memory.reembed().embedded == active
                assert memory.reembed().embedded == memory.status().not_embedded == 0
                by_similarity_alone(memory)
                found = [block.id for block in memory.recall(QUESTIONS[0], frame="alike")]
                assert found == list(searched(memory, QUESTIONS[0])) and set(found) <= set(made)
            assert first.status().not_embedded == 0

    def test_what_was_interrupted_goes_on(self, memory: Memory) -> None:
        store = memory.blocks.store
        some = [f"block:{block.id}" for block in memory.recall(QUESTIONS[0], top_k=7)]
        assert all(store.vectors.detach(name, space=TOKEN_SPACE) for name in some)
        assert memory.reembed().embedded == 7
        assert memory.status().not_embedded == 0
