"""Two that embed the same records again agree, and no newer vector gives way to an older one."""

from __future__ import annotations

import multiprocessing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chronomemory import ChronoStore, InvalidArgument
from chronomemory.errors import EmbeddingMismatch, WriteConflict
from chronomemory.vectors import Vectors


def lengths(texts: list[str]) -> list[list[float]]:
    """Embed by length: two numbers a text, so that a vector tells which text it was made of."""
    return [[float(len(text)), 1.0] for text in texts]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    with ChronoStore(tmp_path) as store:
        store.upsert_many([{"id": f"R-{number}", "label": "x" * (number + 1)} for number in range(5)])
        for number in range(5):
            store.vectors.attach(f"R-{number}", [1.0], space="old", model="one")
    return tmp_path


def vectors(store: ChronoStore, space: str = "new") -> list[float]:
    return [float(store.vectors.get(f"R-{number}", space=space)[0]) for number in range(5)]


def test_a_space_that_another_has_bound_meanwhile_is_no_mismatch(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ChronoStore(project) as store, ChronoStore(project) as other:
        looked = Vectors.spaces

        def spaces(asked: Any) -> Any:
            found = looked(asked)
            other.vectors.attach("R-0", [1.0, 1.0], space="new", model="len")  # between the look and the try
            return found

        monkeypatch.setattr(Vectors, "spaces", spaces)
        assert store.vectors.reembed("old", model="len", embed=lengths, into="new") == 4
        assert vectors(store) == [1.0, 2.0, 3.0, 4.0, 5.0]


@pytest.mark.parametrize(("model", "dim"), [("other", 2), ("len", 3)])
def test_what_does_not_fit_is_refused_before_anything_is_embedded(
    project: Path, model: str, dim: int
) -> None:
    with ChronoStore(project) as store:
        store.vectors.attach("R-0", [1.0] * dim, space="new", model=model)
        calls: list[int] = []

        def embed(texts: list[str]) -> list[list[float]]:
            calls.append(len(texts))
            return lengths(texts)

        with pytest.raises(EmbeddingMismatch):
            store.vectors.reembed("old", model="len", embed=embed, into="new")
        assert (calls == []) == (model == "other")


def test_a_text_that_changes_while_it_is_embedded_is_embedded_again(project: Path) -> None:
    with ChronoStore(project) as store, ChronoStore(project) as other:
        asked: list[list[str]] = []

        def embed(texts: list[str]) -> list[list[float]]:
            if not asked:
                other.upsert({"id": "R-2", "label": "y" * 9})
            asked.append(texts)
            return lengths(texts)

        assert store.vectors.reembed("old", model="len", embed=embed, into="new") == 5
        assert vectors(store) == [1.0, 2.0, 9.0, 4.0, 5.0]
        assert asked[1:] == [["y" * 9]]


def test_what_others_attach_meanwhile_is_left_alone(project: Path) -> None:
    with ChronoStore(project) as store, ChronoStore(project) as other:

        def embed(texts: list[str]) -> list[list[float]]:
            other.vectors.attach("R-3", [70.0, 1.0], space="new", model="len")
            other.delete("R-4")
            other.compact()
            return lengths(texts)

        assert store.vectors.reembed("old", model="len", embed=embed, into="new") == 3
        assert [float(store.vectors.get(f"R-{number}", space="new")[0]) for number in range(4)] == [
            1,
            2,
            3,
            70,
        ]


def test_a_text_that_never_stays_is_told_of(project: Path) -> None:
    with ChronoStore(project) as store, ChronoStore(project) as other:
        times = iter(range(100))

        def embed(texts: list[str]) -> list[list[float]]:
            other.upsert({"id": "R-2", "label": "y" * (10 + next(times))})
            return lengths(texts)

        with pytest.raises(WriteConflict, match="kept changing"):
            store.vectors.reembed("old", model="len", embed=embed, into="new")
        assert store.vectors.reembed("old", model="len", embed=lengths, into="new") == 1


def tokens_of(texts: list[str]) -> list[Any]:
    """Two tokens a text, of three numbers each; one text has none."""
    return [np.ones((2 if len(text) != 3 else 0, 3), dtype=np.float32) * len(text) for text in texts]


def test_codes_of_tokens_become_codes_of_tokens(project: Path) -> None:
    with ChronoStore(project) as store:
        ids = [f"R-{number}" for number in range(5)]
        store.vectors.attach_tokens_many(ids, [np.ones((1, 7))] * 5, model="one", most=6)
        assert store.vectors.reembed("tokens", model="two", embed=tokens_of, into="more") == 4
        assert store.vectors.reembed("tokens", model="two", embed=tokens_of, into="more") == 0
        spaces = {space.name: space for space in store.vectors.spaces()}
        assert (spaces["more"].tokens, spaces["more"].dim, spaces["more"].model) == (3, 24, "two")
        assert store.vectors.get("R-2", space="more") is None
        store.vectors.attach_tokens("R-2", tokens_of(["x"])[0], space="again", model="two", most=6)
        assert (
            store.vectors.get("R-0", space="more").tobytes()
            == store.vectors.get("R-2", space="again").tobytes()
        )
        question = np.ones((1, 3))
        found = store.search(query_tokens=question, token_space="more", context=False)
        assert {hit.id for hit in found} == {"R-0", "R-1", "R-3", "R-4"}


def test_the_two_kinds_of_spaces_do_not_mix(project: Path) -> None:
    with ChronoStore(project) as store:
        store.vectors.attach_tokens("R-0", np.ones((1, 7)), model="one")
        with pytest.raises(InvalidArgument, match="into"):
            store.vectors.reembed("old", model="one", embed=lengths, into="tokens")
        with pytest.raises(InvalidArgument, match="into"):
            store.vectors.reembed("tokens", model="one", embed=tokens_of, into="old")
        with pytest.raises(InvalidArgument, match="default"):
            store.vectors.reembed("tokens", model="two", embed=tokens_of, into="more", default=True)


def _reembed(project: Path, gate: Any, told: Any) -> None:
    with ChronoStore(project, lock_timeout=60) as store:
        for number in range(10):
            gate.wait(60)
            told.put((number, store.vectors.reembed("old", model="len", embed=lengths, into=f"new-{number}")))


def test_two_processes_share_the_work(project: Path) -> None:
    context = multiprocessing.get_context("spawn")
    gate, told = context.Barrier(2), context.Queue()
    both = [context.Process(target=_reembed, args=(project, gate, told)) for _ in range(2)]
    for process in both:
        process.start()
    answers = [told.get(timeout=120) for _ in range(20)]
    for process in both:
        process.join(60)
    assert [process.exitcode for process in both] == [0, 0]
    assert [sum(new for at, new in answers if at == number) for number in range(10)] == [5] * 10
    with ChronoStore(project) as store:
        assert all(vectors(store, f"new-{number}") == [1.0, 2.0, 3.0, 4.0, 5.0] for number in range(10))
