"""Checks that a large store stays quick for a small scope: the bars that need a million records.

    python -m benches.scopes_large [--records 1000000] [--shared 100000] [--scopes 1000] [--only NAME]

Each part is a comparison within one run: a scope of ten records beside many others against what is shared
alone, writing with names against writing without, the first page of a filter against a late one, and what
an export and the names take in memory.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from chronomemory import ChronoStore

from benches.footprint import resident
from benches.scopes import DIM, WORDS, text, timed

ROUNDS = 41
BATCH = 1_000
TEN = 10


def rows(count: int, seed: int) -> Iterator[dict[str, Any]]:
    dice = random.Random(seed)
    for number in range(count):
        yield {
            "id": f"{seed}-{number}",
            "label": text(dice),
            "data": {"n": number, "host": f"h{number % 997}"},
        }


def in_batches(items: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    while batch := list(itertools.islice(items, BATCH)):
        yield batch


def fill_shared(store: ChronoStore, shared: int) -> None:
    for batch in in_batches(rows(shared, 0)):
        store.upsert_many(batch)
    vectors = np.random.default_rng(3).standard_normal((shared, DIM)).astype(np.float32)
    store.vectors.attach_many([f"0-{number}" for number in range(shared)], vectors, model="bench")


def a_scope_of_ten(folder: Path, asked: argparse.Namespace) -> None:
    """Ask as somebody who has ten records, beside a million of others and what is shared."""
    with ChronoStore(folder / "alone", durability="off") as alone:
        fill_shared(alone, asked.shared)
        with ChronoStore(folder / "many", durability="off") as many:
            fill_shared(many, asked.shared)
            for number in range(asked.records // TEN):
                handle = many.scoped(user=f"user-{number}")
                own = [{**row, "id": handle.id(row["id"])} for row in rows(TEN, 1 + number)]
                handle.upsert_many(own)
            vector = np.random.default_rng(7).standard_normal(DIM).astype(np.float32)
            places = {"many": many.scoped(user="user-77"), "alone": alone}
            asks: dict[str, Callable[[Any], Any]] = {
                "search": lambda place: place.search(" ".join(dice.choices(WORDS, k=3))),
                "nearest": lambda place: place.vectors.nearest(vector, k=10),
                "query, a filter": lambda place: place.query(where={"data.n": {"gte": 5}}, limit=100),
            }
            print(f"a scope of {TEN} among {asked.records:,} records, with {asked.shared:,} shared, in ms")
            print(f"{'':18}{'many':>10}{'alone':>10}{'ratio':>8}{'p95 many':>10}")
            for name, ask in asks.items():
                spent: dict[str, list[float]] = {"many": [], "alone": []}
                for round_ in range(ROUNDS + 3):
                    for place in ("many", "alone") if round_ % 2 else ("alone", "many"):
                        dice = random.Random(round_)
                        taken = timed(partial(ask, places[place]))
                        if round_ >= 3:
                            spent[place].append(taken)
                one, other = statistics.median(spent["many"]), statistics.median(spent["alone"])
                high = sorted(spent["many"])[int(0.95 * ROUNDS)]
                print(f"{name:18}{one:10.3f}{other:10.3f}{one / other:8.2f}{high:10.3f}")


def at_once(place: Any, items: list[dict[str, Any]]) -> None:
    place.upsert_many(items)


def one_by_one(place: Any, items: list[dict[str, Any]]) -> None:
    for item in items[:200]:
        place.upsert(item)


def writing(folder: Path, asked: argparse.Namespace) -> None:
    """Say what names cost, and what they and their salt do."""
    compared(folder / "names", salt=False, what="names alone")
    compared(folder / "salt", salt="scope", what="names and their salt")


def compared(folder: Path, salt: Literal["scope", False], what: str) -> None:
    """Write the same in a scope and without one, in turns."""
    with (
        ChronoStore(folder / "named", durability="off", salt=salt) as named,
        ChronoStore(folder / "nameless", durability="off", salt=salt) as nameless,
    ):
        handle = named.scoped(user="ann")
        spent: dict[str, list[float]] = {"many at once": [], "one by one": []}
        for round_ in range(2 * ROUNDS):
            batch = list(rows(BATCH, round_))
            for how, write in (("many at once", at_once), ("one by one", one_by_one)):
                # Whoever comes first finds the rows cold: both do, in turns.
                both = (handle, nameless) if round_ % 2 else (nameless, handle)
                times = {id(store): timed(partial(write, store, batch)) for store in both}
                spent[how].append(times[id(nameless)] / times[id(handle)])
        for how, ratios in spent.items():
            speed = statistics.median(ratios)
            print(f"writing in a scope, {how}, {what}: {speed:.2f} x the speed without")


def pages(folder: Path, asked: argparse.Namespace) -> None:
    """Ask for the first page of an indexed filter, and for one very far on."""
    with ChronoStore(folder / "pages", durability="off") as store:
        for batch in in_batches(rows(asked.records, 5)):
            store.upsert_many(batch)
        store.upkeep.create_index("data.host")
        where = {"data.host": "h7"}
        store.query(where=where, limit=100)
        first = [timed(lambda: store.query(where=where, limit=100)) for _ in range(ROUNDS)]
        print(
            f"query(indexed, limit=100) at {asked.records:,}: {statistics.median(first):.3f} ms at the median"
        )
        cursor = None
        spent = []
        limit = max(1, asked.records // 10_000 - 1)
        for _ in range(10_000):
            began = time.perf_counter()
            page = store.query(limit=limit, after=cursor)
            spent.append(1000 * (time.perf_counter() - began))
            cursor = page.cursor
            assert len(page) == limit
        early, late = statistics.median(spent[5:500]), statistics.median(spent[-495:])
        print(
            f"page 10,000 of {limit}: {late:.3f} ms, the first ones {early:.3f} ms, ratio {late / early:.2f}"
        )
    asking, exporting = (
        peak("get", "5-1", "--project", str(folder / "pages")),
        peak("export", str(folder / "export.json"), "--project", str(folder / "pages")),
    )
    size = (folder / "export.json").stat().st_size
    print(
        f"export of {asked.records:,}: {size / 1e6:.0f} MB of file,",
        f"{(exporting - asking) / 1e6:.0f} MB of memory more than to get one record",
    )


def peak(*command: str) -> int:
    """Return the most memory that a command of ours took."""
    child = subprocess.Popen([sys.executable, "-m", "chronomemory", *command], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, command
    return used.ru_maxrss * 1024


def names(folder: Path, asked: argparse.Namespace) -> None:
    """Hold as many records with names and without, of the same bytes, and weigh the difference."""
    sizes = {}
    for place in ("nameless", "named"):
        gc.collect()
        before = resident()
        with ChronoStore(folder / f"weight-{place}", durability="off") as store:
            each = asked.records // asked.scopes
            for number in range(asked.scopes):
                user = f"user-{number:06}"
                batch = [{"id": f"{number}-{row}", "data": {}} for row in range(each)]
                if place == "named":
                    store.scoped(user=user).upsert_many(batch)
                else:
                    # As long as the names would be.
                    store.upsert_many({**row, "data": {"@other": {"user": user}}} for row in batch)
            store.get("0-0")
            gc.collect()
            sizes[place] = resident() - before
    more = sizes["named"] - sizes["nameless"]
    print(
        f"{asked.records:,} records of {asked.scopes:,} scopes:",
        f"{sizes['named'] / asked.records:.0f} bytes a record,",
        f"{more / asked.records:.1f} of them for the names",
    )


PARTS: dict[str, Callable[[Path, argparse.Namespace], None]] = {
    "ten": a_scope_of_ten,
    "writing": writing,
    "pages": pages,
    "names": names,
}


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--records", type=int, default=1_000_000)
    options.add_argument("--shared", type=int, default=100_000)
    options.add_argument("--scopes", type=int, default=1_000)
    options.add_argument("--only", choices=PARTS)
    asked = options.parse_args()
    for name, part in PARTS.items():
        if asked.only in (None, name):
            with tempfile.TemporaryDirectory() as folder:
                part(Path(folder), asked)


if __name__ == "__main__":
    main()
