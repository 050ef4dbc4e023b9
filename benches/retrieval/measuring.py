"""Measures one kind of text: by every model, through every door, in every way of asking."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from statistics import fmean
from tempfile import TemporaryDirectory

import numpy as np
from chronomemory import ChronoRecord, ChronoStore, Memory
from chronomemory.embedders import Embedder, LexicalEmbedder

from benches.retrieval.minilm import MODEL
from benches.retrieval.model import Known, SentenceModel, TokenModel

__all__ = ["Asked", "Cell", "Rows", "measure"]

LIMIT, ROOM = 10, 1_000_000
MODELS = ("no model", "vectors", "tokens")
DOORS = ("search", "recall", "frame")
#: What ``store.search`` is asked with: words, a vector, tokens; and whether what surrounds a hit counts.
WAYS = {
    "text": (True, False, False, False),
    "vector": (False, True, False, False),
    "fused": (True, True, False, False),
    "text + c.": (True, False, False, True),
    "vector + c.": (False, True, False, True),
    "fused + c.": (True, True, False, True),
    "tokens": (False, False, True, False),
    "all three": (True, True, True, False),
    "all three + c.": (True, True, True, True),
}


@dataclass
class Cell:
    """What was found by one door: recalls by category, and milliseconds."""

    found: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    took: list[float] = field(default_factory=list)

    @property
    def recall(self) -> float:
        """The mean over categories, in percent."""
        return 100 * fmean(fmean(values) for values in self.found.values())


@dataclass
class Rows:
    """The table: a cell for each kind of text, model and door, and the bytes that a model adds."""

    cells: dict[tuple[str, str, str], Cell] = field(default_factory=lambda: defaultdict(Cell))
    bytes_each: dict[tuple[str, str], float] = field(default_factory=dict)
    ways: dict[tuple[str, str], Cell] = field(default_factory=lambda: defaultdict(Cell))

    def show(self) -> None:
        """Print it."""
        print(
            f"{'texts':20}{'model':10}" + "".join(f"{door:>9}{'p50':>8}{'p95':>8}" for door in DOORS), end=""
        )
        print(f"{'bytes':>8}")
        for kind, model in self.bytes_each:
            line = f"{kind:20}{model:10}"
            for door in DOORS:
                cell = self.cells[kind, model, door]
                middle, late = np.percentile(cell.took, [50, 95])
                line += f"{cell.recall:9.1f}{middle:8.2f}{late:8.2f}"
            print(f"{line}{self.bytes_each[kind, model]:8.0f}", flush=True)
        print("\nstore.search, by what it is asked with; c. is context")
        print(f"{'texts':20}" + "".join(f"{way:>15}" for way in WAYS))
        for kind in dict.fromkeys(kind for kind, _ in self.bytes_each):
            print(f"{kind:20}" + "".join(f"{self.ways[kind, way].recall:15.1f}" for way in WAYS))


@dataclass(frozen=True)
class Asked:
    """A question, the records that answer it, and its category."""

    text: str
    wanted: frozenset[str]
    category: int = 0


def measure(
    rows: Rows,
    kind: str,
    records: Sequence[ChronoRecord],
    text: Callable[[ChronoRecord], str],
    questions: Sequence[Asked],
    known: Known,
) -> None:
    """Ask all questions about records, through every door and with every model."""
    known.read([text(record) for record in records] + [question.text for question in questions])
    for model in MODELS:
        with TemporaryDirectory() as folder, ChronoStore(folder) as store:
            store.upsert_many(records)
            ids = [record.id for record in records]
            if model != "no model":
                store.vectors.attach_many(
                    ids, known.vectors([text(record) for record in records]), model=MODEL
                )
            if model == "tokens":
                store.vectors.attach_tokens_many(
                    ids, known.tokens([text(record) for record in records]), model=MODEL
                )
            taken = sum(space.bytes for space in store.vectors.spaces()) / len(records)
            before = rows.bytes_each.get((kind, model), taken)
            rows.bytes_each[kind, model] = max(before, taken)

            cell = rows.cells[kind, model, "search"]
            store.search("warm")
            for question in questions:
                vector = None if model == "no model" else known.vectors([question.text])[0]
                tokens = known.tokens([question.text])[0] if model == "tokens" else None
                start = time.perf_counter()
                hits = store.search(question.text, vector, query_tokens=tokens, limit=LIMIT)
                cell.took.append((time.perf_counter() - start) * 1e3)
                note(cell, question, [hit.id for hit in hits])
            if model == "tokens":
                ask_in_every_way(rows, kind, store, questions, known)
        embedder: Embedder = LexicalEmbedder()
        if model != "no model":
            embedder = SentenceModel(known) if model == "vectors" else TokenModel(known)
        with TemporaryDirectory() as folder, Memory(folder, embedder=embedder) as memory:
            names = learned(memory, records, text)
            memory.recall(questions[0].text)
            for door in ("recall", "frame"):
                cell = rows.cells[kind, model, door]
                for question in questions:
                    start = time.perf_counter()
                    if door == "recall":
                        found = memory.recall(question.text, top_k=LIMIT)
                    else:
                        frame = memory.frame("attention", question.text, top_k=LIMIT, token_budget=ROOM)
                        found = list(frame.blocks)
                    cell.took.append((time.perf_counter() - start) * 1e3)
                    note(cell, question, [name for block in found for name in names[block.id]])


def ask_in_every_way(
    rows: Rows, kind: str, store: ChronoStore, questions: Sequence[Asked], known: Known
) -> None:
    """Ask a store that has vectors and codes with some of what a question has."""
    for question in questions:
        vector, tokens = known.vectors([question.text])[0], known.tokens([question.text])[0]
        for way, (by_text, by_vector, by_tokens, context) in WAYS.items():
            hits = store.search(
                question.text if by_text else None,
                vector if by_vector else None,
                query_tokens=tokens if by_tokens else None,
                limit=LIMIT,
                context=context,
            )
            note(rows.ways[kind, way], question, [hit.id for hit in hits])


def note(cell: Cell, question: Asked, found: Iterable[str]) -> None:
    """Take in how much of what was wanted was found."""
    share = len(question.wanted & set(found)) / len(question.wanted)
    cell.found[question.category].append(share)


def learned(
    memory: Memory, records: Sequence[ChronoRecord], text: Callable[[ChronoRecord], str]
) -> dict[str, list[str]]:
    """Let a memory learn records; return which of them each block stands for."""
    names: dict[str, list[str]] = defaultdict(list)
    blocks: dict[str, str] = {}
    for record in records:
        data = record.data
        moment = data.get("time")
        made = memory.learn(
            text(record),
            conversation=str(data["session"]) if "session" in data else None,
            previous=blocks.get(str(data.get("previous"))),
            time=None if moment is None else datetime.fromisoformat(moment).replace(tzinfo=timezone.utc),
            speaker=data.get("speaker"),
        )
        names[made.block_id].append(record.id)
        blocks[record.id] = made.block_id
    memory.consolidate()
    return names
