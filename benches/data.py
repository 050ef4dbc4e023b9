"""The records, texts and vectors that all systems are given."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from itertools import accumulate, islice
from pathlib import Path
from random import Random
from typing import Any

__all__ = ["DIM", "KIND", "SCORE", "fields", "identifier", "matrix", "questions", "texts", "write_ndjson"]

#: One record in a hundred is of this kind.
KIND, KIND_EVERY = "decision", 100
_OTHER_KINDS = ("fact", "requirement", "test", "risk")
#: One record in ninety has a ``data.score`` of at least this.
SCORE = 99
DIM = 384

_VOCABULARY = 60_000
_FREQUENT = (
    "the be to of and a in that have i it for not on with he as you do at this but his by from they "
    "we say her she or an will my one all would there their what so up out if about who get which go "
    "me when make can like time no just him know take people into year your good some could them see"
)
_SYLLABLES = [start + vowel for start in "bcdfghjklmnprstvwz" for vowel in "aeiou"]


def identifier(number: int) -> str:
    return f"REC-{number:08}"


def fields(number: int) -> dict[str, Any]:
    """Return the twelve fields of one record, about 420 bytes as JSON, in canonical order."""
    writer = 10 + number % 13
    return {
        "confidence": (51 + number % 48) / 100,
        "data": {
            "attempts": number % 7,
            "component": "ingest",
            "owner": f"agent-{writer}",
            "reviewed": number % 3 == 0,
            "score": 10.25 + number % 90,
        },
        "epistemic_boundary": [],
        "evidence": [f"commit:{number:08x}", f"tests/test_store.py:{100 + number % 900}"],
        "id": identifier(number),
        "is_hypothesis": False,
        "kind": KIND if number % KIND_EVERY == 0 else _OTHER_KINDS[number % len(_OTHER_KINDS)],
        "label": f"Writer {writer} keeps the chain of record {number:07} whole across a restart – née",
        "model_assumptions": {},
        "recursion_depth": 0,
        "source_type": "observed",
        "status": "active",
    }


def write_ndjson(path: Path, count: int) -> None:
    """Write records to a file, one object a line."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            file.write(json.dumps(fields(number), ensure_ascii=False, separators=(",", ":")) + "\n")


@cache
def _vocabulary() -> tuple[list[str], list[float]]:
    """Frequent words, made-up ones that no stemmer changes, and their summed weights (Zipf's law)."""
    first, second, third = _SYLLABLES, _SYLLABLES[::-1], _SYLLABLES[7:] + _SYLLABLES[:7]
    made = (f"{a}{b}{c}k" for c in third for b in second for a in first)
    words = [*_FREQUENT.split(), *islice(made, _VOCABULARY)]
    return words, list(accumulate(1 / (rank + 2.7) for rank in range(len(words))))


def texts(count: int, seed: int = 1) -> Iterator[str]:
    """Yield texts of eight to twenty words, as frequent as words are in English."""
    chance, (words, weights) = Random(seed), _vocabulary()
    for _ in range(count):
        yield " ".join(chance.choices(words, cum_weights=weights, k=chance.randint(8, 20)))


def questions(documents: int, terms: int, count: int) -> list[str]:
    """Return queries of so many words that occur together in one of the first documents."""
    chance = Random(terms)
    asked: list[str] = []
    for text in islice(texts(documents), min(documents, 4 * count)):
        words = [word for word in dict.fromkeys(text.split()) if word[-1] == "k" and len(word) > 4]
        if len(words) >= terms and len(asked) < count:
            asked.append(" ".join(chance.sample(words, terms)))
    return asked


def matrix(rows: int, seed: int, dim: int = DIM) -> Any:
    """Return random vectors of length one."""
    import numpy as np  # noqa: PLC0415 - most workers need no NumPy, and its memory would count

    values = np.random.default_rng(seed).standard_normal((rows, dim), dtype=np.float32)
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    return values
