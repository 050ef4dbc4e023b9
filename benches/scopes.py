"""Measures questions in one of many scopes, against the same scope in a store of its own.

    python -m benches.scopes [--scopes 200] [--records 500] [--rounds 40]

One run makes a store with many scopes and a store with one of them alone, and asks both in turns: words,
vectors, a filter, recalls. Figures are medians and 95th percentiles in milliseconds, and their ratio.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from chronomemory import ChronoStore, Memory

WORDS = [f"word{number}" for number in range(4000)]
DIM = 64


def text(dice: random.Random) -> str:
    return " ".join(dice.choices(WORDS, k=12))


def fill(store: ChronoStore, scopes: list[str], records: int, blocks: int) -> None:
    """Write the same for each scope, whoever else is there: all depends on its name."""
    for scope in scopes:
        dice = random.Random(scope)
        handle = store.scoped(user=scope)
        ids = [handle.id(f"R-{number}") for number in range(records)]
        handle.upsert_many(
            {"id": name, "label": text(dice), "data": {"n": number}} for number, name in enumerate(ids)
        )
        rows = np.random.default_rng(dice.randrange(2**32)).standard_normal((records, DIM))
        handle.vectors.attach_many(ids, rows.astype(np.float32), model="bench")
        memory = Memory(store, user=scope)
        for _ in range(blocks):
            memory.learn(text(dice))
        memory.consolidate()


def questions(store: ChronoStore, scope: str, dice: random.Random) -> dict[str, Callable[[], Any]]:
    handle, memory = store.scoped(user=scope), Memory(store, user=scope)
    vector = np.random.default_rng(7).standard_normal(DIM).astype(np.float32)
    return {
        "search": lambda: handle.search(" ".join(dice.choices(WORDS, k=3))),
        "nearest": lambda: handle.vectors.nearest(vector, k=10),
        "query, a filter": lambda: handle.query(where={"data.n": {"gte": 100}}, limit=100),
        "recall": lambda: memory.recall(" ".join(dice.choices(WORDS, k=3))),
        "get": lambda: handle.get(handle.id("R-1")),
    }


def timed(ask: Callable[[], Any]) -> float:
    began = time.perf_counter()
    ask()
    return 1000 * (time.perf_counter() - began)


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--scopes", type=int, default=200)
    options.add_argument("--records", type=int, default=500)
    options.add_argument("--blocks", type=int, default=50)
    options.add_argument("--rounds", type=int, default=40)
    asked = options.parse_args()
    names = [f"user-{number}" for number in range(asked.scopes)]
    one = names[asked.scopes // 2]
    with tempfile.TemporaryDirectory() as folder:
        places = {"many": names, "alone": [one]}
        stores = {place: ChronoStore(Path(folder) / place, durability="off") for place in places}
        for place, scopes in places.items():
            fill(stores[place], scopes, asked.records, asked.blocks)
        asks = {place: questions(store, one, random.Random(1)) for place, store in stores.items()}
        spent: dict[tuple[str, str], list[float]] = {}
        for round_ in range(asked.rounds + 3):
            for question in asks["many"]:
                for place in ("many", "alone") if round_ % 2 else ("alone", "many"):
                    taken = timed(asks[place][question])
                    if round_ >= 3:
                        spent.setdefault((question, place), []).append(taken)
        print(f"{asked.scopes} scopes of {asked.records} records and {asked.blocks} blocks")
        print(f"{'':18}{'many':>10}{'alone':>10}{'ratio':>8}{'p95 many':>10}")
        for question in asks["many"]:
            many, alone = spent[question, "many"], spent[question, "alone"]
            middle = statistics.median(many), statistics.median(alone)
            high = sorted(many)[int(0.95 * len(many))]
            print(f"{question:18}{middle[0]:10.3f}{middle[1]:10.3f}{middle[0] / middle[1]:8.2f}{high:10.3f}")
        for store in stores.values():
            store.close()


if __name__ == "__main__":
    main()
