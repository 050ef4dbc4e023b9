"""Paths run in time, each in a lane of its own, and come from where they branched."""

from __future__ import annotations

from dataclasses import replace

import pytest
from chronomemory.drawing import Branch, Step
from chronomemory.drawing.paths import Timeline, timeline
from chronomemory.errors import InvalidArgument
from pictures import history


def told(laid: Timeline) -> list[str]:
    """Spell the rows."""
    return [
        f"{laid.branches[row.branch].id} {row.what}" + (f" {row.step.id}" if row.step else "")
        for row in laid.rows
    ]


def test_rows_are_in_time_and_each_step_is_told_once() -> None:
    assert told(timeline(*history())) == [
        "main begun", "main event e1", "main event e2", "left begun e3", "left event e4", "right begun e5",
        "left merged e6", "main event e7", "main compacted e8", "right event e9", "right abandoned e10",
        "late begun", "late event e11", "late event unknown", "main event e12",
    ]  # fmt: skip


def test_a_path_leaves_its_parent_when_it_begins_and_leads_into_its_target() -> None:
    laid = timeline(*history())
    by_id = {branch.id: lane for branch, lane in zip(laid.branches, laid.lanes, strict=True)}
    rows = told(laid)
    assert by_id["main"].leaves_at is None
    leaves = {name: rows[by_id[name].leaves_at or 0] for name in ("left", "right", "late")}
    assert leaves == {"left": "main event e2", "right": "left event e4", "late": "right abandoned e10"}
    assert by_id["left"].target == [branch.id for branch in laid.branches].index("main")


def test_a_path_leaves_a_parent_that_has_ended_where_it_ended() -> None:
    steps = [Step(name, place=place) for place, name in enumerate(("a1", "end", "b1", "c1"), 1)]
    ended = Branch("a", None, ("a1",), False, abandoned_reason="done", ended_by="end")
    laid = timeline([ended, Branch("b", event_ids=("b1",)), Branch("c", "a", ("c1",))], steps)
    assert told(laid)[laid.lanes[2].leaves_at or 0] == "a abandoned end"


def test_lanes_are_used_again_and_never_by_two_at_once() -> None:
    laid = timeline(*history())
    assert laid.columns == 3
    columns = {branch.id: lane.column for branch, lane in zip(laid.branches, laid.lanes, strict=True)}
    assert columns == {"main": 0, "left": 1, "right": 2, "late": 1}


def test_many_paths_one_after_the_other_need_two_lanes() -> None:
    steps = [Step(f"s{number}", place=number + 1) for number in range(400)]
    branches = [Branch("main", event_ids=tuple(f"s{number}" for number in range(0, 400, 4)))]
    for number in range(1, 396, 4):
        made = Branch(f"p{number}", "main", (f"s{number + 1}",), False, merged_into="main")
        branches.append(replace(made, begun_by=f"s{number}", ended_by=f"s{number + 2}"))
    assert timeline(branches, steps).columns == 2


@pytest.mark.parametrize(
    "branches",
    [
        [Branch("a", "a")],
        [Branch("a", "b"), Branch("b", "a")],
        [Branch("a", "nobody"), Branch("b", merged_into="nobody")],
        [Branch("a", merged_into="b", active=False), Branch("b", merged_into="a", active=False)],
        [Branch("a", merged_into="a", active=False)],
        [Branch("a", event_ids=("x", "x")), Branch("b", event_ids=("x",))],
    ],
    ids=["own parent", "parents in a circle", "nobody", "merged in a circle", "merged into itself", "shared"],
)
def test_what_cannot_be_is_drawn_all_the_same(branches: list[Branch]) -> None:
    laid = timeline(branches, [])
    assert {laid.branches[row.branch].id for row in laid.rows} == {branch.id for branch in branches}
    assert all(lane.leaves_at is None or lane.leaves_at < lane.rows[0] for lane in laid.lanes)


def test_a_path_is_in_its_own_order_whatever_the_clock_says() -> None:
    steps = [Step("late", time="2026-01-01"), Step("early", time="2025-01-01")]
    assert told(timeline([Branch("a", event_ids=("late", "early"))], steps))[1:] == [
        "a event late",
        "a event early",
    ]


def test_two_of_one_id_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="ids of paths must differ, got 'a' twice"):
        timeline([Branch("a"), Branch("a")], [])
    with pytest.raises(InvalidArgument, match="ids of steps must differ, got 's' twice"):
        timeline([], [Step("s"), Step("s")])
