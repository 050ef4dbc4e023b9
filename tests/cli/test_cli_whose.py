"""A command is about the records of those whom it names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from chronomemory import ChronoStore
from cli_answer import Answer, Run

ANN = ("--user", "ann")


@pytest.fixture
def shop(tmp_path: Path, run: Run) -> Path:
    assert run("put", "RULE", "--label", "Answer briefly about tea").code == 0
    assert run("put", "A-1", "--label", "Ann likes green tea", *ANN).code == 0
    assert run("put", "A-2", "--label", "Asked about tea", *ANN, "--session", "s1").code == 0
    return tmp_path


def ids(answer: Answer) -> list[str]:
    rows = [json.loads(line) for line in answer.stdout.splitlines()]
    return [row.get("record", row)["id"] for row in rows]


def test_each_command_is_about_those_who_are_named(shop: Path, run: Run) -> None:
    assert ids(run("query", "--json")) == ["RULE"]
    assert ids(run("query", *ANN, "--json")) == ["RULE", "A-1", "A-2"]
    assert ids(run("query", *ANN, "--session", "s2", "--json")) == ["RULE", "A-1"]
    assert ids(run("query", "--everyone", "--json")) == ["RULE", "A-1", "A-2"]
    assert sorted(ids(run("search", "tea", *ANN, "--json"))) == ["A-1", "A-2", "RULE"]
    assert ids(run("search", "tea", "--agent", "sup", "--json")) == ["RULE"]
    assert run("get", "A-1").code == 1 and run("get", "A-1", *ANN).code == 0
    assert run("history", "A-1").code == 1 and run("history", "A-1", *ANN).code == 0
    assert run("delete", "A-1", "--user", "bob").code == 1
    refused = run("put", "A-1", "--label", "taken", "--user", "bob")
    assert refused.code == 2 and "taken in this store" in refused.stderr
    refused = run("delete", "RULE", *ANN)
    assert refused.code == 2 and "not of this scope" in refused.stderr
    assert run("rollback", "A-1", "--reason", "wrong", *ANN).code == 0
    assert run("delete", "A-2", *ANN).code == 0
    with ChronoStore(shop) as store:
        found = store.scoped(user="ann").get("A-1")
        assert found is not None and found.status == "invalidated"


def test_a_name_that_was_never_written_for_is_told(shop: Path, run: Run) -> None:
    for command in (["query"], ["search", "tea"], ["get", "A-1"], ["history", "A-1"], ["export"]):
        named = run(*command, "--user", "anm", "--json")
        assert "nothing was ever written for user=anm" in named.stderr
        assert command[0] not in ("query", "search") or ids(named) == ["RULE"]
    assert "nothing was ever written for user=anm" in run("get", "A-1", "--user", "anm").stderr
    empty = run("query", "--user", "anm", "--where", '{"label": "x"}')
    assert "nothing was ever written for user=anm" in empty.stderr and "no such records" in empty.stdout
    assert "ever written" not in run("query", *ANN, "--where", '{"label": "x"}').stderr


def test_names_that_are_none_are_refused(shop: Path, run: Run) -> None:
    assert run("query", "--user", "").code == 2
    both = run("query", "--everyone", *ANN)
    assert both.code == 2 and "--everyone and --user do not go together" in both.stderr


def test_files_come_and_go_for_those_who_are_named(shop: Path, run: Run) -> None:
    (shop / "rows.ndjson").write_text('{"id": "N-1"}\n{"id": "N-2", "confidence": 7}\n{"id": "RULE"}\n{}\n')
    stopped = run("ingest", str(shop / "rows.ndjson"), *ANN)
    assert stopped.code == 2 and 'rows.ndjson line 2 (id "N-2"), confidence must be' in stopped.stderr
    loaded = run("ingest", str(shop / "rows.ndjson"), *ANN, "--skip")
    assert loaded.code == 1 and "loaded 2 records" in loaded.stdout
    assert 'left out: rows.ndjson line 2 (id "N-2"), confidence must be' in loaded.stderr
    assert 'left out: rows.ndjson line 3 (id "RULE"), ' in loaded.stderr
    exported = ids(run("export", "--json", *ANN))
    assert exported[:3] == ["A-1", "A-2", "N-1"] and len(exported) == 4 and len(exported[3]) == 32
    assert len(ids(run("export", "--json"))) == 5
    assert ids(run("export", "--json", "--user", "anm")) == []
    history = run("export", "--history", *ANN).listing
    assert [event["record_id"] for event in history][:2] == ["A-1", "A-2"]
    assert {event["record_id"] for event in history} == set(exported)
