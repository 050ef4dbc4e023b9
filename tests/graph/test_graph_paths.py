"""Paths branch, take events, merge, end and compact by their rules, as structured events."""

from __future__ import annotations

import pytest
from chronomemory.graph import (
    DuplicateEventError,
    MemoryEvent,
    MemoryPath,
    PathError,
    abandon,
    branch,
    compact,
    merge,
    record,
)
from workbench import TS, Bench, event

MAIN = MemoryPath("main")


def test_a_branch_has_a_parent_or_is_the_first() -> None:
    assert branch("main", ts=TS) == (
        MAIN,
        MemoryEvent("", "path.branched", TS, "main", data={"parent_id": None}),
    )
    path, told = branch("try", MAIN, ts=TS, event_id="b1")
    assert path == MemoryPath("try", parent_id="main")
    assert (told.id, told.data) == ("b1", {"parent_id": "main"})
    with pytest.raises(PathError, match="off itself"):
        branch("main", MAIN, ts=TS)


def test_events_come_onto_a_path_once_and_in_order() -> None:
    path, told = record(MAIN, ["b", "a", "b"], ts=TS)
    assert path.event_ids == ("b", "a")
    path, told = record(path, ["a", "c"], ts=TS)
    assert path.event_ids == ("b", "a", "c")
    assert told.data == {"event_ids": ["c"]}


def test_a_merge_is_of_active_paths_and_never_a_cycle() -> None:
    child, grandchild = MemoryPath("child", "main"), MemoryPath("grandchild", "child")
    known = {path.id: path for path in (MAIN, child, grandchild)}
    merged, told = merge(grandchild, MAIN, known=known, ts=TS)
    assert (merged.active, merged.merged_into) == (False, "main")
    assert (told.kind, told.data) == ("path.merged", {"merged_into": "main"})
    for path, into, why in (
        (MAIN, MAIN, "into itself"),
        (MAIN, grandchild, "cycle"),
        (merged, MAIN, "was merged into 'main'"),
        (child, merged, "takes no other path"),
        (child, MemoryPath("gone", active=False, abandoned_reason="x"), "was abandoned"),
    ):
        with pytest.raises(PathError, match=why):
            merge(path, into, known=known, ts=TS)


def test_a_cycle_over_a_merge_is_one_too() -> None:
    # By hand: what is merged into a descendant would come back to itself.
    ended = MemoryPath("ended", "a", active=False, merged_into="b")
    paths = {"a": MemoryPath("a"), "b": MemoryPath("b", "ended"), "ended": ended}
    with pytest.raises(PathError, match="cycle"):
        merge(paths["a"], paths["b"], known=paths, ts=TS)


@pytest.mark.parametrize("reason", ["", "  ", None])
def test_to_abandon_needs_a_reason(reason: str) -> None:
    with pytest.raises(PathError, match="a reason is needed"):
        abandon(MAIN, reason, ts=TS)


def test_what_was_abandoned_takes_nothing() -> None:
    ended, told = abandon(MAIN, "it led nowhere", ts=TS)
    assert (ended.active, ended.abandoned_reason) == (False, "it led nowhere")
    assert told.data == {"reason": "it led nowhere"}
    for step in (lambda: record(ended, ["e"], ts=TS), lambda: abandon(ended, "again", ts=TS)):
        with pytest.raises(PathError, match="was abandoned"):
            step()


def test_compacting_deletes_nothing() -> None:
    path = MemoryPath("main", event_ids=("a", "b"))
    done, told = compact(path, summary_id="n", ts=TS)
    assert done.event_ids == ("a", "b")
    assert done.compaction is not None
    assert (done.compaction["events"], done.compaction["summary_id"]) == (2, "n")
    assert told.data["compaction"] == done.compaction
    with pytest.raises(PathError, match="no events"):
        compact(MAIN, ts=TS)


class TestTheRuntime:
    def test_an_event_that_says_true_is_another_than_one_that_says_one(self, bench: Bench) -> None:
        runtime = bench.runtime
        runtime.branch("main")
        path = runtime.record("main", [event("e", data={"n": 1})])
        for other in (True, 1.0):
            with pytest.raises(DuplicateEventError):
                runtime.record("main", [event("e", data={"n": other})])
        assert runtime.record("main", [event("e", data={"n": 1})]).event_ids == path.event_ids

    def test_paths_are_kept_as_the_verbs_return_them(self, bench: Bench) -> None:
        runtime = bench.runtime
        assert runtime.branch("main") == MAIN
        runtime.branch("try", "main")
        assert runtime.record("main", [event("e1"), event("")]).event_ids == ("e1", "said-00000004")
        assert runtime.record("main", [event("e1", path_id="main")]).event_ids == ("e1", "said-00000004")
        runtime.merge("try", "main")
        assert bench.graph.paths() == [
            MemoryPath("main", event_ids=("e1", "said-00000004")),
            MemoryPath("try", "main", active=False, merged_into="main"),
        ]
        said = bench.events.event("e1")
        assert said is not None
        assert said.path_id == "main"
        assert bench.events.replay().paths == {path.id: path for path in bench.graph.paths()}

    def test_what_breaks_a_rule_writes_nothing(self, bench: Bench) -> None:
        bench.runtime.branch("main")
        before, files = bench.events.events(), bench.files()
        for step in (
            lambda: bench.runtime.branch("main"),
            lambda: bench.runtime.branch("try", "nobody"),
            lambda: bench.runtime.record("nobody", [event("e")]),
            lambda: bench.runtime.merge("main", "main"),
            lambda: bench.runtime.merge("main", "nobody"),
            lambda: bench.runtime.abandon("main", ""),
        ):
            with pytest.raises(PathError):
                step()
        assert bench.events.events() == before
        assert bench.files() == files

    def test_what_happens_is_told_without_what_was_said(self, bench: Bench) -> None:
        bench.runtime.branch("main")
        bench.runtime.record("main", [event("e1", data={"text": "a secret"})])
        bench.runtime.abandon("main", "enough")
        told = [one for one in bench.events.events() if one.kind.startswith("path.")]
        assert [one.kind for one in told] == ["path.branched", "path.recorded", "path.abandoned"]
        assert "secret" not in str([one.to_dict() for one in told])
