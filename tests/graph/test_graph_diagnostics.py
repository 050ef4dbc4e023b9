"""One fault gives exactly its code, a clean workspace none, and no bytes at all a crash."""

from __future__ import annotations

import json
import random
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from chronomemory.graph import Action, ActivationPlan, Approval, Edge, Workspace, WorkspaceError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from workbench import Clock, event, furnish, in_folder, view_of


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with something in every file."""
    folder = tmp_path_factory.mktemp("made") / "w"
    bench = in_folder(folder)
    furnish(bench)
    action = Action("d", "delete_edge", "bob-tea")
    bench.runtime.apply([action], [Approval.of(action, "ann")])
    assert bench.workspace is not None
    bench.workspace.close()
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "w")
    return tmp_path / "w"


def edited(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))


def codes_of(folder: Path) -> list[str]:
    before = view_of(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        with Workspace.open(folder) as workspace:
            found = workspace.diagnose()
    assert view_of(folder) == before
    assert all(one.level in ("error", "warning") and one.message and one.where for one in found)
    return [one.code for one in found]


def test_a_clean_workspace_gives_none(folder: Path) -> None:
    assert codes_of(folder) == []


def lines_of(content: bytes) -> list[bytes]:
    return content.splitlines(keepends=True)


SEEDED: dict[str, tuple[str, Callable[[Path], None]]] = {
    "a node is edited": (
        "view-drift",
        lambda w: edited(w / "nodes/ann.json", lambda b: b.replace(b"Ann", b"Eve")),
    ),
    "a node is gone": ("view-drift", lambda w: (w / "nodes/ann.json").unlink()),
    "a node is cut": ("view-drift", lambda w: edited(w / "nodes/ann.json", lambda b: b[:20])),
    "a node too many": (
        "view-drift",
        lambda w: (w / "nodes/eve.json").write_bytes((w / "nodes/ann.json").read_bytes()) and None,
    ),
    "a draft is left": (
        "view-drift",
        lambda w: (w / "edges/.0123456789abcdef.part").write_bytes(b"half") and None,
    ),
    "a folder is gone": ("view-drift", lambda w: shutil.rmtree(w / "profiles")),
    "an edge points elsewhere": (
        "view-drift",
        lambda w: edited(w / "edges/ann-tea.json", lambda b: b.replace(b'"tea"', b'"beer"')),
    ),
    "workspace.json is edited": (
        "view-drift",
        lambda w: edited(w / "workspace.json", lambda b: b.replace(b'"log_seq": ', b'"log_seq": 1')),
    ),
    "workspace.json is gone": ("view-drift", lambda w: (w / "workspace.json").unlink()),
    "an event is gone": (
        "view-drift",
        lambda w: edited(w / "events.jsonl", lambda b: b"".join(lines_of(b)[1:])),
    ),
    "the last event is gone": (
        "view-drift",
        lambda w: edited(w / "events.jsonl", lambda b: b"".join(lines_of(b)[:-1])),
    ),
    "an event is edited": (
        "view-drift",
        lambda w: edited(w / "events.jsonl", lambda b: b.replace(b'"since":1999', b'"since":2000')),
    ),
    "an event too many": (
        "view-drift",
        lambda w: edited(
            w / "events.jsonl", lambda b: b + lines_of(b)[0].replace(b"profile.saved-0", b"profile.saved-9")
        ),
    ),
    "events in another order": (
        "view-drift",
        lambda w: edited(w / "events.jsonl", lambda b: b"".join(reversed(lines_of(b)))),
    ),
    "blank lines": ("view-drift", lambda w: edited(w / "events.jsonl", lambda b: b + b"\n\n")),
    "the events are gone": ("view-drift", lambda w: (w / "events.jsonl").unlink()),
    "the audit is edited": (
        "view-drift",
        lambda w: edited(w / "audit.jsonl", lambda b: b.replace(b'"ann"', b'"eve"')),
    ),
    "an event is cut": ("malformed-line", lambda w: edited(w / "events.jsonl", lambda b: b[:-30])),
    "an event is garbage": (
        "malformed-line",
        lambda w: edited(w / "events.jsonl", lambda b: b"".join([b"garbage\n", *lines_of(b)[1:]])),
    ),
    "garbage is added": ("malformed-line", lambda w: edited(w / "events.jsonl", lambda b: b + b"\xff\xfe\n")),
    "an event lost its id": (
        "malformed-line",
        lambda w: edited(w / "events.jsonl", lambda b: b.replace(b'"id":"e1"', b'"ix":"e1"')),
    ),
    "an audit record is no object": (
        "malformed-line",
        lambda w: edited(w / "audit.jsonl", lambda b: b"[]\n" + b),
    ),
    "an event is there twice": (
        "duplicate-id",
        lambda w: edited(w / "events.jsonl", lambda b: b + lines_of(b)[2]),
    ),
    "an audit record is there twice": ("duplicate-id", lambda w: edited(w / "audit.jsonl", lambda b: b + b)),
    "a node of another version": (
        "unknown-schema",
        lambda w: edited(w / "nodes/ann.json", lambda b: b.replace(b"node/1", b"node/2")),
    ),
    "a workspace of another version": (
        "unknown-schema",
        lambda w: edited(w / "workspace.json", lambda b: b.replace(b"workspace/1", b"workspace/2")),
    ),
    "an event of another version": (
        "unknown-schema",
        lambda w: edited(w / "events.jsonl", lambda b: b.replace(b"event/1", b"event/2", 1)),
    ),
}


@pytest.mark.parametrize("fault", SEEDED)
def test_one_fault_gives_exactly_its_code(folder: Path, fault: str) -> None:
    code, seed = SEEDED[fault]
    seed(folder)
    assert set(codes_of(folder)) == {code}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        with Workspace.open(folder) as workspace:
            workspace.rebuild()
    assert codes_of(folder) == []


def test_an_edge_into_nothing(folder: Path) -> None:
    with Workspace.open(folder) as workspace:
        workspace.graph.save_edge(Edge("x", "ann", "ghost", "k"))
        (found,) = workspace.diagnose()
    assert (found.code, found.id) == ("missing-endpoint", "x")
    assert "'ghost'" in found.message


@pytest.mark.parametrize(
    ("more", "lost"),
    [
        ({"path_id": "nowhere"}, "nowhere"),
        ({"refs": ("ann", "nobody")}, "nobody"),
        ({"refs": ("edge:ann",)}, "edge:ann"),
    ],
)
def test_an_event_that_names_nothing(folder: Path, more: dict[str, object], lost: str) -> None:
    with Workspace.open(folder) as workspace:
        workspace.events.append(event("ok", refs=("ann", "node:ann", "path:main", "ann-tea", "e1")))
        workspace.events.append(event("x", **more))
        (found,) = workspace.diagnose()
        assert (found.code, found.id) == ("orphan-event", "x")
        assert lost in found.message


@pytest.mark.parametrize(
    ("plan", "lost"),
    [
        (ActivationPlan("x", "ann", ("tea", "nobody")), "'nobody'"),
        (ActivationPlan("x", "nobody", ("tea",)), "'nobody'"),
    ],
)
def test_a_plan_that_names_nothing(folder: Path, plan: ActivationPlan, lost: str) -> None:
    with Workspace.open(folder) as workspace:
        workspace.graph.save_plan(ActivationPlan("ok", "ann", ("ann", "tea")))
        workspace.graph.save_plan(plan)
        (found,) = workspace.diagnose()
        assert (found.code, found.where, found.id) == ("orphan-plan", "activation_plans", "x")
        assert lost in found.message


def test_a_break_of_the_chain(folder: Path) -> None:
    log = folder / ".chronomemory" / "events.wal"
    lines = lines_of(log.read_bytes())
    lines[3] = lines[3].replace(b'"ann"', b'"eve"')
    log.write_bytes(b"".join(lines))
    assert set(codes_of(folder)) == {"chain-break"}


def test_a_log_that_ends_too_early(folder: Path) -> None:
    with Workspace.open(folder) as workspace:
        workspace.events.append(event("late"))
        workspace.store.sync()
    log = folder / ".chronomemory" / "events.wal"
    kept = lines_of(log.read_bytes())
    log.write_bytes(b"".join(kept[:-3]))
    (folder / ".chronomemory" / "synced").unlink()
    assert "chain-break" in codes_of(folder)


#: Every code there is.
CODES = {code for code, _ in SEEDED.values()} | {
    "missing-endpoint",
    "orphan-event",
    "orphan-path",
    "orphan-plan",
    "chain-break",
    "replay-drift",
}


def test_diagnosing_writes_nothing(folder: Path) -> None:
    (folder / "nodes" / "ann.json").unlink()

    def everything() -> dict[Path, bytes]:
        files = (path for path in folder.rglob("*") if path.is_file() and "index" not in path.parts)
        return {path: path.read_bytes() for path in files}

    before = everything()
    with Workspace.open(folder) as workspace:
        assert len(workspace.diagnose()) == 1
    assert everything() == before


def bent(content: bytes, number: random.Random) -> Iterator[bytes]:
    """Yield content with something wrong in it."""
    at, until = sorted(number.randrange(len(content) + 1) for _ in range(2))
    yield content[:at] + bytes([number.randrange(256)]) + content[at + 1 :]
    yield content[:at] + content[until:]
    yield content[:until] + content[at:]
    yield content[:at] + number.randbytes(8) + content[at:]
    yield b"[" * 5000
    yield b'{"schema": {}, "id": [], "revision": "x", "log_seq": null, "log_head": 3}'
    yield b"\x00"


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_a_fuzzed_workspace_never_crashes_the_diagnosis(made: Path, tmp_path: Path, seed: int) -> None:
    number = random.Random(seed)
    folder = tmp_path / f"w{seed}"
    shutil.copytree(made, folder, dirs_exist_ok=True)
    files = sorted(path for path in folder.rglob("*") if path.is_file() and ".chronomemory" not in path.parts)
    files.append(folder / ".chronomemory" / "events.wal")
    for path in number.sample(files, 3):
        path.write_bytes(number.choice(list(bent(path.read_bytes(), number))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            with Workspace.open(folder, clock=Clock()) as workspace:
                assert {one.code for one in workspace.diagnose()} <= CODES
        except WorkspaceError:  # its books are lost with the log
            assert (folder / ".chronomemory" / "events.wal").read_bytes() != (
                made / ".chronomemory" / "events.wal"
            ).read_bytes()
    shutil.rmtree(folder)


def test_a_diagnosis_can_be_written_down(folder: Path) -> None:
    (folder / "nodes" / "ann.json").unlink()
    with Workspace.open(folder) as workspace:
        (found,) = workspace.diagnose()
    assert json.loads(json.dumps(found.to_dict()))["where"] == "nodes/ann.json"
    assert str(found) == "nodes/ann.json: view-drift: the file is missing or cannot be read"
