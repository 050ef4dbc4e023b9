"""The demo tells its story on one screen, whatever happens, and leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
import typer
from chronomemory import demo
from chronomemory.store import ChronoStore
from rich.console import Console


def told(folder: Path, records: int = 200) -> str:
    console = Console(file=StringIO(), width=80)
    demo.show(console, folder, records)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_the_story_is_told(tmp_path: Path) -> None:
    story = told(tmp_path)
    for words in (
        "200 records in",
        "docs/payments.md, line 42",
        "how often does the payment API retry?",
        "active → invalidated",
        "0.90 → 0.45",
        "now: hypothesis 0.45",
        "remembered: 2",
        "altered",
        "Where to go next",
    ):
        assert words in story, words


def test_the_memory_of_an_agent_comes_first(tmp_path: Path) -> None:
    story = told(tmp_path)
    titles = ("Remember", "Recall", "Prompt a model", "Forget", "Erase", "Use an assistant", "Load records")
    places = [story.index(f"▍ {title}") for title in titles]
    assert places == sorted(places)
    recalled = story[places[1] : places[2]]
    assert "Ann travels by train" in recalled
    assert "recall has it: False; its history still has" in story
    assert "0 of " in story[places[4] :]
    assert "chain: remembered" in story
    left = [path for path in (tmp_path / "agent").rglob("*") if path.is_file()]
    assert left
    assert not any(b"train" in path.read_bytes() for path in left), "it was erased"


def test_the_forged_line_is_the_one_that_is_named(tmp_path: Path) -> None:
    row = next(line for line in told(tmp_path).splitlines() if "altered" in line).split()
    forged = (tmp_path / "copy" / ".chronomemory" / "events.wal").read_bytes()
    line, byte = int(row[1].replace(",", "")), int(row[2].replace(",", ""))
    assert b"at most 9 times" in forged.split(b"\n")[line - 1]
    assert forged[:byte].count(b"\n") == line - 1


@pytest.mark.parametrize("words", [("chronomemory.demo",), ("chronomemory", "demo")])
def test_it_is_readable_at_80_columns_and_leaves_nothing_behind(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *words, "--records", "100"],
        capture_output=True,
        env={**os.environ, "TMPDIR": str(tmp_path), "COLUMNS": "80"},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    lines = done.stdout.decode().splitlines()
    assert len(lines) <= 60
    assert max(map(len, lines)) <= 80
    assert list(tmp_path.iterdir()) == []


def test_a_failure_ends_in_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def fail(*args: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ChronoStore, "ingest", fail)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(typer.Exit) as ended:
        demo.demo(records=10)
    assert ended.value.exit_code == 1
    assert "The demo could not go on" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []
