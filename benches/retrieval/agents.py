"""Measures recall by a memory of blocks: ``python -m benches.retrieval.agents``.

For each conversation a memory learns its turns, with the session as conversation, the turn before, time and
speaker; then its questions are put to ``store.search`` over the blocks, to ``Memory.recall`` and to the frame
``attention``. Turns that say the same are one block, and it counts as all of them. Once with the sentence
vectors of the set, once with the embedder that a memory has by itself.
"""

from __future__ import annotations

import time
from collections import defaultdict
from datetime import datetime, timezone
from statistics import fmean, median
from tempfile import TemporaryDirectory
from typing import Any

from chronomemory import Memory
from chronomemory.embedders import CallableEmbedder, Embedder, LexicalEmbedder

from benches.retrieval.locomo import CATEGORIES, Conversation, Question, conversations

LIMIT = 10
#: Frames are asked for ten blocks, so none should fall to the budget.
ROOM = 100_000


def said(record: Any) -> str:
    """Return what a turn says, with what its picture shows."""
    caption = record.data["caption"]
    return f"{record.label} [{caption}]" if caption else str(record.label)


def known_vectors(talk: Conversation) -> Embedder:
    """Return an embedder that looks the vectors of the set up."""
    known = {said(record): vector for record, vector in zip(talk.records, talk.vectors, strict=True)}
    known |= {question.text: question.vector for question in talk.questions}
    known["warm"] = talk.questions[0].vector
    return CallableEmbedder("all-MiniLM-L6-v2", lambda texts: [known[text] for text in texts])


def fill(memory: Memory, talk: Conversation) -> dict[str, list[str]]:
    """Learn all turns; return which turns each block stands for."""
    turns: dict[str, list[str]] = defaultdict(list)
    blocks: dict[str, str] = {}
    for record in talk.records:
        data = record.data
        learned = memory.learn(
            said(record),
            conversation=f"{talk.name} {data['session']}",
            previous=blocks.get(str(data.get("previous"))),
            time=datetime.fromisoformat(data["time"]).replace(tzinfo=timezone.utc),
            speaker=data["speaker"],
        )
        turns[learned.block_id].append(record.id)
        blocks[record.id] = learned.block_id
    memory.consolidate()
    return turns


def ask(memory: Memory, way: str, question: Question) -> list[str]:
    """Ask one question in one way; return the ids of the blocks."""
    if way == "recall":
        return [block.id for block in memory.recall(question.text, top_k=LIMIT)]
    if way == "frame":
        frame = memory.frame("attention", question.text, top_k=LIMIT, token_budget=ROOM)
        return [block.id for block in frame.blocks]
    space = f"blocks.{memory.embedder.model_name}"
    vector = memory.embedder.embed(question.text)
    hits = memory.blocks.store.search(question.text, vector, space=space, kind="block", limit=LIMIT)
    return [hit.id.removeprefix("block:") for hit in hits]


def measure(talks: list[Conversation], *, with_vectors: bool) -> None:
    """Ask every question in every way, and print recall@10 by category, its mean, and milliseconds."""
    found: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    took: dict[str, list[float]] = defaultdict(list)
    for talk in talks:
        embedder = known_vectors(talk) if with_vectors else LexicalEmbedder()
        with TemporaryDirectory() as folder, Memory(folder, embedder=embedder) as memory:
            turns = fill(memory, talk)
            memory.recall("warm")
            for way in ("search", "recall", "frame"):
                for question in talk.questions:
                    start = time.perf_counter()
                    blocks = ask(memory, way, question)
                    took[way].append((time.perf_counter() - start) * 1e3)
                    named = {turn for block in blocks for turn in turns.get(block, [])}
                    hit = len(named & question.evidence) / len(question.evidence)
                    found[way][question.category].append(hit)
    print(f"{'vectors' if with_vectors else 'lexical':10}" + "".join(f"{c:>8}" for c in CATEGORIES), end="")
    print(f"{'mean':>8}{'ms':>8}")
    for way, by_category in found.items():
        values = [100 * fmean(by_category[category]) for category in CATEGORIES]
        print(f"{way:10}" + "".join(f"{value:8.1f}" for value in [*values, fmean(values), median(took[way])]))


if __name__ == "__main__":
    everything = conversations()
    for with_vectors in (True, False):
        measure(everything, with_vectors=with_vectors)
