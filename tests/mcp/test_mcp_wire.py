"""A server over stdio answers frames that no client should send, and stands being cut off."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from assistants import command
from chronomemory import ChronoStore, Memory
from chronomemory.mcp.server import refusal
from mcp.types import jsonrpc_message_adapter
from pydantic import ValidationError

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


class Wire:
    """A server in a process of its own, spoken to byte by byte."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.number = 0
        self.ask("initialize", HELLO)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def raw(self, sent: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(sent)
        self.process.stdin.flush()

    def send(self, frame: dict[str, Any]) -> None:
        self.raw(json.dumps(frame).encode() + b"\n")

    def answer(self, number: int) -> dict[str, Any]:
        assert self.process.stdout is not None
        while True:
            told: dict[str, Any] = json.loads(self.process.stdout.readline())
            if told.get("id") == number:
                return told

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.number += 1
        self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        return self.answer(self.number)

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return dict(self.ask("tools/call", {"name": tool, "arguments": arguments})["result"])

    def spelled(self, arguments: bytes) -> dict[str, Any]:
        """Add a memory, with the arguments as they are spelled."""
        self.number += 1
        head = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"add_memory","arguments":'
        self.raw(head % self.number + arguments + b"}}\n")
        return self.answer(self.number)


@contextmanager
def wired(project: Path, *options: str) -> Iterator[Wire]:
    with subprocess.Popen(
        command(project, *options),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            yield Wire(process)
        finally:
            process.kill()


def test_what_cannot_be_read_is_answered_and_the_rest_goes_on(tmp_path: Path) -> None:
    """The SDK passes over such a frame without a word, and whoever sent it would wait for ever."""
    with wired(tmp_path, "--user", "ann") as wire:
        for arguments in (
            b'{"content":"half \\ud83d of an emoji"}',
            b'{"content":"x","tags":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
            b'{"content":}',
        ):
            told = wire.spelled(arguments)["error"]
            assert told["code"] == -32700
            assert told["message"].endswith("Nothing was done; correct the text and call again.")
        # What is no text in UTF-8 is read with a mark in its place; a NUL is a character like another.
        assert not wire.spelled(b'{"content":"tea \xff\xfe"}')["result"].get("isError")
        assert not wire.spelled(b'{"content":"nul \\u0000 tea"}')["result"].get("isError")
        wire.raw(
            b'\n\n[{"jsonrpc":"2.0","id":77,"method":"ping"}]\n{"jsonrpc":"2.0","method":"nobody/hears"}\n'
        )
        found = wire.call("search_memories", query="tea")
        texts = {each["text"] for each in found["structuredContent"]["memories"]}
        assert texts == {"nul \0 tea", "tea \ufffd\ufffd"}
        deep = {"and": []}
        for _ in range(40):
            deep = {"and": [deep]}
        assert wire.call("search_memories", query="x", where=deep)["isError"]
        assert wire.call("search_memories", query="x", where={"data.x": "y" * 10_000_000})["isError"]
        # The client goes away in the middle of a frame: nothing of it is done, and the server ends.
        wire.raw(b'{"jsonrpc":"2.0","id":99,"method":"tools/call","params":{"name":"add_memory","argum')
        assert wire.process.stdin is not None
        wire.process.stdin.close()
        assert wire.process.wait(60) == 0
    with Memory(tmp_path, user="ann") as memory:
        assert len(memory.list()) == 2


@pytest.mark.parametrize(
    ("frame", "number"),
    [
        ('{"jsonrpc":"2.0","id":5,"method":"x","params":{"id":7,"a":"\\ud800"}}', 5),
        ('{"method":"x","params":{"id":7,"a":"\\ud800"},"jsonrpc":"2.0","id":"a-6"}', "a-6"),
        ('{"method":"x","params":{"id":7,"a":"\\ud800"},"id":6,"jsonrpc":"2.0"}', 6),
        ('{"method":"x","params":{"a":"\\ud800","id":7}}', None),
        ('{"method":"x","params":{"id":7}', None),
        ("no frame at all", None),
        ('{"jsonrpc":"2.0","id":', None),
    ],
)
def test_the_id_is_that_of_the_call_and_of_nothing_within_it(frame: str, number: object) -> None:
    with pytest.raises(ValidationError) as refused:
        jsonrpc_message_adapter.validate_json(frame)
    told = refusal(refused.value)
    assert (None if told is None else told.id) == number


def test_a_server_that_is_ended_while_it_writes_leaves_a_whole_store(tmp_path: Path) -> None:
    """Whoever heard nothing repeats the call with its operation_id: it is written once, however it ended."""
    contents = [f"Sentence {number} of tea" for number in range(2)]
    for number, content in enumerate(contents):
        with wired(tmp_path, "--user", "ann") as wire:
            # The first write loads what the others find; the next is cut off, each time a little later.
            wire.call("add_memory", content="First", operation_id=f"first {number}")
            call = {"name": "add_memory", "arguments": {"content": content, "operation_id": content}}
            wire.send({"jsonrpc": "2.0", "id": 90, "method": "tools/call", "params": call})
            time.sleep(0.004 * number)
            wire.process.send_signal(signal.SIGTERM)
            assert wire.process.wait(60) in (0, -signal.SIGTERM, 128 + signal.SIGTERM)
    with wired(tmp_path, "--user", "ann") as wire:
        for content in contents:
            told = wire.call("add_memory", content=content, operation_id=content)["structuredContent"]
            assert told["outcome"] == "added"
    with ChronoStore(tmp_path) as store, Memory(store, user="ann") as memory:
        assert store.verify().valid
        assert sorted(block["content"] for block in memory.list()) == sorted([*contents, "First"])
        hits = store.scoped(user="ann").search("sentence tea", limit=10)
        assert len(hits) == len(contents)
        for hit in hits:
            history = store.scoped(user="ann").history(hit.record.id)
            assert sum(event.op == "upsert" for event in history) == 1
