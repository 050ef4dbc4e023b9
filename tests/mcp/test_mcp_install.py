"""Installing for a client changes one entry of its settings, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from chronomemory.cli import app, serving
from chronomemory.mcp.clients import CLIENTS, command_of, value_of
from typer.testing import CliRunner

tomlkit = pytest.importorskip("tomlkit", reason="the extra mcp is not installed")

LISTED = {"servers": {"other": {"command": "x", "args": ["a", "b"]}}, "inputs": []}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "a project"
    folder.mkdir()
    return folder


def run(*words: str | Path, code: int = 0, stdin: str | None = None) -> str:
    told = CliRunner().invoke(app, ["mcp", *map(str, words)], input=stdin)
    assert told.exit_code == code, told.output
    return told.output


def entry(path: Path, group: str) -> object:
    text = path.read_text()
    found = tomlkit.parse(text).unwrap() if path.suffix == ".toml" else value_of(text, group)
    return found.get(group, {}).get("chronomemory")


@pytest.mark.parametrize("name", CLIENTS)
def test_install_and_uninstall_leave_everything_else_as_it_was(name: str, home: Path, project: Path) -> None:
    client = CLIENTS[name]
    path = client.file(project.absolute())
    assert path.is_relative_to(home) or path.is_relative_to(project)
    path.parent.mkdir(parents=True, exist_ok=True)
    if client.is_toml:
        before = f'model = "x" # mine\n\n[{client.group}.other]\ncommand = "y" # theirs\n'
    else:
        before = json.dumps(LISTED, indent="\t").replace("servers", client.group) + "\n"
    path.write_text(before)
    told = run("install", name, "--project", project, "--user", "ann", "--profile", "reference", "--yes")
    assert "+" in told
    made = entry(path, client.group)
    assert made == client.entry(command_of(project, ["--profile", "reference", "--user", "ann"]))
    assert isinstance(made, dict)
    assert Path(made["command"]).is_absolute()
    assert Path(made["command"]).exists()
    assert Path(made["args"][made["args"].index("--project") + 1]).is_absolute()
    for line in before.splitlines():
        assert line.rstrip(",") in path.read_text()
    assert [each.read_text() for each in path.parent.glob(f"{path.name}.backup-*")] == [before]
    assert "says so already" in run(
        "install", name, "--project", project, "--user", "ann", "--profile", "reference", "--yes"
    )
    run("install", name, "--project", project, "--yes")
    assert entry(path, client.group) == client.entry(command_of(project, []))
    run("uninstall", name, "--project", project, "--yes")
    assert entry(path, client.group) is None
    assert path.read_text() == before
    assert "nothing was written" in run("uninstall", name, "--project", project, "--yes")


@pytest.mark.parametrize("name", CLIENTS)
def test_a_file_that_is_not_there_is_made(name: str, home: Path, project: Path) -> None:
    client = CLIENTS[name]
    path = client.file(project.absolute())
    printed = run("install", name, "--project", project, "--print")
    assert not path.exists()
    run("install", name, "--project", project, "--yes")
    assert path.read_text() == printed
    assert entry(path, client.group) == client.entry(command_of(project, []))
    assert list(path.parent.glob("*.backup-*")) == []


def test_it_asks_and_a_no_writes_nothing(home: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = run("install", "cursor", "--project", project, code=2)
    assert "nobody is there to be asked" in told
    assert not (project / ".cursor" / "mcp.json").exists()
    terminal = SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(serving, "sys", terminal)
    told = run("install", "cursor", "--project", project, code=1, stdin="n\n")
    assert "Write this?" in told
    assert '+    "chronomemory": {' in told
    assert not (project / ".cursor" / "mcp.json").exists()
    assert "✔ written" in run("install", "cursor", "--project", project, stdin="y\n")
    assert (project / ".cursor" / "mcp.json").exists()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[]", "an object with an object 'mcpServers' is expected"),
        ('{"mcpServers": []}', "an object with an object 'mcpServers' is expected"),
        ('{\n"a": 1, // mine\n}', "line 2: "),
        ("{} {}", "line 1: Extra data; comments and trailing commas are not supported"),
        ('{"a":' * 100_000, "nested too deeply"),
    ],
    ids=["list", "group", "comment", "two", "deep"],
)
def test_a_file_that_cannot_be_read_is_left_alone(home: Path, project: Path, text: str, reason: str) -> None:
    path = project / ".mcp.json"
    path.write_text(text)
    refusal = " ".join(run("install", "claude-code", "--project", project, "--yes", code=2).split())
    assert reason in refusal
    assert "--print" in refusal
    assert path.read_text() == text
    assert list(project.glob("*.backup-*")) == []


def test_toml_that_is_none_is_left_alone(home: Path, project: Path) -> None:
    path = home / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_text("a = = 1")
    assert "the file is not TOML" in run("install", "codex", "--project", project, "--yes", code=2)
    assert path.read_text() == "a = = 1"


def test_a_link_stays_a_link(home: Path, project: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text("{}")
    real.chmod(0o600)
    (project / ".mcp.json").symlink_to(real)
    run("install", "claude-code", "--project", project, "--yes")
    assert (project / ".mcp.json").is_symlink()
    assert entry(real, "mcpServers") is not None
    assert real.stat().st_mode & 0o777 == 0o600


def test_an_unknown_client_is_named_with_those_there_are(project: Path) -> None:
    told = run("install", "emacs", "--project", project, code=2)
    assert "there is no client 'emacs'" in told
    assert "claude-desktop" in told


def test_the_embedder_of_a_server_is_written_down_with_it(home: Path, project: Path) -> None:
    given = ["--embedder", "models:Small", "--model", "small"]
    told = run("install", "cursor", *given, "--print", "--project", project)
    args = json.loads(told)["mcpServers"]["chronomemory"]["args"]
    assert args[-4:] == ["--model", "small", "--embedder", "models:Small"]


@pytest.mark.parametrize("name", ["codex", "claude-desktop"])
def test_a_second_project_does_not_replace_the_first(name: str, home: Path, project: Path) -> None:
    second = project.parent / "second"
    second.mkdir()
    client = CLIENTS[name]
    path = client.file(project)
    run("install", name, "--project", project, "--yes")
    before = path.read_text()
    for verb in ("install", "uninstall"):
        refusal = " ".join(run(verb, name, "--project", second, "--yes", code=2).split())
        assert f"'chronomemory' there serves {project}" in refusal
        assert "--name chronomemory-second" in refusal
        assert path.read_text() == before
    run("install", name, "--project", second, "--name", "chronomemory-second", "--yes")
    assert entry(path, client.group) == client.entry(command_of(project, []))
    run("uninstall", name, "--project", project, "--yes")
    assert "chronomemory-second" in path.read_text()


def test_an_entry_of_a_project_that_is_gone_is_replaced(home: Path, project: Path) -> None:
    run("install", "codex", "--project", project, "--yes")
    moved = project.rename(project.parent / "moved")
    run("install", "codex", "--project", moved, "--yes")
    assert entry(home / ".codex" / "config.toml", "mcp_servers") == CLIENTS["codex"].entry(
        command_of(moved, [])
    )
