"""Measures what tokens cost in a large store: ``python -m benches.retrieval.scale [RECORDS]``.

Records of ten words and codes of twenty tokens, asked for two words and eight tokens. The codes are any bits:
what a search does with them takes as long as with those of a model.
"""

from __future__ import annotations

import sys
import time
from tempfile import TemporaryDirectory

import numpy as np
from chronomemory import ChronoRecord, ChronoStore

WORDS, LABEL_WORDS = 20_000, 10
DIM, TOKENS, ASKED, CODES = 384, 20, 8, 48
AT_ONCE = 50_000
QUESTIONS = 200
#: Bit 30 of each word of a code is zero.
ALLOWED = 0xBFFF_FFFF
Times = list[float]


def fill(store: ChronoStore, count: int, chance: np.random.Generator) -> None:
    """Write records and codes for them."""
    for first in range(0, count, AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, count))
        # Few words are frequent, most are rare.
        words = (WORDS * chance.random((len(numbers), LABEL_WORDS)) ** 3).astype(int).tolist()
        labels = (" ".join(f"w{word}" for word in each) for each in words)
        store.upsert_many(
            [ChronoRecord(id=f"R{n}", label=label) for n, label in zip(numbers, labels, strict=True)]
        )
        codes = chance.integers(0, 2**32, (len(numbers), TOKENS * 4), dtype=np.uint32) & np.uint32(ALLOWED)
        filled = np.concatenate([codes, np.tile(codes[:, -4:], (1, CODES - TOKENS))], axis=1)
        ids = [f"R{number}" for number in numbers]
        store.engine.vectors.attach((ids, filled.view(np.float32), "tokens", "any bits", DIM))


def timed(store: ChronoStore, chance: np.random.Generator, *, with_tokens: bool) -> tuple[Times, Times]:
    """Ask questions; return the milliseconds that each took, by the clock and of processors."""
    clock, processors = [], []
    for _ in range(QUESTIONS):
        text = " ".join(f"w{word}" for word in (WORDS * chance.random(2) ** 3).astype(int))
        tokens = chance.standard_normal((ASKED, DIM), dtype=np.float32)
        start, worked = time.perf_counter(), time.process_time()
        found = store.search(text, query_tokens=tokens if with_tokens else None)
        processors.append((time.process_time() - worked) * 1e3)
        clock.append((time.perf_counter() - start) * 1e3)
        assert found
    return clock, processors


def attaching(store: ChronoStore, chance: np.random.Generator) -> tuple[float, float, float]:
    """Return the seconds that coding and attaching some records takes, and how long writing takes."""
    given = [chance.standard_normal((TOKENS, DIM), dtype=np.float32) for _ in range(2_000)]
    start = time.perf_counter()
    store.vectors.attach_tokens_many([f"R{number}" for number in range(len(given))], given)
    coded = time.perf_counter() - start
    together = np.concatenate(given)
    start = time.perf_counter()
    with (store.project_root / "plain").open("wb") as file:
        file.write(together.tobytes())
        file.flush()
    return coded, time.perf_counter() - start, together.nbytes / 1e6


if __name__ == "__main__":
    records = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    chance = np.random.default_rng(7)
    with TemporaryDirectory() as folder, ChronoStore(folder) as store:
        fill(store, records, chance)
        (space,) = store.vectors.spaces()
        print(f"{records:,} records, {space.bytes / records:.0f} bytes of codes a record")
        for with_tokens in (False, True):
            timed(store, chance, with_tokens=with_tokens)  # the first look maps and checks
            name = "text and tokens" if with_tokens else "text"
            for way, took in zip(
                ("clock", "processors"), timed(store, chance, with_tokens=with_tokens), strict=True
            ):
                print(
                    f"{name:16}{way:12}{np.median(took):8.2f} ms median{np.percentile(took, 95):8.2f} ms p95"
                )
        coded, written, megabytes = attaching(store, chance)
        print(f"{megabytes:.0f} MB of token vectors: attached in {coded:.2f} s, written in {written:.2f} s")
