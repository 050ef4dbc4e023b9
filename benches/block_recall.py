"""Measures recalls of blocks with words and with meaning, beside a bare product.

``python -m benches.block_recall [--million] [BLOCKS ...]`` fills a memory with blocks of 8 to 30 words that
are as common as words are (Zipf's law), gives each a vector of 384 numbers, and asks natural questions: some
common words, and two to four words of one block. The recalls and the product take turns, so that a busy
machine is busy for all of them. The 1,000,000 blocks of ``--million`` need some minutes and about 10 GB.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

THREADS = 2
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = str(THREADS)

import numpy as np  # noqa: E402
from chronomemory.blocks import Memory, content_hash, sync  # noqa: E402
from chronomemory.blocks.storage.blocks import new_block  # noqa: E402
from chronomemory.embedders import CallableEmbedder  # noqa: E402

DIM = 384
TOP = 20
SIZES = [10_000]
MILLION = 1_000_000
VOCABULARY = 50_000
QUESTIONS = 40
#: No word of the vocabulary: the text has nothing to say.
UNKNOWN = "xylophonists yodelling"
SYLLABLES = [start + vowel for start in "bcdfghjklmnprstvwz" for vowel in "aeiou"]


def vectors(number: int) -> np.ndarray:
    return np.random.default_rng(number).standard_normal((number, DIM), dtype=np.float32)


def vocabulary() -> list[str]:
    """Words that no stemmer makes one of."""
    count = len(SYLLABLES)
    return [
        SYLLABLES[at % count] + SYLLABLES[at // count % count] + SYLLABLES[at // count**2 % count] + "k"
        for at in range(VOCABULARY)
    ]


def natural(number: int) -> list[str]:
    """Texts whose words are as common as words are."""
    chance = np.random.default_rng(number)
    words = vocabulary()
    odds = 1.0 / np.arange(1, VOCABULARY + 1)
    bounds = np.cumsum(odds / odds.sum())
    texts = []
    for length in chance.integers(8, 31, number):
        picked = np.minimum(np.searchsorted(bounds, chance.random(length)), VOCABULARY - 1)
        texts.append(" ".join(words[at] for at in picked))
    return texts


def questions(texts: list[str]) -> list[str]:
    chance = np.random.default_rng(len(texts) + 1)
    asked = []
    for at in chance.integers(0, len(texts), QUESTIONS):
        words = list(dict.fromkeys(texts[at].split()))
        picked = chance.choice(words, min(int(chance.integers(2, 5)), len(words)), replace=False)
        asked.append(f"What was it that we said about {' and the '.join(picked)}?")
    return asked


def timed(work: Callable[[], Any]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


def filled(folder: Path, texts: list[str], rows: np.ndarray) -> Memory:
    """A memory of these blocks; whatever else is embedded means the first two together."""
    known = dict(zip(texts, rows, strict=True))
    query = rows[:2].sum(axis=0)
    embedder = CallableEmbedder("mock", lambda asked: [known.get(text, query) for text in asked])
    memory = Memory(folder, embedder=embedder)
    for start in range(0, len(texts), 10_000):
        with memory.blocks.begin() as conn:
            for text, row in zip(texts[start : start + 10_000], rows[start : start + 10_000], strict=True):
                block_id = content_hash(text)
                conn.put(new_block(block_id, text, "knowledge", "bench", status="active"))
                sync.update_block_scoring(conn, block_id, embedding=row, embedding_model="mock")
    return memory


def product(rows: np.ndarray, query: np.ndarray) -> np.ndarray:
    scores = rows @ query
    best = np.argpartition(-scores, TOP)[:TOP]
    return best[np.argsort(-scores[best])]


def recalls(number: int) -> dict[str, float]:
    """Medians in milliseconds, all taking turns, and what the first recall of a process takes."""
    texts, rows = natural(number), vectors(number)
    query = rows[0] + rows[1]
    with TemporaryDirectory() as folder:
        memory = filled(Path(folder), texts, rows)
        asked = questions(texts)
        first = timed(lambda: memory.recall(asked[0]))
        assert all(block.similarity < 0.99 for block in memory.recall(UNKNOWN)), "only the cosine counts"
        times: dict[str, list[float]] = {}
        for question in asked:
            told = {
                "recall, words and meaning": timed(lambda text=question: memory.recall(text)),
                "recall, meaning alone": timed(lambda: memory.recall(UNKNOWN)),
                "frame, words and meaning": timed(lambda text=question: memory.frame("task", text)),
                "bare product": timed(lambda: product(rows, query)),
            }
            for name, seconds in told.items():
                times.setdefault(name, []).append(seconds * 1e3)
        memory.close()
    medians = {name: median(values) for name, values in times.items()}
    words = times["recall, words and meaning"]
    return {**medians, "the slowest of the first": max(words), "the first recall of all": first * 1e3}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, default=SIZES, metavar="BLOCKS")
    parser.add_argument("--million", action="store_true", help="1,000,000 blocks too")
    given = parser.parse_args()
    for number in [*given.sizes, *([MILLION] if given.million else [])]:
        print(f"\n{number:,} blocks, median of {QUESTIONS} questions, ms")
        for name, value in recalls(number).items():
            print(f"  {name:28}{value:12,.2f}", flush=True)


if __name__ == "__main__":
    main()
