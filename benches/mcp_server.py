"""How long does an assistant wait for the MCP server: for its first answer, and for a search?

    python -m benches.mcp_server [RECORDS]

A server of its own is started on a store of so many memories, over stdio, as a client does it. Each answer is
held against what it must be: within its cap, and with what was asked for in it.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from chronomemory import ChronoStore
from chronomemory.blocks.ids import content_hash
from chronomemory.blocks.storage.blocks import new_block
from chronomemory.mcp.quoting import tokens_of

RECORDS = 50_000
STARTS, SEARCHES, ADDS = 5, 300, 50
CAP_TOKENS = 4_000
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
BEGINNINGS = ("har", "ti", "mon", "sel", "ro", "kel")
ENDS = ("bour", "de", "ster", "vin", "gat", "mir", "len", "dor", "pas", "wick", "ton", "field")
WORDS = [beginning + end for beginning in BEGINNINGS for end in ENDS]


def content(number: int) -> str:
    """Return a sentence of words that many share, and of one that is its own."""
    chance = random.Random(number)
    return f"Memory m{number} says that " + " ".join(chance.choices(WORDS, k=12))


def fill(project: Path, records: int) -> None:
    with ChronoStore(project, durability="off") as store:
        for start in range(0, records, 5_000):
            texts = [content(number) for number in range(start, min(start + 5_000, records))]
            store.engine.upsert_many(
                [
                    new_block(content_hash(text), text, "knowledge", "bench", status="active")
                    for text in texts
                ],
                "blocks",
            )
        store.search("harbour")
    # A store that was closed in order, as it would be: what a second start finds is what counts.
    with ChronoStore(project) as store:
        store.search("harbour")


class Server:
    """A server in a process of its own, spoken to frame by frame."""

    def __init__(self, project: Path) -> None:
        self.began = time.perf_counter()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "chronomemory", "mcp", "--project", str(project)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._number = 0
        self.ask("initialize", HELLO)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _send(self, frame: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(frame).encode() + b"\n")
        self._process.stdin.flush()

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdout is not None
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        while True:
            told: dict[str, Any] = json.loads(self._process.stdout.readline())
            if told.get("id") == self._number:
                return dict(told["result"])

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        assert not result.get("isError"), result
        answer = result["structuredContent"]
        assert tokens_of(json.dumps(answer, ensure_ascii=False), result["content"][0]["text"]) <= CAP_TOKENS
        return dict(answer)

    def cpu_seconds(self) -> float:
        """Return what the process has computed so far: on a busy machine it waits for longer."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait(30) == 0


def told(name: str, seconds: list[float]) -> None:
    ordered = sorted(seconds)
    median, p95 = statistics.median(ordered) * 1e3, ordered[int(len(ordered) * 0.95)] * 1e3
    print(f"{name:34} median {median:9.1f} ms   p95 {p95:9.1f} ms   ({len(ordered)})")


def main() -> None:
    records = int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS
    chance = random.Random(7)
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        fill(project, records)
        first: list[float] = []
        computed: list[float] = []
        for _ in range(STARTS):
            server = Server(project)
            number = chance.randrange(records)
            [found, *_] = server.call("search_memories", query=f"m{number}")["memories"]
            first.append(time.perf_counter() - server.began)
            computed.append(server.cpu_seconds())
            assert found["text"] == content(number)
            server.close()
        told("first answer after process start", first)
        told("CPU of the process until then", computed)
        server = Server(project)
        server.call("search_memories", query="harbour")
        for name, words in (("search, one word of its own", 1), ("search, three common words", 3)):
            seconds = []
            for _ in range(SEARCHES):
                number = chance.randrange(records)
                query = f"m{number}" if words == 1 else " ".join(chance.choices(WORDS, k=words))
                began = time.perf_counter()
                answer = server.call("search_memories", query=query)
                seconds.append(time.perf_counter() - began)
                assert answer["memories"]
                assert words > 1 or answer["memories"][0]["text"] == content(number)
            told(name, seconds)
        seconds = []
        for number in range(ADDS):
            began = time.perf_counter()
            answer = server.call(
                "add_memory", content=f"New {number} {content(records + number)}", operation_id=str(number)
            )
            seconds.append(time.perf_counter() - began)
            assert answer["outcome"] == "added"
        told("add_memory with an operation id", seconds)
        server.close()


if __name__ == "__main__":
    main()
