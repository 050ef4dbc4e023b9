"""The command line says honestly what happened and what can be trusted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from chronomemory import ChronoStore
from cli_answer import Run


@pytest.fixture
def forged(tmp_path: Path, log: Path) -> int:
    """Forge the second of four lines, and say where it begins."""
    with ChronoStore(tmp_path) as store:
        for number in range(4):
            store.upsert({"id": f"R-{number}", "label": "original"})
    lines = log.read_bytes().split(b"\n")
    lines[1] = lines[1].replace(b"original", b"forgery!")
    log.write_bytes(b"\n".join(lines))
    return len(lines[0]) + 1


def test_a_project_without_a_log(run: Run, tmp_path: Path) -> None:
    assert "no log yet" in run("status").stdout
    assert run("status", "--json").document["backend"] == "none"
    verdict = run("verify")
    assert verdict.code == 0
    assert "No chain can tell" in verdict.stdout
    assert run("verify", "--json").document["events"] == 0
    assert run("replay").stdout == "no such events\n"
    assert list(tmp_path.iterdir()) == []


def test_a_project_that_still_has_json_files(run: Run, tmp_path: Path) -> None:
    (tmp_path / ".specsmith").mkdir()
    (tmp_path / ".specsmith" / "requirements.json").write_text('[{"id": "R-1", "title": "x"}]')
    assert "chronomemory migrate" in run("status").stdout
    assert run("status", "--json").document["records"] == 1


def test_status_counts_every_kind_and_status(run: Run, tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert_many([{"id": "A"}, {"id": "B"}, {"id": "C", "kind": "risk"}])
        store.delete("B")
        store.engine.upsert({"id": "block:1", "kind": "block"}, "blocks")
    told = run("status", "--json").document
    assert told["kinds"] == {
        "fact": {"active": 1, "tombstone": 1},
        "risk": {"active": 1},
        "block": {"active": 1},
    }
    assert (told["records"], told["valid"], told["last_seq"]) == (2, True, 6)
    shown = run("status")
    assert shown.code == 0
    assert "remembered" in shown.stdout
    assert "tombstone" in shown.stdout
    assert "1 of other faces" in shown.stdout


def test_verify_names_the_rungs_it_cannot_reach(run: Run) -> None:
    run("put", "A")
    verdict = run("verify")
    assert verdict.code == 0
    assert "verdict  remembered" in verdict.stdout
    for rung in ("signed", "witnessed"):
        line = next(line for line in verdict.stdout.splitlines() if line.startswith(rung))
        assert "cannot tell" in line
    assert "tamper-proof" not in verdict.stdout


def test_verify_says_where_and_why(run: Run, forged: int) -> None:
    verdict = run("verify")
    assert verdict.code == 1
    assert "corrupt: 1 damaged place" in verdict.stdout
    row = next(line for line in verdict.stdout.splitlines() if line.startswith("events.wal"))
    assert row.split()[:5] == ["events.wal", "2", f"{forged:,}", "2", "altered"]
    assert "chronomemory repair" in verdict.stdout
    told = run("verify", "--json")
    assert told.code == 1
    assert told.document["damage"][0]["offset"] == forged
    assert told.document["rungs"]["chain"] == "corrupt"


@pytest.mark.usefixtures("forged")
@pytest.mark.damaged_before_opening
def test_a_damaged_store_warns_and_still_answers(run: Run) -> None:
    answer = run("get", "R-0", "--json")
    assert answer.code == 0
    assert answer.document["label"] == "original"
    assert "altered" in json.loads(answer.stderr)["warning"]
    spoken = run("get", "R-0")
    assert spoken.stderr.startswith("warning: ")
    assert "RuntimeWarning" not in spoken.stderr
    assert run("status").code == 1


def test_an_interrupted_write_is_no_damage(run: Run, log: Path) -> None:
    run("put", "A")
    log.write_bytes(log.read_bytes() + b'{"hash":"')
    verdict = run("verify")
    assert verdict.code == 0
    assert "9 uncommitted bytes" in verdict.stdout
    assert run("verify", "--json").document["tail"]["length"] == 9


def test_history_tells_what_changed(run: Run) -> None:
    run("put", "A", "--label", "one", "--data", '{"n": 1, "gone": true}')
    run("put", "A", "--confidence", "0.5", "--data", '{"n": 2}')
    run("put", "A")
    run("delete", "A")
    shown = run("history", "A").stdout
    for words in ("confidence 0.7 → 0.5", "data.n 1 → 2", "data.gone true → (none)", "nothing"):
        assert words in shown
    assert "status active → tombstone" in shown
    assert [event["op"] for event in run("history", "A", "--json").listing] == ["upsert"] * 3 + ["delete"]


def test_history_shows_long_values_whole(run: Run) -> None:
    long = "The customer in aisle {} asked twice for the blue kettle with the long handle and the lid {}"
    old, new = long.format("seven", "x" * 300), long.format("six", "x" * 300)
    run("put", "A", "--label", old)
    run("put", "A", "--label", new)
    shown = "".join(run("history", "A").stdout.split())
    assert "…" not in shown
    for words in (old, f"{old} → {new}"):
        assert "".join(words.split()) in shown
    assert [event["record"]["label"] for event in run("history", "A", "--json").listing] == [old, new]


def test_history_tells_true_from_one(run: Run) -> None:
    run("put", "A", "--data", '{"n": 1, "x": 0.0}')
    run("put", "A", "--data", '{"n": true, "x": 0}')
    shown = run("history", "A").stdout
    assert "data.n 1 → true" in shown and "data.x 0.0 → 0" in shown


def test_history_of_a_faces_record_follows_its_patches(run: Run, tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.engine.upsert({"id": "block:1", "data": {"a": 1, "b": {"c": 2}}}, "blocks")
        store.engine.write([("patch", ("block:1", {"data": {"a": None, "b": {"c": 3}}}))], "blocks")
    shown = run("history", "block:1").stdout
    assert "data.b.c 2 → 3" in shown
    assert "data.a 1 → (none)" in shown


def test_history_reaches_back_through_a_compaction(run: Run) -> None:
    run("put", "A")
    run("compact")
    answer = run("history", "A", "--json")
    assert answer.code == 0
    assert [json.loads(line)["record_id"] for line in answer.stdout.splitlines()] == ["A"]


def test_replay_gives_the_lines_as_they_are(run: Run, log: Path) -> None:
    for number in range(3):
        run("put", f"R-{number}", "--label", "naïve")
    assert run("replay", "--json").stdout == log.read_text(encoding="utf-8")
    assert [event["seq"] for event in run("replay", "--from-seq", "2", "--json").listing] == [2, 3]
    assert len(run("replay", "--limit", "1", "--json").listing) == 1
    shown = run("replay", "--limit", "1").stdout
    assert "R-0" in shown
    assert "2 more" in shown


def test_a_cut_end_is_a_finding_of_its_own_until_it_is_accepted(run: Run, log: Path) -> None:
    run("put", "A")
    run("put", "B")
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(lines[0])
    (log.parent / "synced").unlink()
    verdict = run("verify")
    assert verdict.code == 3
    assert "event 2 was seen here" in " ".join(verdict.stdout.split())
    assert "chronomemory accept-head" in verdict.stdout
    accepted = run("accept-head")
    assert accepted.code == 0
    assert "accepted: 1 event" in accepted.stdout
    assert run("verify").code == 0


def test_a_record_in_doubt_is_shown_as_such_and_exits_with_3(run: Run, log: Path) -> None:
    run("put", "A", "--label", "the bridge holds")
    run("put", "A", "--status", "invalidated")
    run("put", "B", "--evidence", "A")
    log.write_bytes(log.read_bytes().replace(b"invalidated", b"invalidateX"))
    for more in ([], ["--json"]):
        answer = run("get", "A", *more)
        assert answer.code == 3 and "in doubt: a damaged line of the log names this record" in answer.stderr
        assert "the bridge holds" in answer.stdout
        assert run("get", "B", *more).code == 0
    why = "1 record in doubt: a damaged line of the log names this record"
    for command in (["get", "A"], ["query"], ["search", "bridge"], ["why", "A"], ["why", "B"]):
        shown, told = run(*command), run(*command, "--json")
        assert (shown.code, told.code) == (3, 3), command
        assert why in shown.stderr and why in told.stderr
        assert "in doubt" in shown.stdout
        assert '"in_doubt":"a damaged line' in told.stdout
    assert run("query", "--kind", "fact", "--status", "deprecated").code == 0


def test_a_damaged_synced_is_a_finding_until_the_next_sync(run: Run, log: Path) -> None:
    run("put", "A")
    synced = log.parent / "synced"
    synced.write_bytes(synced.read_bytes()[:-1] + b"?")
    answer = run("verify")
    assert answer.code == 3 and "synced is damaged" in " ".join(answer.stdout.split())
    told = run("verify", "--json")
    assert told.code == 3 and told.document["valid"] and told.document["damaged_synced"]
    assert "synced is damaged" in run("get", "A").stderr
    run("put", "B")
    assert run("verify").code == 0
