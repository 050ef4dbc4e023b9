"""What becomes of a block from the day it is learned to the day it is let go?"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

import numpy as np
import pytest
from chronomemory import InvalidRecord
from chronomemory.blocks import Blocks, IntegrityError, Memory, content_hash, open_test_blocks, sync
from chronomemory.blocks.curation import freshness
from chronomemory.embedders import CallableEmbedder


class Time:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds

    def pass_hours(self, hours: float) -> None:
        self.seconds += hours * 3600.0


def angles(texts: list[str]) -> list[list[float]]:
    """A text ends with an angle in degrees: how alike two texts are is up to the test."""
    degrees = [math.radians(float(text.split()[-1])) for text in texts]
    return [[math.cos(angle), math.sin(angle)] for angle in degrees]


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def memory(time: Time) -> Iterator[Memory]:
    with Memory(open_test_blocks(), embedder=CallableEmbedder("angles", angles), seconds=time) as opened:
        yield opened


def block(memory: Memory, content: str) -> dict[str, object]:
    with memory.blocks.connect() as conn:
        found = sync.get_block(conn, content_hash(content))
    assert found is not None
    return found


def degrees_for(cosine: float) -> float:
    return math.degrees(math.acos(cosine))


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
        assert found["token_count"] == len("Fact 0") // 4

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
            assert memory.ls()[0]["tags"] == ["self/value"]
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
            assert {block["id"] for block in memory.ls()} >= {content_hash("Fact 0")}

    def test_an_interrupted_one_goes_on(self, memory: Memory) -> None:
        for angle in range(0, 300, 30):
            memory.learn(f"Fact {angle}")
        assert memory.consolidate(limit=4).processed == 4
        assert memory.status().inbox == 6
        assert memory.consolidate().processed == 6


class TestOutcome:
    def test_confidence_moves_as_a_beta_distribution_does(self, memory: Memory) -> None:
        block_id = memory.remember("Fact 0").block_id
        assert memory.outcome([block_id], 1.0).confidence[block_id] == pytest.approx(2 / 3)
        alpha, beta = 2 / 3 * 3 + 0.4 * 2, 1 / 3 * 3 + 0.6 * 2
        assert memory.outcome([block_id], 0.4, 2.0).confidence[block_id] == pytest.approx(
            alpha / (alpha + beta)
        )

    def test_what_helped_is_reinforced_and_linked(self, memory: Memory) -> None:
        one, other = memory.remember("Fact 0").block_id, memory.remember("Fact 90").block_id
        memory.outcome([one, other], 0.9)
        with memory.blocks.connect() as conn:
            (edge,) = sync.get_edges_for_block(conn, one)
            assert edge["weight"] == pytest.approx(0.72)
            assert sync.get_block(conn, one)["reinforcement_count"] == 2

    def test_what_did_harm_fades_faster_up_to_a_limit(self, memory: Memory) -> None:
        block_id = memory.remember("Fact 0").block_id
        fading = []
        for _ in range(4):
            memory.outcome([block_id], 0.0)
            fading.append(block(memory, "Fact 0")["decay_lambda"])
        assert fading == pytest.approx([0.02, 0.04, 0.05, 0.05])

    def test_in_between_only_confidence_moves(self, memory: Memory) -> None:
        block_id = memory.remember("Fact 0").block_id
        memory.outcome([block_id], 0.3)
        found = block(memory, "Fact 0")
        assert (found["decay_lambda"], found["reinforcement_count"]) == (0.01, 1)

    def test_bad_signals_are_refused_and_unknown_blocks_told(self, memory: Memory) -> None:
        for signal, weight in ((1.1, 1.0), (-0.1, 1.0), (0.5, 0.0), (math.nan, 1.0)):
            with pytest.raises(InvalidRecord):
                memory.outcome(["x"], signal, weight)
        assert memory.outcome(["x"], 0.9).unknown == ("x",)


class TestCuration:
    def test_what_faded_is_archived_by_its_stored_fading(self, memory: Memory, time: Time) -> None:
        memory.remember("Note 0", category="observation")
        memory.remember("Fact 90")
        with memory.session():
            time.pass_hours(59.0)
            assert memory.curate().archived == ()
            time.pass_hours(2.0)
            assert memory.curate().archived == (content_hash("Note 0"),)
        assert block(memory, "Note 0")["archive_reason"] == "decayed"

    def test_bridges_and_permanent_blocks_stay(self, memory: Memory, time: Time) -> None:
        ids = [memory.remember(f"Note {angle}", category="observation").block_id for angle in (0, 80, 160)]
        law = memory.remember("Law 250", ["self/constitutional"], "observation").block_id
        memory.connect(ids[0], ids[1], 0.9)
        memory.connect(ids[1], ids[2], 0.9)
        with memory.session():
            time.pass_hours(70.0)
            archived = memory.curate().archived
        assert set(archived) == {ids[0], ids[2]}
        assert block(memory, "Law 250")["status"] == "active"
        assert law

    def test_links_fade_with_the_slower_of_their_blocks(self, memory: Memory, time: Time) -> None:
        one = memory.remember("Fact 0").block_id
        other = memory.remember("Value 90", ["self/value"]).block_id
        memory.connect(one, other, 0.8)
        with memory.session():
            time.pass_hours(100.0)
            assert memory.curate().edges_decayed == 1
            time.pass_hours(1.0)
            assert memory.curate().edges_decayed == 0
            time.pass_hours(99.0)
            memory.curate()
        with memory.blocks.connect() as conn:
            (edge,) = sync.get_edges_for_block(conn, one)
        assert edge["weight"] == pytest.approx(0.8 * math.exp(-0.5 * 1e-3 * 200.0))

    def test_weak_links_are_taken_away(self, memory: Memory, time: Time) -> None:
        one, other = memory.remember("Fact 0").block_id, memory.remember("Fact 90").block_id
        memory.connect(one, other, 0.11)
        with memory.session():
            time.pass_hours(30.0)
            assert memory.curate().edges_pruned == 1
        assert memory.status().edges == 0


class TestClock:
    def test_time_passes_in_sessions_only(self, memory: Memory, time: Time) -> None:
        time.pass_hours(5.0)
        assert memory.active_hours() == 0.0
        with memory.session():
            time.pass_hours(2.0)
            assert memory.active_hours() == pytest.approx(2.0)
        time.pass_hours(5.0)
        assert memory.active_hours() == pytest.approx(2.0)
        with memory.session():
            time.pass_hours(1.0)
        assert memory.active_hours() == pytest.approx(3.0)
        with memory.blocks.connect() as conn:
            assert sync.get_total_active_hours(conn) == pytest.approx(3.0)
            assert sync.get_active_session(conn) is None

    def test_a_crash_loses_no_hour_that_mattered(self, time: Time) -> None:
        with open_test_blocks() as blocks:
            first = Memory(blocks, embedder=CallableEmbedder("angles", angles), seconds=time)
            first.begin_session()
            time.pass_hours(4.0)
            first.remember("Fact 0")
            second = Memory(blocks, embedder=CallableEmbedder("angles", angles), seconds=time)
            assert second.active_hours() == pytest.approx(4.0)
            assert block(second, "Fact 0")["last_reinforced_at"] == pytest.approx(4.0)

    def test_recency_is_never_above_one(self, memory: Memory) -> None:
        memory.remember("Fact 0")
        with memory.blocks.begin() as conn:
            sync.reinforce_blocks(conn, [content_hash("Fact 0")], 99.0)
        assert [found.recency for found in memory.recall("about 0")] == [1.0]
        record = memory.blocks.store.get(f"block:{content_hash('Fact 0')}")
        assert freshness(record, 0.0) == 1.0


class TestTogether:
    def test_three_sessions_make_a_link(self, memory: Memory) -> None:
        one, other = memory.remember("Fact 0").block_id, memory.remember("Fact 90").block_id
        for number in range(3):
            assert memory.status().edges == 0
            with memory.session():
                memory.frame("attention", "about 45")
                memory.frame("attention", f"about {number}")
        with memory.blocks.connect() as conn:
            (edge,) = sync.get_edges_for_block(conn, one)
            assert (edge["weight"], edge["reinforcement_count"]) == (0.55, 1)
            assert sync.get_neighbours(conn, [one]) == [other]

    def test_outside_of_sessions_nothing_is_linked(self, memory: Memory) -> None:
        memory.remember("Fact 0")
        memory.remember("Fact 90")
        for _ in range(4):
            memory.frame("attention", "about 45")
        assert memory.status().edges == 0


class TestEditing:
    def test_a_new_block_takes_over(self, memory: Memory) -> None:
        one, other = memory.remember("Fact 0", ["a"]).block_id, memory.remember("Fact 90").block_id
        memory.connect(one, other, 0.6)
        edited = memory.edit(one, "Fact 1")
        memory.consolidate()
        with memory.blocks.connect() as conn:
            assert sync.get_block(conn, one)["archive_reason"] == "superseded"
            assert sync.get_tags(conn, edited.block_id) == ["a"]
            assert sync.get_neighbours(conn, [edited.block_id]) == [other]
            assert sync.get_block(conn, edited.block_id)["status"] == "active"

    def test_other_case_is_the_same_block(self, memory: Memory) -> None:
        one = memory.remember("fact 0").block_id
        assert memory.edit(one, "FACT 0").block_id == one
        assert block(memory, "Fact 0")["content"] == "FACT 0"

    def test_what_is_said_already_or_gone_cannot_be_edited(self, memory: Memory) -> None:
        one = memory.remember("Fact 0").block_id
        memory.remember("Fact 90")
        with pytest.raises(IntegrityError):
            memory.edit(one, "Fact 90")
        memory.forget(one)
        with pytest.raises(IntegrityError):
            memory.edit(one, "Fact 5")

    def test_connecting_and_disconnecting(self, memory: Memory) -> None:
        one, other = memory.remember("Fact 0").block_id, memory.remember("Fact 90").block_id
        assert memory.connect(one, other)
        assert not memory.connect(other, one)
        assert memory.disconnect(one, other)
        assert not memory.disconnect(one, other)
        assert memory.connect(one, other)
        with pytest.raises(IntegrityError):
            memory.connect(one, "nobody")
        with pytest.raises(InvalidRecord):
            memory.connect(one, one)


class TestLookingAround:
    def test_status_suggests_what_to_do(self, memory: Memory) -> None:
        assert "learn" in memory.status().suggestion
        memory.learn("Fact 0")
        assert "dream" in memory.status().suggestion
        memory.dream()
        assert memory.status().suggestion == "All is well."

    def test_ls_filters(self, memory: Memory) -> None:
        memory.remember("Fact 0", ["work/a"])
        memory.remember("Fact 90", ["home"], "decision")
        assert [row["content"] for row in memory.ls(tag="work/%")] == ["Fact 0"]
        assert [row["content"] for row in memory.ls(category="decision")] == ["Fact 90"]
        assert len(memory.ls(limit=1)) == 1
        assert memory.ls(status="inbox") == []

    def test_history_tells_every_change(self, memory: Memory) -> None:
        block_id = memory.remember("Fact 0").block_id
        memory.outcome([block_id], 0.9)
        ops = [event.op for event in memory.history(block_id)]
        assert ops[0] == "upsert"
        assert set(ops[1:]) == {"patch"}
        assert json.dumps(memory.history(block_id)[-1].record)


def test_what_is_around_a_memory_is_closed_with_it() -> None:
    blocks: Blocks = open_test_blocks()
    folder = blocks.store.project_root
    with Memory(blocks) as memory:
        memory.begin_session()
    assert not folder.exists()
