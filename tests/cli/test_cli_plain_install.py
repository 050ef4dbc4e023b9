"""The command line works where only what the package itself depends on is installed."""

from __future__ import annotations

import subprocess
import sys

import pytest
from chronomemory.cli.app import app
from typer.main import get_command

#: Everything that an extra brings.
EXTRAS = (
    "cronsim",
    "fastembed",
    "mcp",
    "mcp_types",
    "networkx",
    "ruamel",
    "ruamel.yaml",
    "sentence_transformers",
    "sqlglot",
    "tomlkit",
    "watchfiles",
)
#: A module of which ``sys.modules`` says None cannot be imported.
WITHOUT = f"""
import sys
sys.modules.update(dict.fromkeys({EXTRAS!r}))
from chronomemory.cli import main
"""
RUN = """
sys.argv = ["chronomemory", *sys.argv[1:]]
main()
"""
#: Asks for the help of one command after the other.
HELP_OF_ALL = """
for name in sys.argv[1:]:
    sys.argv = ["chronomemory", name, "--help"]
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, name
"""


def run(*words: str, script: str = RUN) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT + script, *words], capture_output=True, text=True, check=False
    )


def test_help_lists_every_command() -> None:
    told = run("--help")
    assert (told.returncode, told.stderr) == (0, "")
    command = get_command(app)
    for name in command.list_commands(None):  # type: ignore[attr-defined]
        assert f" {name} " in told.stdout
    assert "chronomemory-rs[pages]" in " ".join(told.stdout.split())


def test_each_has_help() -> None:
    names = ("pages", "episodes", "facts", "workspace", "mcp", "blocks", "verify")
    told = run(*names, script=HELP_OF_ALL)
    assert (told.returncode, told.stderr) == (0, "")
    assert all(f"Usage: chronomemory {name}" in told.stdout for name in names)


@pytest.mark.parametrize("words", [("pages",), ("pages", "search", "tea", "--json")])
def test_what_is_not_installed_says_what_to_install(words: tuple[str, ...]) -> None:
    told = run(*words)
    assert told.returncode == 2
    assert told.stderr == "error: pages need ruamel.yaml: pip install 'chronomemory-rs[pages]'\n"
