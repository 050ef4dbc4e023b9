"""Dots that belong together lie together, apart from others, and always at the same places."""

from __future__ import annotations

from itertools import combinations
from math import dist, hypot

import pytest
from chronomemory.drawing.layout import STEP_PIXELS, communities, lay_out


def rings(count: int, size: int) -> list[tuple[int, int]]:
    """Link groups, each dot with the next three of its group, and each group with the next by one line."""
    inner = [
        (group * size + at, group * size + (at + step) % size)
        for group in range(count)
        for at in range(size)
        for step in (1, 2, 3)
    ]
    return inner + [(group * size, (group + 1) * size) for group in range(count - 1)]


def test_communities_are_found() -> None:
    found = communities(60, rings(4, 15))
    assert found == [number // 15 for number in range(60)]


def test_without_lines_everyone_is_alone() -> None:
    assert communities(3, []) == [0, 1, 2]
    assert communities(2, [(0, 0), (1, 1)]) == [0, 1]


def test_communities_lie_apart() -> None:
    layout = lay_out(["a"] * 90, rings(6, 15))
    assert len(layout.circles) == 6
    for (x, y, radius), (other_x, other_y, other_radius) in combinations(layout.circles, 2):
        assert hypot(x - other_x, y - other_y) >= radius + other_radius - 1
    for (x, y), community in zip(layout.places, layout.community, strict=True):
        centre_x, centre_y, radius = layout.circles[community]
        assert hypot(x - centre_x, y - centre_y) <= radius


@pytest.mark.parametrize(
    ("size", "links"),
    [
        (1, []),
        (2, [(0, 1)]),
        (2, [(0, 0)]),
        (30, []),
        (200, [(0, number) for number in range(1, 200)]),
        (200, [(number, number + 1) for number in range(199)]),
        (200, [(2 * number, 2 * number + 1) for number in range(100)]),
        (40, list(combinations(range(40), 2))),
        (1_000, rings(20, 50)),
    ],
    ids=["one", "two", "loop", "alone", "star", "chain", "pairs", "all with all", "1,000"],
)
def test_no_two_dots_lie_on_each_other(size: int, links: list[tuple[int, int]]) -> None:
    layout = lay_out(["kind"] * size, links)
    assert len(layout.places) == len(layout.community) == size
    cells: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for place in layout.places:
        cells.setdefault((int(place[0] // STEP_PIXELS), int(place[1] // STEP_PIXELS)), []).append(place)
    nearest = min(
        (dist(*pair) for inside in cells.values() for pair in combinations(inside, 2)), default=99.0
    )
    assert nearest > STEP_PIXELS * 0.4


def test_the_same_graph_lies_the_same_way() -> None:
    assert lay_out(["a"] * 90, rings(6, 15)) == lay_out(["a"] * 90, rings(6, 15))


def test_dots_without_a_line_lie_by_their_kinds() -> None:
    layout = lay_out(["a", "b"] * 20, [])
    assert len(layout.circles) == 2
    assert layout.community == [0, 1] * 20


def test_few_dots_that_are_connected_lie_together() -> None:
    assert len(lay_out(["a"] * 30, rings(2, 15)).circles) == 1


def test_nothing_is_laid_out_as_nothing() -> None:
    assert lay_out([], []).places == []
