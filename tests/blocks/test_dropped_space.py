"""Recall forgets the embeddings of a space that was dropped."""

from __future__ import annotations

import numpy as np
from chronomemory.blocks import Blocks, sync

QUERY = np.array([[1.0, 0.0]], dtype=np.float32)


def near(blocks: Blocks, space: str) -> list[str]:
    (found,) = blocks.store.engine.blocks.nearest(space, QUERY, 9, -1.0)
    return [name for name, _ in found]


def test_a_dropped_space_is_not_recalled(blocks: Blocks) -> None:
    with blocks.begin() as conn:
        for name in "ab":
            sync.insert_block(
                conn, block_id=name, content=name, category="knowledge", source="test", status="active"
            )
    for space in ("one", "two"):
        blocks.store.vectors.attach_many(
            ["block:a", "block:b"], [[1.0, 0.1], [0.5, 1.0]], space=space, model="m"
        )
    assert near(blocks, "one") == near(blocks, "two") == ["a", "b"]
    blocks.store.vectors.drop("one")
    assert (near(blocks, "one"), near(blocks, "two")) == ([], ["a", "b"])
    blocks.store.vectors.attach("block:b", [1.0, 0.0], space="one", model="m")
    assert near(blocks, "one") == ["b"]
    blocks.store.vectors.drop("one")
    blocks.store.vectors.attach("block:a", [1.0, 0.0], space="one", model="m")
    assert near(blocks, "one") == ["a"]
