"""A space can be dropped, and nothing of it is left where somebody might find it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from chronomemory import ChronoRecord, ChronoStore, InvalidArgument
from chronomemory.errors import UnknownSpace
from verdicts import verify_log

DIM = 12
#: More than a group.
COUNT = 1100


def fill(store: ChronoStore, space: str, value: float = 1.0, dim: int = DIM) -> None:
    names = [f"R{n}" for n in range(COUNT)]
    rows = np.full((COUNT, dim), value, dtype=np.float32)
    rows[:, 0] = np.arange(COUNT)
    store.vectors.attach_many(names, rows, space=space, model=f"m{dim}")


@pytest.fixture
def filled(store: ChronoStore) -> ChronoStore:
    store.upsert_many([ChronoRecord(id=f"R{n}", label=f"number {n}") for n in range(COUNT)])
    fill(store, "default")
    fill(store, "old", 2.0)
    return store


def files(root: Path) -> list[str]:
    return sorted(path.name for path in (root / ".chronomemory" / "vectors").iterdir())


def is_sound(root: Path) -> bool:
    return bool(verify_log.verify_folder(root)["valid"])


def test_a_dropped_space_is_gone(filled: ChronoStore) -> None:
    root = filled.project_root
    filled.vectors.nearest(np.ones(DIM), space="old")
    assert filled.vectors.drop("old") == COUNT
    assert [space.name for space in filled.vectors.spaces()] == ["default"]
    for ask in (
        lambda: filled.vectors.nearest(np.ones(DIM), space="old"),
        lambda: filled.search(vector=np.ones(DIM), space="old"),
        lambda: filled.vectors.get("R1", space="old"),
        lambda: filled.vectors.matrix(space="old"),
        lambda: filled.vectors.drop("old"),
    ):
        with pytest.raises(UnknownSpace):
            ask()
    assert len(filled.vectors.nearest(np.ones(DIM), k=COUNT)) == COUNT
    assert filled.verify().valid and is_sound(root)
    filled.compact()
    assert files(root) == ["default.0.f32"]
    assert filled.verify().valid and is_sound(root)
    with ChronoStore(root) as other:
        assert [space.name for space in other.vectors.spaces()] == ["default"]


def test_the_one_in_use_is_kept_unless_told(filled: ChronoStore) -> None:
    with pytest.raises(InvalidArgument, match="asked when none is named"):
        filled.vectors.drop("default")
    assert filled.vectors.get("R1") is not None
    filled.vectors.use("old")
    assert filled.vectors.drop("default") == COUNT
    assert filled.vectors.drop("old", force=True) == COUNT
    assert filled.vectors.spaces() == []
    with pytest.raises(UnknownSpace):
        filled.vectors.nearest(np.ones(DIM))


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("reopened", [False, True])
def test_a_name_can_be_used_again(filled: ChronoStore, compacted: bool, reopened: bool) -> None:
    root = filled.project_root
    before = filled.vectors.nearest(np.ones(DIM), k=COUNT, space="old")
    with ChronoStore(root) as follower:
        assert follower.vectors.nearest(np.ones(DIM), k=COUNT, space="old") == before
        filled.vectors.drop("old")
        if compacted:
            filled.compact()
        if reopened:
            filled.close()
            filled = ChronoStore(root).open()
        with pytest.raises(InvalidArgument, match="only in case"):
            filled.vectors.attach("R1", np.ones(3), space="OLD", model="other")
        filled.vectors.attach_many(["R7", "R8"], np.eye(3)[:2], space="old", model="other")
        for store in (filled, follower):
            assert [near.record_id for near in store.vectors.nearest([1.0, 0.1, 0.0], k=9, space="old")] == [
                "R7",
                "R8",
            ]
            space = next(space for space in store.vectors.spaces() if space.name == "old")
            assert (space.model, space.dim, space.generation, space.rows) == ("other", 3, 1, 2)
            assert store.vectors.get("R1", space="old") is None
    assert filled.verify().valid and is_sound(root)
    filled.compact()
    assert files(root) == ["default.0.f32", "old.1.f32"]
    filled.close()


def test_rows_that_moved_leave_no_filter_behind(filled: ChronoStore) -> None:
    for name in range(COUNT - 5):
        filled.vectors.detach(f"R{name}", space="old")
    found = filled.vectors.nearest(np.ones(DIM), k=COUNT, space="old")
    filled.compact()
    moved = filled.vectors.nearest(np.ones(DIM), k=COUNT, space="old")
    assert [near.record_id for near in moved] == [near.record_id for near in found]
    assert {near.row for near in moved} == set(range(5))
