"""What a record says is shown as what it says, and never obeyed."""

from __future__ import annotations

from pathlib import Path

import pytest
from chronomemory import WalEvent
from chronomemory.cli.output import clean, size
from chronomemory.face.results import counted
from cli_answer import Run

NASTY = "[/red] [bold]x \x1b[31m \x9b2J \u202e \r\n :smile: {x}"


def test_control_characters_become_visible() -> None:
    assert clean("a\x1b[31m\n\x7f\x9b\u202e\u2028é") == "a␛[31m␊\ufffd\ufffd\ufffd\ufffdé"
    assert clean("a\nb", keep="\n") == "a\nb"
    assert clean("👩‍🚀 می‌خواهم") == "👩‍🚀 می‌خواهم", "joiners are part of words"


def test_numbers_are_spelled() -> None:
    assert [size(number) for number in (0, 999, 1000, 25_046_381, 5 * 10**12)] == [
        *("0 B", "999 B", "1.0 kB", "25.0 MB", "5000.0 GB")
    ]
    assert [counted(number, "event") for number in (0, 1, 1000)] == ["0 events", "1 event", "1,000 events"]


def test_a_nasty_record_is_shown_everywhere(run: Run, other: Path) -> None:
    written = run(
        *("put", NASTY, "--kind", NASTY, "--label", NASTY, "--status", NASTY, "--source-type", NASTY),
        *("--evidence", NASTY, "--boundary", NASTY, "--data", '{"[/x]": "\\u009b\\u202e[/red]"}'),
    )
    assert written.code == 0
    run("put", NASTY, "--label", "[/b]")
    for args in (("get", NASTY), ("query", "--all"), ("history", NASTY), ("replay",), ("status",)):
        answer = run(*args)
        assert answer.code == 0, args
        assert not set("\x1b\x9b\u202e\r") & set(answer.stdout), args
        assert "[/" in answer.stdout
    missing = run("get", f"not {NASTY}")
    assert missing.code == 1
    assert not set("\x1b\x9b\u202e\r") & set(missing.stderr)


def test_records_that_another_tool_left_are_shown(run: Run, log: Path) -> None:
    log.parent.mkdir()
    record = {"id": "C", "confidence": "high", "status": 3, "evidence": "x", "data": None, "label": None}
    event = WalEvent(seq=1, ts="2026-01-01", record_id="C", record=record)
    event.hash = event.compute_hash()
    log.write_text(event.to_json_line() + "\n")
    for args in (("get", "C"), ("query", "--all"), ("history", "C"), ("replay",), ("status",)):
        assert run(*args).code == 0, args
    assert "high" in run("get", "C").stdout


def test_long_things_keep_their_place(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    run("put", "L" * 100, "--kind", "k" * 40, "--label", "words " * 50)
    shown = run("query").stdout
    assert max(map(len, shown.splitlines())) <= 80
    assert shown.count("L") == 100, "an id is never cut: someone will copy it"
