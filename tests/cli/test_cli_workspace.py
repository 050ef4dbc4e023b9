"""The commands of a graph workspace do what they say, with the exit codes that they promise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from chronomemory.cli import app
from chronomemory.graph import Action
from cli_answer import Answer, Run
from typer.testing import CliRunner

GRAPH = {
    "nodes": [{"id": "ann", "kind": "person", "label": "Ann"}, {"id": "bob", "kind": "person"}],
    "edges": [{"id": "e", "source": "ann", "target": "bob", "kind": "knows"}],
}
DELETE = Action("d1", "delete_node", "bob", {"edges": True})


@pytest.fixture
def run() -> Run:
    """Run a command; the folder is an argument of each of them."""

    def call(*args: str | Path) -> Answer:
        result = CliRunner().invoke(app, list(map(str, args)))
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Answer(result.exit_code, result.stdout, result.stderr)

    return call


@pytest.fixture
def folder(run: Run, tmp_path: Path) -> Path:
    made = tmp_path / "w"
    assert run("workspace", "init", made).code == 0
    (tmp_path / "graph.json").write_text(json.dumps(GRAPH))
    assert run("workspace", "import", made, tmp_path / "graph.json").code == 0
    return made


@pytest.fixture
def actions(tmp_path: Path) -> Path:
    path = tmp_path / "actions.json"
    path.write_text(json.dumps([DELETE.to_dict()]))
    return path


def test_a_workspace_is_made_once(run: Run, tmp_path: Path) -> None:
    first = run("workspace", "init", tmp_path / "w", "--json")
    assert (first.code, first.document["made"]) == (0, True)
    assert run("workspace", "init", tmp_path / "w", "--json").document["made"] is False
    assert run("workspace", "init", tmp_path / "w").stdout.startswith("✔ it is there")


def test_from_import_to_export(run: Run, folder: Path, tmp_path: Path) -> None:
    exported = run("workspace", "export", folder)
    assert [node["id"] for node in exported.document["nodes"]] == ["ann", "bob"]
    to = tmp_path / "out.json"
    assert run("workspace", "export", folder, "--to", to).code == 0
    assert to.read_text() == exported.stdout
    assert run("workspace", "export", folder, "--to", to).code == 2
    assert run("workspace", "export", folder, "--to", to, "--force", "--json").document["bytes"] == len(
        to.read_bytes()
    )
    run("workspace", "init", tmp_path / "other")
    told = run("workspace", "import", tmp_path / "other", to, "--json")
    assert told.document == {"profiles": 0, "nodes": 2, "edges": 1, "paths": 0, "plans": 0, "events": 2}
    assert run("workspace", "export", tmp_path / "other").stdout == exported.stdout


def test_a_key_map(run: Run, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "theirs.json").write_text(json.dumps({"nodes": [{"id": "c", "type": "cat", "age": 3}]}))
    assert run("workspace", "import", folder, tmp_path / "theirs.json").code == 2
    keys = '{"nodes": {"kind": "type"}}'
    assert run("workspace", "import", folder, tmp_path / "theirs.json", "--keys", keys).code == 0
    (node,) = [one for one in run("workspace", "export", folder).document["nodes"] if one["id"] == "c"]
    assert (node["kind"], node["data"]) == ("cat", {"age": 3})


def test_findings_are_exit_code_1_and_mended(run: Run, folder: Path) -> None:
    clean = run("workspace", "diagnose", folder)
    assert (clean.code, clean.stdout) == (0, "✔ nothing is wrong\n")
    (folder / "nodes" / "ann.json").unlink()
    found = run("workspace", "diagnose", folder, "--json")
    assert (found.code, [one["code"] for one in found.listing]) == (1, ["view-drift"])
    shown = run("workspace", "diagnose", folder)
    assert shown.code == 1
    assert "view-drift" in shown.stdout
    told = run("workspace", "rebuild", folder, "--json").document
    assert told == {"written": 1, "removed": 0, "set_aside": []}
    assert run("workspace", "diagnose", folder).code == 0


def test_events_and_paths(run: Run, folder: Path) -> None:
    added = run(
        "workspace", "events", folder, "--add", '{"id": "x", "kind": "said", "refs": ["ann"]}', "--json"
    )
    assert [one["id"] for one in added.listing] == ["x"]
    assert [one["id"] for one in run("workspace", "events", folder, "--kind", "said", "--json").listing] == [
        "x"
    ]
    assert [one["id"] for one in run("workspace", "events", folder, "-n", "1", "--json").listing] == ["x"]
    assert "said" in run("workspace", "events", folder).stdout
    assert run("workspace", "events", folder, "--add", '{"id": "x", "kind": "said"}').code == 2
    assert run("workspace", "paths", folder).stdout == "no paths\n"
    branched = {
        "paths": [
            {"id": "main", "event_ids": ["x"]},
            {"id": "old", "parent_id": "main", "active": False, "abandoned_reason": "no"},
        ]
    }
    (folder / "paths.json").write_text(json.dumps(branched))
    run("workspace", "import", folder, folder / "paths.json")
    assert [one["id"] for one in run("workspace", "paths", folder, "--json").listing] == ["main", "old"]
    assert [one["id"] for one in run("workspace", "paths", folder, "--active", "--json").listing] == ["main"]
    assert "abandoned: no" in run("workspace", "paths", folder).stdout
    assert "x" in run("workspace", "paths", folder, "--id", "main").stdout
    assert run("workspace", "paths", folder, "--id", "nowhere").code == 1


def test_a_path_is_branched_extended_and_ended(run: Run, folder: Path) -> None:
    made = run("workspace", "path", folder, "main", "--branch", "--json")
    assert (made.code, made.document["id"], made.document["active"]) == (0, "main", True)
    run("workspace", "path", folder, "try", "--branch", "--from", "main")
    run("workspace", "path", folder, "bad", "--branch", "--from", "main")
    event = '{"id": "e1", "kind": "said", "refs": ["ann"]}'
    grown = run(
        "workspace", "path", folder, "try", "--record", event, "--record", '{"kind": "said"}', "--json"
    )
    assert grown.document["event_ids"][0] == "e1"
    assert len(grown.document["event_ids"]) == 2
    merged = run("workspace", "path", folder, "try", "--merge-into", "main")
    assert (merged.code, "merged into main" in merged.stdout) == (0, True)
    ended = run("workspace", "path", folder, "bad", "--abandon", "no use", "--json")
    assert ended.document["abandoned_reason"] == "no use"
    shown = run("workspace", "path", folder, "try")
    assert (shown.code, "e1" in shown.stdout) == (0, True)
    assert run("workspace", "diagnose", folder).code == 0


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["main", "--branch"], "already"),
        (["new", "--branch", "--from", "nowhere"], "no path 'nowhere'"),
        (["main", "--from", "main"], "--branch"),
        (["main", "--abandon", " "], "reason"),
        (["main", "--merge-into", "main"], "itself"),
        (["main", "--record", "{"], "--record is not JSON"),
        (["main", "--record", '{"kind": "action.applied"}'], "change of the graph"),
        (["main", "--merge-into", "x", "--abandon", "no"], "one of"),
    ],
)
def test_a_path_verb_that_cannot_be_is_refused(
    run: Run, folder: Path, arguments: list[str], complaint: str
) -> None:
    run("workspace", "path", folder, "main", "--branch")
    refused = run("workspace", "path", folder, *arguments)
    assert (refused.code, complaint in refused.stderr) == (2, True), refused.stderr
    assert run("workspace", "path", folder, "nowhere").code == 1
    assert [one["id"] for one in run("workspace", "paths", folder, "--json").listing] == ["main"]


def test_what_is_denied_says_which_digest_is_lacking(run: Run, folder: Path, actions: Path) -> None:
    denied = run("workspace", "apply", folder, actions, "--json")
    assert denied.code == 1
    assert [one["digest"] for one in denied.document["denied"]] == [DELETE.digest]
    assert DELETE.digest[:8] in run("workspace", "apply", folder, actions).stdout
    assert run("workspace", "apply", folder, actions, "--approve", DELETE.digest).code == 2
    assert run("workspace", "apply", folder, actions, "--approve", "0" * 64, "--reviewer", "ann").code == 2
    done = run(
        "workspace", "apply", folder, actions, "--approve", DELETE.digest, "--reviewer", "ann", "--json"
    )
    assert (done.code, done.document["applied"]) == (0, ["d1"])
    again = run("workspace", "apply", folder, actions, "--approve", DELETE.digest, "--reviewer", "ann")
    assert (again.code, "applied before" in again.stderr) == (2, True)


def test_a_denial_says_how_to_approve_on_the_command_line(
    run: Run, folder: Path, actions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    denied = run("workspace", "apply", folder, actions)
    assert denied.code == 1
    assert "d1: delete_node bob" in denied.stdout
    assert f"--approve {DELETE.digest}" in denied.stdout.splitlines()[1]
    assert "--approve DIGEST --reviewer NAME" in denied.stderr
    assert "Approval.of" not in denied.stderr
    as_json = run("workspace", "apply", folder, actions, "--json")
    assert "--reviewer NAME" in as_json.stderr


@pytest.mark.parametrize("reviewer", ["", " ", "a\x07"])
def test_a_reviewer_has_a_visible_name(run: Run, folder: Path, actions: Path, reviewer: str) -> None:
    refused = run("workspace", "apply", folder, actions, "--approve", DELETE.digest, "--reviewer", reviewer)
    assert (refused.code, "reviewer" in refused.stderr) == (2, True)
    assert [node["id"] for node in run("workspace", "export", folder).document["nodes"]] == ["ann", "bob"]


def test_approvals_may_stand_in_the_file(run: Run, folder: Path, actions: Path) -> None:
    approval = {"action_id": "d1", "reviewer": "ann", "action_digest": DELETE.digest}
    actions.write_text(json.dumps({"actions": [DELETE.to_dict()], "approvals": [approval]}))
    assert run("workspace", "apply", folder, actions).stdout == "✔ applied 1 action\n"
    for wrong in ('{"acts": []}', '{"actions": 3}', "[3]", "[", '[{"id": "x", "op": "boom", "target": "t"}]'):
        actions.write_text(wrong)
        assert run("workspace", "apply", folder, actions).code == 2


def test_a_replay_leads_to_the_graph(run: Run, folder: Path) -> None:
    told = run("workspace", "replay", folder, "--json")
    assert (told.code, told.document["equal"], told.document["nodes"]) == (0, True, 2)
    assert "the events lead to the graph" in run("workspace", "replay", folder).stdout


@pytest.mark.parametrize("command", ["diagnose", "export", "events", "paths", "replay", "rebuild"])
def test_a_folder_that_is_no_workspace_is_a_mistake(run: Run, tmp_path: Path, command: str) -> None:
    (tmp_path / "empty").mkdir()
    for place in ("empty", "missing"):
        assert run("workspace", command, tmp_path / place).code == 2
    assert list((tmp_path / "empty").iterdir()) == []
    assert not (tmp_path / "missing").exists()


def test_a_workspace_of_names(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "w"
    run("workspace", "init", folder, "--user", "ann")
    assert run("workspace", "diagnose", folder, "--user", "ann").code == 0
    assert run("workspace", "diagnose", folder).code == 2


def test_a_graph_is_drawn_where_nothing_is_yet(run: Run, folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "graph.html"
    assert "2 nodes, 1 edge drawn" in run("workspace", "graph", folder, "--html", page).stdout
    assert "Ann" in page.read_text(encoding="utf-8")
    before = page.read_bytes()
    assert run("workspace", "graph", folder, "--html", page).code == 2
    assert page.read_bytes() == before
    told = run("workspace", "paths", folder, "--html", page, "--force", "--json").document
    assert (told["paths"], told["events"]) == (0, 0)
    assert page.read_bytes() != before


def test_a_graph_is_printed_for_other_tools(run: Run, folder: Path) -> None:
    assert '"ann" -> "bob"' in run("workspace", "graph", folder, "--dot").stdout
    assert "<graphml" in run("workspace", "graph", folder, "--graphml").stdout
    for wrong in ([], ["--dot", "--graphml"]):
        refused = run("workspace", "graph", folder, *wrong)
        assert refused.code == 2
        assert "is needed" in refused.stderr
