"""Files are whole whoever edits them at once, wherever a server is killed, however often a call comes."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from assistants import ERAS, Talk, process, with_served
from chronomemory import ChronoStore, Scope
from chronomemory.mcp import file_editing
from chronomemory.mcp.file_editing import KEPT_OPERATIONS
from chronomemory.mcp.served_store import ServedStore
from chronomemory.mcp.server import make_server
from mcp import Client

OLD, NEW = "/memories/topic-tea.md", "/memories/topic-teas.md"
TEXT = "# Tea\n\nGreen at 70 degrees\n"
CALLS: dict[str, dict[str, Any]] = {
    "create": {"path": NEW, "file_text": TEXT},
    "str_replace": {"path": OLD, "old_str": "Green", "new_str": "Green and black"},
    "insert": {"path": OLD, "insert_line": 3, "insert_text": "Black at 100"},
    "delete": {"path": OLD},
    "rename": {"old_path": OLD, "new_path": NEW},
}

DIES = """
import json, os, sys
from chronomemory import ChronoStore, Scope
from chronomemory.face.files import Folder
from chronomemory.mcp import file_editing
from chronomemory.mcp.served_store import ServedStore
from chronomemory.pages.storage.home import PagesHandle
from chronomemory.pages.storage.home import Home
project, tool, asked, place = sys.argv[1:]
homes = {"remove": Folder, "run": PagesHandle, "show": Home, "write_index": file_editing}
setattr(homes[place], place, lambda *_, **__: os._exit(9))
with ChronoStore(project) as store:
    getattr(file_editing, tool)(ServedStore(store, Scope()), **json.loads(asked), operation_id="a")
"""


def texts(served: ServedStore) -> dict[str, str]:
    """What the tools show, file by file."""

    async def look(talk: Talk) -> dict[str, str]:
        listed = (await talk.call("view"))["result"].splitlines()[2:]
        names = [line.partition("\t")[2] for line in listed if "/topic-" in line]
        return {name: (await talk.call("view", path=name))["result"].partition("\n")[2] for name in names}

    return with_served(served, look, profile="files")


def done(served: ServedStore, tool: str, **asked: Any) -> dict[str, Any]:
    return with_served(served, lambda talk: talk.call(tool, **asked), profile="files")


@pytest.mark.parametrize("mode", ERAS)
def test_an_edit_that_is_repeated_is_done_once(served: ServedStore, mode: str) -> None:
    async def work(talk: Talk) -> None:
        await talk.call("create", path=OLD, file_text=TEXT)
        for tool, asked in CALLS.items():
            if tool == "rename":
                await talk.call("create", path=OLD, file_text=TEXT)
                await talk.call("delete", path=NEW)
            first = await talk.call(tool, **asked, operation_id=tool)
            before = served.store.wal_seq()
            again, text = await talk.both(tool, **asked, operation_id=tool)
            assert served.store.wal_seq() == before
            assert (first["repeated"], again["repeated"]) == (False, True)
            assert again["result"] == first["result"]
            assert "written before by a call with this operation_id" in text
        assert "used for another call, of rename" in await talk.refusal(
            "create", path=OLD, file_text=TEXT, operation_id="rename"
        )

    with_served(served, work, mode, "files")


@pytest.mark.parametrize("mode", ERAS)
def test_an_edit_that_was_given_up_and_repeated_is_done_once(served: ServedStore, mode: str) -> None:
    """The thread of a cancelled call finishes: the line is in the file although nobody heard of it."""
    entered, go_on = threading.Event(), threading.Event()
    usual = file_editing.insert

    def slow(*args: Any, **named: Any) -> Any:
        entered.set()
        go_on.wait(10)
        return usual(*args, **named)

    async def run() -> tuple[dict[str, Any], str]:
        call = {**CALLS["insert"], "operation_id": "a"}
        async with Client(make_server(replace(served, structured=True), "files"), mode=mode) as client:
            await Talk(client).call("create", path=OLD, file_text=TEXT)
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(file_editing, "insert", slow)
                given_up = asyncio.ensure_future(client.call_tool("insert", call))
                assert await asyncio.to_thread(entered.wait, 10)
                given_up.cancel()
                go_on.set()
                with pytest.raises(asyncio.CancelledError):
                    await given_up
            again = await Talk(client).call("insert", **call)
            return again, (await Talk(client).call("view", path=OLD))["result"]

    again, shown = asyncio.run(run())
    assert again["result"] == f"The file {OLD} has been edited."
    assert shown.count("Black at 100") == 1


def test_the_latest_operations_are_kept(served: ServedStore) -> None:
    async def work(talk: Talk) -> None:
        await talk.call("create", path=OLD, file_text=TEXT, operation_id="first")
        for number in range(KEPT_OPERATIONS):
            await talk.call(
                "insert", path=OLD, insert_line=0, insert_text=f"{number}", operation_id=f"{number}"
            )
        again = await talk.call("insert", path=OLD, insert_line=0, insert_text="0", operation_id="0")
        assert again["repeated"]
        assert "already exists" in await talk.refusal(
            "create", path=OLD, file_text=TEXT, operation_id="first"
        )

    with_served(served, work, profile="files")


@pytest.mark.parametrize(
    ("tool", "place", "is_done"),
    [
        ("delete", "remove", False),
        ("delete", "run", False),
        ("delete", "write_index", True),
        ("rename", "run", False),
        ("rename", "show", True),
        ("insert", "show", True),
    ],
)
def test_a_server_that_is_killed_has_done_all_or_nothing(
    tmp_path: Path, tool: str, place: str, is_done: bool
) -> None:
    """At each place between the log and the files: nothing comes back, nothing is there twice or lost."""
    with ChronoStore(tmp_path) as store:
        served = ServedStore(store, Scope())
        done(served, "create", path=OLD, file_text=TEXT)
        before = texts(served)
    asked = CALLS[tool]
    words = [sys.executable, "-c", DIES, str(tmp_path), tool, json.dumps(asked), place]
    assert subprocess.run(words, check=False).returncode == 9
    with ChronoStore(tmp_path) as store:
        served = ServedStore(store, Scope())
        assert (texts(served) == before) is not is_done
        assert done(served, tool, **asked, operation_id="a")["repeated"] is is_done
        after = texts(served)
        expected = {"delete": {}, "rename": {NEW: before[OLD]}, "insert": {OLD: after.get(OLD)}}[tool]
        assert after == expected
        assert sum("Black at 100" in text for text in after.values()) == (tool == "insert")
        # Another name for the same text, so that what is left over would be seen.
        done(served, "create", path="/memories/topic-other.md", file_text="Other\n")
        assert set(texts(served)) == {*expected, "/memories/topic-other.md"}
        assert store.verify().valid


def test_several_servers_edit_at_once(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        done(ServedStore(store, Scope()), "create", path=OLD, file_text="# Tea\n")

    async def edit(number: int) -> None:
        async with Client(process(tmp_path, "--profile", "files")) as client:
            talk = Talk(client)
            mine = f"/memories/topic-of-{number}.md"
            await talk.call("create", path=mine, file_text="Mine\n")
            for at in range(4):
                asked = {"path": OLD, "insert_line": 1, "insert_text": f"server {number} line {at}"}
                for _ in range(2):
                    await talk.call("insert", **asked, operation_id=f"{number}.{at}")
                await talk.call("view", path="/memories")
            await talk.call("rename", old_path=mine, new_path=f"/memories/topic-by-{number}.md")

    async def edit_all() -> None:
        await asyncio.gather(*(edit(number) for number in range(3)))

    asyncio.run(edit_all())
    with ChronoStore(tmp_path) as store:
        found = texts(ServedStore(store, Scope()))
        assert set(found) == {OLD, *(f"/memories/topic-by-{number}.md" for number in range(3))}
        lines = [line.partition("\t")[2] for line in found[OLD].splitlines()]
        expected = ["# Tea", "", *(f"server {number} line {at}" for number in range(3) for at in range(4))]
        assert sorted(lines) == sorted(expected)
        assert (tmp_path / "memory" / "topic-tea.md").read_text().splitlines() == lines[:-1]
        assert store.verify().valid
