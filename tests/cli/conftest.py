"""What the tests of the command line share: a way to run it, in this process or another."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from chronomemory.cli import app
from cli_answer import Answer, Run
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


@pytest.fixture
def shell(tmp_path: Path) -> Run:
    """Run a command in a process of its own, without a terminal."""

    def call(*args: str | Path, stdin: bytes = b"", **environment: str) -> Answer:
        done = subprocess.run(
            [sys.executable, "-m", "chronomemory", *map(str, args)],
            input=stdin,
            capture_output=True,
            cwd=tmp_path,
            env={**os.environ, **environment},
            check=False,
        )
        return Answer(done.returncode, done.stdout.decode(), done.stderr.decode())

    return call


@pytest.fixture
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another project, without a store."""
    return tmp_path_factory.mktemp("other")
