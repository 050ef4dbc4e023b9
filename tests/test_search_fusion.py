"""Do words and vectors become one score as the decision says?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from chronomemory import ChronoRecord, ChronoStore
from chronomemory._core import Engine
from chronomemory.search import search

WORDS = ("alpha", "beta", "gamma", "delta")


@dataclass(frozen=True)
class Neighbour:
    record_id: str
    score: float


class WithVectors:
    """A store with embeddings, as far as a search asks for them."""

    def __init__(self, store: ChronoStore, rows: dict[str, np.ndarray]) -> None:
        self.store, self.rows = store, rows

    @property
    def engine(self) -> Engine:
        return self.store.engine

    def nearest(
        self, vector: Sequence[float], *, k: int, among: Iterable[str] | None = None, **_: object
    ) -> list[Neighbour]:
        names = self.rows if among is None else [name for name in among if name in self.rows]
        found = [Neighbour(name, float(self.rows[name] @ np.asarray(vector))) for name in names]
        return sorted(found, key=lambda one: -one.score)[:k]


@pytest.fixture
def both(store: ChronoStore) -> WithVectors:
    chance = np.random.default_rng(1)
    rows = {}
    for number in range(300):
        store.upsert(ChronoRecord(id=f"R{number}", label=" ".join(chance.choice(WORDS, 3))))
        if number % 3:
            row = chance.normal(size=8)
            rows[f"R{number}"] = row / np.linalg.norm(row)
    return WithVectors(store, rows)


def test_the_score_is_that_of_the_decision(both: WithVectors) -> None:
    vector = np.eye(8)[0].tolist()
    texts = {hit.id: hit.score for hit in search(both, "alpha beta", limit=300, context=False)}
    cosines = {one.record_id: one.score for one in both.nearest(vector, k=300)}
    pool = sorted(cosines.values(), reverse=True)[:100]
    expected = {}
    for name in texts.keys() | cosines.keys():
        cosine = cosines.get(name, -1.0)
        share = min(max((cosine - pool[-1]) / (pool[0] - pool[-1]), 0.0), 1.0) if cosine > 0 else 0.0
        expected[name] = (2 * texts.get(name, 0.0) / max(texts.values()) + share) / 3
    hits = search(both, "alpha beta", vector, limit=20, context=False, explain=True)
    assert [hit.score for hit in hits] == pytest.approx(sorted(expected.values(), reverse=True)[:20])
    for hit in hits:
        assert hit.score == pytest.approx(expected[hit.id])
        assert hit.why is not None
        assert hit.why["cosine"] == pytest.approx(cosines[hit.id]) if hit.id in cosines else True
        assert (2 * hit.why["text_share"] + hit.why["vector_share"]) / 3 == pytest.approx(hit.score)


def test_a_vector_alone_ranks_by_cosine(both: WithVectors) -> None:
    vector = np.eye(8)[1].tolist()
    hits = search(both, vector=vector, limit=5, context=False)
    nearest = both.nearest(vector, k=5)
    assert [(hit.id, hit.score) for hit in hits] == [(one.record_id, one.score) for one in nearest]


def test_a_lone_vector_lifts_linked_records_too(both: WithVectors) -> None:
    [best] = both.nearest(np.eye(8)[2].tolist(), k=1)
    both.store.upsert(ChronoRecord(id="LINKED", label="", data={"reply_to": best.record_id}))
    hits = search(both, vector=np.eye(8)[2].tolist(), limit=400)
    assert "LINKED" in [hit.id for hit in hits]


def test_a_store_without_embeddings_says_so(both: WithVectors) -> None:
    class Bare:
        engine = both.engine

    with pytest.raises(TypeError, match="no embeddings"):
        search(Bare(), "alpha", [1.0] * 8)
