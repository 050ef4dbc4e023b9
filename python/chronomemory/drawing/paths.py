"""Paths as a page: a lane for each, its events in time, where it branched, was merged or abandoned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from chronomemory.drawing.lanes import ABANDONED, COMPACTED, EVENT, MERGED, Row, Timeline, timeline
from chronomemory.drawing.page import counted, page_of
from chronomemory.drawing.parts import Branch, Step
from chronomemory.drawing.wording import clean, excerpt

__all__ = ["paths_page"]

_SCRIPTS = ("shell.js", "paths.js")
_NAME_LETTERS = 300
_NOTE_LETTERS = 1000
#: The states of a path, in the order of the legend.
_STATES = ("open", "merged", "abandoned", "closed")


def paths_page(
    branches: Iterable[Branch],
    steps: Iterable[Step] = (),
    *,
    title: str = "Paths",
    note: str = "",
    empty: str = "There are no paths to draw yet.",
) -> str:
    """Return the page; the same paths and steps give the same page, in whatever order they come.

    The events of a path are in its order. Those of which no step tells are drawn by their ids alone;
    steps that no path names are counted and left out.

    Raises:
        InvalidArgument: Two paths, or two steps, have the same id.

    >>> page = paths_page([Branch("main"), Branch("try", "main", abandoned_reason="too slow")])
    >>> "too slow" in page
    True
    """
    laid = timeline(branches, steps)
    states = [_state(branch) for branch in laid.branches]
    count = Counter(states)
    kinds = sorted(Counter(_kind(row) for row in laid.rows if row.what == EVENT).items())
    kinds.sort(key=lambda pair: (-pair[1], pair[0]))
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
        "rows": [_told(row, laid, kind_number) for row in laid.rows],
    }
    return page_of("paths.html", _SCRIPTS, data, {"__HEADING__": title, "__NOTE__": note})


def _state(branch: Branch) -> str:
    if branch.merged_into is not None:
        return "merged"
    if branch.abandoned_reason is not None:
        return "abandoned"
    return "open" if branch.active else "closed"


def _kind(row: Row) -> str:
    return row.step.kind if row.step is not None else ""


def _told(row: Row, laid: Timeline, kinds: dict[str, int]) -> list[object]:
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
