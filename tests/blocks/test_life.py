"""How a block comes into the memory, and what it meets there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from chronomemory import InvalidRecord
from chronomemory.blocks import Memory, content_hash, open_test_blocks, sync
from chronomemory.blocks.life.asking import estimated_tokens
from chronomemory.embedders import CallableEmbedder, LexicalEmbedder
from living import angles, block, degrees_for


class TestLearning:
    def test_it_is_one_event_in_the_inbox(self, memory: Memory) -> None:
        before = memory.blocks.store.wal_seq()
        learned = memory.learn("Fact 0", ["work"], "decision", "cli")
        assert (learned.status, learned.block_id) == ("created", content_hash("Fact 0"))
        assert memory.blocks.store.wal_seq() == before + 1
        found = block(memory, "Fact 0")
        assert (found["status"], found["category"], found["source"]) == ("inbox", "decision", "cli")
        assert found["embedding"] is None

    def test_the_same_again_is_refused_without_an_exception(self, memory: Memory) -> None:
        memory.learn("Fact 0")
        before = memory.blocks.store.wal_seq()
        assert memory.learn(" FACT 0 ").status == "duplicate_rejected"
        memory.consolidate()
        assert memory.learn("fact 0").status == "duplicate_rejected"
        assert memory.blocks.store.wal_seq() > before

    def test_what_was_forgotten_comes_back_without_its_past(self, memory: Memory) -> None:
        memory.remember("Fact 0", ["old", "both"])
        memory.remember("Fact 40")
        one, other = content_hash("Fact 0"), content_hash("Fact 40")
        memory.connect(one, other)
        memory.forget(one)
        assert memory.learn("Fact 0", ["both", "new"]).status == "reactivated"
        with memory.blocks.connect() as conn:
            assert sync.get_block(conn, one)["status"] == "inbox"
            assert sync.get_block(conn, one)["archive_reason"] is None
            assert sync.get_tags(conn, one) == ["both", "new"]
            assert sync.get_edges_for_block(conn, other) == []

    def test_what_comes_back_is_believed_as_if_it_were_new(self, memory: Memory) -> None:
        one = memory.remember("Fact 0").block_id
        for _ in range(5):
            memory.outcome([one], 0.0)
        memory.forget(one)
        memory.remember("Fact 0")
        found = block(memory, "Fact 0")
        assert (found["confidence"], found["reinforcement_count"], found["decay_lambda"]) == (0.5, 1, 0.01)
        assert memory.outcome([one], 1.0).confidence[one] == pytest.approx(2 / 3)

    @pytest.mark.parametrize("content", ["", "  \n"])
    def test_nothing_is_not_learned(self, memory: Memory, content: str) -> None:
        with pytest.raises(InvalidRecord):
            memory.learn(content)

    @pytest.mark.parametrize(
        ("tags", "category", "fading"),
        [
            (["self/constitutional"], "observation", 1e-5),
            (["self/value"], "knowledge", 1e-3),
            (["self/constraint"], "knowledge", 1e-3),
            (["self/goal"], "knowledge", 1e-3),
            ([], "mind", 1e-3),
            ([], "observation", 5e-2),
            ([], "knowledge", 1e-2),
        ],
    )
    def test_tags_and_category_say_how_fast_it_fades(
        self, memory: Memory, tags: list[str], category: str, fading: float
    ) -> None:
        memory.remember("Fact 0", tags, category)
        assert block(memory, "Fact 0")["decay_lambda"] == fading


class TestConsolidation:
    def test_a_block_becomes_active_and_is_reinforced_once(self, memory: Memory) -> None:
        memory.learn("Fact 0")
        result = memory.consolidate()
        assert result.promoted == [content_hash("Fact 0")]
        found = block(memory, "Fact 0")
        assert (found["status"], found["reinforcement_count"], found["embedding_model"]) == (
            "active",
            1,
            "angles",
        )
        assert found["embedding"] == np.array([1.0, 0.0], dtype=np.float32).tobytes()
        assert found["token_count"] == estimated_tokens("Fact 0")

    def test_each_text_is_embedded_once_and_nothing_again(self) -> None:
        seen: list[str] = []

        def embed(texts: list[str]) -> list[list[float]]:
            seen.extend(texts)
            return angles(texts)

        with Memory(open_test_blocks(), embedder=CallableEmbedder("angles", embed)) as memory:
            for batch in (("Fact 0", "Fact 60"), ("Fact 120",)):
                for content in batch:
                    memory.learn(content)
                memory.consolidate()
            memory.consolidate()
        assert seen == ["Fact 0", "Fact 60", "Fact 120"]

    @pytest.mark.parametrize("together", [True, False])
    def test_what_says_the_same_is_not_kept_twice(self, memory: Memory, together: bool) -> None:
        memory.learn("Fact 0")
        if not together:
            memory.consolidate()
        memory.learn(f"Again {degrees_for(0.96)}")
        assert memory.consolidate().duplicates == [content_hash(f"Again {degrees_for(0.96)}")]
        again = block(memory, f"Again {degrees_for(0.96)}")
        assert (again["status"], again["archive_reason"]) == ("archived", "superseded")
        assert block(memory, "Fact 0")["status"] == "active"

    @pytest.mark.parametrize("together", [True, False])
    def test_what_says_nearly_the_same_takes_its_place(self, memory: Memory, together: bool) -> None:
        memory.learn("Fact 0")
        if not together:
            memory.consolidate()
        better = f"Better {degrees_for(0.92)}"
        memory.learn(better)
        assert memory.consolidate().superseded == [content_hash("Fact 0")]
        record = memory.blocks.store.get(f"block:{content_hash('Fact 0')}")
        assert (record.status, record.data["superseded_by"]) == ("archived", content_hash(better))
        assert memory.blocks.store.get(f"block:{content_hash(better)}").data["supersedes"] == content_hash(
            "Fact 0"
        )

    def test_a_constitutional_block_is_not_replaced_by_another(self, memory: Memory) -> None:
        memory.remember("Law 0", ["self/constitutional"])
        memory.remember(f"Better {degrees_for(0.92)}")
        assert block(memory, "Law 0")["status"] == "active"

    def test_links_are_as_strong_as_the_formula_says(self, memory: Memory) -> None:
        memory.remember("Fact 0", ["a", "b"])
        memory.remember(f"Other {degrees_for(0.8)}", ["b", "c"], "decision")
        with memory.blocks.connect() as conn:
            (edge,) = sync.get_edges_for_block(conn, content_hash("Fact 0"))
        assert edge["weight"] == pytest.approx(0.55 * 0.8 + 0.20 / 3 + 0.15 * 0.30 + 0.10, abs=1e-6)

    def test_what_is_far_is_not_linked(self, memory: Memory) -> None:
        memory.remember("Fact 0", ["a"])
        memory.remember(f"Far {degrees_for(0.49)}", ["a"])
        with memory.blocks.connect() as conn:
            assert sync.get_edges_for_block(conn, content_hash("Fact 0")) == []

    def test_at_most_five_links_each(self, memory: Memory) -> None:
        for angle in range(0, 240, 27):
            memory.learn(f"Fact {angle / 4}")
        memory.consolidate()
        newest = memory.learn("Newest 30.1").block_id
        memory.consolidate()
        with memory.blocks.connect() as conn:
            assert len(sync.get_edges_for_block(conn, newest)) <= 5

    def test_an_analyser_gives_alignment_tags_and_summary(self) -> None:
        def analyse(content: str) -> dict[str, object]:
            return {"alignment": 0.8, "tags": ["self/value"], "summary": content[:4]}

        embedder = CallableEmbedder("angles", angles)
        with Memory(open_test_blocks(), embedder=embedder, analyser=analyse) as memory:
            memory.remember("Fact 0")
            found = block(memory, "Fact 0")
            assert (found["confidence"], found["self_alignment"], found["decay_lambda"]) == (0.8, 0.8, 1e-3)
            assert memory.list()[0].tags == ("self/value",)
            assert memory.blocks.store.get(f"block:{content_hash('Fact 0')}").data["summary"] == "Fact"

    def test_a_judge_is_asked_about_those_that_are_near(self) -> None:
        asked: list[tuple[str, str]] = []

        def judge(one: str, other: str) -> float:
            asked.append((one, other))
            return 0.9 if "Not" in one else 0.8

        with Memory(open_test_blocks(), embedder=CallableEmbedder("angles", angles), judge=judge) as memory:
            memory.remember("Fact 0")
            memory.remember("Far 70")
            memory.remember("Not 30")
            with memory.blocks.connect() as conn:
                found = sync.get_contradictions_for_blocks(conn, [content_hash("Not 30")])
            assert len(found) == 2
            assert ("Far 70", "Fact 0") not in asked
            assert {block["id"] for block in memory.list()} >= {content_hash("Fact 0")}

    def test_an_interrupted_one_goes_on(self, memory: Memory) -> None:
        for angle in range(0, 300, 30):
            memory.learn(f"Fact {angle}")
        assert memory.consolidate(limit=4).processed == 4
        assert memory.status().inbox == 6
        assert memory.consolidate().processed == 6


class TestWhatIsDenied:
    """Nearly the same words may say the opposite."""

    SAFE = (
        "Deploying to the production cluster on Friday afternoon before a long weekend is safe for everyone"
    )
    UNSAFE = SAFE.replace(" is safe", " is not safe")

    def test_the_words_are_nearly_the_same(self) -> None:
        one, other = LexicalEmbedder().embed_batch([self.SAFE, self.UNSAFE])
        assert one @ other >= 0.95

    @pytest.mark.parametrize("together", [True, False])
    def test_both_are_kept(self, tmp_path: Path, together: bool) -> None:
        with Memory(tmp_path) as memory:
            memory.learn(self.SAFE)
            if not together:
                memory.consolidate()
            memory.remember(self.UNSAFE)
            assert {row["content"] for row in memory.list()} == {self.SAFE, self.UNSAFE}
            assert memory.remember(self.UNSAFE + ".").merged_into is not None
            assert len(memory.list()) == 2

    def test_a_judge_is_asked(self, tmp_path: Path) -> None:
        def judge(one: str, other: str) -> float:
            return 1.0 if ("not" in one.split()) != ("not" in other.split()) else 0.0

        with Memory(tmp_path, judge=judge) as memory:
            memory.remember(self.SAFE)
            memory.remember(self.UNSAFE)
            assert memory.status().contradictions == 1

    @pytest.mark.parametrize("cosine", [0.96, 0.92])
    def test_a_judge_sees_what_words_do_not_show(self, cosine: float) -> None:
        embedder = CallableEmbedder("angles", angles)
        with Memory(open_test_blocks(), embedder=embedder, judge=lambda one, other: 0.9) as memory:
            memory.remember("Fact 0")
            memory.remember(f"Opposite {degrees_for(cosine)}")
            assert (memory.status().active, memory.status().contradictions) == (2, 1)
