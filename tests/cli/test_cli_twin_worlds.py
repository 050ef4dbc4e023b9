"""No command of ann's says, on stdout or stderr, whether others use the same store, nor what they hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_answer import Run
from twin_worlds import SECRET, World, told_in_both

ANN = ("--user", "ann")
PAGES = (*ANN, "--folder", "anns")
COMMANDS: list[tuple[str, ...]] = [
    ("put", "SHARED-1", "--label", "the office opens at nine"),
    ("put", "A-1", "--label", "green tea at four", "--data", '{"topic": "tea"}', *ANN),
    ("put", "A-2", "--label", "a cup of tea", "--evidence", "A-1", *ANN),
    ("get", "A-1", *ANN),
    ("get", "NOBODY", *ANN),
    ("query", "--all", "--faces", *ANN),
    ("query", "--where", '{"data.topic": "tea"}', "--explain", *ANN),
    ("query", "--where", '{"data.none": {"gt": true}}', *ANN),
    ("search", "green tea", "--explain", *ANN),
    ("search", SECRET[:3], *ANN),
    ("history", "A-1", *ANN),
    ("history", "NOBODY", *ANN),
    ("why", "A-2", *ANN),
    ("why", "NOBODY", *ANN),
    ("rollback", "A-1", "--reason", "it was not so", *ANN),
    ("get", "A-1", *ANN),
    ("delete", "A-2", *ANN),
    ("delete", "NOBODY", *ANN),
    ("delete", "SHARED-1", *ANN),
    ("ingest", "ROWS", "--skip", *ANN),
    ("export", "-", *ANN),
    ("put", "X-1", "--data", '{"expires_at": "2020-01-01T00:00:00Z"}', *ANN),
    ("sweep", "--dry-run", *ANN),
    ("sweep", "--erase", "--yes", *ANN),
    ("learn", "The lamp is green", "--tag", "work", *ANN),
    ("blocks", "remember", "Ann likes green tea", *ANN),
    ("recall", "green tea", "--explain", *ANN),
    ("frame", "attention", "green tea", "--explain", *ANN),
    ("outcome", "0" * 32, "--signal", "0.9", *ANN),
    ("dream", *ANN),
    ("curate", *ANN),
    ("blocks", "ls", *ANN),
    ("blocks", "status", *ANN),
    ("blocks", "graph", "--html", "HTML", "--force", *ANN),
    ("blocks", "show", "0" * 32, *ANN),
    ("blocks", "edit", "0" * 32, "x", *ANN),
    ("blocks", "forget", "0" * 32, *ANN),
    ("blocks", "reembed", *ANN),
    ("episodes", "put", "Tea at four", *ANN, "--session", "s1", "--agent", "a1", "--id", "ep-1"),
    ("episodes", "recent", *ANN),
    ("facts", "list", *ANN),
    ("pages", "create", "topic-tea", "What is known of tea", *PAGES),
    ("pages", "append", "user-profile", "Ann likes tea.", "--tag", "tea", *PAGES),
    ("pages", "list", *PAGES),
    ("pages", "read", "user-profile", *PAGES),
    ("pages", "search", "tea", *PAGES),
    ("pages", "recent", *PAGES),
    ("pages", "sync", *PAGES),
    ("pages", "status", "user-profile", *PAGES),
    ("pages", "read", "topic-none", *PAGES),
    ("spaces",),
]


def test_every_command_of_a_user_tells_the_same_alone_and_among_others(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")  # where a line breaks depends on how many digits a seq has

    def life(world: World) -> None:
        rows = world.project / "rows.ndjson"
        rows.write_text(json.dumps({"id": "I-1", "label": "loaded tea"}) + "\n{}x\n")
        files = {"ROWS": str(rows), "HTML": str(world.project / "graph.html")}
        for number, command in enumerate(COMMANDS):
            for form in ((),) if {"query", "--explain"} <= {*command} else ((), ("--json",)):
                words = [files.get(word, word) for word in (*command, *form)]

                def work(words: list[str] = words) -> list[object]:
                    answer = run(*words, project=world.project)
                    return [answer.code, answer.stdout, answer.stderr]

                world.step(f"{number} {' '.join(command)} {' '.join(form)}", work)

    told = told_in_both(tmp_path, life)
    refused = [name for name, said in told.items() if "No such command" in said or "Usage" in said]
    assert not refused, "\n".join(f"{name}: {told[name][:300]}" for name in refused)
