"""The reference itself is right: values that can be checked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from reference import (
    Block,
    Memory,
    Question,
    centrality,
    cosine,
    like,
    log_normalised,
    recall,
    recency,
    uncertainty,
    weighted,
    without_similarity,
)
from reference_fusion import fused

ATTENTION = (0.35, 0.15, 0.25, 0.15, 0.10)


def vector(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


class TestTheScore:
    def test_the_check_value(self) -> None:
        assert weighted(ATTENTION, (0.80, 0.70, 0.60, 0.40, 0.30)) == pytest.approx(0.625, abs=1e-12)

    def test_without_a_query_the_other_weights_share_what_similarity_had(self) -> None:
        weights = without_similarity(ATTENTION)
        assert weights == pytest.approx((0.0, 0.15 / 0.65, 0.25 / 0.65, 0.15 / 0.65, 0.10 / 0.65))
        assert sum(weights) == pytest.approx(1.0)

    def test_recency_is_never_above_one(self) -> None:
        assert recency(Block("a", last_reinforced_at=10.0), Question(hours=5.0)) == 1.0
        assert recency(Block("a", decay_lambda=0.01), Question(hours=100.0)) == pytest.approx(math.exp(-1.0))

    def test_a_fresh_block_without_links_is_lifted(self) -> None:
        assert centrality(0.0, 0.0, 0.9) == pytest.approx(0.45)
        assert centrality(0.05, 1.0, 0.9) == pytest.approx(0.45)
        assert centrality(0.0, 1.0, 0.70) == 0.0
        assert centrality(0.5, 1.0, 0.9) == 0.5

    def test_reinforcement_is_a_share_of_the_most(self) -> None:
        assert log_normalised(0, 10) == 0.0
        assert log_normalised(5, 0) == 0.0
        assert log_normalised(10, 10) == 1.0

    def test_cosine_needs_two_directions(self) -> None:
        assert cosine(vector(3, 4), vector(4, 3)) == pytest.approx(0.96)
        assert cosine(vector(1, 0), vector(5, 0)) == 1.0
        assert cosine(vector(0, 0), vector(1, 0)) == 0.0
        assert cosine(None, vector(1)) == 0.0

    def test_uncertainty_shrinks_with_evidence(self) -> None:
        assert uncertainty(Block("a")) == pytest.approx(math.sqrt(1 / (4 * 3)))
        assert uncertainty(Block("a", evidence=10.0)) < uncertainty(Block("a"))

    def test_words_count_more_than_meaning(self) -> None:
        assert fused(0.9, 3.0, [0.9, 0.1], 3.0) == pytest.approx(1.0)
        assert fused(0.5, 0.0, [0.9, 0.1], 3.0) == pytest.approx(0.625 / 3.25)
        assert fused(None, 1.5, [0.9, 0.1], 3.0) == pytest.approx(1 / 3.25)


class TestPatterns:
    @pytest.mark.parametrize(
        ("pattern", "tag", "matches"),
        [
            ("self/%", "self/goal", True),
            ("SELF/%", "self/Goal", True),
            ("self/_oal", "self/goal", True),
            ("self/%", "myself/goal", False),
            ("%", "", True),
            ("a.c", "abc", False),
            ("É", "é", False),
        ],
    )
    def test_they_are_sql_like(self, pattern: str, tag: str, matches: bool) -> None:
        assert like(pattern, tag) is matches


class TestThePipeline:
    def test_links_bring_in_what_the_window_hides(self) -> None:
        memory = Memory(
            [
                Block("new", last_reinforced_at=900, embedding=vector(1, 0)),
                Block("old", last_reinforced_at=0, embedding=vector(1, 0)),
            ],
            [("new", "old", 0.6, 0)],
        )
        found = recall(memory, Question(hours=1000, query=vector(1, 0))).results
        assert [(item.id, item.expanded, item.components[0]) for item in found] == [
            ("new", False, 1.0),
            ("old", True, 1.0),
        ]

    def test_guaranteed_blocks_come_first_and_stay(self) -> None:
        blocks = [Block(f"b{n}", confidence=0.9) for n in range(9)]
        blocks.append(Block("law", tags=("self/constitutional",), last_reinforced_at=-999))
        question = Question(frame=True, k=3, guarantees=("self/constitutional",))
        answer = recall(Memory(blocks, [], [("b0", "law")]), question)
        assert [item.id for item in answer.results] == ["law", "b1", "b2"]
        assert answer.suppressed == ["b0"]

    def test_two_guaranteed_blocks_may_contradict_each_other(self) -> None:
        blocks = [Block("a", tags=("g",)), Block("b", tags=("g",))]
        answer = recall(Memory(blocks, [], [("a", "b")]), Question(frame=True, guarantees=("g",)))
        assert {item.id for item in answer.results} == {"a", "b"}
        assert answer.clashes == [("a", "b")]

    def test_the_weaker_of_two_contradicting_blocks_goes(self) -> None:
        blocks = [Block("a", confidence=0.4), Block("b", confidence=0.6), Block("c", confidence=0.1)]
        answer = recall(Memory(blocks, [], [("a", "b")]), Question(frame=True, k=2))
        assert [item.id for item in answer.results] == ["b", "c"]

    def test_what_is_alike_is_chosen_once(self) -> None:
        memory = Memory(
            [
                Block("a", embedding=vector(1, 0)),
                Block("b", embedding=vector(1, 0.01)),
                Block("c", embedding=vector(0.8, 0.6)),
            ]
        )
        plain = recall(memory, Question(k=2, query=vector(1, 0))).results
        diverse = recall(memory, Question(k=2, query=vector(1, 0), diversify=True)).results
        assert [item.id for item in plain] == ["a", "b"]
        assert [item.id for item in diverse] == ["a", "c"]

    def test_ties_are_broken_by_id(self) -> None:
        found = recall(Memory([Block("b"), Block("a"), Block("c")]), Question(k=2)).results
        assert [item.id for item in found] == ["a", "b"]
