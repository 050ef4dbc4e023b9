"""The demo tells its story on one screen, whatever happens, and leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from chronomemory import demo
from chronomemory.store import ChronoStore
from rich.console import Console


def told(folder: Path, records: int = 200) -> str:
    console = Console(file=StringIO(), width=100)
    demo.show(console, folder, records)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_the_story_is_told(tmp_path: Path) -> None:
    story = told(tmp_path)
    for words in (
        "200 records in",
        "docs/payments.md, line 42 · load test of 2026-03-02",
        "how often does the payment API retry?",
        "active → invalidated",
        "0.90 → 0.45",
        "0.80 → 0.40",
        "now: hypothesis 0.45",
        "remembered: 2",
        "cannot tell",
        "altered",
        "1 line, ",
        "Where to go next",
    ):
        assert words in story, words


def test_the_forged_line_is_the_one_that_is_named(tmp_path: Path) -> None:
    row = next(line for line in told(tmp_path).splitlines() if "altered" in line).split()
    forged = (tmp_path / "copy" / ".chronomemory" / "events.wal").read_bytes()
    line, byte = int(row[1].replace(",", "")), int(row[2].replace(",", ""))
    assert b"at most 9 times" in forged.split(b"\n")[line - 1]
    assert forged[:byte].count(b"\n") == line - 1


def test_the_notes_are_the_same_every_time(tmp_path: Path) -> None:
    first, second = (demo._notes(tmp_path / name, 50).read_bytes() for name in ("a", "b"))
    assert first == second


def test_it_fits_one_screen_and_leaves_nothing_behind(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "chronomemory.demo", "--records", "100"],
        capture_output=True,
        env={**os.environ, "TMPDIR": str(tmp_path), "COLUMNS": "100"},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    lines = done.stdout.decode().splitlines()
    assert len(lines) <= 48
    assert max(map(len, lines)) <= 100
    assert list(tmp_path.iterdir()) == []


def test_a_failure_ends_in_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def fail(*args: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ChronoStore, "ingest", fail)
    monkeypatch.setattr(sys, "argv", ["demo"])
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        demo.main()
    assert ended.value.code == 1
    assert "The demo could not go on" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []
