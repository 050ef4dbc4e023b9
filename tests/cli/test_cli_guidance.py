"""The command line helps: it suggests, completes, explains itself, and cuts nothing in a pipe."""

from __future__ import annotations

from pathlib import Path

import pytest
from chronomemory import ChronoStore
from cli_answer import Run

LONG_ID = "service/checkout/2026-05-18T09:00:00Z/measurement-of-latency-7"
LONG_LABEL = "the latency of the checkout was measured in May and " + "found to be far too high " * 6


@pytest.mark.parametrize(
    ("words", "suggestion"),
    [
        (("serch", "x"), "Did you mean 'search'?"),
        (("pages", "sycn"), "Did you mean 'sync'?"),
        (("help", "serch"), "Did you mean 'search'?"),
        (("put", "A", "--lable", "x"), "--label"),
    ],
)
def test_a_misspelled_word_is_answered_with_the_right_one(
    shell: Run, words: tuple[str, ...], suggestion: str
) -> None:
    refused = shell(*words, COLUMNS="200")
    assert refused.code == 2
    assert suggestion in refused.stderr
    assert refused.stderr.count("Did you mean") <= 1


def test_help_is_a_command(shell: Run) -> None:
    assert shell("help").stdout == shell("--help").stdout
    assert shell("help", "pages", "sync").stdout == shell("pages", "sync", "--help").stdout
    assert shell("help", "put").code == 0


@pytest.mark.parametrize(
    ("shell_name", "asked", "answer"),
    [
        ("bash", {"COMP_WORDS": "chronomemory sea", "COMP_CWORD": "1"}, "search"),
        ("bash", {"COMP_WORDS": "chronomemory pages sy", "COMP_CWORD": "2"}, "sync"),
        ("zsh", {"_TYPER_COMPLETE_ARGS": "chronomemory put --lab"}, "--label"),
        (
            "fish",
            {"_TYPER_COMPLETE_ARGS": "chronomemory verif", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
            "verify",
        ),
    ],
)
def test_shells_complete_commands_and_options(
    shell: Run, shell_name: str, asked: dict[str, str], answer: str
) -> None:
    completed = shell(_CHRONOMEMORY_COMPLETE=f"complete_{shell_name}", **asked)
    assert answer in completed.stdout
    assert "Traceback" not in completed.stderr


def test_completion_can_be_installed(shell: Run, tmp_path: Path) -> None:
    assert "--install-completion" in shell("--help").stdout
    without = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1", "HOME": str(tmp_path)}
    for name in ("bash", "zsh", "fish"):
        assert "_CHRONOMEMORY_COMPLETE" in shell("--show-completion", name, **without).stdout
    assert shell("--install-completion", "bash", **without).code == 0
    assert "chronomemory" in (tmp_path / ".bashrc").read_text()


@pytest.fixture
def long_record(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": LONG_ID, "kind": "k" * 40, "label": LONG_LABEL})


@pytest.mark.usefixtures("long_record")
@pytest.mark.parametrize("words", [("query",), ("search", "latency")])
def test_nothing_is_cut_or_wrapped_in_a_pipe(shell: Run, words: tuple[str, ...]) -> None:
    row = next(line for line in shell(*words, COLUMNS="").stdout.splitlines() if LONG_ID in line)
    assert LONG_LABEL.strip() in row
    narrow = shell(*words, COLUMNS="80").stdout.splitlines()
    assert max(map(len, narrow)) <= 80, "COLUMNS is respected"


@pytest.mark.usefixtures("long_record")
@pytest.mark.parametrize("words", [("query",), ("search", "latency")])
def test_a_long_id_takes_at_most_two_lines_on_80_columns(shell: Run, words: tuple[str, ...]) -> None:
    lines = shell(*words, COLUMNS="80").stdout.splitlines()[2:]
    pieces = [piece for line in lines for piece in line.split() if piece in LONG_ID and len(piece) > 3]
    assert "".join(pieces) == LONG_ID
    assert len(pieces) <= 2
