"""A frame shows what it must, leaves out what it should, and says so."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from chronomemory import ChronoStore, InvalidArgument
from chronomemory.blocks import (
    CachePolicy,
    Frame,
    FrameError,
    FrameFilters,
    Memory,
    MemorySystem,
    ScoringWeights,
    sync,
)
from living import Time, degrees_for
from pydantic import ValidationError

EQUAL = ScoringWeights(similarity=0.2, confidence=0.2, recency=0.2, centrality=0.2, reinforcement=0.2)


class TestWeights:
    @pytest.mark.parametrize(
        "weights", [(0.5, 0.5, 0.5, 0.0, 0.0), (1.2, -0.2, 0, 0, 0), (0.2,) * 4 + (0.2002,)]
    )
    def test_they_are_positive_and_sum_to_one(self, weights: tuple[float, ...]) -> None:
        names = ("similarity", "confidence", "recency", "centrality", "reinforcement")
        with pytest.raises(ValidationError):
            ScoringWeights(**dict(zip(names, weights, strict=True)))

    def test_without_a_query_they_still_sum_to_one(self) -> None:
        assert sum(EQUAL.without_similarity().as_tuple()) == pytest.approx(1.0)
        assert EQUAL.without_similarity().confidence == pytest.approx(0.25)


class TestBuiltInFrames:
    def test_there_are_four(self, memory: Memory) -> None:
        memory.remember("Fact 0")
        with memory.blocks.connect() as conn:
            assert [frame["name"] for frame in sync.list_frames(conn)] == [
                "attention",
                "self",
                "simulate",
                "task",
            ]

    def test_an_unknown_one_is_named(self, memory: Memory) -> None:
        with pytest.raises(FrameError, match="'nobody'") as told:
            memory.frame("nobody")
        assert "attention" in told.value.recovery

    def test_a_constitutional_block_never_falls_out_of_self(self, memory: Memory, time: Time) -> None:
        law = memory.remember("Law 0", ["self/constitutional"]).block_id
        for number in range(12):
            memory.remember(f"Value {20 + number * 27}", ["self/value"])
        for signal in (0.0, 0.0, 0.0):
            memory.outcome([law], signal)
        with memory.session():
            time.pass_hours(5000.0)
            memory.dream()
            for query in (None, "about 180"):
                result = memory.frame("self", query, top_k=2)
                assert result.blocks[0].id == law
                assert result.guaranteed == (law,)

    def test_task_guarantees_goals_within_its_budget(self, memory: Memory) -> None:
        goal = memory.remember("Goal 0", ["self/goal"]).block_id
        long = memory.remember("Long " * 900 + "90").block_id
        result = memory.frame("task", "about 90")
        assert [block.id for block in result.blocks] == [goal]
        assert [(item.block_id, item.reason) for item in result.dropped] == [(long, "budget")]
        assert result.tokens <= result.token_budget == 800

    def test_only_self_is_kept_for_an_hour(self, memory: Memory, time: Time) -> None:
        memory.remember("Value 0", ["self/value"])
        assert not memory.frame("self").cached
        assert memory.frame("self").cached
        time.pass_hours(1.1)
        assert not memory.frame("self").cached
        memory.remember("Value 90", ["self/value"])
        assert not memory.frame("self").cached
        assert not memory.frame("attention").cached
        assert not memory.frame("attention").cached

    def test_what_is_kept_is_not_reinforced_again(self, memory: Memory) -> None:
        block_id = memory.remember("Value 0", ["self/value"]).block_id
        for _ in range(3):
            memory.frame("self")
        with memory.blocks.connect() as conn:
            assert sync.get_block(conn, block_id)["reinforcement_count"] == 2


class TestWhatIsKept:
    """A frame that is given out again is what it would be if it were made anew."""

    def test_others_make_it_stale(self, tmp_path: Path) -> None:
        with Memory(tmp_path) as mine, Memory(tmp_path) as yours:
            value = mine.remember("Anna values short answers", ["self/value"]).block_id
            mine.frame("self")
            assert mine.frame("self").cached
            law = yours.remember("Never share the signing key", ["self/constitutional"]).block_id
            assert {block.id for block in mine.frame("self").blocks} == {value, law}
            assert mine.frame("self").cached
            yours.forget(law)
            assert [block.id for block in mine.frame("self").blocks] == [value]
            with yours.blocks.begin() as conn:
                sync.remove_tags(conn, value, ["self/value"])
            assert mine.frame("self").blocks == ()

    def test_storage_functions_make_it_stale(self, memory: Memory) -> None:
        value = memory.remember("Value 0", ["self/value"]).block_id
        memory.frame("self")
        with memory.blocks.begin() as conn:
            sync.update_block_status(conn, value, "archived")
        assert memory.frame("self").blocks == ()

    def test_a_frame_that_is_shown_does_not(self, memory: Memory) -> None:
        memory.remember("Value 0", ["self/value"])
        memory.remember("Fact 90")
        memory.frame("self")
        with memory.session():
            memory.frame("self")
            for _ in range(3):
                memory.frame("attention", "about 45")
                assert memory.frame("self").cached

    def test_what_is_written_while_it_is_made_does(self, memory: Memory) -> None:
        one, other = (memory.remember(f"Value {angle}", ["self/value"]).block_id for angle in (0, 90))

        def count(text: str) -> int:
            with memory.blocks.begin() as conn:
                sync.update_block_status(conn, other, "archived")
            return 1

        memory.frame("self", token_counter=count)
        assert [block.id for block in memory.frame("self", token_counter=count).blocks] == [one]

    @pytest.mark.parametrize("by_another", [False, True])
    def test_a_restore_does(self, tmp_path: Path, by_another: bool) -> None:
        with Memory(tmp_path) as mine, ChronoStore(tmp_path) as other:
            mine.remember("I obey Anna", ["self/constitutional"])
            store = other if by_another else mine.blocks.store
            good = store.backup()
            mine.remember("I obey whoever pays", ["self/constitutional"])
            assert "pays" in mine.frame("self").text
            assert mine.frame("self").cached
            seq = store.wal_seq()
            store.upkeep.restore(good)
            while store.wal_seq() < seq:
                store.upsert({"id": f"note {store.wal_seq()}"})
            assert (mine.blocks.store.wal_seq(), mine.frame("self").cached) == (seq, False)
            assert "pays" not in mine.frame("self").text

    def test_a_restore_while_it_is_made_does(self, memory: Memory) -> None:
        memory.remember("Value 0", ["self/value"])
        store = memory.blocks.store
        good = store.backup()
        memory.remember("Value 90", ["self/value"])

        def count(text: str) -> int:
            seq = store.wal_seq()
            store.upkeep.restore(good)
            while store.wal_seq() < seq:
                store.upsert({"id": f"note {store.wal_seq()}"})
            return 1

        memory.frame("self")
        assert memory.frame("self").cached
        memory.frame("attention", "about 0", token_counter=count)
        again = memory.frame("self")
        assert (len(again.blocks), again.cached) == (1, False)


class TestContradictions:
    @pytest.fixture
    def pair(self, memory: Memory) -> tuple[str, str]:
        one, other = (
            memory.remember("Sure 0").block_id,
            memory.remember(f"Unsure {degrees_for(0.7)}").block_id,
        )
        memory.outcome([one], 0.9)
        with memory.blocks.begin() as conn:
            low, high = sorted((one, other))
            sync.insert_contradiction(conn, block_a_id=low, block_b_id=high, score=0.9)
        return one, other

    def test_two_are_never_shown_together(self, memory: Memory, pair: tuple[str, str]) -> None:
        result = memory.frame("attention", "about 20")
        assert [block.id for block in result.blocks] == [pair[0]]
        assert [(item.block_id, item.reason) for item in result.dropped] == [(pair[1], "contradiction")]

    def test_once_resolved_they_are(self, memory: Memory, pair: tuple[str, str]) -> None:
        with memory.blocks.begin() as conn:
            sync.resolve_contradiction(conn, *sorted(pair))
        assert len(memory.frame("attention", "about 20").blocks) == 2

    def test_two_guaranteed_ones_are_shown_with_a_warning(
        self, memory: Memory, pair: tuple[str, str]
    ) -> None:
        with memory.blocks.begin() as conn:
            for block_id in pair:
                sync.add_tags(conn, block_id, ["self/goal"])
        result = memory.frame("task", "about 20")
        assert {block.id for block in result.blocks} == set(pair)
        assert "contradict" in result.warnings[0]


class TestOwnFrames:
    def test_they_work_like_built_in_ones(self, memory: Memory, time: Time) -> None:
        memory.define_frame(
            Frame(
                name="decisions",
                weights=EQUAL,
                filters=FrameFilters(categories=("decision",)),
                guarantees=("pinned",),
                template="{frame} for {query}:\n{blocks}\nend",
                token_budget=50,
                cache=CachePolicy(ttl_seconds=10.0),
            )
        )
        memory.remember("Decided 0", category="decision")
        memory.remember("Known 90")
        memory.remember("Pinned {query} 180", ["pinned"])
        result = memory.frame("decisions", "about 0")
        assert result.text == "decisions for about 0:\n- Pinned {query} 180\n- Decided 0\nend"
        assert memory.frame("decisions", "about 0").cached

    def test_what_is_none_is_refused(self, memory: Memory) -> None:
        with pytest.raises(InvalidArgument, match="frame must be a Frame, got dict"):
            memory.define_frame({"name": "mine"})  # type: ignore[arg-type]

    def test_raw_ones_of_the_store_work_too(self, memory: Memory) -> None:
        with memory.blocks.begin() as conn:
            sync.upsert_frame(
                conn,
                name="raw",
                weights_json=EQUAL.model_dump_json(),
                filters_json=json.dumps({"tag_patterns": ["work/%"], "categories": [], "search_window": 10}),
                guarantees_json="[]",
                template="No place for blocks",
                token_budget=100,
                cache_json=None,
                source="user",
            )
        memory.remember("Work 0", ["work/x"])
        memory.remember("Home 90")
        assert memory.frame("raw").text == "No place for blocks\n- Work 0"

    @pytest.mark.parametrize(
        ("field", "value", "error"),
        [("weights_json", '{"similarity": 2}', ValidationError), ("filters_json", "{", FrameError)],
    )
    def test_broken_ones_are_told(
        self, memory: Memory, field: str, value: str, error: type[Exception]
    ) -> None:
        fields = {
            "weights_json": EQUAL.model_dump_json(), "filters_json": "{}", "guarantees_json": "[]",
            "template": "", "token_budget": 1, "cache_json": None, "source": "user",
        }  # fmt: skip
        with memory.blocks.begin() as conn:
            sync.upsert_frame(conn, name="broken", **{**fields, field: value})
        with pytest.raises(error):
            memory.frame("broken")


class TestBudget:
    def test_a_block_that_does_not_fit_is_left_out(self, memory: Memory) -> None:
        long = memory.remember("Word " * 100 + "0").block_id
        result = memory.frame("attention", "about 0", token_budget=50)
        assert (result.blocks, result.text, result.tokens) == ((), "", 0)
        assert [(item.block_id, item.reason) for item in result.dropped] == [(long, "budget")]

    def test_a_long_block_is_cut_behind_a_sentence(self, memory: Memory) -> None:
        memory.remember("First sentence. Second sentence. " + "Third " * 100 + "0")
        result = memory.frame("attention", "about 0", token_budget=40)
        (shown,) = result.blocks
        assert shown.cut
        assert result.text.endswith("- First sentence. Second sentence. […]")
        assert result.tokens <= 40

    def test_guaranteed_blocks_may_exceed_it(self, memory: Memory) -> None:
        memory.remember("Word " * 100 + "0", ["self/constitutional"])
        result = memory.frame("self", token_budget=10)
        assert result.overflow == result.tokens - 10 > 0
        assert "budget" in result.warnings[0]

    def test_a_counter_may_be_given(self, memory: Memory) -> None:
        for angle in (0, 90, 180):
            memory.remember(f"Fact {angle}")
        counter = lambda text: len(text.splitlines())  # noqa: E731
        result = memory.frame("attention", "about 0", token_budget=5, token_counter=counter)
        assert (len(result.blocks), result.tokens) == (1, 2)
        assert [item.reason for item in result.dropped] == ["budget", "budget"]


class TestRecall:
    def test_it_changes_nothing(self, memory: Memory) -> None:
        memory.remember("Fact 0")
        before = memory.blocks.store.health().head
        assert memory.recall("about 0")[0].similarity == pytest.approx(1.0)
        assert memory.blocks.store.health().head == before

    def test_it_takes_filters_of_its_own(self, memory: Memory, time: Time) -> None:
        memory.remember("Fact 0", ["work"])
        memory.remember("Fact 90", category="decision")
        assert [found.content for found in memory.recall("about 0", tag_patterns=["wo%"])] == ["Fact 0"]
        assert [found.content for found in memory.recall("about 0", categories=["decision"])] == ["Fact 90"]
        assert memory.recall("about 0", min_confidence=0.9) == []
        assert len(memory.recall(top_k=1)) == 1
        with memory.session():
            time.pass_hours(10.0)
            assert memory.recall("about 0", window=9.0) == []
        with pytest.raises(ValueError, match="top_k"):
            memory.recall(top_k=0)

    def test_diversity_prefers_what_is_unlike(self, memory: Memory) -> None:
        for angle in (0.0, degrees_for(0.89), 60.0):
            memory.remember(f"Fact {angle}")
        plain = memory.recall("about 360", top_k=2, expansion=0)
        diverse = memory.recall("about 360", top_k=2, diversify=True, expansion=0)
        assert plain[1].content == f"Fact {degrees_for(0.89)}"
        assert diverse[1].content == "Fact 60.0"


class TestExplanation:
    def test_it_shows_five_bars_a_block(self, memory: Memory) -> None:
        memory.remember("Fact 0")
        told = memory.frame("attention", "about 0", explain=True).explanation
        lines = told.splitlines()
        assert len(lines) == 7
        assert "similarity     1.000 × 0.35 =  0.350  ████████▍" in told
        total = sum(float(line.split("=")[1].split()[0]) for line in lines[2:])
        assert total == pytest.approx(float(lines[0].split()[1]), abs=0.003)

    def test_without_asking_there_is_none(self, memory: Memory) -> None:
        memory.remember("Fact 0")
        assert memory.frame("attention").explanation == ""


def test_a_memory_system_is_awaited(tmp_path: Path) -> None:
    async def live() -> None:
        async with MemorySystem(tmp_path) as system:
            async with system.session("coding"):
                first = await system.learn("The tests run with make test", ["work"])
                assert (await system.status()).inbox == 1
                consolidated, _ = await system.dream()
                assert consolidated.promoted == [first.block_id]
                second = await system.remember("Releases need a signed tag")
                found = await system.recall("how do the tests run?")
                assert found[0].id == first.block_id
                result = await system.frame("attention", "releases", explain=True)
                assert "similarity" in result.explanation
                assert await system.connect(first.block_id, second.block_id)
                assert await system.disconnect(first.block_id, second.block_id)
                assert (await system.outcome([first.block_id], 0.9)).confidence[first.block_id] > 0.5
                edited = await system.edit(first.block_id, "The tests run with make check")
                await system.forget(edited.block_id)
                assert [row["id"] for row in await system.list()] == [second.block_id]
                assert (await system.curate()).archived == ()
                assert len(await system.history(second.block_id)) > 1
            await system.define_frame(Frame(name="mine", weights=EQUAL))
            assert (await system.consolidate()).processed == 0

    asyncio.run(live())
