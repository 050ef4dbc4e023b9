"""The command finds what the store finds, and shows why."""

from __future__ import annotations

from pathlib import Path

import pytest
from chronomemory import ChronoRecord, ChronoStore
from cli_answer import Run


@pytest.fixture(autouse=True)
def talk(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert(
            ChronoRecord(id="Q", label="Where is the violin?", data={"tags": ["music"], "session": 1})
        )
        store.upsert(ChronoRecord(id="A", label="Behind the station.", data={"previous": "Q", "session": 1}))
        store.upsert(ChronoRecord(id="OLD", label="A violin", status="invalidated", confidence=0.1))


def ids(run: Run, *args: str) -> list[str]:
    return [hit["record"]["id"] for hit in run("search", *args, "--json").listing]


def test_it_finds_what_the_store_finds(run: Run) -> None:
    assert ids(run, "violins") == ["Q", "A"]
    assert ids(run, "violins", "--no-context") == ["Q"]
    assert set(ids(run, "violins", "--all", "--no-context")) == {"Q", "OLD"}
    assert ids(run, "violins", "--all", "--no-context", "--min-confidence", "0.5") == ["Q"]
    assert ids(run, "violins", "--tag", "music") == ["Q"]
    assert ids(run, "violins", "--kind", "note") == []
    assert ids(run, "violins", "--limit", "1") == ["Q"]
    assert ids(run, "violins", "--until", "2000-01-01T00:00:00Z") == []
    assert ids(run, "violins", "--as-of", "1") == ["Q"]


def test_scores_are_drawn_as_bars_and_taken_apart(run: Run) -> None:
    plain = run("search", "violin")
    assert plain.code == 0
    assert "█" in plain.stdout and "Behind" in plain.stdout
    told = run("search", "violin", "--explain")
    for word in ("violin", "alone", "linked", "group", "by Q"):
        assert word in told.stdout
    [first, _] = run("search", "violin", "--explain", "--json").listing
    assert first["why"]["words"].keys() == {"violin"}


def test_nothing_found_is_said(run: Run) -> None:
    assert run("search", "zebra").stdout == "nothing found\n"
    assert run("search", "zebra", "--json").stdout == ""


def test_a_moment_is_no_seq(run: Run) -> None:
    answer = run("search", "violin", "--since", "3")
    assert answer.code == 2
    assert "moment" in answer.stderr
