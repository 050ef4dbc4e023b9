"""A mistake on the command line ends with the words and the code that it has everywhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from chronomemory import ChronoError, errors
from chronomemory.cli.session import Target
from cli_answer import Run
from typer import Exit

#: What a person types, which error a script reads (None: the command line itself refuses it), and the code.
TYPED: list[tuple[list[str], str | None, int]] = [
    (["put", "B", "--confidence", "7"], "InvalidRecord", 2),
    (["put", ""], "InvalidRecord", 2),
    (["query", "--min-confidence", "nan"], None, 2),
    (["search", "a", "--min-confidence", "nan"], None, 2),
    (["recall", "a", "--frame", "none"], "FrameError", 1),
    (["get", "none"], "NotFoundError", 1),
    (["history", "none"], "NotFoundError", 1),
    (["query", "--limit", "-1"], None, 2),
    (["search", "a", "--limit", "-1"], None, 2),
    (["query", "--as-of", "noon"], None, 2),
    (["search", "a", "--as-of", "noon"], None, 2),
]


@pytest.mark.parametrize(("words", "error", "code"), TYPED, ids=ascii)
def test_a_mistake_has_its_name_and_its_code(
    run: Run, words: list[str], error: str | None, code: int
) -> None:
    run("put", "A")
    answer = run(*words, "--json")
    assert answer.code == code
    if error is not None:
        told = json.loads(answer.stderr)
        assert told["error"] == error
        assert told["recovery"]


@pytest.mark.parametrize(
    ("error", "code"),
    [(errors.InvalidArgument, 2), (errors.InvalidRecord, 2), (errors.RecordTooLarge, 2), (errors.Busy, 1)],
)
def test_what_is_refused_is_told_from_what_was_found(
    tmp_path: Path, error: type[ChronoError], code: int
) -> None:
    with pytest.raises(Exit) as left, Target(project=tmp_path, as_json=True).open():
        raise error("no")
    assert left.value.exit_code == code
