"""The records that the benches write: about 400 bytes each, with all twelve fields."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from chronomemory import ChronoRecord, ChronoStore

__all__ = [
    "BATCH",
    "KIND",
    "KIND_EVERY",
    "Row",
    "batches",
    "build_store",
    "fields",
    "records",
    "rows",
    "write_ndjson",
]

#: How many records one batch holds, here and in the hand-written loop.
BATCH = 1_000

#: What a query by kind looks for: one record in so many is of this kind.
KIND, KIND_EVERY = "decision", 10

_OTHER_KINDS = ("fact", "requirement", "test", "risk")


def fields(number: int) -> dict[str, Any]:
    """Return the twelve fields of one record, in canonical order."""
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
        "id": f"REC-{number:07}",
        "is_hypothesis": False,
        "kind": KIND if number % KIND_EVERY == 0 else _OTHER_KINDS[number % len(_OTHER_KINDS)],
        "label": f"Writer {writer} keeps the chain of record {number:07} whole across a restart – née",
        "model_assumptions": {},
        "recursion_depth": 0,
        "source_type": "observed",
        "status": "active",
    }


@dataclass
class Row:
    """The record as a hand-written program would hold it.

    orjson writes a dataclass in the order of its fields, whatever it is asked to sort, and it is
    slower with slots: this shape is the one it likes best, and its bytes are canonical.
    """

    confidence: float
    data: dict[str, Any]
    epistemic_boundary: list[str]
    evidence: list[str]
    id: str
    is_hypothesis: bool
    kind: str
    label: str
    model_assumptions: dict[str, Any]
    recursion_depth: int
    source_type: str
    status: str


def records(first: int, count: int) -> list[ChronoRecord]:
    """Return consecutive records for our side."""
    return [ChronoRecord(**fields(number)) for number in range(first, first + count)]


def rows(first: int, count: int) -> list[Row]:
    """Return the same records for the hand-written side."""
    return [Row(**fields(number)) for number in range(first, first + count)]


def batches(count: int, first: int = 0) -> Iterator[list[ChronoRecord]]:
    """Yield consecutive records in batches."""
    for start in range(first, first + count, BATCH):
        yield records(start, min(BATCH, first + count - start))


def build_store(project: Path, count: int) -> None:
    """Fill a new store, batch by batch."""
    with ChronoStore(project) as store:
        for batch in batches(count):
            store.upsert_many(batch)


def write_ndjson(path: Path, count: int, first: int = 0) -> None:
    """Write records to a file, one object a line."""
    with path.open("wb") as file:
        for number in range(first, first + count):
            file.write(orjson.dumps(fields(number), option=orjson.OPT_APPEND_NEWLINE))
