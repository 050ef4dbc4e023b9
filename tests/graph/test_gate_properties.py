"""Random verbs, failing homes and forged events: replay equals store, and each attempt is audited once."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path

import pytest
from chronomemory.errors import ChronoError
from chronomemory.graph import (
    Action,
    ActivationPlan,
    Approval,
    AuditError,
    AuditRecord,
    Edge,
    GraphError,
    InMemoryAuditSink,
    InMemoryEventLog,
    InMemoryGraphStore,
    JsonlAuditSink,
    JsonlMemoryEventLog,
    MemoryEvent,
    MemoryHome,
    MemoryPath,
    Node,
    PhaseMemoryRuntime,
    Profile,
    Workspace,
)
from chronomemory.graph.changes import GRAPH_KINDS
from chronomemory.graph.stores import GraphStore
from workbench import Clock, event

NAMES = ["a", "b", "c"]
PATHS = ["main", "try"]
#: Findings that random verbs cause by themselves: they name what is not there.
DANGLING = {"missing-endpoint", "orphan-event", "orphan-path", "orphan-plan"}


class Faults:
    """Which part fails at its next call."""

    def __init__(self) -> None:
        self.next = ""

    def hit(self, part: str) -> None:
        if self.next == part:
            self.next = ""
            raise ChronoError(f"{part} refused") if part == "log" else OSError(f"{part} failed")


class FaultyLog:
    """An event log in front of another one, which may refuse."""

    def __init__(self, log: InMemoryEventLog | JsonlMemoryEventLog, faults: Faults) -> None:
        self._log, self._faults = log, faults
        self.event, self.events, self.replay, self.diagnose = log.event, log.events, log.replay, log.diagnose

    def append(self, one: MemoryEvent) -> MemoryEvent:
        return self.append_many([one])[0]

    def append_many(self, events: Iterable[MemoryEvent]) -> list[MemoryEvent]:
        self._faults.hit("log")
        return self._log.append_many(events)


class FaultySink:
    """An audit sink in front of another one, which may fail."""

    def __init__(self, sink: InMemoryAuditSink | JsonlAuditSink, faults: Faults) -> None:
        self._sink, self._faults = sink, faults
        self.records = sink.records

    def record(self, entry: AuditRecord) -> AuditRecord:
        self._faults.hit(f"sink {entry.outcome}")
        self._faults.hit("sink")
        return self._sink.record(entry)


class Parts:
    """A runtime over some arrangement of homes, and what the test knows of its attempts."""

    def __init__(self, arrangement: str, folder: Path, stack: ExitStack) -> None:
        self.faults, self.attempts, clock = Faults(), 0, Clock()
        self.workspace: Workspace | None = None
        home = MemoryHome()
        self.graph: GraphStore = InMemoryGraphStore(home, clock=clock)
        if "folder" in arrangement:
            self.workspace = stack.enter_context(
                Workspace.create(folder / "w", clock=clock, durability="off")
            )
            self.graph = self.workspace.graph
        self.one_home = arrangement.endswith("one home")
        if self.one_home and self.workspace is not None:
            self.runtime = self.workspace.runtime
        elif self.one_home:
            self.runtime = PhaseMemoryRuntime(
                self.graph, InMemoryEventLog(home), InMemoryAuditSink(home), clock=clock
            )
        else:
            in_files = arrangement.endswith("files")
            log = JsonlMemoryEventLog(folder / "log.jsonl") if in_files else InMemoryEventLog()
            sink = JsonlAuditSink(folder / "audit.jsonl") if in_files else InMemoryAuditSink()
            self.runtime = PhaseMemoryRuntime(
                self.graph, FaultyLog(log, self.faults), FaultySink(sink, self.faults), clock=clock
            )

    def apply(self, actions: list[Action], approvals: list[Approval]) -> None:
        self.attempts += 1
        try:
            self.runtime.apply(actions, approvals)
        except AuditError:
            self.attempts -= 1  # the sink failed before anything was applied, and the error says so
            raise

    def check(self) -> None:
        findings = self.runtime.diagnose()
        assert {one.code for one in findings} <= DANGLING, findings
        outcomes = [entry.outcome for entry in self.runtime.audit.records()]
        assert len([one for one in outcomes if one != "applying"]) == self.attempts
        assert self.one_home or outcomes.count("applying") == outcomes.count("applied") + outcomes.count(
            "failed"
        )
        applied = [
            action["id"]
            for entry in self.runtime.audit.records()
            if entry.outcome == "applied"
            for action in entry.actions
        ]
        told = [one.data["action"]["id"] for one in self.runtime.events.events("action.applied")]
        assert applied == told
        if self.one_home:
            replayed = self.runtime.events.replay()
            assert {node.id: node for node in self.graph.nodes()} == replayed.nodes
            assert {edge.id: edge for edge in self.graph.edges()} == replayed.edges
            assert {path.id: path for path in self.graph.paths()} == replayed.paths


def some_action(chance: random.Random, number: int) -> Action:
    one, other = chance.choice(NAMES), chance.choice(NAMES)
    payloads: dict[str, tuple[str, dict[str, object]]] = {
        "put_node": (one, {"kind": "k", "data": {"n": number}}),
        "put_edge": (f"{one}-{other}", {"source": one, "target": other, "kind": "k"}),
        "delete_node": (one, {"edges": True}),
        "delete_edge": (f"{one}-{other}", {}),
        "supersede": (one, {"by": other}),
        "compact_path": (chance.choice(PATHS), {}),
        "set_phase": (one, {"phase": "stable"}),
    }
    op = chance.choice(list(payloads))
    return Action(f"act-{number}", op, *payloads[op])


def forged_event(chance: random.Random, number: int) -> MemoryEvent:
    kind = chance.choice([*sorted(GRAPH_KINDS), "said", "path.note"])
    forged_id = f"action.applied:act-{number + chance.randrange(40)}"
    data = chance.choice(
        [
            {},
            {"gone_nodes": NAMES},
            {"nodes": [{"id": "ghost", "kind": "k"}]},
            {"paths": [{"id": "main", "active": False}]},
            {"event_ids": ["x"], "reason": "no", "merged_into": "try", "parent_id": None},
        ]
    )
    named = kind == "said" or chance.random() < 0.5
    return event(forged_id if named else "", kind, path_id=chance.choice([None, *PATHS]), data=data)


def step(chance: random.Random, number: int, parts: Parts) -> Callable[[], object]:
    """One call of a public verb; many of them are refused."""
    graph, runtime = parts.graph, parts.runtime
    one, other, path = chance.choice(NAMES), chance.choice(NAMES), chance.choice(PATHS)
    actions = [some_action(chance, number * 10 + place) for place in range(chance.randint(1, 2))]
    approvals = [Approval.of(action, "ann") for action in actions if chance.random() < 0.9]
    forged = forged_event(chance, number)
    steps: list[Callable[[], object]] = [
        lambda: graph.save(nodes=[Node(one, "k", str(number))], edges=[Edge(one, one, other, "k")]),
        lambda: graph.save_profile(Profile(one)),
        lambda: graph.save_path(MemoryPath("try", "main")),
        lambda: graph.save_plan(ActivationPlan("plan", one, (other,))),
        lambda: runtime.branch(path, None if path == "main" else "main"),
        lambda: runtime.record(path, [event(f"e{number // 2}"), event("")]),
        lambda: runtime.merge(path, "main"),
        lambda: runtime.abandon(path, "no"),
        lambda: runtime.events.append(event(f"e{number // 2}")),
        lambda: runtime.record(path, [event(f"f{number}"), forged]),
        lambda: parts.apply(actions, approvals),
        lambda: parts.apply(actions, approvals),
        lambda: parts.apply(actions * 2, approvals),
    ]
    if parts.one_home:
        # A log of its own has no graph to agree with: what is appended to it directly is diagnosed.
        steps.append(lambda: runtime.events.append_many([event(f"f{number}"), forged]))
    if parts.workspace is not None and parts.one_home:
        workspace = parts.workspace
        steps.append(lambda: workspace.import_graph({"events": [forged.to_dict()]}))
        steps.append(lambda: workspace.import_graph(workspace.graph.export()))
    return chance.choice(steps)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    "arrangement",
    ["memory, one home", "folder, one home", "memory, apart", "folder, apart", "memory, files"],
)
def test_replay_and_store_stay_equal_and_every_attempt_is_audited_once(
    arrangement: str, seed: int, tmp_path: Path
) -> None:
    chance = random.Random(f"{arrangement} {seed}")
    refusals = 0
    with ExitStack() as stack:
        parts = Parts(arrangement, tmp_path, stack)
        parts.graph.save(nodes=[Node(name, "k") for name in NAMES])
        for number in range(30):
            call = step(chance, number, parts)
            parts.faults.next = (
                "" if parts.one_home else chance.choice(["", "", "log", "sink", "sink applying"])
            )
            try:
                call()
            except (GraphError, ChronoError, OSError):
                refusals += 1
            parts.faults.next = ""
            parts.check()
        if parts.workspace is not None and parts.one_home:
            assert {one.code for one in parts.workspace.diagnose()} <= DANGLING
    assert refusals
