"""Measures how long an assistant waits for the MCP server: for its first answer, and for a search.

    python -m benches.mcp_server [RECORDS]

A server of its own is started on a store of so many memories, over stdio, as a client does it. Each answer is
held against what it must be: within its cap, and with what was asked for in it. Beside it starts a server
that is nothing but the SDK and one tool, which answers the same frames: nobody starts sooner than that. Both
are told by the clock and by what the process computed, for on a busy machine it waits for longer; and both
find their code compiled, as it is after an installation.
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
from chronomemory.mcp.rendering import tokens_of

RECORDS = 50_000
STARTS, SEARCHES, ADDS = 9, 300, 50
CAP_TOKENS = 4_000
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
BEGINNINGS = ("har", "ti", "mon", "sel", "ro", "kel")
ENDS = ("bour", "de", "ster", "vin", "gat", "mir", "len", "dor", "pas", "wick", "ton", "field")
WORDS = [beginning + end for beginning in BEGINNINGS for end in ENDS]
#: The SDK, and a tool that knows nothing. It looks for no garbage while it loads, as ours does not.
BARE = """
import gc
gc.disable()
from mcp.server import MCPServer
gc.enable()
server = MCPServer("bare")
@server.tool()
def search_memories(query: str) -> dict[str, str]:
    return {"query": query}
server.run("stdio")
"""


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

    def __init__(self, compiled: Path, *command: str) -> None:
        usual = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        self.began = time.perf_counter()
        self._process = subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**usual, "PYTHONPYCACHEPREFIX": str(compiled)},
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

    @classmethod
    def of(cls, folder: Path) -> Server:
        """Start ours."""
        return cls(folder / "compiled", "-m", "chronomemory", "mcp", "--structured", "--project", str(folder))

    @classmethod
    def bare(cls, folder: Path) -> Server:
        """Start the one that is nothing but the SDK."""
        return cls(folder / "compiled", "-c", BARE)

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        assert not result.get("isError"), result
        answer = result["structuredContent"]
        assert tokens_of(json.dumps(answer, ensure_ascii=False), result["content"][0]["text"]) <= CAP_TOKENS
        return dict(answer)

    def cpu_seconds(self, thread: str = "") -> float:
        """Return what the process, or one thread of it, has computed so far, also in the kernel."""
        fields = Path(f"/proc/{self._process.pid}/{thread}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def answering_seconds(self) -> float:
        """Return the same for the thread that answers: the store is opened beside it."""
        return self.cpu_seconds(f"task/{self._process.pid}")

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait(30) == 0


def told(name: str, seconds: list[float]) -> None:
    ordered = sorted(seconds)
    median, p95 = statistics.median(ordered) * 1e3, ordered[int(len(ordered) * 0.95)] * 1e3
    print(f"{name:70} median {median:9.1f} ms   p95 {p95:9.1f} ms   ({len(ordered)})")


def main() -> None:
    records = int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS
    chance = random.Random(7)
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        fill(project, records)
        starts: dict[str, list[float]] = {}
        for turn in range(STARTS + 1):
            for name, start in (("ours", Server.of), ("the SDK alone", Server.bare)):
                number = chance.randrange(records)
                server = start(project)
                answer = server.call("search_memories", query=f"m{number}")
                seconds = {
                    "by the clock": time.perf_counter() - server.began,
                    "computed": server.cpu_seconds(),
                    "computed, but for the opening of the store": server.answering_seconds(),
                }
                server.close()
                assert name != "ours" or answer["memories"][0]["text"] == content(number)
                for by, value in seconds.items():
                    # The very first starts compile the code, and are not counted.
                    starts.setdefault(f"first answer, {name}, {by}", []).extend([value] if turn else [])
        for name, values in sorted(starts.items()):
            told(name, values)
        server = Server.of(project)
        server.call("search_memories", query="harbour")
        for name, words in (("search, one word of its own", 1), ("search, three common words", 3)):
            waited = []
            for _ in range(SEARCHES):
                number = chance.randrange(records)
                query = f"m{number}" if words == 1 else " ".join(chance.choices(WORDS, k=words))
                began = time.perf_counter()
                answer = server.call("search_memories", query=query)
                waited.append(time.perf_counter() - began)
                assert answer["memories"]
                assert words > 1 or answer["memories"][0]["text"] == content(number)
            told(name, waited)
        waited = []
        for number in range(ADDS):
            began = time.perf_counter()
            answer = server.call(
                "add_memory", content=f"New {number} {content(records + number)}", operation_id=str(number)
            )
            waited.append(time.perf_counter() - began)
            assert answer["outcome"] == "added"
        told("add_memory with an operation id", waited)
        server.close()


if __name__ == "__main__":
    main()
