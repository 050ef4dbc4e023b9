"""Does what the registry of servers is told hold together with the package?"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from chronomemory import __version__
from chronomemory.cli import app
from typer.testing import CliRunner

ROOT = Path(__file__).parents[2]
if not (ROOT / "server.json").exists():
    pytest.skip("this is no checkout", allow_module_level=True)
TOLD = json.loads((ROOT / "server.json").read_text(encoding="utf-8"))


def test_the_readme_proves_whose_package_it_is() -> None:
    named = re.findall(r"mcp-name: (\S+)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert named == [TOLD["name"]]
    assert re.fullmatch(r"[\w.-]+/[\w.-]+", TOLD["name"])


def test_the_package_is_this_one() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    [package] = TOLD["packages"]
    assert f'name = "{package["identifier"]}"' in project
    # An installer that runs a package without installing it starts a command of the package's name.
    assert f'{package["identifier"]} = "chronomemory.cli:main"' in project
    assert TOLD["version"] == package["version"] == __version__
    assert len(TOLD["description"]) <= 100


def test_its_arguments_are_those_of_the_command() -> None:
    [package] = TOLD["packages"]
    first, *options = package["packageArguments"]
    assert first == {"type": "positional", "value": "mcp"}
    shown = CliRunner().invoke(app, ["mcp", "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"}).output
    assert options
    for option in options:
        assert option["name"] in shown
