"""Several servers on one store lose nothing and write nothing twice, while another process compacts."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

from assistants import Talk, process
from chronomemory import ChronoStore, Memory
from mcp import Client

SERVERS, EACH = 4, 6

COMPACTS = """
import sys, time
from chronomemory import ChronoStore
with ChronoStore(sys.argv[1], lock_timeout=30) as store:
    print("ready", flush=True)
    for _ in range(20):
        store.compact()
        time.sleep(0.1)
"""


def test_four_servers_write_while_a_fifth_process_compacts(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        store.upsert({"id": "FIRST", "label": "So that there is something to compact"})

    async def write(number: int) -> list[dict[str, Any]]:
        async with Client(process(tmp_path, "--user", "ann")) as client:
            talk, told = Talk(client), []
            for at in range(EACH):
                # What all of them say is one memory; what each says is its own. Every third is said twice.
                content = "All say this" if at == 0 else f"Server {number} says sentence {at} of many"
                asked = {"content": content, "operation_id": f"{number}.{at}"}
                told.append(await talk.call("add_memory", **asked))
                if at % 3 == 0:
                    again = await talk.call("add_memory", **asked)
                    assert again["repeated"] and again["memory_id"] == told[-1]["memory_id"]
            return told

    async def write_all() -> list[dict[str, Any]]:
        answers = await asyncio.gather(*(write(number) for number in range(SERVERS)))
        return [each for told in answers for each in told]

    with subprocess.Popen(
        [sys.executable, "-c", COMPACTS, str(tmp_path)], stdout=subprocess.PIPE
    ) as compactor:
        assert compactor.stdout is not None
        assert compactor.stdout.readline() == b"ready\n"
        told = asyncio.run(write_all())
        assert compactor.wait(120) == 0
    assert len(told) == SERVERS * EACH
    assert [each["outcome"] for each in told].count("known already") == SERVERS - 1
    ids = {each["memory_id"] for each in told}
    assert len(ids) == SERVERS * (EACH - 1) + 1
    with Memory(tmp_path, user="ann") as memory:
        contents = sorted(block["content"] for block in memory.list())
        expected = [f"Server {n} says sentence {at} of many" for n in range(SERVERS) for at in range(1, EACH)]
        assert contents == sorted(["All say this", *expected])
    with ChronoStore(tmp_path) as store:
        assert store.verify().valid
        for memory_id in ids:
            history = store.scoped(user="ann").history(memory_id)
            assert sum(event.op == "upsert" for event in history) == 1
