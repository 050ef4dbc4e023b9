"""What the tests of the command line share: a way to run it, in this process or another."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from chronomemory.cli import app
from cli_answer import Answer, Run
from command_server import CommandServer
from typer.testing import CliRunner


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a command on the project of this test; a traceback is a failure whatever the code."""

    def call(*args: str | Path, project: Path | None = None, stdin: bytes | None = None) -> Answer:
        words = [*map(str, args), "--project", str(project or tmp_path)]
        result = CliRunner().invoke(app, words, input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Answer(result.exit_code, result.stdout, result.stderr)

    return call


@pytest.fixture(scope="session")
def commands() -> Iterator[CommandServer]:
    """Processes that run the command, forked from one that has loaded the package."""
    server = CommandServer()
    yield server
    server.close()


@pytest.fixture
def shell(tmp_path: Path, commands: CommandServer) -> Run:
    """Run a command in a process of its own, without a terminal."""

    def call(*args: str | Path, stdin: bytes = b"", folder: Path | None = None, **environment: str) -> Answer:
        variables = {**os.environ, **environment}
        done = commands.run([*map(str, args)], folder or tmp_path, variables, stdin)
        return Answer(done.returncode, done.stdout.decode(), done.stderr.decode())

    return call


@pytest.fixture
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another project, without a store."""
    return tmp_path_factory.mktemp("other")
