"""Measures text search over a million short records, also after a write.

``python -m benches.text_search [RECORDS ...]`` prints a table. Records are eight to twenty words, drawn as
often as words are in English (Zipf's law; the most frequent ones are the real ones). Questions are ten to
fourteen words drawn alike, so that most of their words are common; others are made of stop words alone.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
import orjson
from chronomemory import ChronoRecord, ChronoStore

SIZES = [100_000, 1_000_000]
QUESTIONS = 200
VOCABULARY = 60_000
_MOST_FREQUENT = (
    "the be to of and a in that have i it for not on with he as you do at this but his by from they "
    "we say her she or an will my one all would there their what so up out if about who get which go "
    "me when make can like time no just him know take people into year your good some could them see "
    "other than then now look only come its over think also back after use two how our work first "
    "well way even new want because any these give day most us john family trip dog house school "
    "friend book music game"
)
COMMON = _MOST_FREQUENT.split()
_HEADS, _TAILS = "b c d f g h l m n p r s t v w st tr gr", "a e i o u ai ou ea"


def vocabulary() -> list[str]:
    """Return made-up words behind the real ones, spelled like words."""
    chance = np.random.default_rng(5)
    heads, tails = _HEADS.split(), _TAILS.split()
    seen = dict.fromkeys(COMMON)
    while len(seen) < VOCABULARY:
        parts = chance.integers(2, 5)
        picks = zip(chance.choice(heads, parts), chance.choice(tails, parts), strict=True)
        seen.setdefault("".join(head + tail for head, tail in picks))
    return list(seen)


def texts(count: int, least: int, most: int, seed: int) -> Iterator[str]:
    """Draw texts of so many words by Zipf's law."""
    chance = np.random.default_rng(seed)
    words = np.array(vocabulary(), dtype=object)
    weights = 1 / (np.arange(len(words)) + 2.7)
    edges = np.cumsum(weights / weights.sum())
    for start in range(0, count, 10_000):
        lengths = chance.integers(least, most + 1, min(10_000, count - start))
        drawn = words[np.minimum(np.searchsorted(edges, chance.random(int(lengths.sum()))), len(words) - 1)]
        for piece in np.split(drawn, np.cumsum(lengths)[:-1]):
            yield " ".join(piece)


def build(folder: Path, records: int) -> None:
    """Fill a store."""
    rows = folder / "rows.ndjson"
    with rows.open("wb") as out:
        for number, text in enumerate(texts(records, 8, 20, 1)):
            out.write(orjson.dumps({"id": f"R{number}", "kind": "note", "label": text}) + b"\n")
    with ChronoStore(folder) as store:
        store.ingest(rows)
    rows.unlink()


def spent(store: ChronoStore, question: str, **options: object) -> float:
    """Return the milliseconds that one search took."""
    start = time.perf_counter()
    store.search(question, **options)  # type: ignore[arg-type]
    return (time.perf_counter() - start) * 1e3


def p95(values: list[float]) -> str:
    """Spell the middle and the 95th of a hundred."""
    return f"{median(values):7.2f} {float(np.percentile(values, 95)):7.2f}"


def measure(records: int) -> None:
    """Print all figures for one size."""
    questions = list(texts(QUESTIONS, 10, 14, 2))
    stop_words = [" ".join(np.random.default_rng(n).choice(COMMON[:28], 6)) for n in range(QUESTIONS)]
    with TemporaryDirectory() as name:
        folder = Path(name)
        build(folder, records)
        print(f"{records:,} records")
        with ChronoStore(folder) as store:
            store.get("R0")
            worked = time.process_time()
            first = spent(store, "anything")
            worked = time.process_time() - worked
            print(
                f"  first search, nothing indexed   {first:9.0f} ms = {records / first * 1e3:,.0f} records/s"
            )
            print(f"  of that, work of all processors {worked * 1e3:9.0f} ms")
        with ChronoStore(folder) as store:
            store.get("R0")
            print(f"  first search, index on disk     {spent(store, 'anything'):9.0f} ms")
            for title, asked, options in (
                ("questions", questions, {}),
                ("questions, no context", questions, {"context": False}),
                ("questions, best 100", questions, {"limit": 100}),
                ("questions, one kind, 0.5 sure", questions, {"kind": "note", "min_confidence": 0.5}),
                ("stop words alone", stop_words, {}),
            ):
                took = [spent(store, question, **options) for question in asked]
                print(f"  {title:31} {p95(took)} ms (median, p95)")
            fresh = []
            for number, question in enumerate(questions[:100]):
                store.upsert(ChronoRecord(id=f"NEW-{number}", label=f"unheard {number} {question}"))
                fresh.append(spent(store, question))
                assert store.search(f"unheard {number}", limit=1)[0].id == f"NEW-{number}"
            print(f"  {'search after one new write':31} {p95(fresh)} ms (median, p95)")
        size = sum(
            path.stat().st_size for path in (folder / ".chronomemory" / "index" / "text").glob("*.text")
        )
        print(f"  index on disk                   {size / 1e6:9.1f} MB")


if __name__ == "__main__":
    for wanted in [int(word) for word in sys.argv[1:]] or SIZES:
        measure(wanted)
