"""The folder of a workspace is a view of its log: whole, repeatable, never trusted, mended by a rebuild."""

from __future__ import annotations

import json
import shutil
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chronomemory import InvalidRecord, Memory
from chronomemory.face.files import Folder
from chronomemory.graph import (
    Action,
    ActivationPlan,
    Approval,
    ApprovalRequired,
    Edge,
    Node,
    Workspace,
    WorkspaceError,
)
from workbench import Bench, Clock, event, furnish, in_folder, view_of

SCHEMAS = {
    "workspace.json": "chronomemory.workspace/1",
    "profiles": "chronomemory.profile/1",
    "nodes": "chronomemory.node/1",
    "edges": "chronomemory.edge/1",
    "paths": "chronomemory.path/1",
    "activation_plans": "chronomemory.activation-plan/1",
    "events.jsonl": "chronomemory.event/1",
    "audit.jsonl": "chronomemory.audit/1",
}


def live_through(folder: Path, *, salt: bool = True) -> None:
    """Do some of everything."""
    bench = in_folder(folder, salt=salt)
    furnish(bench)
    assert bench.workspace is not None
    bench.graph.save_plan(ActivationPlan("morning", "ann", ("tea",)))
    action = Action("d", "delete_node", "bob", {"edges": True})
    with pytest.raises(ApprovalRequired):
        bench.runtime.apply([action])
    bench.runtime.apply([action], [Approval.of(action, "ann")])
    bench.runtime.merge("try", "main")
    bench.workspace.close()


def everything(folder: Path) -> dict[str, bytes]:
    """Every file, those of the log too; the lock names the process, and key files are made by readers."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != "lock")
    files = (path for path in files if path.suffix != ".keys")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_it_is_made_whole_and_only_once(tmp_path: Path) -> None:
    with Workspace.create(tmp_path / "w", clock=Clock()):
        names = {path.name for path in (tmp_path / "w").iterdir()}
        assert names == {*SCHEMAS, ".chronomemory"}
    before = everything(tmp_path / "w")
    with Workspace.create(tmp_path / "w") as again:
        assert again.diagnose() == []
    assert everything(tmp_path / "w") == before


def test_every_file_parses_and_says_its_schema(tmp_path: Path) -> None:
    live_through(tmp_path / "w")
    seen = set()
    for name, content in view_of(tmp_path / "w").items():
        first = name.split("/")[0]
        for part in content.splitlines() if first.endswith(".jsonl") else [content]:
            assert json.loads(part)["schema"] == SCHEMAS[first]
            seen.add(first)
    assert seen == set(SCHEMAS)


def test_the_same_operations_by_a_fixed_clock_give_the_same_bytes(tmp_path: Path) -> None:
    live_through(tmp_path / "one", salt=False)
    live_through(tmp_path / "other", salt=False)
    one, other = everything(tmp_path / "one"), everything(tmp_path / "other")
    assert set(one) == set(other)
    assert [name for name in one if one[name] != other[name]] == []
    assert ".chronomemory/events.wal" in one


def test_a_clock_that_is_ahead_stamps_nothing_ahead(tmp_path: Path) -> None:
    with Workspace.create(tmp_path) as workspace:
        workspace.graph.save_node(Node("a", "k"))
        head = workspace.store.replay()[-1].ts
    with Workspace.create(tmp_path, clock=lambda: Clock()().replace(year=2999)) as workspace:
        workspace.graph.save_node(Node("b", "k"))
        assert head <= workspace.store.replay()[-1].ts < "2999"


def test_workspace_json_says_which_event_it_shows(workspace: Workspace) -> None:
    workspace.graph.save_node(Node("a", "k"))
    last = workspace.store.replay()[-1]
    said = json.loads((workspace.folder / "workspace.json").read_bytes())
    assert (said["log_head"], said["log_seq"]) == (last.hash, last.seq)
    # What others write into the same log is none of the view's.
    workspace.store.upsert({"id": "FACT-1", "label": "Water is wet"})
    assert workspace.diagnose() == []


def test_all_of_one_apply_is_one_batch(workspace: Workspace) -> None:
    before = workspace.store.wal_seq()
    workspace.runtime.apply([Action(f"a{n}", "put_node", f"n{n}", {"kind": "k"}) for n in range(3)])
    events = workspace.store.replay(from_seq=before + 1)
    assert [one.op for one in events if one.op == "begin"] == ["begin"]
    assert events[0].op == "begin"


def test_reading_writes_nothing(tmp_path: Path) -> None:
    live_through(tmp_path)
    before = everything(tmp_path)
    with Workspace.open(tmp_path) as workspace:
        workspace.graph.export()
        workspace.export_graph()
        workspace.graph.neighbours("ann")
        workspace.graph.components()
        workspace.events.events()
        workspace.audit.records()
        assert workspace.replay() == workspace.snapshot()
        assert workspace.diagnose() == []
        assert workspace.rebuild().summary == "the files show what the log says"
    assert everything(tmp_path) == before


def test_a_file_that_was_edited_is_never_trusted(tmp_path: Path) -> None:
    live_through(tmp_path)
    path = tmp_path / "nodes" / "ann.json"
    right = path.read_bytes()
    path.write_bytes(right.replace(b"Ann", b"Eve"))
    with Workspace.open(tmp_path) as workspace:
        node = workspace.graph.node("ann")
        assert node is not None
        assert node.label == "Ann"
        assert [(one.code, one.where) for one in workspace.diagnose()] == [("view-drift", "nodes/ann.json")]
        assert workspace.rebuild().written == 1
        assert workspace.diagnose() == []
    assert path.read_bytes() == right


def test_a_crash_between_log_and_view_is_told_and_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Workspace.create(tmp_path, clock=Clock()) as workspace:
        workspace.graph.save_node(Node("a", "k"))
        with monkeypatch.context() as broken:
            broken.setattr(Folder, "write_all", _crash)
            with pytest.raises(KeyboardInterrupt):
                workspace.graph.save_node(Node("b", "k"))
    with pytest.warns(RuntimeWarning, match="do not show what the log says"):
        workspace = Workspace.open(tmp_path, clock=Clock())
    with workspace:
        assert workspace.graph.node("b") == Node("b", "k")
        assert {one.code for one in workspace.diagnose()} == {"view-drift"}
        # What comes later is shown, and the gap is still told.
        workspace.graph.save_node(Node("c", "k"))
        assert {one.code for one in workspace.diagnose()} == {"view-drift"}
        workspace.rebuild()
        assert workspace.diagnose() == []
    with Workspace.open(tmp_path) as workspace:
        assert [node.id for node in workspace.graph.nodes()] == ["a", "b", "c"]


def _crash(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("step", range(6))
def test_a_crash_at_any_step_of_the_view_is_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """Each file is the old one or the new one, and a rebuild makes all of them what they would have been."""
    left: dict[str, Any] = {"steps": step, "crashed": False}
    for name in ("write_all", "append", "remove"):
        monkeypatch.setattr(Folder, name, _crashing(getattr(Folder, name), left))
    bench = in_folder(tmp_path / "w")
    left["armed"] = True
    delete = Action("d", "delete_node", "a", {"edges": True})
    for work in (
        lambda: bench.graph.save(nodes=[Node("a", "k"), Node("b", "k")], edges=[Edge("e", "a", "b", "k")]),
        lambda: bench.runtime.apply([delete], [Approval.of(delete, "ann")]),
    ):
        try:
            work()
        except KeyboardInterrupt:
            left["crashed"] = True
    assert left["crashed"]
    assert bench.workspace is not None
    bench.workspace.close()
    monkeypatch.undo()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        with Workspace.open(tmp_path / "w") as workspace:
            assert {one.code for one in workspace.diagnose()} == {"view-drift"}
            workspace.rebuild()
            assert workspace.diagnose() == []
            assert [node.id for node in workspace.graph.nodes()] == ["b"]


def _crashing(method: Callable[..., object], left: dict[str, Any]) -> Callable[..., object]:
    def call(*args: Any, **more: Any) -> object:
        if left.get("armed") and not left["crashed"]:
            if left["steps"] == 0:
                raise KeyboardInterrupt
            left["steps"] -= 1
        return method(*args, **more)

    return call


def test_writers_take_turns(tmp_path: Path) -> None:
    """Two that are as far apart as two processes: nothing is lost, and the view shows all of it."""
    with Workspace.create(tmp_path) as one, Workspace.open(tmp_path) as other:

        def write(workspace: Workspace, name: str) -> None:
            for number in range(8):
                workspace.graph.save_node(Node(f"{name}{number}", "k"))

        threads = [
            threading.Thread(target=write, args=each) for each in ((one, "a"), (other, "b"), (one, "c"))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(one.graph.nodes()) == 24
        assert one.replay() == one.snapshot() == other.snapshot()
        assert other.diagnose() == []


def test_a_view_that_is_gone_comes_back_byte_for_byte(tmp_path: Path) -> None:
    live_through(tmp_path)
    before = view_of(tmp_path)
    for path in list(tmp_path.iterdir()):
        if path.name != ".chronomemory":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.warns(RuntimeWarning):
        workspace = Workspace.open(tmp_path)
    with workspace:
        workspace.rebuild()
    assert view_of(tmp_path) == before


@pytest.mark.parametrize("keep_history", [True, False])
def test_a_compaction_changes_nothing_that_is_shown(tmp_path: Path, keep_history: bool) -> None:
    live_through(tmp_path)
    before = view_of(tmp_path)
    with Workspace.open(tmp_path, clock=Clock()) as workspace:
        live, exported = workspace.snapshot(), workspace.export_graph()
        workspace.store.compact(keep_history=keep_history)
        assert workspace.replay() == workspace.snapshot() == live
        assert workspace.export_graph() == exported
        assert workspace.diagnose() == []
        assert workspace.rebuild().written == 0
        workspace.graph.save_node(Node("later", "k"))
        assert workspace.replay() == workspace.snapshot()
        assert workspace.diagnose() == []
    assert {name for name, content in view_of(tmp_path).items() if before.get(name) != content} == {
        "events.jsonl",
        "nodes/later.json",
        "workspace.json",
    }


def test_the_past_can_be_looked_at(workspace: Workspace) -> None:
    workspace.graph.save(nodes=[Node("a", "k", "old"), Node("b", "k")], edges=[Edge("e", "a", "b", "k")])
    then = workspace.store.wal_seq()
    workspace.graph.save_node(Node("a", "k", "new"))
    delete = Action("d", "delete_node", "b", {"edges": True})
    workspace.runtime.apply([delete], [Approval.of(delete, "ann")])
    past = workspace.snapshot(as_of=then)
    assert {name: node.label for name, node in past.nodes.items()} == {"a": "old", "b": ""}
    assert list(past.edges) == ["e"]
    assert list(workspace.snapshot().nodes) == ["a"]


def test_a_workspace_belongs_to_its_names(tmp_path: Path) -> None:
    with Workspace.create(tmp_path, user="ann") as workspace:
        workspace.graph.save_node(Node("a", "k"))
        record = workspace.store.everyone().get("node:a")
        assert record is not None
        assert record.data["@scope"] == {"user": "ann"}
    for names in ({}, {"user": "bob"}, {"user": "ann", "session": "s"}):
        with pytest.raises(WorkspaceError, match="no workspace of"):
            Workspace.open(tmp_path, **names)
        with pytest.raises(WorkspaceError, match="belongs to other names"):
            Workspace.create(tmp_path, **names)
    with Workspace.open(tmp_path, user="ann") as workspace:
        assert workspace.graph.neighbours("a") == []
        assert workspace.diagnose() == []
        assert json.loads((tmp_path / "workspace.json").read_bytes())["scope"] == {"user": "ann"}


def test_what_is_no_workspace_is_not_opened_and_nothing_is_made(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "missing"):
        with pytest.raises(WorkspaceError):
            Workspace.open(place)
    assert list(tmp_path.iterdir()) == []


def test_it_shares_its_log_with_the_other_faces(tmp_path: Path) -> None:
    with Workspace.create(tmp_path) as workspace, Memory(tmp_path) as memory:
        memory.remember("Ann likes green tea")
        workspace.graph.save_node(Node("tea", "drink", "green tea"))
        found = {hit.record.kind for hit in workspace.store.search("green tea")}
        assert {"block", "node"} <= found
        assert workspace.diagnose() == []
        with pytest.raises(InvalidRecord, match="graph face"):
            workspace.store.upsert({"id": "node:x", "label": "forged"})


@pytest.mark.parametrize("place", ["nodes", "nodes/a.json", "events.jsonl", "workspace.json"])
@pytest.mark.filterwarnings("ignore:.*this is in the log:RuntimeWarning")
def test_no_link_is_followed(tmp_path: Path, place: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    with Workspace.create(tmp_path / "w", clock=Clock()) as workspace:
        workspace.graph.save_node(Node("a", "k"))
        path = workspace.folder / place
        path.rename(elsewhere)
        path.symlink_to(elsewhere)
        before = _inside(elsewhere)
        assert {one.code for one in workspace.diagnose()} == {"view-drift"}
        try:
            workspace.graph.save_node(Node("a", "k", "changed"))
            workspace.rebuild()
        except OSError:
            assert place in ("nodes", "events.jsonl")
        assert _inside(elsewhere) == before


def _inside(path: Path) -> bytes | list[bytes]:
    return [each.read_bytes() for each in sorted(path.iterdir())] if path.is_dir() else path.read_bytes()


def test_a_duplicate_leaves_every_file_as_it_was(workspace: Workspace) -> None:
    workspace.events.append(event("e"))
    before = everything(workspace.folder)
    with pytest.raises(ValueError, match="already"):
        workspace.events.append(event("e"))
    assert everything(workspace.folder) == before


def test_the_bench_of_a_folder_is_clean(tmp_path: Path) -> None:
    bench: Bench = in_folder(tmp_path)
    furnish(bench)
    assert bench.workspace is not None
    assert bench.workspace.diagnose() == []
    bench.workspace.close()


@pytest.mark.parametrize(("store", "below", "file"), [(0o700, 0o700, 0o600), (0o2770, 0o2770, 0o660)])
def test_workspace_files_have_the_permissions_of_the_store(
    tmp_path: Path, store: int, below: int, file: int
) -> None:
    folder = tmp_path / "shelf"
    (folder / ".chronomemory").mkdir(parents=True)
    (folder / ".chronomemory").chmod(store)
    live_through(folder)
    shown = [path for path in folder.rglob("*") if ".chronomemory" not in path.parts]
    assert {path.stat().st_mode & 0o7777 for path in shown if path.is_dir()} == {below}
    assert {path.stat().st_mode & 0o7777 for path in shown if path.is_file()} == {file}
