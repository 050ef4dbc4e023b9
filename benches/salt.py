"""Measures what salt and trail cost: to write, to open, to verify, also behind a compaction.

    python -m benches.salt [--records N] [--rounds N] [--peer PYTHON]

Stores with no salt, with one in the lines of records that have a scope (as it is unless told), and with one
in every line take turns; for records that all share and for those of a user. The trail is in all of them:
what it costs shows only beside a build that has none, which `--peer` names by its Python. Shared records have
the same bytes without a salt and with one by scope: what these two differ by is what the machine adds.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from chronomemory import ChronoStore

from benches.turns import Took, Way, asked, compared, serve, table, used

BATCH = 1_000


def said(number: int) -> dict[str, Any]:
    """A record as long as those of the other benches."""
    return {
        "id": f"REC-{number:07}",
        "kind": "fact",
        "label": f"Writer {number % 13} keeps the chain of record {number:07} whole across a restart – née",
        "confidence": (51 + number % 48) / 100,
        "evidence": [f"commit:{number:08x}", f"tests/test_store.py:{100 + number % 900}"],
        "data": {"attempts": number % 7, "component": "ingest", "owner": f"agent-{number % 13}"},
    }


def once(project: Path, batches: list[list[dict[str, Any]]], options: dict[str, Any], user: str) -> Took:
    """Do everything once in this process, and return what each took."""
    records = BATCH * len(batches)

    def write() -> None:
        with ChronoStore(project, **options) as store:
            writer = store.scoped(user=user) if user else store
            for batch in batches:
                writer.upsert_many(batch)

    def look() -> None:
        with ChronoStore(project, **options) as store:
            assert store.record_count() == (0 if user else records)

    def verify() -> None:
        assert ChronoStore(project, **options).verify().valid

    took = {"ingest": used(write), "verify": used(verify)}
    # Without what is derived: every line is read, and proved.
    (project / ".chronomemory" / "snapshot.json").unlink(missing_ok=True)
    took["open, all lines read"] = used(look)
    with ChronoStore(project, **options) as store:
        took["compact"] = used(store.compact)
    took |= {"verify, compacted": used(verify), "open, compacted": used(look)}
    shutil.rmtree(project)
    return took


def ways(records: int, peer: str | None) -> list[list[Way]]:
    """Who is compared with whom."""

    def way(name: str, user: str, python: str = sys.executable, **options: Any) -> Way:
        return Way(name, (str(records), json.dumps(options), user), python)

    by_owner = []
    for owner, user in (("shared", ""), ("of a user", "ann")):
        several = [
            way(f"{owner}, no salt", user, salt=False),
            way(f"{owner}, by scope", user, salt="scope"),
            way(f"{owner}, all salted", user, salt=True),
        ]
        by_owner.append(several)
    if peer is not None:
        by_owner[0].append(way("peer, shared", "", peer))
    return by_owner


def main() -> None:
    options = asked(__doc__)
    print(f"{options.records:,} records, {options.rounds} rounds; processor time of a whole run,")
    print(f"load {os.getloadavg()[0]:.1f} at the start")
    for several in ways(options.records, options.peer):
        compared("benches.salt", several, options.rounds)
        print(table(several, 1e3, "ms"))


def serving(home: Path, records: int, options: dict[str, Any], user: str) -> None:
    batches = [[said(start + n) for n in range(BATCH)] for start in range(0, records, BATCH)]
    serve(lambda number: once(home / f"p{number}", batches, options, user))


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        _, _, folder, count, told, owner = sys.argv
        serving(Path(folder), int(count), json.loads(told), owner)
    else:
        main()
