"""A search through the store finds exactly what comparing everything finds."""

from __future__ import annotations

import tempfile
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from chronomemory import ChronoRecord, ChronoStore
from hypothesis import given, settings
from hypothesis import strategies as st
from shares import share

Floats = npt.NDArray[np.float32]
#: What float64 in another order may differ by.
NEAR = 1e-6


def reference(rows: Floats, query: Floats) -> Floats:
    """Score every row as the format of scores says: eight lanes in float64, a fixed tree, rounded once."""

    def lanes(products: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        padded = np.zeros((len(products), -(-products.shape[1] // 8) * 8))
        padded[:, : products.shape[1]] = products
        # Additions in order: a sum over an axis would pair them up.
        sums = np.zeros((len(products), 8))
        for start in range(0, padded.shape[1], 8):
            sums = sums + padded[:, start : start + 8]
        a, b, c, d, e, f, g, h = sums.T
        return ((a + e) + (c + g)) + ((b + f) + (d + h))

    wide, asked = rows.astype(np.float64), query.astype(np.float64)
    dots, squares = lanes(wide * asked), lanes(wide * wide)
    norms = np.sqrt(lanes(asked[None] * asked[None]))[0] * np.sqrt(squares)
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.where(norms > 0, dots / norms, 0.0).astype(np.float32)
    return scores + np.float32(0.0)


def best(scores: Floats, k: int, kept: npt.NDArray[np.bool_], least: float | None) -> list[tuple[int, float]]:
    rows = [row for row in np.argsort(-scores, kind="stable") if kept[row]]
    good = [row for row in rows if least is None or scores[row] >= np.float32(least)]
    return [(int(row), float(scores[row])) for row in good[:k]]


def random(numbers: np.random.Generator, count: int, dim: int) -> Floats:
    return numbers.standard_normal((count, dim), dtype=np.float32)


def clustered(numbers: np.random.Generator, count: int, dim: int) -> Floats:
    centres = random(numbers, 4, dim)
    return centres[numbers.integers(4, size=count)] + random(numbers, count, dim) * np.float32(1e-3)


def duplicated(numbers: np.random.Generator, count: int, dim: int) -> Floats:
    return random(numbers, 3, dim)[numbers.integers(3, size=count)]


def zeros_between(numbers: np.random.Generator, count: int, dim: int) -> Floats:
    rows = random(numbers, count, dim)
    rows[:: max(1, count // 3)] = 0
    return rows


def tiny_and_huge(numbers: np.random.Generator, count: int, dim: int) -> Floats:
    sizes = 10.0 ** numbers.integers(-38, 36, size=(count, 1))
    return (random(numbers, count, dim).astype(np.float64) * sizes).astype(np.float32)


def adversarial(numbers: np.random.Generator, count: int, dim: int) -> Floats:
    """Half a code away from every code, and one component that makes all codes coarse."""
    rows = (numbers.integers(-2, 3, size=(count, dim)) + 0.5).astype(np.float32)
    rows[:, 0] = 1e4
    return rows + random(numbers, count, dim) * np.float32(1e-4)


KINDS: list[Callable[[np.random.Generator, int, int], Floats]] = [
    random,
    clustered,
    duplicated,
    zeros_between,
    tiny_and_huge,
    adversarial,
]


def filled(store: ChronoStore, rows: Floats) -> None:
    records = [
        ChronoRecord(
            id=f"R{n}",
            kind="even" if n % 2 == 0 else "odd",
            confidence=(n % 11) / 10,
            status="deprecated" if n % 13 == 5 else "active",
        )
        for n in range(len(rows))
    ]
    store.upsert_many(records)
    store.vectors.attach_many([record.id for record in records], rows, model="m")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("dim", [7, 384])
def test_every_kind_of_rows(store: ChronoStore, kind: Callable[..., Floats], dim: int) -> None:
    numbers = np.random.default_rng(dim)
    count = 2600 if dim < 100 else 1100
    rows = kind(numbers, count, dim)
    filled(store, rows)
    queries = np.concatenate([kind(numbers, 6, dim), rows[:3], np.zeros((1, dim), dtype=np.float32)])
    number = np.arange(count)
    active = number % 13 != 5
    sure = (number % 11) / 10 >= 0.5
    listed = [f"R{n}" for n in range(0, count, 37)]
    questions = [
        ({"k": 1}, active),
        ({"k": 25, "status": None}, number >= 0),
        ({"k": 10, "kind": "even"}, active & (number % 2 == 0)),
        ({"k": 10, "kind": "odd", "min_confidence": 0.5, "status": None}, (number % 2 == 1) & sure),
        ({"k": 9, "among": listed}, active & (number % 37 == 0)),
        ({"k": 10, "min_score": 0.25}, active),
        ({"k": count}, active),
    ]
    scored = [reference(rows, query) for query in queries]
    for asked, kept in questions:
        together = store.vectors.nearest(queries, **asked)
        for query, scores, hits in zip(queries, scored, together, strict=True):
            want = best(scores, asked["k"], kept, asked.get("min_score"))
            assert [(near.row, near.score) for near in hits] == want
            assert store.vectors.nearest(query, **asked) == hits
    for query, hits in zip(queries, store.vectors.nearest(queries, k=count), strict=True):
        check_against_numpy(rows, query, hits)


def check_against_numpy(rows: Floats, query: Floats, hits: list[object]) -> None:
    wide, asked = rows.astype(np.float64), query.astype(np.float64)
    norms = np.linalg.norm(wide, axis=1) * np.linalg.norm(asked)
    with np.errstate(divide="ignore", invalid="ignore"):
        exact = np.where(norms > 0, wide @ asked / norms, 0.0)
    for near in hits:
        assert abs(exact[near.row] - near.score) < NEAR  # type: ignore[attr-defined]


@settings(max_examples=share(15, 300), deadline=None)
@given(data=st.data())
def test_whatever_the_rows_are(data: st.DataObject) -> None:
    dim = data.draw(st.integers(1, 40))
    count = data.draw(st.sampled_from([1, 2, 15, 17, 60, 1030, 2100]))
    kind = data.draw(st.sampled_from(KINDS))
    numbers = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    rows = kind(numbers, count, dim)
    small = st.floats(width=32, allow_nan=False, allow_infinity=False)
    for row in data.draw(st.lists(st.integers(0, count - 1), max_size=3)):
        rows[row] = data.draw(st.lists(small, min_size=dim, max_size=dim))
    query = (
        rows[data.draw(st.integers(0, count - 1))] if data.draw(st.booleans()) else kind(numbers, 1, dim)[0]
    )
    k = data.draw(st.integers(1, count))
    with tempfile.TemporaryDirectory() as folder, ChronoStore(folder) as store:
        filled(store, rows)
        gone = data.draw(st.lists(st.integers(0, count - 1), max_size=5))
        for row in gone:
            store.delete(f"R{row}")
        kept = np.arange(count) % 13 != 5
        kept[gone] = False
        hits = store.vectors.nearest(query, k=k)
        assert [(near.row, near.score) for near in hits] == best(reference(rows, query), k, kept, None)
        check_against_numpy(rows, query, hits)
