"""BM25 worked out in the plainest way; every search is compared with this."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from chronomemory import ChronoRecord
from plain_words import question_words, text_words

K1 = 0.9
B = 0.4
#: The default fields that these tests use, with their weights.
WEIGHTS = {"label": 2, "data.content": 1, "data.title": 2, "data.tags": 1}


def strings(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


def field(record: ChronoRecord, path: str) -> Any:
    return record.label if path == "label" else record.data.get(path.removeprefix("data."))


def counted(record: ChronoRecord, weights: Mapping[str, int] = WEIGHTS) -> Counter[str]:
    """Count the words of a record, each by the weight of its field."""
    counts: Counter[str] = Counter()
    for path, weight in weights.items():
        for text in strings(field(record, path)):
            for word in text_words(text):
                counts[word] += weight
    return counts


def scores(
    records: Iterable[ChronoRecord], question: str, weights: Mapping[str, int] = WEIGHTS
) -> dict[str, float]:
    """Score every record that shares a word with the question; all that have words count, of any status."""
    counts = {record.id: words for record in records if (words := counted(record, weights))}
    lengths = {name: sum(words.values()) for name, words in counts.items()}
    average = sum(lengths.values()) / max(len(lengths), 1)
    found: dict[str, float] = {}
    for word in question_words(question):
        holders = [name for name, words in counts.items() if word in words]
        idf = math.log(1 + (len(counts) - len(holders) + 0.5) / (len(holders) + 0.5))
        for name in holders:
            count = counts[name][word]
            norm = K1 * (1 - B + B * lengths[name] / average)
            found[name] = found.get(name, 0.0) + idf * count * (K1 + 1) / (count + norm)
    return found


def fits(
    record: ChronoRecord, *, kind: str | None, status: str | None, least: float, tags: list[str]
) -> bool:
    return (
        (kind is None or record.kind == kind)
        and (not status or record.status == status)
        and record.confidence >= least
        and set(tags) <= set(record.data.get("tags", []))
    )


def agrees(found: list[tuple[str, float]], expected: Mapping[str, float], limit: int) -> bool:
    """Say whether these are the best, in order; records that score the same may change places."""
    if len(found) != min(limit, len(expected)) or len({name for name, _ in found}) != len(found):
        return False
    best = sorted(expected.values(), reverse=True)
    return all(
        math.isclose(score, expected.get(name, -1.0), rel_tol=1e-9)
        and math.isclose(score, place, rel_tol=1e-6)
        for (name, score), place in zip(found, best, strict=False)
    )
