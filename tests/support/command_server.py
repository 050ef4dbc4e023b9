"""Runs the command line in forked processes, so that the interpreter and its modules are loaded only once.

The server process loads the package and then forks for each request. A fork has its own files, folder,
environment and exit code, as a process that a shell starts. Tests of the start itself (lazy imports, signals,
encodings of Python) start an interpreter of their own.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: Variables that Python reads when it starts, where a fork is too late.
READ_AT_START = "PYTHON"


class CommandServer:
    """The server process of one test worker."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(
        self, words: list[str], folder: Path, environment: Mapping[str, str], stdin: bytes = b""
    ) -> subprocess.CompletedProcess[bytes]:
        """Run `chronomemory` with these words in a folder, and return its exit code and output."""
        if any(
            os.environ.get(name) != environment[name]
            for name in environment
            if name.startswith(READ_AT_START)
        ):
            return subprocess.run(
                [sys.executable, "-m", "chronomemory", *words],
                input=stdin,
                capture_output=True,
                cwd=folder,
                env=dict(environment),
                check=False,
            )
        assert self.process.stdin is not None and self.process.stdout is not None
        with tempfile.TemporaryDirectory() as place:
            files = [Path(place) / name for name in ("stdin", "stdout", "stderr")]
            files[0].write_bytes(stdin)
            request = {
                "words": words,
                "folder": str(folder),
                "environment": dict(environment),
                "files": [str(file) for file in files],
            }
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            code = int(self.process.stdout.readline())
            return subprocess.CompletedProcess(words, code, files[1].read_bytes(), files[2].read_bytes())

    def close(self) -> None:
        """End the server process."""
        self.process.communicate()


def serve() -> None:
    """Answer each request with the exit code of its fork."""
    for line in sys.stdin:
        request = json.loads(line)
        if not (child := os.fork()):
            become(**request)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        sys.stdout.flush()


def become(words: list[str], folder: str, environment: dict[str, str], files: list[str]) -> None:
    """Turn this fork into the command."""
    for number, file in enumerate(files):
        opened = os.open(file, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["chronomemory", *words]
    code: Any = 0
    try:
        main()
    except SystemExit as ended:
        code = ended.code
    except BaseException:  # as an interpreter does at its end
        sys.excepthook(*sys.exc_info())
        code = 1
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    import typer.rich_utils  # noqa: F401
    from chronomemory.cli import main

    serve()
