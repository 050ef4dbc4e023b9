"""A graph, an event log and an audit sink in separate homes: the audit comes before the effect."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from chronomemory.errors import ChronoError
from chronomemory.graph import (
    Action,
    ActionError,
    Approval,
    ApprovalRequired,
    AuditError,
    AuditRecord,
    DuplicateEventError,
    InMemoryAuditSink,
    InMemoryEventLog,
    InMemoryGraphStore,
    JsonlAuditSink,
    JsonlMemoryEventLog,
    MemoryEvent,
    MemoryHome,
    Node,
    PathError,
    PhaseMemoryRuntime,
    Workspace,
)
from chronomemory.graph.changes import Changes, Look
from workbench import Clock, event

PUT = Action("p", "put_node", "cat", {"kind": "pet"})
DELETE = Action("d", "delete_node", "cat")
APPROVED = [Approval.of(DELETE, "ann")]


class UnwillingLog(InMemoryEventLog):
    """An event log that refuses everything while it is told to."""

    refuses = False

    def append_many(self, events: Iterable[MemoryEvent]) -> list[MemoryEvent]:
        if self.refuses:
            raise ChronoError("the log is read-only")
        return super().append_many(events)


class BrokenSink(InMemoryAuditSink):
    """An audit sink that fails for some outcomes."""

    fails_on: tuple[str, ...] = ()

    def record(self, entry: AuditRecord) -> AuditRecord:
        if entry.outcome in self.fails_on:
            raise OSError("no space left")
        return super().record(entry)


@pytest.fixture
def graph() -> InMemoryGraphStore:
    return InMemoryGraphStore(clock=Clock())


@pytest.fixture
def log() -> UnwillingLog:
    return UnwillingLog()


@pytest.fixture
def sink() -> BrokenSink:
    return BrokenSink()


@pytest.fixture
def runtime(graph: InMemoryGraphStore, log: UnwillingLog, sink: BrokenSink) -> PhaseMemoryRuntime:
    return PhaseMemoryRuntime(graph, log, sink, clock=Clock())


def outcomes(runtime: PhaseMemoryRuntime) -> list[str]:
    return [entry.outcome for entry in runtime.audit.records()]


def test_an_applied_action_is_announced_before_and_confirmed_after(runtime: PhaseMemoryRuntime) -> None:
    runtime.apply([PUT])
    assert outcomes(runtime) == ["applying", "applied"]
    announced, applied = runtime.audit.records()
    assert announced.actions == applied.actions
    assert runtime.diagnose() == []


def test_a_refusing_log_leaves_the_graph_unchanged(runtime: PhaseMemoryRuntime, log: UnwillingLog) -> None:
    log.refuses = True
    with pytest.raises(ChronoError, match="read-only"):
        runtime.apply([PUT])
    assert runtime.graph.nodes() == []
    assert outcomes(runtime) == ["applying", "failed"]
    assert runtime.audit.records()[-1].reason == "the log is read-only"
    with pytest.raises(ChronoError, match="read-only"):
        runtime.branch("main")
    assert runtime.graph.paths() == []
    log.refuses = False
    runtime.apply([PUT])
    assert runtime.graph.node("cat") == Node("cat", "pet")
    assert runtime.diagnose() == []


def test_a_raising_sink_leaves_everything_unchanged(runtime: PhaseMemoryRuntime, sink: BrokenSink) -> None:
    runtime.apply([PUT])
    before = runtime.events.events()
    sink.fails_on = ("applying",)
    with pytest.raises(AuditError, match=r"nothing was applied.*no space left"):
        runtime.apply([DELETE], APPROVED)
    assert runtime.graph.node("cat") is not None
    assert runtime.events.events() == before


@pytest.mark.parametrize(
    ("outcome", "action", "approvals"), [("denied", DELETE, []), ("refused", DELETE, APPROVED)]
)
def test_a_denial_that_cannot_be_audited_says_so(
    runtime: PhaseMemoryRuntime, sink: BrokenSink, outcome: str, action: Action, approvals: list[Approval]
) -> None:
    sink.fails_on = (outcome,)
    with pytest.raises(AuditError, match="nothing was applied"):
        runtime.apply([action], approvals)
    assert runtime.events.events() == []


def test_an_outcome_that_cannot_be_audited_is_a_warning(
    runtime: PhaseMemoryRuntime, sink: BrokenSink
) -> None:
    sink.fails_on = ("applied",)
    with pytest.warns(RuntimeWarning, match=r"outcome 'applied'.*no space left"):
        runtime.apply([PUT])
    assert runtime.graph.node("cat") is not None
    assert outcomes(runtime) == ["applying"]


def test_a_refused_action_is_not_announced(runtime: PhaseMemoryRuntime) -> None:
    with pytest.raises(ActionError, match="there is no node"):
        runtime.apply([DELETE], APPROVED)
    with pytest.raises(ApprovalRequired):
        runtime.apply([DELETE])
    assert outcomes(runtime) == ["refused", "denied"]


def test_an_action_is_applied_once_though_its_event_is_in_another_home(runtime: PhaseMemoryRuntime) -> None:
    runtime.apply([PUT])
    runtime.apply([DELETE], APPROVED)
    runtime.graph.save_node(Node("cat", "pet"))
    with pytest.raises(ActionError, match="applied before"):
        runtime.apply([DELETE], APPROVED)
    assert runtime.graph.node("cat") is not None


def test_a_duplicate_event_leaves_the_path_unchanged(runtime: PhaseMemoryRuntime) -> None:
    runtime.branch("main")
    runtime.record("main", [event("e")])
    with pytest.raises(DuplicateEventError):
        runtime.record("main", [event("f"), event("e", "other")])
    path = runtime.graph.path("main")
    assert path is not None and path.event_ids == ("e",)
    assert runtime.events.event("f") is None
    with pytest.raises(PathError):
        runtime.branch("main")
    assert runtime.diagnose() == []


class UnwillingHome(MemoryHome):
    """A home that accepts no change, even after it was worked out."""

    def run(self, work: Callable[[Look], Changes]) -> Changes:
        work(self.look())
        raise ChronoError("the disk is full")


def test_an_effect_that_fails_after_its_event_is_audited_and_diagnosed(log: UnwillingLog) -> None:
    runtime = PhaseMemoryRuntime(InMemoryGraphStore(UnwillingHome()), log, InMemoryAuditSink(), clock=Clock())
    with pytest.raises(ChronoError, match="disk is full"):
        runtime.apply([PUT])
    assert outcomes(runtime) == ["applying", "failed"]
    assert [(one.code, one.id) for one in runtime.diagnose()] == [("replay-drift", "cat")]


@pytest.mark.parametrize("shared", ["events", "audit", "neither"])
def test_a_workspace_works_with_a_log_or_a_sink_of_another_home(tmp_path: Path, shared: str) -> None:
    with Workspace.create(tmp_path / "w", clock=Clock()) as workspace:
        events = workspace.events if shared == "events" else JsonlMemoryEventLog(tmp_path / "events.jsonl")
        audit = workspace.audit if shared == "audit" else JsonlAuditSink(tmp_path / "audit.jsonl")
        runtime = PhaseMemoryRuntime(workspace.graph, events, audit, clock=Clock())
        runtime.apply([PUT])
        runtime.branch("main")
        runtime.record("main", [event("e", refs=("cat",))])
        runtime.apply([DELETE], APPROVED)
        assert [entry.outcome for entry in audit.records()] == ["applying", "applied"] * 2
        assert [one.code for one in runtime.diagnose()] == ["orphan-event"]


def test_what_the_store_saves_itself_is_part_of_the_replay() -> None:
    clock = Clock()
    graph, log = InMemoryGraphStore(clock=clock), InMemoryEventLog()
    runtime = PhaseMemoryRuntime(graph, log, InMemoryAuditSink(), clock=clock)
    for number in range(3):
        graph.save_node(Node("cat", "pet", f"Cat {number}"))
        delete = Action(f"d{number}", "delete_node", "cat")
        runtime.apply([delete], [Approval.of(delete, "ann")])
        assert runtime.diagnose() == []
    graph.save_node(Node("cat", "pet"))
    assert runtime.diagnose() == []


def test_events_and_audit_may_share_a_home_without_the_graph(graph: InMemoryGraphStore) -> None:
    home = MemoryHome()
    runtime = PhaseMemoryRuntime(graph, InMemoryEventLog(home), InMemoryAuditSink(home), clock=Clock())
    runtime.branch("main")
    runtime.apply([PUT])
    assert runtime.diagnose() == []
