"""What becomes of a block once it is part of the memory."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chronomemory import InvalidRecord
from chronomemory.blocks import Blocks, IntegrityError, Memory, content_hash, open_test_blocks, sync
from chronomemory.blocks.life.curation import freshness
from chronomemory.embedders import CallableEmbedder
from living import Time, angles, block


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
        assert memory.status().active_hours == 0.0
        with memory.session():
            time.pass_hours(2.0)
            assert memory.status().active_hours == pytest.approx(2.0)
        time.pass_hours(5.0)
        assert memory.status().active_hours == pytest.approx(2.0)
        with memory.session():
            time.pass_hours(1.0)
        assert memory.status().active_hours == pytest.approx(3.0)
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
            assert second.status().active_hours == pytest.approx(4.0)
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

    def test_a_large_frame_is_not_a_flood_of_events(self, memory: Memory) -> None:
        with memory.blocks.begin() as conn:
            for number in range(60):
                sync.insert_block(
                    conn, block_id=f"{number:02}", content="x", category="c", source="s", status="active"
                )
        with memory.session():
            before = memory.blocks.store.wal_seq()
            assert len(memory.frame("attention", top_k=60).blocks) == 60
            assert memory.blocks.store.wal_seq() - before <= 60 + 20 * 19 / 2 + 2

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

    def test_a_constitutional_block_never_falls_out_of_self(self, memory: Memory) -> None:
        one = memory.remember("Never lie 0", ["self/constitutional"]).block_id
        edited = memory.edit(one, "Do not ever lie 1")
        assert (edited.block_id, edited.status) == (content_hash("Do not ever lie 1"), "edited")
        assert memory.frame("self").guaranteed == (edited.block_id,)
        assert block(memory, "Never lie 0")["archive_reason"] == "superseded"
        assert block(memory, "Do not ever lie 1")["embedding"] is not None
        assert memory.edit(edited.block_id, "Never lie 0").block_id == one
        assert memory.frame("self").guaranteed == (one,)
        assert memory.edit(one, "NEVER LIE 0").block_id == one
        assert memory.frame("self").guaranteed == (one,)
        for wrong in ("", "  ", 3):
            with pytest.raises(InvalidRecord):
                memory.edit(one, wrong)
        assert memory.status().inbox == 0

    def test_not_even_if_nobody_can_say_what_the_new_words_are(self, tmp_path: Path) -> None:
        def analyse(content: str) -> dict[str, Any]:
            if "poison" in content:
                raise TimeoutError("cannot parse")
            return {}

        with Memory(tmp_path, analyser=analyse) as memory:
            one = memory.remember("Never lie to people", ["self/constitutional"]).block_id
            seq = memory.blocks.store.wal_seq()
            with pytest.raises(TimeoutError):
                memory.edit(one, "A poison pill")
            assert memory.blocks.store.wal_seq() == seq
            assert memory.frame("self").guaranteed == (one,)

    def test_it_fades_as_fast_as_outcomes_have_taught(self, memory: Memory) -> None:
        one = memory.remember("Fact 0").block_id
        memory.outcome([one], 0.0)
        assert memory.blocks.store.get(f"block:{one}").data["decay_lambda"] == 0.02
        edited = memory.edit(one, "Fact 1").block_id
        memory.consolidate()
        assert memory.blocks.store.get(f"block:{edited}").data["decay_lambda"] == 0.02

    def test_it_keeps_what_was_learned_of_the_old_one(self, memory: Memory) -> None:
        one, other = memory.remember("Fact 0").block_id, memory.remember("Fact 90").block_id
        memory.connect(one, other, 0.6)
        memory.connect(one, other)
        for signal in (1.0, 1.0, 0.4):
            memory.outcome([one], signal)
        with memory.blocks.begin() as conn:
            low, high = sorted((one, other))
            sync.insert_contradiction(conn, block_a_id=low, block_b_id=high, score=0.9)
        before = memory.blocks.store.get(f"block:{one}")
        edited = memory.edit(one, "Fact 1").block_id
        after = memory.blocks.store.get(f"block:{edited}")
        assert after.data["evidence"] == before.data["evidence"] == 3.0
        assert after.confidence == before.confidence
        with memory.blocks.connect() as conn:
            (told,) = sync.get_contradictions_for_blocks(conn, [edited])
            assert (told["score"], {told["block_a_id"], told["block_b_id"]}) == (0.9, {edited, other})
            (edge,) = sync.get_edges_for_block(conn, edited)
            assert (edge["weight"], edge["reinforcement_count"]) == (0.6, 1)

    def test_it_can_be_undone(self, memory: Memory) -> None:
        one, other = memory.remember("Fact 0", ["a"]).block_id, memory.remember("Fact 90").block_id
        memory.connect(one, other, 0.6)
        memory.outcome([one], 1.0)
        believed = block(memory, "Fact 0")["confidence"]
        second = memory.edit(one, "Fact 1").block_id
        memory.consolidate()
        memory.outcome([second], 1.0)
        better = block(memory, "Fact 1")["confidence"]
        assert better > believed
        assert memory.edit(second, "Fact 0").block_id == one
        memory.consolidate()
        found = block(memory, "Fact 0")
        assert (found["status"], found["archive_reason"], found["confidence"]) == ("active", None, better)
        assert block(memory, "Fact 1")["archive_reason"] == "superseded"
        with memory.blocks.connect() as conn:
            assert sync.get_tags(conn, one) == ["a"]
            assert sync.get_neighbours(conn, [one]) == [other]

    def test_an_analyser_does_not_overrule_outcomes(self) -> None:
        embedder = CallableEmbedder("angles", angles)
        with Memory(open_test_blocks(), embedder=embedder, analyser=lambda _: {"alignment": 0.1}) as memory:
            one = memory.remember("Fact 0").block_id
            believed = memory.outcome([one], 1.0).confidence[one]
            memory.edit(one, "Fact 1")
            memory.consolidate()
            assert block(memory, "Fact 1")["confidence"] == believed > 0.1

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
        assert [row["content"] for row in memory.list(tag_pattern="work/%")] == ["Fact 0"]
        assert memory.list(tag="work/%") == []
        assert [row["content"] for row in memory.list(category="decision")] == ["Fact 90"]
        assert len(memory.list(limit=1)) == 1
        assert memory.list(status="inbox") == []

    @pytest.mark.parametrize(
        "asked", [{}, {"status": None}, {"tag": "work/a"}, {"category": "decision"}], ids=str
    )
    def test_pages_are_newest_first_and_follow_each_other(
        self, memory: Memory, asked: dict[str, str | None]
    ) -> None:
        for angle in range(0, 180, 30):
            memory.remember(f"Fact {angle}", ["work/a"], category="decision")
        memory.learn("Fact 200")
        every = memory.list(**asked)
        created = [item.created_at for item in every]
        assert created == sorted(created, reverse=True)
        pages, after = [], None
        while True:
            page = memory.list(limit=2, after=after, **asked)
            pages += page
            after = page.cursor
            if after is None:
                break
        assert pages == every

    def test_history_tells_every_change(self, memory: Memory) -> None:
        block_id = memory.remember("Fact 0").block_id
        memory.outcome([block_id], 0.9)
        ops = [event.op for event in memory.history(block_id)]
        assert (ops[0], ops[-1]) == ("upsert", "act")
        assert set(ops[1:-1]) == {"patch"}
        assert json.dumps(memory.history(block_id)[-1].record)


def test_what_is_around_a_memory_is_closed_with_it() -> None:
    blocks: Blocks = open_test_blocks()
    folder = blocks.store.project_root
    with Memory(blocks) as memory:
        memory.begin_session()
    assert not folder.exists()


class TestTagsOfWhatIsSuperseded:
    """A guarantee does not go with the words that it came in."""

    def test_a_near_duplicate_leaves_its_tags(self, tmp_path: Path) -> None:
        with Memory(tmp_path) as memory:
            memory.remember("Never share the signing key with anyone at all")
            memory.remember("Never share the signing key with anyone at all!", tags=["self/constitutional"])
            assert "Never share the signing key" in memory.frame("self").text

    def test_a_better_wording_takes_over_the_tags(self, tmp_path: Path) -> None:
        def embed(texts: list[str]) -> np.ndarray:
            near = {"the goal": [1.0, 0.0], "the aim": [0.92, float(np.sqrt(1 - 0.92**2))]}
            return np.array([near[text] for text in texts], dtype=np.float32)

        with Memory(tmp_path, embedder=CallableEmbedder("two", embed), merge="similar") as memory:
            memory.remember("the goal", tags=["self/goal"])
            aim = memory.remember("the aim").block_id
            assert [block.id for block in memory.frame("task").blocks if block.guaranteed] == [aim]
