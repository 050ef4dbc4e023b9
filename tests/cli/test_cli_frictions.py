"""The command line answers where it used to say nothing, or too much."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from chronomemory import ChronoStore
from chronomemory.cli import app, upkeep
from cli_answer import Run
from typer.testing import CliRunner


def test_what_has_not_happened_yet_is_refused(run: Run) -> None:
    run("put", "A", "--label", "x")
    answer = run("get", "A", "--as-of", "99")
    assert (answer.code, answer.stdout) == (2, "")
    assert "as_of must be at most 1, the last event" in answer.stderr
    soon = (datetime.now(timezone.utc) + timedelta(days=1)).isoformat()
    assert "a moment that has come" in run("get", "A", "--as-of", soon).stderr
    assert run("get", "A", "--as-of", "1").code == 0


def test_history_that_was_dropped_is_told(run: Run) -> None:
    run("put", "A", "--label", "x")
    run("compact", "--drop-history")
    for arguments in (["history", "A"], ["history", "A", "--json"]):
        answer = run(*arguments)
        assert (answer.code, answer.stdout) == (1, "")
        assert "dropped by a compaction; event 1 was the last" in answer.stderr


def test_an_outcome_for_nobody_is_a_finding(run: Run) -> None:
    assert run("outcome", "nope", "--signal", "1").code == 1
    assert run("outcome", "nope", "--signal", "1", "--json").code == 1


@pytest.mark.parametrize(("answer", "kept"), [("n\n", True), ("y\n", False)])
def test_dropping_history_asks_a_person(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, kept: bool
) -> None:
    run("put", "A", "--label", "x")
    run("put", "A", "--label", "y")

    class Terminal:
        @staticmethod
        def isatty() -> bool:
            return True

    class Sys:
        stdin = Terminal

    monkeypatch.setattr(upkeep, "sys", Sys)
    told = run("compact", "--drop-history", stdin=answer.encode())
    assert "dropped for good" in told.stderr
    assert told.code == (1 if kept else 0)
    with ChronoStore(tmp_path) as store:
        assert bool(store.history("A")) is kept
    assert run("compact", "--drop-history", "--yes").code == 0


def test_a_day_is_a_day_in_utc(run: Run) -> None:
    today = datetime.now(timezone.utc)
    yesterday, tomorrow = (f"{today + timedelta(days=days):%Y-%m-%d}" for days in (-1, 1))
    run("put", "A", "--label", "tea")
    now = f"{today:%Y-%m-%d}"

    def found(*arguments: str) -> list[str]:
        return [record["id"] for record in run("query", "--json", *arguments).listing]

    assert found("--since", yesterday) == ["A"]
    assert found("--until", tomorrow) == ["A"]
    assert found("--until", yesterday) == []
    if now == f"{datetime.now(timezone.utc):%Y-%m-%d}":  # midnight may pass meanwhile
        assert found("--since", now, "--until", now) == ["A"]
        assert run("get", "A", "--as-of", now).code == 0
    assert run("get", "A", "--as-of", yesterday).code == 1
    assert run("search", "tea", "--since", "2026-02-30").code == 2
    assert run("search", "tea", "--since", "2026-02-03T10:00:00").code == 2


@pytest.mark.parametrize(
    "command",
    [
        [],
        *(
            [name]
            for name in ["query", "put", "recall", "search", "ingest", "outcome", "replay", "why", "blocks"]
        ),
        ["blocks", "graph"],
    ],
)
def test_help_reads_as_a_person_would_write_it(command: list[str]) -> None:
    told = (
        CliRunner().invoke(app, [*command, "--help"], prog_name="chronomemory", env={"COLUMNS": "100"}).stdout
    )
    assert "Usage: chronomemory" in told
    assert not re.search(r"<(bool|str|int|float|list|Path)", told)
    assert "…..." not in told
    assert "{" not in told.split("Options")[0]
    assert "[[" not in told
    assert not re.search(r"\d{19}", told)


def test_an_unknown_command_is_named(run: Run) -> None:
    answer = run("whyy")
    assert answer.code == 2
    assert "No such command 'whyy'" in answer.stderr


def test_refused_reads_are_not_advised_to_write(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        for ask in (
            lambda: store.query(limit=-1),
            lambda: store.as_of(-1),
            lambda: store.as_of(5),
            lambda: store.search("x", [1, 2, 3], limit=-1),
            lambda: store.why("A", depth=-1),
        ):
            with pytest.raises(ValueError, match=r"must|at least|between") as refused:
                ask()
            assert "write" not in refused.value.recovery  # type: ignore[attr-defined]


def test_a_wrong_call_is_told_by_a_name_that_callers_know(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store, pytest.raises(TypeError, match=r"^Store\.upsert\(\)"):
        store.upsert(id="A")  # type: ignore[call-arg]
