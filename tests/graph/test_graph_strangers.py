"""Files of others are left alone in the folder of a workspace."""

from __future__ import annotations

from pathlib import Path

import pytest
from chronomemory.graph import Node, Workspace
from chronomemory.graph.errors import WorkspaceError

FOREIGN = {
    "workspace.json": '{"name": "of another tool"}',
    "events.jsonl": '{"my": "own log"}\n',
    "audit.jsonl": "not even JSON\n",
}
BESIDE = {
    "nodes/README.md": "mine",
    "nodes/Notes of Ann.txt": "mine",
    "nodes/server.json": '{"ip": "10.0.0.1"}',
    "edges/.gitkeep": "",
    "paths/half.part": "mine",
}


def plant(root: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)


def found(root: Path, names: dict[str, str]) -> dict[str, str | None]:
    return {name: (root / name).read_text() if (root / name).exists() else None for name in names}


@pytest.mark.parametrize("name", FOREIGN)
def test_no_workspace_is_made_where_a_file_of_another_tool_stands(tmp_path: Path, name: str) -> None:
    plant(tmp_path, {name: FOREIGN[name]})
    with pytest.raises(WorkspaceError, match=name) as refused:
        Workspace.create(tmp_path)
    assert "Take another folder" in str(refused.value.recovery)
    assert [path.name for path in tmp_path.rglob("*")] == [name]
    assert found(tmp_path, {name: ""}) == {name: FOREIGN[name]}


def test_files_beside_ours_stay_whatever_is_written(tmp_path: Path) -> None:
    plant(tmp_path, BESIDE)
    with Workspace.create(tmp_path) as workspace:
        workspace.graph.save_node(Node("tea", "drink", "Tea"))
        assert workspace.diagnose() == []
        (tmp_path / "nodes" / "tea.json").unlink()
        told = workspace.rebuild()
    assert (told.written, told.removed, told.set_aside) == (1, 0, ())
    assert found(tmp_path, BESIDE) == BESIDE


def test_a_stranger_in_the_place_of_a_file_is_not_written_over(tmp_path: Path) -> None:
    with Workspace.create(tmp_path) as workspace:
        plant(tmp_path, BESIDE)
        with pytest.warns(RuntimeWarning, match=r"nodes/server\.json"):
            workspace.graph.save_node(Node("server", "host", "S"))
        assert found(tmp_path, BESIDE) == BESIDE
        assert workspace.graph.node("server").label == "S", "the log has it all the same"
        assert workspace.diagnose() != []
        told = workspace.rebuild()
        assert told.set_aside == ("nodes/server.json.aside",)
        assert "set aside nodes/server.json.aside" in told.summary
        assert workspace.diagnose() == []
    moved = {"nodes/server.json.aside": BESIDE["nodes/server.json"]}
    assert found(tmp_path, moved) == moved
    others = {name: content for name, content in BESIDE.items() if name != "nodes/server.json"}
    assert found(tmp_path, others) == others


def test_what_is_set_aside_twice_has_two_names(tmp_path: Path) -> None:
    with Workspace.create(tmp_path) as workspace:
        workspace.graph.save_node(Node("tea", "drink", "Tea"))
        for content in ("first", "second"):
            plant(tmp_path, {"nodes/tea.json": content, "events.jsonl": content})
            workspace.rebuild()
    kept = {
        "nodes/tea.json.aside": "first",
        "nodes/tea.json.aside-2": "second",
        "events.jsonl.aside": "first",
    }
    assert found(tmp_path, kept) == kept


def test_a_page_of_ours_that_is_too_many_goes(tmp_path: Path) -> None:
    with Workspace.create(tmp_path) as workspace:
        workspace.graph.save_node(Node("tea", "drink", "Tea"))
        page = (tmp_path / "nodes" / "tea.json").read_text()
        plant(tmp_path, {"nodes/milk.json": page, "nodes/.0123456789abcdef.part": "half"})
        assert len(workspace.diagnose()) == 2
        assert workspace.rebuild().removed == 2
        assert [path.name for path in (tmp_path / "nodes").iterdir()] == ["tea.json"]
