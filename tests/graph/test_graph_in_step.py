"""The graph in memory, the one in a folder and the replay stay the same, whatever happens."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from chronomemory.graph import (
    Action,
    ActivationPlan,
    Approval,
    Edge,
    GraphError,
    MemoryPath,
    Node,
    Profile,
    Workspace,
)
from workbench import START, Bench, event, in_folder, in_memory, view_of

NAMES = ["a", "b", "C", "d/e", ".."]
PATHS = ["main", "try", "else"]

Step = Callable[[Bench], object]


def some_action(chance: random.Random, number: int) -> Action:
    one, other = chance.choice(NAMES), chance.choice(NAMES)
    payloads: dict[str, tuple[str, dict[str, object]]] = {
        "put_node": (one, {"kind": chance.choice("xy"), "data": {"n": number}}),
        "put_edge": (f"{one}-{other}", {"source": one, "target": other, "kind": "k"}),
        "delete_node": (one, {"edges": chance.random() < 0.8}),
        "delete_edge": (f"{one}-{other}", {}),
        "supersede": (one, {"by": other}),
        "compact_path": (chance.choice(PATHS), {}),
        "set_phase": (one, {"phase": "stable"}),
    }
    op = chance.choice(list(payloads))
    return Action(f"act-{number}", op, *payloads[op])


def some_step(chance: random.Random, number: int) -> Step:
    """Something to do; it may well be refused."""
    one, other, path = chance.choice(NAMES), chance.choice(NAMES), chance.choice(PATHS)
    actions = [some_action(chance, number * 10 + place) for place in range(chance.randint(1, 3))]
    approvals = [Approval.of(action, "ann") for action in actions if chance.random() < 0.9]
    steps: list[Step] = [
        lambda bench: bench.graph.save_node(Node(one, "x", f"node {number}")),
        lambda bench: bench.graph.save(
            nodes=[Node(one, "y"), Node(other, "x")], edges=[Edge("e", one, other, "k")]
        ),
        lambda bench: bench.graph.save_edge(Edge(f"{one}-{other}", one, other, "k", {"n": number})),
        lambda bench: bench.graph.save_profile(Profile(one, other)),
        lambda bench: bench.graph.save_path(MemoryPath("else", "main")),
        lambda bench: bench.graph.save_plan(ActivationPlan("plan", one, (other,))),
        lambda bench: bench.events.append(event(f"e{chance_of(number)}", path_id=path)),
        lambda bench: bench.runtime.branch(path, None if path == "main" else "main"),
        lambda bench: bench.runtime.record(path, [event(f"r{number}"), event("")]),
        lambda bench: bench.runtime.merge(path, "main"),
        lambda bench: bench.runtime.abandon(path, "no"),
        lambda bench: bench.runtime.apply(actions, approvals),
        lambda bench: bench.runtime.apply(actions, approvals),
    ]
    return chance.choice(steps)


def chance_of(number: int) -> int:
    """Now and then the same id again."""
    return number // 3


def tried(step: Step, bench: Bench) -> str:
    """Take a step; say how it ended."""
    try:
        step(bench)
    except GraphError as error:
        return f"{type(error).__name__}: {error}"
    return "done"


@pytest.mark.parametrize("seed", range(12))
def test_both_stay_the_same(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    plain, kept = in_memory(lambda: START), in_folder(tmp_path / "w", lambda: START)
    workspace = kept.workspace
    assert workspace is not None
    with workspace:
        for number in range(25):
            step = some_step(chance, number)
            before = view_of(workspace.folder)
            ended = tried(step, plain)
            assert tried(step, kept) == ended
            if ended != "done":
                after = view_of(workspace.folder)
                changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
                assert changed <= {"audit.jsonl"}
            if number == 12:
                workspace.store.compact()
        assert kept.graph.export() == plain.graph.export()
        assert kept.graph.plans() == plain.graph.plans()
        assert kept.audit.records() == plain.audit.records()
        assert kept.graph.components() == plain.graph.components()
        assert workspace.replay() == workspace.snapshot() == plain.events.replay()
        codes = {finding.code for finding in workspace.diagnose()}
        assert codes <= {"missing-endpoint", "orphan-event", "orphan-path", "orphan-plan"}
        assert workspace.rebuild().written == 0
    with Workspace.open(tmp_path / "w") as again:
        assert again.graph.export() == plain.graph.export()
