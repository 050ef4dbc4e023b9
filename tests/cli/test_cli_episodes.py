"""The commands of episodes and facts do what they say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_answer import Run

ANN = ("--user", "ann", "--session", "s1", "--agent", "helper")
LIVES = '{{"subject": "ann", "predicate": "lives in", "object": "{}"}}'


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules.json"
    rule = {"id": "homes", "cadence": {"every": 1}, "when_filter": "metadata.subject = 'ann'"}
    path.write_text(json.dumps([{**rule, "then_emits": ["profile"]}]))
    return path


@pytest.fixture
def conversation(run: Run) -> Run:
    for number, (said, metadata) in enumerate(
        [("Good morning", "{}"), ("I live in Rome", LIVES.format("Rome")), ("Oslo now", LIVES.format("Oslo"))]
    ):
        at = f"2026-05-18T09:0{number}:00Z"
        put = run("episodes", "put", said, *ANN, "--id", f"t{number}", "--at", at, "--metadata", metadata)
        assert (put.code, put.stdout) == (0, f"✔ put: t{number}\n")
    return run


def test_from_a_conversation_to_the_lineage_of_a_fact(conversation: Run, rules: Path) -> None:
    run = conversation
    recent = run("episodes", "recent", "--user", "ann", "--limit", "2", "--json")
    assert [one["id"] for one in recent.listing] == ["t2", "t1"]
    deltas = run("episodes", "consolidate", "--when", "metadata.subject = 'ann'", "--json").listing
    assert [(one["kind"], one.get("replaces")) for one in deltas] == [("add", None), ("update", ["t1"])]
    first = run("episodes", "run", rules)
    assert first.stdout == "✔ homes: 2 new episodes: 1 added, 1 updated, 0 deleted, 0 left\n"
    assert run("episodes", "run", rules, "--json").document["rules"][0]["due"] is False
    (fact,) = run("facts", "list", "--user", "ann", "--channel", "profile", "--json").listing
    assert (fact["id"], fact["payload"]["object"]) == ("t2", "Oslo")
    assert run("facts", "show", "t2", "--json").document == fact
    steps = run("facts", "lineage", "t2", "--json").listing
    assert [(step["event"], step["content"]) for step in steps] == [(2, "I live in Rome"), (3, "Oslo now")]


def test_people_see_tables(conversation: Run, rules: Path) -> None:
    run = conversation
    assert "Oslo now" in run("episodes", "recent", "--user", "ann").stdout
    assert run("episodes", "recent", "--user", "bob").stdout == "nothing was ever written for user=bob\n"
    assert run("facts", "list").stdout == "no facts\n"
    assert "update" in run("episodes", "consolidate").stdout
    run("episodes", "run", rules)
    assert "Oslo now" in run("facts", "list").stdout
    assert "lives in" in run("facts", "show", "fact:t2").stdout
    assert "I live in Rome" in run("facts", "lineage", "t2").stdout


def test_what_is_refused_is_told(run: Run, rules: Path, tmp_path: Path) -> None:
    for words, reason in (
        (("put", "x", "--user", "a/b", "--session", "s", "--agent", "a"), "must be without /, got"),
        (("put", "x", *ANN, "--at", "2026-05-18"), "time zone"),
        (("put", "x", *ANN, "--metadata", "[]"), "must be a JSON object"),
        (("put", "x", *ANN, "--metadata", "{"), "is not JSON"),
        (
            ("put", "x", *ANN, "--metadata", f'{{"a": {"[" * 60_000}{"]" * 60_000}}}'),
            "--metadata is not JSON",
        ),
        (("consolidate", "--when", "1=1; DROP TABLE episodes"), "; is not taken"),
        (("recent", "--user", ""), "non-empty"),
    ):
        answer = run("episodes", *words)
        assert (answer.code, answer.stdout) == (2, "")
        assert reason in answer.stderr
    bad = tmp_path / "bad.json"
    for text, reason in (
        ("[{}]", "bad.json: 0.id: Field required"),
        ("{", "bad.json: Invalid JSON"),
        ("{}", "bad.json: Input should be a valid array"),
        ('[{"id": "r", "cadence": {}, "when_filter": "", "then_emits": []}]', "cadence must be"),
    ):
        bad.write_text(text)
        answer = run("episodes", "run", bad)
        assert answer.code == 2 and reason in answer.stderr
    assert run("facts", "show", "nothing").code == 1
    assert not (tmp_path / ".chronomemory").exists()


def test_what_nests_is_taken_or_refused(run: Run) -> None:
    for depth in (100, 127, 300, 900, 1_500, 5_000, 9_000):
        deep = f'{{"a": {"[" * depth}{"]" * depth}}}'
        answer = run("episodes", "put", "x", *ANN, "--json", "--metadata", deep)
        assert answer.code == 0 or (answer.code == 2 and "nested" in answer.stderr), (depth, answer.stderr)


def test_rules_beside_a_bad_one_are_told(conversation: Run, rules: Path) -> None:
    bad = {"id": "bad", "cadence": {"every": 1}, "when_filter": "nothing = 1", "then_emits": []}
    rules.write_text(json.dumps([bad, *json.loads(rules.read_text())]))
    answer = conversation("episodes", "run", rules)
    assert answer.code == 2 and "no such column: nothing" in answer.stderr
    assert answer.stdout == "✔ homes: 2 new episodes: 1 added, 1 updated, 0 deleted, 0 left\n"
    again = conversation("episodes", "run", rules, "--json")
    assert again.code == 2 and again.document["rules"][0]["due"] is False


def test_a_bad_episode_is_warned_of(run: Run) -> None:
    run("episodes", "put", "x", *ANN, "--id", "e", "--metadata", '{"intent": "delete"}')
    answer = run("episodes", "consolidate")
    assert answer.code == 0
    assert "need replaces: e" in answer.stderr


def test_who_is_not_known_and_what_is_no_longer_pinned_is_told(conversation: Run, rules: Path) -> None:
    run = conversation
    run("episodes", "run", rules)
    assert "nothing was ever written for user=anm" in run("episodes", "recent", "--user", "anm").stdout
    assert "nothing was ever written for user=anm" in run("facts", "list", "--user", "anm").stdout
    assert "no episodes" in run("episodes", "recent", "--user", "ann", "--session", "other").stdout
    replaced = run("facts", "lineage", "t1")
    assert replaced.code == 1 and "no longer pinned" in replaced.stderr
    assert run("history", "--everyone", "fact:t1").code == 0
