"""What the registry of servers is told holds together with the package."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import tomlkit
import typer
from chronomemory import __version__
from chronomemory.cli import app

pytest.importorskip("mcp.server", reason="the extra mcp is not installed")

from chronomemory.mcp.server import PROFILES

ROOT = Path(__file__).parents[2]
if not (ROOT / "server.json").exists():
    pytest.skip("this is no checkout", allow_module_level=True)
TOLD = json.loads((ROOT / "server.json").read_text(encoding="utf-8"))
PROJECT = tomlkit.parse((ROOT / "pyproject.toml").read_text(encoding="utf-8")).unwrap()["project"]


def test_the_readme_proves_whose_package_it_is() -> None:
    named = re.findall(r"mcp-name: (\S+)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert named == [TOLD["name"]]
    assert re.fullmatch(r"[\w.-]+/[\w.-]+", TOLD["name"])


def test_the_name_is_of_who_owns_the_repository() -> None:
    """Only who owns an account publishes under its name; without an address, nobody knows who that is."""
    address = PROJECT.get("urls", {}).get("Repository", "")
    if not address:
        assert "repository" not in TOLD
        return
    owner = re.fullmatch(r"https://github\.com/([\w.-]+)/[\w.-]+", address)
    assert owner is not None
    assert TOLD["name"].startswith(f"io.github.{owner[1]}/")
    assert TOLD["repository"] == {"url": address, "source": "github"}


def test_the_package_is_this_one() -> None:
    [package] = TOLD["packages"]
    assert package["identifier"] == PROJECT["name"]
    # An installer that runs a package without installing it starts a command of the package's name.
    assert PROJECT["scripts"][package["identifier"]] == PROJECT["scripts"]["chronomemory"]
    [extra] = [each["value"] for each in package["runtimeArguments"] if each["name"] == "--from"]
    name, _, wanted = extra.rstrip("]").partition("[")
    assert name == package["identifier"]
    assert wanted in PROJECT["optional-dependencies"]
    crate = tomlkit.parse((ROOT / "Cargo.toml").read_text(encoding="utf-8")).unwrap()["workspace"]["package"]
    assert TOLD["version"] == package["version"] == crate["version"] == __version__
    assert len(TOLD["description"]) <= 100
    assert TOLD["description"].partition(":")[2].rstrip(".") in PROJECT["description"].replace("SHA-256 ", "")


def test_its_arguments_are_those_of_the_command() -> None:
    [package] = TOLD["packages"]
    first, *options = package["packageArguments"]
    assert first == {"type": "positional", "value": "mcp"}
    command = typer.main.get_command(app).get_command(None, "mcp")
    known = {name: param for param in command.params for name in param.opts}
    assert options
    for option in options:
        param = known[option["name"]]
        assert not param.is_flag
        if "choices" in option:
            assert option["choices"] == list(PROFILES)
            assert option["default"] == param.default


def test_a_server_starts_as_the_registry_says(tmp_path: Path) -> None:
    """With every argument that it lists, and not only by their names."""
    [package] = TOLD["packages"]
    given = {"--project": str(tmp_path), "--user": "ann", "--agent": "helper", "--profile": "chatgpt"}
    words = ["mcp"]
    for option in package["packageArguments"][1:]:
        words += [option["name"], given[option["name"]]]
    script = "import sys; from chronomemory.cli import main; sys.argv[0] = 'chronomemory-rs'; main()"
    ended = subprocess.run(
        [sys.executable, "-c", script, *words], input=b"", capture_output=True, check=False, timeout=120
    )
    assert (ended.returncode, ended.stdout) == (0, b""), ended.stderr.decode()
