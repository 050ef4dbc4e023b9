"""Measures learning, consolidation and recall of blocks, beside elfmem and a bare product.

``python -m benches.blocks [BLOCKS ...]`` needs ``pip install elfmem`` (the group ``bench``) and prints a
table. Both systems get the same contents and the same vectors, 384 numbers each, from the same mock
embedder, and work on files in a folder of their own. The recalls of both and the product take turns, so
that a busy machine is busy for all of them; each makes two calls, and the second counts.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
from chronomemory.blocks import content_hash
from chronomemory.embedders import CallableEmbedder
from elfmem import MemorySystem
from elfmem.adapters.mock import MockEmbeddingService, MockLLMService
from elfmem.db import queries
from elfmem.db.engine import create_engine
from elfmem.db.models import metadata

from benches.block_recall import DIM, filled, product, timed, vectors

SIZES = [1_000, 10_000]
#: The other system fails above this on a stock SQLite, and takes minutes to fill.
LARGEST_OF_OTHER = 10_000
LEARNED, CONSOLIDATED, ROUNDS = 200, 1_000, 9
#: What the other system gives unless it is told otherwise; ours gives twice as many.
TOP = 5


def contents(number: int) -> list[str]:
    return [f"Note {at}: what was said about subject {at % 97} on day {at % 365}" for at in range(number)]


def steady(work: Callable[[], Any]) -> float:
    """Seconds of a second call: the first pays for the caches and threads of whoever had its turn before."""
    work()
    return timed(work)


async def timed_task(work: Awaitable[Any]) -> float:
    start = perf_counter()
    await work
    return perf_counter() - start


async def other_memory(folder: Path, texts: list[str], rows: np.ndarray) -> MemorySystem:
    engine = await create_engine(str(folder / "other.db"))
    async with engine.begin() as conn:
        await conn.run_sync(metadata.create_all)
        await queries.seed_builtin_data(conn)
        for text, row in zip(texts, rows, strict=True):
            block_id = content_hash(text)
            await queries.insert_block(
                conn, block_id=block_id, content=text, category="knowledge", source="bench", status="active"
            )
            await queries.update_block_scoring(conn, block_id, embedding=row, embedding_model="mock")
    return MemorySystem(
        engine=engine, llm_service=MockLLMService(), embedding_service=MockEmbeddingService(dimensions=DIM)
    )


async def recalls(number: int) -> dict[str, float]:
    """Medians in milliseconds, all taking turns."""
    texts, rows = contents(number), vectors(number)
    with TemporaryDirectory() as ours, TemporaryDirectory() as theirs:
        memory = filled(Path(ours), texts, rows)
        other = await other_memory(Path(theirs), texts, rows) if number <= LARGEST_OF_OTHER else None
        found = memory.recall("something else entirely", top_k=TOP, expansion=0)
        assert {texts[0], texts[1]} == {block.content for block in found[:2]}, "the nearest two come first"
        query = rows[0] + rows[1]
        times: dict[str, list[float]] = {}
        for _ in range(ROUNDS):
            told = {
                "recall": steady(lambda: memory.recall("something else entirely", top_k=TOP)),
                "recall, with words": steady(
                    lambda: memory.recall("what was said about subject 12?", top_k=TOP)
                ),
                "recall, no query": steady(lambda: memory.recall(top_k=TOP)),
                "frame": steady(lambda: memory.frame("attention", "something else entirely", top_k=TOP)),
                "bare product": steady(lambda: product(rows, query)),
            }
            if other is not None:
                await other.recall("something else entirely")
                told["elfmem recall"] = await timed_task(other.recall("something else entirely"))
            for name, seconds in told.items():
                times.setdefault(name, []).append(seconds * 1e3)
        memory.close()
        if other is not None:
            await other.close()
    return {name: median(values) for name, values in times.items()}


async def lives() -> dict[str, float]:
    """Learning in microseconds, consolidation of a thousand blocks in seconds."""
    texts, rows = contents(CONSOLIDATED), vectors(CONSOLIDATED)
    with TemporaryDirectory() as ours, TemporaryDirectory() as theirs:
        memory = filled(Path(ours), [], rows[:0])
        known = dict(zip(texts, rows, strict=True))
        memory.embedder = CallableEmbedder("mock", lambda asked: [known[text] for text in asked])
        other = await other_memory(Path(theirs), [], rows[:0])
        mine = [timed(lambda text=text: memory.learn(text)) for text in texts]
        theirs_took = [await timed_task(other.learn(text)) for text in texts[:LEARNED]]
        seconds = timed(memory.consolidate)
        assert memory.status().active == CONSOLIDATED
        memory.close()
        await other.close()
    return {
        "learn, µs": median(mine) * 1e6,
        "elfmem learn, µs": median(theirs_took) * 1e6,
        f"consolidate {CONSOLIDATED}, s": seconds,
    }


def main() -> None:
    sizes = [int(word) for word in sys.argv[1:]] or SIZES
    for name, value in asyncio.run(lives()).items():
        print(f"{name:24}{value:12,.2f}")
    for number in sizes:
        print(f"\n{number:,} blocks, median of {ROUNDS}, ms")
        for name, value in asyncio.run(recalls(number)).items():
            print(f"  {name:22}{value:12,.2f}")


if __name__ == "__main__":
    main()
