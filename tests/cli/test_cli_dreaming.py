"""The command line keeps the memories of all in order."""

from __future__ import annotations

from cli_answer import Run


def test_everyone_dreams_by_one_command(run: Run) -> None:
    run("learn", "The office opens at nine")
    run("learn", "Likes tea", "--user", "ann")
    told = run("dream", "--everyone", "--json").document["scopes"]
    assert [(each["scope"], len(each["promoted"])) for each in told] == [({}, 1), ({"user": "ann"}, 1)]
    assert run("recall", "tea", "--user", "ann", "--json").document["blocks"]
    shown = run("curate", "--everyone").stdout
    assert "what is shared: 0 blocks archived" in shown
    assert "user=ann: 0 blocks archived" in shown


def test_nobody_to_dream_for_is_told(run: Run) -> None:
    assert "nobody has any blocks here" in run("dream", "--everyone").stdout
    assert run("curate", "--everyone", "--json").document == {"scopes": []}


def test_names_and_everyone_exclude_each_other(run: Run) -> None:
    refused = run("dream", "--everyone", "--user", "ann")
    assert refused.code == 2
    assert "do not go together" in refused.stderr
    assert run("dream", "--everyone", "--endpoint", "http://localhost:1").code == 2
