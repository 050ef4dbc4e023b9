"""Paths as an HTML timeline: one lane per path, its events in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush

from chronomemory.drawing.page import by_count, clean, counted, excerpt, page_of
from chronomemory.drawing.parts import Branch, Step, sorted_by_id

BEGUN, EVENT, COMPACTED, MERGED, ABANDONED = "begun", "event", "compacted", "merged", "abandoned"

_Moment = tuple[int, str]
_RowKey = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Row:
    """One row: what happened to a path (by its number), and the step that did it, if it is known."""

    branch: int
    what: str
    step: Step | None


@dataclass(slots=True)
class Lane:
    """Where a path runs: its column, at which row it leaves which path, and into which it leads."""

    rows: list[int] = field(default_factory=list)
    column: int = 0
    parent: int | None = None
    leaves_at: int | None = None
    target: int | None = None


@dataclass(frozen=True, slots=True)
class Timeline:
    """Paths in the order of their ids, their lanes, all rows in time, and how many steps belong to none."""

    branches: list[Branch]
    lanes: list[Lane]
    rows: list[Row]
    columns: int
    unowned: int


def timeline(branches: Iterable[Branch], steps: Iterable[Step]) -> Timeline:
    """Lay paths out; a missing parent or a cycle is drawn without its curve."""
    found = sorted_by_id(branches, "paths")
    known = {step.id: step for step in sorted_by_id(steps, "steps")}
    number = {branch.id: place for place, branch in enumerate(found)}
    chains = [_chain(place, branch, known) for place, branch in enumerate(found)]
    named = {row.step.id for chain in chains for row in chain if row.step is not None}
    rows = _ordered(found, chains, number)
    lanes = [Lane() for _ in found]
    for place, row in enumerate(rows):
        lanes[row.branch].rows.append(place)
    for lane, branch in zip(lanes, found, strict=True):
        # A path leaves its parent just above its beginning, or where the parent had ended by then.
        parent, target = number.get(branch.parent_id or ""), number.get(branch.merged_into or "")
        if parent is not None and lanes[parent] is not lane and lanes[parent].rows[0] < lane.rows[0]:
            last = lanes[parent].rows[-1]
            ended = rows[last].what in (MERGED, ABANDONED) and last < lane.rows[0]
            lane.parent, lane.leaves_at = parent, last if ended else lane.rows[0] - 1
        if target is not None and lanes[target] is not lane:
            lane.target = target
    columns = _columned(lanes)
    return Timeline(found, lanes, rows, columns, len(known.keys() - named))


def _chain(place: int, branch: Branch, known: dict[str, Step]) -> list[Row]:
    special = {branch.begun_by, branch.ended_by, branch.compacted_by} - {None}

    def row(what: str, step_id: str | None) -> Row:
        return Row(place, what, None if step_id is None else known.get(step_id, Step(step_id)))

    chain = [row(BEGUN, branch.begun_by)]
    chain += [row(EVENT, one) for one in branch.event_ids if one not in special]
    if branch.compaction is not None:
        # Where its time is; without one it goes to the end.
        compacted = row(COMPACTED, branch.compacted_by)
        moment = _moment(compacted)
        later = [at for at, due in enumerate(_moments(chain)) if moment is not None and at and due > moment]
        chain.insert(later[0] if later else len(chain), compacted)
    if branch.merged_into is not None:
        chain.append(row(MERGED, branch.ended_by))
    elif branch.abandoned_reason is not None:
        chain.append(row(ABANDONED, branch.ended_by))
    return chain


def _moment(row: Row) -> _Moment | None:
    """Say when a row is due, if its step knows."""
    step = row.step
    return None if step is None or (step.place == 0 and not step.time) else (step.place, step.time)


def _moments(chain: Sequence[Row]) -> list[_Moment]:
    due = [_moment(row) for row in chain]
    last = next((moment for moment in due if moment is not None), (0, ""))
    moments = []
    for moment in due:
        last = max(last, moment) if moment is not None else last
        moments.append(last)
    return moments


def _ordered(branches: list[Branch], chains: list[list[Row]], number: dict[str, int]) -> list[Row]:
    """Merge the rows of all paths by time, a parent's beginning before its children's."""
    due = [_moments(chain) for chain in chains]
    before: dict[_RowKey, set[_RowKey]] = {
        (place, at): {(place, at - 1)} if at else set()
        for place, chain in enumerate(chains)
        for at in range(len(chain))
    }
    across = list(_across(branches, chains, number))
    try:
        sorter = TopologicalSorter(before)
        for later, earlier in across:
            sorter.add(later, earlier)
        sorter.prepare()
    except CycleError:  # paths that wait for each other are ordered by time alone
        sorter = TopologicalSorter(before)
        sorter.prepare()
    ready: list[tuple[_Moment, int, int]] = []
    rows = []
    while sorter.is_active():
        for place, at in sorter.get_ready():
            heappush(ready, (due[place][at], place, at))
        _, place, at = heappop(ready)
        rows.append(chains[place][at])
        sorter.done((place, at))
    return rows


def _across(
    branches: list[Branch], chains: list[list[Row]], number: dict[str, int]
) -> Iterator[tuple[_RowKey, _RowKey]]:
    for place, (branch, chain) in enumerate(zip(branches, chains, strict=True)):
        parent = number.get(branch.parent_id or "")
        if parent is not None and parent != place:
            yield (place, 0), (parent, 0)
        target = number.get(branch.merged_into or "")
        if target is not None and target != place and chains[target][-1].what in (MERGED, ABANDONED):
            yield (target, len(chains[target]) - 1), (place, len(chain) - 1)


def _columned(lanes: list[Lane]) -> int:
    """Give each path the first column that is free while it runs; return how many there are."""
    spans = [
        [lane.rows[0] if lane.leaves_at is None else lane.leaves_at + 1, lane.rows[-1]] for lane in lanes
    ]
    for lane in lanes:
        if lane.parent is not None and lane.leaves_at is not None:
            spans[lane.parent][1] = max(spans[lane.parent][1], lane.leaves_at)
        if lane.target is not None:
            spans[lane.target][1] = max(spans[lane.target][1], lane.rows[-1] + 1)
    taken: list[list[list[int]]] = []
    for place in sorted(range(len(lanes)), key=lambda one: (lanes[one].rows[0], one)):
        first, last = spans[place]
        free = (
            column
            for column, others in enumerate(taken)
            if all(end < first or last < begin for begin, end in others)
        )
        column = lanes[place].column = next(free, len(taken))
        if column == len(taken):
            taken.append([])
        taken[column].append(spans[place])
    return len(taken)


_SCRIPTS = ("shell.js", "paths.js")
_NAME_LETTERS = 300
_NOTE_LETTERS = 1000
_STATES = ("open", "merged", "abandoned", "closed")


def paths_page(
    branches: Iterable[Branch],
    steps: Iterable[Step] = (),
    *,
    title: str = "Paths",
    note: str = "",
    empty: str = "There are no paths to draw yet.",
) -> str:
    """Return the page, which is the same for the same paths and steps; steps of no path are counted."""
    laid = timeline(branches, steps)
    states = [_state(branch) for branch in laid.branches]
    count = Counter(states)
    kinds = by_count(row.step.kind if row.step else "" for row in laid.rows if row.what == EVENT)
    kind_number = {kind: place for place, (kind, _) in enumerate(kinds)}
    events = sum(row.what == EVENT for row in laid.rows)
    counts = [counted(len(laid.branches), "path"), counted(events, "event")]
    counts += [f"{count[state]:,} {state}" for state in _STATES if count[state]]
    if laid.unowned:
        counts.append(f"{counted(laid.unowned, 'event')} of no path left out")
    data = {
        "counts": counts,
        "empty": clean(empty),
        "columns": laid.columns,
        "kinds": [[excerpt(kind, 80), number] for kind, number in kinds],
        "paths": [
            [
                excerpt(branch.id, _NAME_LETTERS),
                states[place],
                laid.lanes[place].column,
                laid.lanes[place].parent,
                laid.lanes[place].leaves_at,
                laid.lanes[place].target,
            ]
            for place, branch in enumerate(laid.branches)
        ],
        "rows": [_row_data(row, laid, kind_number) for row in laid.rows],
    }
    return page_of("paths.html", _SCRIPTS, data, {"__HEADING__": title, "__NOTE__": note})


def _state(branch: Branch) -> str:
    if branch.merged_into is not None:
        return "merged"
    if branch.abandoned_reason is not None:
        return "abandoned"
    return "open" if branch.active else "closed"


def _row_data(row: Row, laid: Timeline, kinds: dict[str, int]) -> list[object]:
    branch, step = laid.branches[row.branch], row.step or Step("")
    texts = {
        MERGED: f"merged into {branch.merged_into}",
        ABANDONED: f"abandoned: {branch.abandoned_reason}" if branch.abandoned_reason else "abandoned",
        COMPACTED: f"compacted: {branch.compaction}" if branch.compaction else "compacted",
        EVENT: "",
    }
    text = texts.get(row.what, "" if branch.parent_id is None else f"branched from {branch.parent_id}")
    return [
        row.branch,
        row.what,
        excerpt(text, _NOTE_LETTERS),
        excerpt(step.id, _NAME_LETTERS),
        kinds.get(step.kind, -1) if row.what == EVENT else -1,
        excerpt(step.time, 80),
        excerpt(step.note, _NOTE_LETTERS),
    ]
