"""The command behaves among other programs: exit codes, pipes, terminals, locks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from chronomemory import ChronoStore, __version__
from chronomemory.cli import app
from cli_answer import Run
from typer.testing import CliRunner


def test_exit_codes_reach_the_shell(shell: Run, tmp_path: Path) -> None:
    assert shell("put", "A").code == 0
    assert shell("get", "B").code == 1
    assert shell("get").code == 2
    assert shell("get", "A", "--project", "nowhere").code == 2
    assert shell("--version").stdout == f"chronomemory {__version__}\n"


def test_without_a_terminal_there_are_no_colours_and_no_bars(shell: Run, tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text('{"id": "A"}\n' * 1000)
    for args in (("ingest", "a.ndjson"), ("query",), ("verify",)):
        answer = shell(*args)
        assert answer.code == 0
        assert "\x1b" not in answer.stdout
        assert answer.stderr == ""


def test_every_command_explains_itself() -> None:
    names = [
        *("status", "put", "get", "delete", "query", "history", "ingest", "verify", "repair"),
        *("migrate", "replay", "export", "import", "backup", "restore", "compact", "rollback"),
    ]
    overview = CliRunner().invoke(app, ["--help"]).stdout
    assert all(name in overview for name in names)
    assert "Exit codes" in overview
    for name in names:
        shown = CliRunner().invoke(app, [name, "--help"]).stdout
        assert "--project" in shown
        assert "--json" in shown


def test_an_error_is_two_lines_or_one_object(shell: Run, tmp_path: Path) -> None:
    spoken = shell("put", "A", "--confidence", "7").stderr.splitlines()
    assert [line.split(":")[0].strip() for line in spoken] == ["error", "try"]
    told = json.loads(shell("put", "A", "--confidence", "7", "--json").stderr)
    assert told["error"] == "InvalidRecord"
    assert told["recovery"]


def test_another_writer_is_named(shell: Run, tmp_path: Path) -> None:
    with ChronoStore(tmp_path, exclusive=True) as store:
        store.upsert({"id": "A"})
        answer = shell("put", "B", "--json")
    assert answer.code == 1
    assert json.loads(answer.stderr)["error"] == "StoreLocked"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written(shell: Run, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    answer = shell("put", "A")
    tmp_path.chmod(0o700)
    assert answer.code == 1
    assert answer.stderr.startswith("error: Permission denied")


def test_a_full_disk_is_an_error_line(shell: Run, tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with ChronoStore(tmp_path) as store:
        store.upsert_many({"id": f"R-{number}"} for number in range(5000))
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "chronomemory", "export"],
            stdout=full,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.startswith(b"error: No space left on device")


def test_a_reader_who_leaves_early_is_no_error(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert_many({"id": f"R-{number}"} for number in range(20_000))
    with subprocess.Popen(
        [sys.executable, "-m", "chronomemory", "export"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline().startswith(b'{"confidence"')
        process.stdout.close()
        assert process.stderr.read() == b""
        process.wait(timeout=60)


def test_a_terminal_that_knows_only_ascii(shell: Run) -> None:
    shell("put", "A", "--label", "naïve ☃")
    for args in (("query",), ("history", "A"), ("put", "B")):
        answer = shell(*args, PYTHONIOENCODING="ascii")
        assert answer.code == 0
        assert "Traceback" not in answer.stderr
    assert shell("get", "A", "--json", PYTHONIOENCODING="ascii").document["label"] == "naïve ☃"


def test_words_that_are_no_text(tmp_path: Path) -> None:
    for args in (["put", b"\xff"], ["history", b"\xff"], ["query", "--kind", b"\xff"]):
        done = subprocess.run(
            [sys.executable, "-m", "chronomemory", *args], capture_output=True, cwd=tmp_path, check=False
        )
        assert done.returncode == 2, args
        assert b"Traceback" not in done.stderr


def test_a_file_name_that_is_no_text(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "chronomemory", "export", "--json", b"\xff"],
        capture_output=True,
        cwd=tmp_path,
        check=False,
    )
    assert json.loads(done.stdout)["path"] == "\\udcff"
