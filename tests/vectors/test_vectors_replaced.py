"""A reader is undisturbed while others replace, cut or remove the files of rows."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from chronomemory import ChronoRecord, ChronoStore, LogCorrupted, vectors
from chronomemory.errors import EmbeddingMismatch

COUNT = 50
SECONDS = 3.0
NAMES = [f"R{n}" for n in range(COUNT)]

REPLACE = """
import sys, time, numpy as np
from chronomemory import ChronoStore
names = [f"R{n}" for n in range(int(sys.argv[2]))]
with ChronoStore(sys.argv[1], lock_timeout=60) as store:
    end = time.monotonic() + float(sys.argv[3])
    while time.monotonic() < end:
        store.vectors.attach_many(names, np.random.standard_normal((len(names), 4)))
        store.compact(keep_history=False)
"""


@pytest.fixture
def filled(store: ChronoStore) -> ChronoStore:
    store.upsert_many([ChronoRecord(id=name, label=name) for name in NAMES])
    store.vectors.attach_many(NAMES, np.eye(COUNT, 4), model="m")
    return store


def rows_file(store: ChronoStore) -> Path:
    return store.project_root / ".chronomemory" / "vectors" / "default.0.f32"


def three(texts: list[str]) -> Any:
    return np.ones((len(texts), 3), dtype=np.float32)


def test_nobody_hears_of_damage_while_files_are_replaced(filled: ChronoStore) -> None:
    arguments = [str(filled.project_root), str(COUNT), str(SECONDS)]
    with subprocess.Popen([sys.executable, "-W", "ignore", "-c", REPLACE, *arguments]) as other:
        looks, generations, turn = 0, set(), 0
        while other.poll() is None:
            for name in NAMES[:10]:
                found = filled.vectors.get(name)
                assert found is not None and found.shape == (4,)
            ids, rows = filled.vectors.matrix()
            assert len(ids) == len(rows) and {name for name in ids if name} == set(NAMES)
            generations.add(filled.vectors.spaces()[0].generation)
            looks += 1
            if looks % 40 == 0 and turn < 3:
                turn += 1
                assert filled.vectors.reembed("default", model="n", embed=three, into=f"other{turn}") == COUNT
    assert other.returncode == 0
    assert looks > 20 and len(generations) > 3


def test_a_file_that_goes_between_the_look_and_the_map_is_not_missed(filled: ChronoStore) -> None:
    looks = []

    def replaced_at_once(**named: Any) -> Any:
        found = filled.engine.vectors.matrix(**named)
        if not looks:
            with ChronoStore(filled.project_root) as other:
                other.vectors.attach_many(NAMES, np.ones((COUNT, 4)))
                other.compact(keep_history=False)
            assert not Path(found[0]).exists()
        looks.append(found[0])
        return found

    store: Any = SimpleNamespace(engine=SimpleNamespace(vectors=SimpleNamespace(matrix=replaced_at_once)))
    ids, rows = vectors.Vectors(store).matrix()
    assert len(set(looks)) == 2
    assert {name for name in ids if name} == set(NAMES) and np.array_equal(rows, np.ones((COUNT, 4)))


def test_a_space_of_another_model_is_refused_before_anything(filled: ChronoStore) -> None:
    filled.vectors.attach_many(NAMES, np.ones((COUNT, 3)), space="bound", model="mine")
    before = filled.wal_seq()

    def never(texts: list[str]) -> Any:
        raise AssertionError(f"{len(texts)} texts were embedded")

    with pytest.raises(EmbeddingMismatch) as caught:
        filled.vectors.reembed("default", model="yours", embed=never, into="bound", default=True)
    assert (caught.value.space, caught.value.model, caught.value.dim) == ("bound", "mine", 3)
    assert filled.wal_seq() == before
    assert [space.name for space in filled.vectors.spaces() if space.is_default] == ["default"]


@pytest.mark.parametrize("left", [None, 0, 5 * 16, 5 * 16 + 3])
def test_ids_are_enough_to_embed_anew(filled: ChronoStore, left: int | None) -> None:
    if left is None:
        rows_file(filled).unlink()
    else:
        rows_file(filled).write_bytes(rows_file(filled).read_bytes()[:left])
    started = time.monotonic()
    with pytest.raises(LogCorrupted, match="of the 50 rows") as caught:
        filled.vectors.matrix()
    assert caught.value.damage == "row-missing" and caught.value.path == "vectors/default.0.f32"
    assert caught.value.offset == (left or 0)
    assert time.monotonic() - started < 5
    assert filled.vectors.reembed("default", model="n", embed=three, into="again") == COUNT
    assert len(filled.vectors.nearest([1.0, 1.0, 1.0], space="again", k=COUNT)) == COUNT


def test_no_score_is_below_the_least_that_was_asked(filled: ChronoStore) -> None:
    query = np.random.default_rng(3).standard_normal(4)
    scores = [near.score for near in filled.vectors.nearest(query, k=COUNT)]
    for score in scores:
        for least in (score, np.nextafter(score, 2), np.nextafter(score, -2)):
            found = filled.vectors.nearest(query, k=COUNT, min_score=float(least))
            assert [near.score for near in found] == [other for other in scores if other >= least]
    assert filled.vectors.nearest(query, min_score=1e300) == []
    assert len(filled.vectors.nearest(query, k=COUNT, min_score=-1e300)) == COUNT
