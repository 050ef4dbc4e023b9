"""Measures what it costs that records may expire, where none does.

    python -m benches.expiry [--records N] [--rounds N] [--peer PYTHON]

A write looks for the name of the field, and a question asks whether anything is due. Here stores without any
`expires_at` are asked and written to beside those in which one record has one, far from now, and those in
which every record has. `--peer` names a build of before by its Python; what it has besides is compared too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from chronomemory import ChronoStore

from benches.turns import Took, Way, asked, compared, serve, table, used

#: How many calls are in a run, of what is fast and of what is not.
BATCH, CALLS, FEW = 1_000, 2_000, 200
WORDS = ("kettle", "harbour", "lantern", "violin", "meadow", "granite", "orchard", "thimble")
FAR = "2999-01-01T00:00:00Z"


def said(number: int, share: str) -> dict[str, Any]:
    """A record; which of them expire is one of `none`, `one` and `all`."""
    expires = share == "all" or (share == "one" and number == 0)
    words = " ".join(WORDS[(number * step) % len(WORDS)] for step in (1, 3, 5, 7))
    data = {"n": number, "topic": f"t{number % 50}", **({"expires_at": FAR} if expires else {})}
    return {"id": f"R-{number}", "kind": f"k{number % 20}", "label": f"{words} {number % 997}", "data": data}


def once(store: ChronoStore, rows: list[dict[str, Any]]) -> Took:
    """Do everything once in this process, and return what a call of each took."""
    several = rows[:BATCH]
    singles = [rows[number * 7919 % len(rows)] for number in range(CALLS)]
    names = [row["id"] for row in singles]
    works: dict[str, tuple[int, Callable[[], object]]] = {
        "get": (CALLS, lambda: [store.get(name) for name in names]),
        "query, 20 of a kind": (FEW, lambda: [store.query(kind="k7", limit=20) for _ in range(FEW)]),
        "query, each of all": (len(rows), store.query),
        "search": (FEW, lambda: [store.search(WORDS[n % 8], limit=10) for n in range(FEW)]),
        "upsert": (CALLS, lambda: [store.upsert(row) for row in singles]),
        "upsert_many, each": (BATCH, lambda: store.upsert_many(several)),
    }
    took = {what: used(work) / calls for what, (calls, work) in works.items()}
    store.search(WORDS[0])  # what was written is taken in now, and not in the next round
    return took


def main() -> None:
    options = asked(__doc__)
    ways = [
        Way(f"{share} of them expires", (str(options.records), share)) for share in ("none", "one", "all")
    ]
    if options.peer is not None:
        ways.append(Way("peer, none", (str(options.records), "none"), options.peer))
    print(f"{options.records:,} records, {options.rounds} rounds; processor time of a call,")
    print(f"load {os.getloadavg()[0]:.1f} at the start")
    compared("benches.expiry", ways, options.rounds)
    print(table(ways, 1e6, "µs"))


def serving(home: Path, records: int, share: str) -> None:
    rows = [said(number, share) for number in range(records)]
    with ChronoStore(home / "p") as store:
        for start in range(0, records, BATCH):
            store.upsert_many(rows[start : start + BATCH])
        store.search(WORDS[0])
        serve(lambda _: once(store, rows))


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        _, _, folder, count, share = sys.argv
        serving(Path(folder), int(count), share)
    else:
        main()
