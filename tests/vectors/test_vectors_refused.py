"""A refused embedding is forgotten at once, by everyone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chronomemory import ChronoStore
from chronomemory.errors import ChronoError, InvalidArgument, InvalidRecord


@pytest.fixture
def bound(tmp_path: Path) -> Path:
    with ChronoStore(tmp_path) as store:
        store.upsert_many([{"id": "A"}, {"id": "B"}])
        store.vectors.attach_many(["A", "B"], np.eye(2, dtype=np.float32), model="two")
    return tmp_path


@pytest.mark.parametrize(
    "refused",
    [
        {"record_id": "A", "vector": [1.0, 2.0, 3.0]},
        {"record_id": "nobody", "vector": [1.0, 2.0]},
        {"record_id": "A", "vector": [1.0, 2.0], "space": "new"},
    ],
    ids=["dimension", "record", "model"],
)
def test_others_do_not_wait_for_one_who_was_refused(bound: Path, refused: dict[str, Any]) -> None:
    with ChronoStore(bound) as one, ChronoStore(bound, lock_timeout=0.5) as other:
        for _ in range(5):
            with pytest.raises(ChronoError):
                one.vectors.attach(**refused)
        other.upsert({"id": "C"})
        assert one.get("C") is not None


def test_a_string_is_no_list_of_ids(bound: Path) -> None:
    with (
        ChronoStore(bound) as store,
        pytest.raises(InvalidArgument, match=r"^ids must be a list of ids, got 'AB'"),
    ):
        store.vectors.attach_many("AB", np.eye(2, dtype=np.float32))


def test_what_is_deleted_while_it_is_embedded_anew_is_left_out(bound: Path) -> None:
    with ChronoStore(bound) as store:

        def embed(texts: list[str]) -> Any:
            store.delete("A")
            return np.ones((len(texts), 3), dtype=np.float32)

        assert store.vectors.reembed("default", model="three", embed=embed, into="three") == 1
        assert store.vectors.get("B", space="three") is not None
        assert [near.record_id for near in store.vectors.nearest([1.0, 1.0, 1.0], space="three")] == ["B"]


class TestOneOfThousands:
    """Several threads look at a large lot; it is still all or nothing, and the first fault is named."""

    COUNT = 20_000

    @pytest.fixture
    def many(self, tmp_path: Path) -> Path:
        with ChronoStore(tmp_path) as store:
            store.upsert_many([{"id": f"R{n}"} for n in range(self.COUNT)])
            store.delete("R17000")
        return tmp_path

    def lot(self) -> tuple[list[str], Any]:
        rows = np.random.default_rng(5).standard_normal((self.COUNT, 300), dtype=np.float32)
        return [f"R{n}" for n in range(self.COUNT)], rows

    def test_a_record_that_is_not_there_leaves_no_file(self, many: Path) -> None:
        ids, rows = self.lot()
        ids[9000], ids[12_000] = "nobody", "nobody else"
        with ChronoStore(many) as store:
            with pytest.raises(InvalidRecord, match='no record "nobody"'):
                store.vectors.attach_many(ids, rows, model="m")
            with pytest.raises(InvalidRecord, match='"R17000" is deleted'):
                store.vectors.attach_many(self.lot()[0], rows, model="m")
            assert store.vectors.spaces() == []
        assert not list(many.rglob("*.f32"))

    def test_a_vector_that_is_no_number_is_named_and_written_over(self, many: Path) -> None:
        ids, rows = self.lot()
        del ids[17_000]
        rows = np.delete(rows, 17_000, axis=0)
        rows[11_111, 299], rows[15_000, 0] = np.nan, np.inf
        with ChronoStore(many) as store:
            with pytest.raises(InvalidRecord, match='the vector of "R11111" is not finite'):
                store.vectors.attach_many(ids, rows, model="m")
            assert store.vectors.spaces() == []
            rows[11_111, 299], rows[15_000, 0] = 0.5, 0.25
            store.vectors.attach_many(ids, rows, model="m")
            assert store.verify().valid
            assert np.array_equal(store.vectors.matrix()[1], rows)

    @pytest.mark.parametrize("durability", ["full", "normal", "off"])
    def test_the_order_of_records_and_rows_is_the_callers(self, many: Path, durability: Any) -> None:
        ids, rows = self.lot()
        order = np.random.default_rng(6).permutation(np.delete(np.arange(self.COUNT), 17_000))
        shuffled = [ids[n] for n in order]
        with ChronoStore(many, durability=durability) as store:
            store.vectors.attach_many(shuffled, rows[order], model="m")
            assert store.verify().valid
            owners, matrix = store.vectors.matrix()
            assert owners == shuffled
            assert np.array_equal(matrix, rows[order])
        with ChronoStore(many) as store:
            assert store.vectors.matrix()[0] == shuffled
            for n in (0, 1, 9999, self.COUNT - 1):
                kept = store.vectors.get(f"R{n}")
                assert kept is not None
                assert np.array_equal(kept, rows[n])
