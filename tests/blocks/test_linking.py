"""Links say what was said of them, grow when they prove right, and tell when things were learned."""

from __future__ import annotations

import math
from typing import Any

import pytest
from chronomemory.blocks import IntegrityError, Memory, content_hash, sync
from chronomemory.blocks.types import DecayTier
from chronomemory.errors import InvalidArgument
from living import Time, block, degrees_for


@pytest.fixture
def pair(memory: Memory) -> tuple[str, str]:
    return memory.remember("Fact 0").block_id, memory.remember("Fact 90").block_id


def edge(memory: Memory, block_id: str) -> dict[str, Any]:
    with memory.blocks.connect() as conn:
        (found,) = sync.get_edges_for_block(conn, block_id)
    return found


class TestWhatIsSaidOfALink:
    def test_relation_and_note_are_kept(self, memory: Memory, pair: tuple[str, str]) -> None:
        told = memory.connect(*pair, relation="supports", note="same incident")
        assert told
        assert (told.action, told.relation, told.note, told.weight) == (
            "created", "supports", "same incident", 0.65,
        )  # fmt: skip
        found = edge(memory, pair[0])
        assert (found["relation"], found["note"]) == ("supports", "same incident")

    def test_without_them_a_link_has_the_columns_of_the_table(
        self, memory: Memory, pair: tuple[str, str]
    ) -> None:
        memory.connect(*pair)
        assert set(edge(memory, pair[0])) == {
            "from_id", "to_id", "weight", "reinforcement_count", "created_at",
        }  # fmt: skip

    def test_they_move_with_an_edited_block(self, memory: Memory, pair: tuple[str, str]) -> None:
        memory.connect(*pair, "supports", note="n")
        edited = memory.edit(pair[0], "Fact 1").block_id
        found = edge(memory, edited)
        assert (found["relation"], found["note"]) == ("supports", "n")

    def test_a_second_time_counts_a_use_and_keeps_what_was_said(
        self, memory: Memory, pair: tuple[str, str]
    ) -> None:
        memory.connect(*pair, "supports", weight=0.6)
        told = memory.connect(pair[1], pair[0])
        assert not told
        assert (told.action, told.relation, told.weight) == ("reinforced", "supports", 0.6)
        assert edge(memory, pair[0])["reinforcement_count"] == 1

    def test_another_relation_is_refused_unless_it_is_meant(
        self, memory: Memory, pair: tuple[str, str]
    ) -> None:
        memory.connect(*pair, "supports")
        with pytest.raises(IntegrityError, match="'supports', not as 'elaborates'") as told:
            memory.connect(*pair, "elaborates")
        assert "update" in told.value.recovery
        assert edge(memory, pair[0])["relation"] == "supports"
        assert memory.connect(*pair, "elaborates", weight=0.2, if_exists="update").action == "updated"
        assert (edge(memory, pair[0])["relation"], edge(memory, pair[0])["weight"]) == ("elaborates", 0.2)

    def test_one_that_is_there_can_be_left_alone_or_refused(
        self, memory: Memory, pair: tuple[str, str]
    ) -> None:
        memory.connect(*pair)
        before = memory.blocks.store.wal_seq()
        assert memory.connect(*pair, "supports", if_exists="skip").action == "skipped"
        with pytest.raises(IntegrityError, match="linked already"):
            memory.connect(*pair, if_exists="error")
        with pytest.raises(InvalidArgument, match="if_exists"):
            memory.connect(*pair, if_exists="maybe")  # type: ignore[arg-type]
        assert memory.blocks.store.wal_seq() == before

    def test_a_number_in_the_place_of_the_relation_is_the_weight(
        self, memory: Memory, pair: tuple[str, str]
    ) -> None:
        assert memory.connect(*pair, 0.3).weight == 0.3

    def test_parting_says_whether_there_was_a_link(self, memory: Memory, pair: tuple[str, str]) -> None:
        memory.connect(*pair)
        assert [bool(memory.disconnect(*pair)), memory.disconnect(*pair).action] == [True, "not_found"]


class TestAGoodOutcomeAgain:
    def test_it_strengthens_the_link(self, memory: Memory, pair: tuple[str, str]) -> None:
        weight = 0.8
        for count in range(4):
            memory.outcome(pair, 1.0)
            found = edge(memory, pair[0])
            assert (found["weight"], found["reinforcement_count"]) == (pytest.approx(weight), count)
            weight += 0.1 * (1.0 - weight)

    def test_also_one_that_somebody_made(self, memory: Memory, pair: tuple[str, str]) -> None:
        memory.connect(*pair, weight=0.4)
        memory.outcome(pair, 0.6)
        assert edge(memory, pair[0])["weight"] == pytest.approx(0.46)

    def test_it_never_weighs_more_than_one(self, memory: Memory, pair: tuple[str, str]) -> None:
        memory.connect(*pair, weight=1.0)
        memory.outcome(pair, 1.0)
        assert edge(memory, pair[0])["weight"] == 1.0

    def test_a_bad_one_does_not(self, memory: Memory, pair: tuple[str, str]) -> None:
        memory.connect(*pair, weight=0.4)
        memory.outcome(pair, 0.3)
        assert edge(memory, pair[0])["weight"] == 0.4


class TestAConstitutionalBlock:
    def test_no_outcome_changes_how_it_fades(self, memory: Memory) -> None:
        ids = [
            memory.remember("Rule 0", ["self/constitutional"]).block_id,
            memory.remember("Fact 90").block_id,
        ]
        for _ in range(5):
            memory.outcome(ids, 0.0)
        assert block(memory, "Rule 0")["decay_lambda"] == DecayTier.PERMANENT.value
        assert block(memory, "Rule 0")["confidence"] < 0.2
        assert block(memory, "Fact 90")["decay_lambda"] == DecayTier.EPHEMERAL.value

    def test_nor_do_those_that_were_heard_before_an_edit(self, memory: Memory) -> None:
        one = memory.remember("Rule 0", ["self/constitutional"]).block_id
        memory.outcome([one], 0.0)
        memory.edit(one, "Rule 1")
        assert block(memory, "Rule 1")["decay_lambda"] == DecayTier.PERMANENT.value


class TestWhenThingsWereLearned:
    def weight_after(self, memory: Memory, time: Time, *, apart: float, used: bool) -> float:
        """Learn two blocks some hours apart; the first may be used in between."""
        with memory.session():
            memory.remember("Early 0")
            time.pass_hours(apart)
            if used:
                memory.outcome([content_hash("Early 0")], 1.0)
            memory.learn(f"Late {degrees_for(0.7)}")
            time.pass_hours(30.0)
            memory.consolidate()
        return float(edge(memory, content_hash("Early 0"))["weight"])

    @pytest.mark.parametrize("used", [False, True])
    def test_a_link_goes_by_learning_not_by_use(self, memory: Memory, time: Time, used: bool) -> None:
        expected = 0.55 * 0.7 + 0.15 + 0.10 * math.exp(-(8.0**2) / (2 * 8.0**2))
        assert self.weight_after(memory, time, apart=8.0, used=used) == pytest.approx(expected, abs=1e-6)

    def test_what_is_learned_again_is_learned_then(self, memory: Memory, time: Time) -> None:
        with memory.session():
            memory.forget(memory.remember("Early 0").block_id)
            time.pass_hours(100.0)
            memory.learn("Early 0")
            memory.learn(f"Late {degrees_for(0.7)}")
            memory.consolidate()
        weight = edge(memory, content_hash("Early 0"))["weight"]
        assert weight == pytest.approx(0.55 * 0.7 + 0.15 + 0.10, abs=1e-6)

    def test_other_words_were_learned_with_the_first(self, memory: Memory, time: Time) -> None:
        with memory.session():
            time.pass_hours(5.0)
            one = memory.remember("Early 0").block_id
            time.pass_hours(50.0)
            edited = memory.edit(one, "Early 1").block_id
        assert memory.blocks.store.get(f"block:{edited}").data["learned_at"] == pytest.approx(5.0)
