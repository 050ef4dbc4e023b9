"""Is a refused embedding forgotten at once, by everyone?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chronomemory import ChronoStore
from chronomemory.errors import ChronoError, InvalidRecord


@pytest.fixture
def bound(tmp_path: Path) -> Path:
    with ChronoStore(tmp_path) as store:
        store.upsert_many([{"id": "A"}, {"id": "B"}])
        store.attach_many(["A", "B"], np.eye(2, dtype=np.float32), model="two")
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
                one.attach(**refused)
        other.upsert({"id": "C"})
        assert one.get("C") is not None


def test_a_string_is_no_list_of_ids(bound: Path) -> None:
    with ChronoStore(bound) as store, pytest.raises(InvalidRecord, match="no list of ids"):
        store.attach_many("AB", np.eye(2, dtype=np.float32))


def test_what_is_deleted_while_it_is_embedded_anew_is_left_out(bound: Path) -> None:
    with ChronoStore(bound) as store:

        def embed(texts: list[str]) -> Any:
            store.delete("A")
            return np.ones((len(texts), 3), dtype=np.float32)

        assert store.reembed("default", model="three", embed=embed, into="three") == 1
        assert store.embedding("B", space="three") is not None
        assert [near.record_id for near in store.nearest([1.0, 1.0, 1.0], space="three")] == ["B"]
