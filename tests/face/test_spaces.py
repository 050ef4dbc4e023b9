"""Each model has a space of its own, under a name that the engine takes."""

from __future__ import annotations

import pytest
from chronomemory import ChronoStore, InvalidArgument
from chronomemory.embedders import CallableEmbedder
from chronomemory.face.spaces import Spaces

MODELS = (None, "a", "a/b", "a-b", "x" * 99, "x" * 98, "x" * 40, "ü")


@pytest.mark.parametrize("face", ["blocks", "episodes", "a-face-with-quite-a-long-name"])
def test_each_model_has_a_space_of_its_own(store: ChronoStore, face: str) -> None:
    names = [Spaces(face).of(model) for model in MODELS]
    assert len(set(names)) == len(names)
    store.upsert({"id": "A"})
    for name in names:
        store.vectors.attach("A", [1.0, 0.0], space=name, model=name)
    assert {space.name for space in store.vectors.spaces()} == set(names)


def test_a_question_must_fit_what_it_is_compared_with(store: ChronoStore) -> None:
    spaces, embedder = Spaces("notes"), CallableEmbedder("m", lambda texts: [[1.0, 0.0]] * len(texts))
    assert spaces.of_query(store, "anything", embedder).tolist() == [1.0, 0.0]
    store.upsert({"id": "A"})
    store.vectors.attach("A", [1.0, 0.0, 0.0], space=spaces.of("m"), model="m")
    with pytest.raises(InvalidArgument, match="2 numbers for a query do not fit 3 of 'm'"):
        spaces.of_query(store, "anything", embedder)
