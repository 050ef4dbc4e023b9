"""A command finds its project above the current folder, as git does, or where it is told to."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from chronomemory import ChronoStore
from chronomemory.cli import app
from chronomemory.cli.options import find_project
from cli_answer import Run
from typer.testing import CliRunner

VARIABLE = "CHRONOMEMORY_PROJECT"


@pytest.fixture
def call(shell: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in a folder, in a process of its own and without a terminal."""
    monkeypatch.delenv(VARIABLE, raising=False)
    return lambda folder, *words, **environment: shell(*words, folder=folder, **environment)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a store and a subfolder without one."""
    (tmp_path / "project" / "src" / "deep").mkdir(parents=True)
    with ChronoStore(tmp_path / "project") as store:
        store.upsert({"id": "A", "label": "above"})
    return tmp_path / "project"


def ids(project: Path) -> set[str]:
    with ChronoStore(project) as store:
        return {record.id for record in store.query()}


def stores(folder: Path) -> list[Path]:
    return sorted(path.parent for path in folder.rglob(".chronomemory"))


def test_put_in_a_subfolder_writes_to_the_store_above(call: Run, project: Path) -> None:
    deep = project / "src" / "deep"
    written = call(deep, "put", "B", "--label", "below")
    assert (written.code, ids(project)) == (0, {"A", "B"})
    assert stores(project) == [project], "no second store"
    assert str(project) in written.stderr, "the command says which store it used"
    assert call(project, "get", "B").stderr == "", "in the project's own folder there is nothing to say"


def test_every_command_uses_the_same_store(call: Run, project: Path) -> None:
    deep = project / "src" / "deep"
    read = call(deep, "get", "A", "--json")
    assert read.document["label"] == "above"
    assert json.loads(read.stderr) == {"project": str(project)}
    assert call(deep, "status", "--json").document["project"] == str(project)
    assert call(deep, "query", "--json").listing[0]["id"] == "A"
    assert call(deep, "learn", "Deploys run on Friday").code == 0
    assert str(project) in call(deep, "mcp", "install", "claude-code", "--print").stdout
    assert stores(project) == [project]


def test_an_explicit_project_makes_a_second_store(call: Run, project: Path) -> None:
    below = project / "src"
    assert call(below, "put", "B", "--label", "below", "--project", ".").code == 0
    assert stores(project) == [project, below]
    assert (ids(project), ids(below)) == ({"A"}, {"B"})
    assert call(below / "deep", "get", "B").code == 0, "the nearest store is used"


def test_option_environment_search_and_setting_come_in_this_order(
    call: Run, project: Path, tmp_path: Path
) -> None:
    for name in ("option", "environment", "setting"):
        (tmp_path / name).mkdir()
    setting = "[tool.chronomemory]\nproject = '../setting'\n"
    (project / "pyproject.toml").write_text(setting)
    environment = {VARIABLE: str(tmp_path / "environment")}
    call(project / "src", "put", "B", "--project", tmp_path / "option", **environment)
    call(project / "src", "put", "C", **environment)
    call(project / "src", "put", "D")
    assert ids(tmp_path / "option") == {"B"}
    assert ids(tmp_path / "environment") == {"C"}
    assert ids(project) == {"A", "D"}
    assert stores(tmp_path / "setting") == []


def test_a_setting_in_pyproject_names_the_project(call: Run, tmp_path: Path) -> None:
    below = tmp_path / "packages" / "one"
    below.mkdir(parents=True)
    (tmp_path / "memory").mkdir()
    (tmp_path / "pyproject.toml").write_text("[tool.chronomemory]\nproject = 'memory'\n")
    (below / "pyproject.toml").write_text("[project]\nname = 'one'\n")
    written = call(below, "put", "B", "--label", "x")
    assert (written.code, ids(tmp_path / "memory")) == (0, {"B"})
    assert stores(tmp_path) == [tmp_path / "memory"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[tool.chronomemory]\nproject = 3\n", "must be the path of a folder that exists, got 3"),
        (
            "[tool.chronomemory]\nproject = 'missing'\n",
            "must be the path of a folder that exists, got 'missing'",
        ),
        ("[tool.chronomemory\n", "cannot be read as TOML"),
    ],
)
def test_a_bad_setting_is_refused_without_a_traceback(
    call: Run, tmp_path: Path, text: str, words: str
) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    refused = call(tmp_path, "put", "B", COLUMNS="400")
    assert refused.code == 2
    assert words in refused.stderr
    assert "Traceback" not in refused.stderr
    assert stores(tmp_path) == []


def test_a_pyproject_of_others_is_not_read(call: Run, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[not toml")
    assert call(tmp_path, "put", "B").code == 0
    assert stores(tmp_path) == [tmp_path]


def test_a_variable_that_names_no_folder_is_refused(call: Run, tmp_path: Path) -> None:
    refused = call(tmp_path, "put", "B", **{VARIABLE: str(tmp_path / "missing")}, COLUMNS="400")
    assert refused.code == 2
    assert VARIABLE in refused.stderr
    assert call(tmp_path, "put", "B", **{VARIABLE: ""}).code == 0, "an empty variable is none"


def test_without_any_store_the_current_folder_is_the_project(call: Run, tmp_path: Path) -> None:
    assert call(tmp_path, "put", "B").code == 0
    assert stores(tmp_path) == [tmp_path]


def test_a_store_of_another_user_is_not_used_unasked(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project / "src")
    monkeypatch.setattr("chronomemory.cli.options._TRUSTED", frozenset({os.getuid() + 1}))
    refused = CliRunner().invoke(app, ["put", "B"], env={"COLUMNS": "400"})
    assert refused.exit_code == 2
    assert "belongs to another user" in refused.stderr
    assert CliRunner().invoke(app, ["put", "B", "--project", str(project)]).exit_code == 0
    monkeypatch.chdir(project)
    assert CliRunner().invoke(app, ["put", "C"]).exit_code == 0, "in its own folder it was asked for"


def test_a_folder_that_was_deleted_has_no_project_above(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert find_project() is None


def test_a_backup_is_read_where_it_is(call: Run, project: Path) -> None:
    with ChronoStore(project) as store:
        copy = store.backup()
    assert call(Path(copy), "get", "A", "--json").document["label"] == "above"


def test_the_server_serves_the_store_above(call: Run, project: Path) -> None:
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    }
    answer = call(project / "src", "mcp", stdin=json.dumps(hello).encode() + b"\n")
    assert str(project) in answer.stderr
    assert stores(project) == [project]


def test_a_hostile_pyproject_is_refused_or_passed_over(call: Run, tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    file = tmp_path / "pyproject.toml"
    file.write_text("chronomemory = " + "[" * 5_000)
    refused = call(tmp_path / "below", "query", COLUMNS="400")
    assert refused.code == 2 and f"{file} cannot be read as TOML" in refused.stderr
    file.write_text("[tool.chronomemory]\nproject = 'below'\n" + "#" * (1 << 20))
    assert call(tmp_path, "put", "A").code == 0
    assert stores(tmp_path) == [tmp_path]
    shutil.rmtree(tmp_path / ".chronomemory")
    file.unlink()
    os.mkfifo(file)
    assert call(tmp_path / "below", "query").code == 0
