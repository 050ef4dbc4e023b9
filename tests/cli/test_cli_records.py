"""A person can write, read, list and withdraw beliefs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from chronomemory import ChronoStore, DepGraph
from cli_answer import Run


def test_put_writes_what_it_is_told(run: Run, tmp_path: Path) -> None:
    answer = run(
        *("put", "FACT-1", "--kind", "risk", "--label", "Ice", "--confidence", "0.9", "--status", "x"),
        *("--source-type", "inferred", "--evidence", "a", "--evidence", "b", "--boundary", "winter"),
        *("--hypothesis", "--assumptions", '{"m": 1}', "--data", '{"n": [1, 2.5]}', "--depth", "3"),
    )
    assert answer.code == 0
    assert "FACT-1" in answer.stdout
    with ChronoStore(tmp_path) as store:
        record = store.get("FACT-1")
    assert record is not None
    assert record.to_dict() == {
        "id": "FACT-1",
        "kind": "risk",
        "status": "x",
        "label": "Ice",
        "confidence": 0.9,
        "source_type": "inferred",
        "evidence": ["a", "b"],
        "epistemic_boundary": ["winter"],
        "is_hypothesis": True,
        "model_assumptions": {"m": 1},
        "recursion_depth": 3,
        "data": {"n": [1, 2.5]},
    }


def test_put_changes_only_what_it_is_told(run: Run) -> None:
    run("put", "A", "--label", "first", "--confidence", "0.9", "--evidence", "seen")
    event = run("put", "A", "--confidence", "0.5", "--json").document
    assert event["op"] == "upsert"
    assert event["seq"] == 2
    record = run("get", "A", "--json").document
    assert (record["label"], record["confidence"], record["evidence"]) == ("first", 0.5, ["seen"])


def test_put_after_delete_starts_anew(run: Run) -> None:
    run("put", "A", "--label", "old", "--confidence", "0.9")
    run("delete", "A")
    run("put", "A", "--label", "new")
    record = run("get", "A", "--json").document
    assert (record["status"], record["label"], record["confidence"]) == ("active", "new", 0.7)


def test_put_takes_a_whole_record_from_stdin(run: Run) -> None:
    told = {"id": "A", "label": "naïve \u2028 \x1b", "recursion_depth": 2, "data": {"big": 2**70}}
    assert run("put", "--from-json", "-", stdin=json.dumps(told).encode()).code == 0
    record = run("get", "A", "--json").document
    assert {name: record[name] for name in told} == told


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["put", "A", "--confidence", "1.5"], "confidence"),
        (["put", "A", "--confidence", "nan"], "confidence"),
        (["put", "A", "--confidence", "high"], "confidence"),
        (["put", ""], "id"),
        (["put"], "ID"),
        (["put", "block:1"], "blocks"),
        (["put", "A", "--data", "{"], "--data"),
        (["put", "A", "--data", "[]"], "object"),
        (["put", "A", "--data", '{"x": NaN}'], "--data"),
        (["put", "A", "--data", '{"x": 1, "x": 2}'], "--data"),
        (["put", "A", "--data", '{"x": ' + "[" * 300 + "]" * 300 + "}"], "--data"),
        (["put", "A", "--from-json", "-"], "--from-json"),
        (["put", "--from-json", "-"], "--from-json"),
        (["delete", "block:1"], "block:1"),
        (["query", "--min-confidence", "nan"], "nan"),
        (["query", "--min-confidence", "2"], "2"),
        (["query", "--limit", "0"], "limit"),
        (["query", "--as-of", "yesterday"], "yesterday"),
        (["query", "--as-of", "2026-05-18T12:00:00"], "time zone"),
        (["query", "--as-of", str(2**63)], "larger"),
        (["get", "A", "--as-of", ""], "seq"),
        (["rollback", "A"], "--reason"),
        (["get"], "ID"),
        (["nonsense"], "nonsense"),
    ],
)
def test_bad_input_is_refused_and_writes_nothing(
    run: Run, tmp_path: Path, args: list[str], word: str
) -> None:
    answer = run(*args)
    assert answer.code == (1 if args[0] == "delete" else 2)
    assert answer.stdout == ""
    assert word in answer.stderr
    assert "Traceback" not in answer.stderr
    assert not (tmp_path / ".chronomemory").exists()


def test_a_record_with_an_unknown_field_is_refused(run: Run) -> None:
    answer = run("put", "--from-json", "-", stdin=b'{"id": "A", "colour": "red"}')
    assert answer.code == 2
    assert "colour" in answer.stderr
    assert "try: " in answer.stderr


def test_a_record_that_is_no_text_is_refused(run: Run) -> None:
    answer = run("put", "--from-json", "-", stdin=b'{"id": "\xff"}')
    assert answer.code == 2
    assert "UTF-8" in answer.stderr


def test_get_shows_moments_and_version(run: Run, tmp_path: Path) -> None:
    run("put", "FACT-1", "--label", "Ice")
    with ChronoStore(tmp_path) as store:
        record = store.get("FACT-1")
    assert record is not None and record.created_at is not None and record.version is not None
    shown = run("get", "FACT-1").stdout
    assert record.created_at.isoformat(sep=" ", timespec="seconds") in shown
    assert record.version in shown
    # What can be given back to put has its twelve fields and nothing else.
    assert json.loads(run("get", "FACT-1", "--json").stdout) == record.to_dict()


def test_get_shows_provenance(run: Run) -> None:
    run("put", "A", "--label", "Ice is cold", "--evidence", "touched it", "--data", '{"t": -4}')
    shown = run("get", "A").stdout
    for word in ("Ice is cold", "touched it", '"t": -4', "observed", "0.7"):
        assert word in shown


def test_what_is_not_there_is_a_finding(run: Run, tmp_path: Path) -> None:
    for command in ("get", "delete", "history"):
        answer = run(command, "A")
        assert answer.code == 1
        assert answer.stdout == ""
        assert "error: there is no record 'A'" in answer.stderr
    assert run("rollback", "A", "--reason", "x").code == 1
    assert not (tmp_path / ".chronomemory").exists(), "asking must not make a store"


def test_delete_hides_a_record_and_keeps_it(run: Run) -> None:
    run("put", "A")
    assert run("delete", "A", "--json").document == {"id": "A", "deleted": True, "seq": 2}
    assert run("delete", "A", "--json").document == {"id": "A", "deleted": False, "seq": None}
    assert "before" in run("delete", "A").stdout
    assert run("query", "--json").stdout == ""
    assert run("get", "A", "--json").document["status"] == "tombstone"
    assert len(run("replay", "--json").listing) == 2


@pytest.fixture
def many(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert_many(
            {"id": f"R-{n:02}", "kind": "fact" if n % 2 else "risk", "confidence": n / 100}
            for n in range(100)
        )
        store.upsert({"id": "OLD", "status": "deprecated"})
        store.engine.upsert({"id": "block:1", "kind": "block"}, "blocks")


@pytest.mark.usefixtures("many")
def test_query_asks_what_the_store_asks(run: Run) -> None:
    def ids(*args: str) -> list[str]:
        return [record["id"] for record in run("query", "--json", *args).listing]

    assert len(ids()) == 100
    assert ids("--limit", "2") == ["R-00", "R-01"]
    assert ids("--kind", "risk", "--limit", "2") == ["R-00", "R-02"]
    assert ids("--min-confidence", "0.98") == ["R-98", "R-99"]
    assert ids("--rag")[0] == "R-60"
    assert ids("--status", "deprecated") == ["OLD"]
    assert ids("--all")[-1] == "OLD"
    assert ids("--faces", "--all")[-1] == "block:1"
    assert ids("--kind", "block") == ["block:1"]
    assert ids("--as-of", "4") == ids("--as-of", "1") == []  # inside a batch nothing is known yet
    assert len(ids("--as-of", "101")) == 100


@pytest.mark.usefixtures("many")
def test_a_table_shows_so_many_and_says_that_there_are_more(run: Run) -> None:
    shown = run("query").stdout
    assert shown.count("R-") == 50
    assert "--limit" in shown
    assert run("query", "--limit", "100").stdout.count("R-") == 100
    assert "no such records" in run("query", "--kind", "nothing").stdout


def test_the_past_can_be_read(run: Run) -> None:
    run("put", "A", "--label", "one")
    first = run("replay", "--json").listing[0]["ts"]
    run("put", "A", "--label", "two")
    assert run("get", "A", "--as-of", "1", "--json").document["label"] == "one"
    assert run("get", "A", "--as-of", first, "--json").document["label"] == "one"
    assert run("get", "A", "--as-of", "2", "--json").document["label"] == "two"
    assert run("get", "A", "--as-of", "2999-01-01T00:00:00+02:00").code == 2, "that has not come yet"
    assert run("get", "A", "--as-of", "2000-01-01T00:00:00Z").code == 1
    run("compact")
    assert run("get", "A", "--as-of", "1", "--json").document["label"] == "one", "the archive knows"
    run("compact", "--drop-history")
    run("put", "A", "--label", "three")
    run("compact", "--drop-history")
    gone = run("get", "A", "--as-of", "1")
    assert gone.code == 1
    assert "try: " in gone.stderr


def test_rollback_shows_before_and_after(run: Run, tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert_many([{"id": "A", "confidence": 0.9}, {"id": "B", "confidence": 0.8}])
        DepGraph(store).add_edge("B", "A", "depends_on")
    told = run("rollback", "A", "--reason", "wrong", "--json").document
    assert told["affected"] == ["A", "B"]
    assert told["changes"][1]["new_confidence"] == 0.4
    again = run("rollback", "A", "--reason", "wrong")
    assert again.code == 2
    assert "--again" in again.stderr
    assert run("get", "B", "--json").document["confidence"] == 0.4
    shown = run("rollback", "A", "--reason", "wrong", "--again").stdout
    assert "hypothesis → hypothesis" in shown
    assert "0.40 → 0.20" in shown


def test_rollback_of_a_source_outside_the_store_still_cascades(run: Run, tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "B", "confidence": 0.8})
        DepGraph(store).add_edge("B", "paper", "derived_from")
    assert run("rollback", "paper", "--reason", "retracted", "--json").document["affected"] == ["B"]
