"""Measures how much a store weighs that is compacted every night.

    python -m benches.retention [NIGHTS] [RECORDS]      1,000 and 20,000 unless named

One record changes a day. At the end base, snapshot and older bases must weigh less than three times the
state, and every moment that is looked at must be told as it was.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from chronomemory import ChronoStore


def weights(folder: Path) -> dict[str, int]:
    """The bytes of each part."""

    def of(inner: str, shape: str) -> int:
        return sum(path.stat().st_size for path in (folder / inner).glob(shape))

    return {
        "snapshot": (folder / "snapshot.json").stat().st_size,
        "newest base": of("base", "*.json"),
        "older bases, packed": of("base", "*.zst"),
        "archives, packed": of("archive", "*"),
    }


def main(nights: int, records: int) -> None:
    with tempfile.TemporaryDirectory() as root, ChronoStore(root) as store:
        labels = (f"record {n} says {n * 2654435761 % 999983} and {n**5}" for n in range(records))
        store.upsert_many({"id": f"R-{n}", "label": label} for n, label in enumerate(labels))
        began, seqs = time.perf_counter(), []
        for night in range(nights):
            store.upsert({"id": "R-1", "label": f"night {night}"})
            seqs.append(store.wal_seq())
            store.compact()
        took = time.perf_counter() - began
        found = weights(Path(root) / ".chronomemory")
        state = found["snapshot"]
        for name, weight in found.items():
            print(f"{name:22} {weight:12,} B")
        total = sum(found.values())
        bound = 3 * state + found["archives, packed"]
        print(f"{'all':22} {total:12,} B, {total / bound:.0%} of 3 x the state and its packed history")
        print(f"{nights:,} nights of {records:,} records: {took:.1f} s, {1000 * took / nights:.0f} ms each")
        assert total < bound, (total, bound)
        for night in {0, nights // 2, nights - 1}:
            told = store.as_of(seqs[night]).get("R-1")
            assert told is not None and told.label == f"night {night}", (night, told)
        assert store.verify().valid


if __name__ == "__main__":
    main(*(int(given) for given in [*sys.argv[1:3], *("1000", "20000")[len(sys.argv[1:3]) :]]))
