"""A server of its own serves a real client over stdio, and says nothing else on stdout."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from assistants import ERAS, Talk, command, process, talk
from chronomemory import Memory
from chronomemory.cli import app
from chronomemory.mcp.clients import command_of
from typer.testing import CliRunner

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def call(number: int, tool: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


@pytest.mark.parametrize("mode", ERAS)
def test_every_tool_answers_a_client_over_stdio(tmp_path: Path, mode: str) -> None:
    async def work(talk: Talk) -> None:
        first = await talk.call("add_memory", content="Deploys run from main", operation_id="a")
        assert first["scope"] == "user=ann, agent=helper"
        second = await talk.call(
            "supersede_memory", memory_id=first["memory_id"], content="Deploys run from trunk"
        )
        [found] = (await talk.call("search_memories", query="deploys"))["memories"]
        assert found["id"] == second["memory_id"]
        assert (await talk.call("get_memory", memory_id=found["id"]))["memory"]["text"] == found["text"]
        assert (await talk.call("explain", memory_id=found["id"]))["grounds"]
        await talk.call("retract_memory", memory_id=found["id"], reason="no deploys")
        assert (await talk.call("history", memory_id=found["id"]))["events"]
        assert (await talk.call("verify"))["valid"]
        assert "no such argument" in await talk.refusal("verify", deeply=True)
        assert (await talk.call("list_memories"))["memories"] == []

    talk(process(tmp_path, "--user", "ann", "--agent", "helper"), work, mode)
    with Memory(tmp_path, user="ann", agent="helper") as memory:
        assert memory.status().archived == 2


def test_the_other_profiles_over_stdio(tmp_path: Path) -> None:
    entity = {"name": "Ann", "entityType": "person", "observations": ["likes tea"]}
    relation = {"from": "Ann", "to": "Ann", "relationType": "knows"}

    async def nine(talk: Talk) -> None:
        await talk.call("create_entities", entities=[entity])
        await talk.call("create_relations", relations=[relation])
        await talk.call("add_observations", observations=[{"entityName": "Ann", "contents": ["sings"]}])
        for tool, asked in (
            ("read_graph", {}),
            ("search_nodes", {"query": "tea"}),
            ("open_nodes", {"names": ["Ann"]}),
        ):
            assert (await talk.call(tool, **asked))["entities"][0]["observations"] == ["likes tea", "sings"]
        await talk.call("delete_observations", deletions=[{"entityName": "Ann", "observations": ["sings"]}])
        await talk.call("delete_relations", relations=[relation])
        assert (await talk.call("read_graph"))["relations"] == []

    async def two(talk: Talk) -> None:
        [found] = (await talk.call("search", query="tea"))["results"]
        assert (await talk.call("fetch", id=found["id"]))["title"] == "Ann"

    async def five(talk: Talk) -> None:
        assert (await talk.call("list_pages"))["pages"] == []
        assert (await talk.call("search_pages", query="deploys"))["entries"] == []
        assert (await talk.call("recent_entries"))["entries"] == []
        assert "there are no pages" in await talk.refusal("read_page", page="user-profile")
        assert "prefix" in (await talk.call("page_schema"))["schema"]

    talk(process(tmp_path, "--profile", "pages"), five)
    talk(process(tmp_path, "--profile", "reference"), nine)
    talk(process(tmp_path, "--profile", "chatgpt"), two)

    async def six(talk: Talk) -> None:
        path, new = "/memories/topic-tea.md", "/memories/topic-teas.md"
        await talk.call("create", path=path, file_text="Tea\n")
        await talk.call("insert", path=path, insert_line=1, insert_text="at four")
        await talk.call("str_replace", path=path, old_str="four", new_str="five")
        await talk.call("rename", old_path=path, new_path=new)
        shown = (await talk.call("view", path=new))["result"]
        assert shown.endswith("\n     1\tTea\n     2\tat five\n     3\t")
        await talk.call("delete", path=new)
        assert "topic-tea" not in (await talk.call("view"))["result"]

    talk(process(tmp_path, "--profile", "files"), six)


def test_stdout_holds_frames_to_the_last_byte(tmp_path: Path) -> None:
    """Errors, bad frames and the end included; a print that waits in a buffer would come at exit."""
    lines: list[bytes] = []
    with subprocess.Popen(
        command(tmp_path), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None

        def say(message: dict[str, Any]) -> dict[str, Any]:
            """Send a frame; if it asks for an answer, wait for that."""
            assert server.stdin is not None
            assert server.stdout is not None
            server.stdin.write(json.dumps(message).encode() + b"\n")
            server.stdin.flush()
            while "id" in message:
                lines.append(server.stdout.readline())
                told: dict[str, Any] = json.loads(lines[-1])
                if told.get("id") == message["id"]:
                    return told
            return {}

        assert say(HELLO)["result"]["serverInfo"]["name"] == "chronomemory"
        say(READY)
        say(call(2, "add_memory", content="Tea at four\n\u2028 with a \u202e twist"))
        found = say(call(3, "search_memories", query="tea"))["result"]["structuredContent"]["memories"]
        assert found[0]["text"] == "Tea at four\n\u2028 with a \u202e twist"
        server.stdin.write(b'{"this is": no frame\n')
        assert say(call(4, "search_memories", limt=1))["result"]["isError"]
        assert say(call(5, "add_memory", content="x" * 10_000_000))["result"]["isError"]
        assert len(lines[-1]) < 2_000
        assert say(call(6, "verify"))["result"]["structuredContent"]["valid"]
        server.stdin.close()
        assert server.stdout.read() == b""
        assert server.wait(60) == 0
    for line in lines:
        assert json.loads(line)["jsonrpc"] == "2.0"
        assert line.endswith(b"}\n")


def test_nothing_is_imported_from_the_folder_it_is_started_in(tmp_path: Path) -> None:
    """A client starts the server in the folder of a project, and that may be a stranger's."""
    for name in ("mcp", "numpy", "typer", "pydantic", "anyio"):
        (tmp_path / f"{name}.py").write_text("open('harmed', 'w').close()")
    done = subprocess.run(
        command_of(tmp_path, []),
        input=json.dumps(HELLO).encode() + b"\n",
        capture_output=True,
        cwd=tmp_path,
        check=False,
    )
    assert not (tmp_path / "harmed").exists()
    assert b"serverInfo" in done.stdout, done.stderr.decode()


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def test_without_the_extra_it_says_how_to_install_it(tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['mcp'] = None\n"
        "sys.argv = ['chronomemory', 'mcp', '--project', sys.argv[1]]\n"
        "from chronomemory.cli import main; main()"
    )
    told = run("-c", script, tmp_path)
    assert told.returncode == 1
    assert 'pip install "chronomemory-rs[mcp]"' in told.stderr
    assert told.stdout == ""
    assert "Traceback" not in told.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--profile", "folders"), "there is no profile 'folders'"),
        (("--user", ""), "user: non-empty text expected"),
        (("--project", "/nowhere/at/all"), "is not a folder"),
        (("--http", "--host", "0.0.0.0"), "host: 127.0.0.1, ::1 or localhost expected"),
        (("--port", "0"), "greater than or equal to 1"),
        (("--everyone",), "No such option"),
    ],
)
def test_bad_options_are_refused_on_stderr(tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    given = options if options[0] == "--project" else ("--project", str(tmp_path), *options)
    told = CliRunner().invoke(app, ["mcp", *given])
    assert told.exit_code == 2
    assert said in " ".join(told.stderr.replace("│", " ").split())
    assert told.stdout == ""
    assert not (tmp_path / ".chronomemory").exists()
