"""Embeddings of blocks lie where they belong, and only there."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from chronomemory import InvalidRecord
from chronomemory.blocks import BatchConflict, Blocks, Memory, embedding_to_bytes, open_blocks, sync
from chronomemory.blocks.engine import SPACES
from chronomemory.embedders import CallableEmbedder
from living import REFERENCE_RULES, angles


def insert(blocks: Blocks, block_id: str, vector: list[float], model: str | None = None) -> None:
    with blocks.begin() as conn:
        sync.insert_block(
            conn, block_id=block_id, content=block_id, category="c", source="s", status="active"
        )
        sync.update_block_scoring(conn, block_id, embedding=vector, embedding_model=model)
        assert sync.get_block(conn, block_id)["embedding"] == embedding_to_bytes(vector)


def test_they_never_travel_through_json(blocks: Blocks) -> None:
    insert(blocks, "a", [0.123456, -7.0])
    lines = [json.dumps(event.record) for event in blocks.store.replay()]
    assert not any("0.123" in line or 'embedding"' in line for line in lines)
    assert [(space.name, space.living) for space in blocks.store.vectors.spaces()] == [("blocks", 1)]
    with blocks.connect() as conn:
        assert sync.get_block(conn, "a")["embedding"] == embedding_to_bytes([0.123456, -7.0])


def test_what_does_not_fit_is_refused_before_anything_is_written(blocks: Blocks) -> None:
    insert(blocks, "a", [1.0, 0.0], "m")
    before = blocks.store.wal_seq()
    with pytest.raises(InvalidRecord, match='bound to "m" with 2 dimensions, not to "m" with 3'):
        insert(blocks, "b", [1.0, 0.0, 0.0], "m")
    assert blocks.store.wal_seq() == before


def test_names_of_spaces_on_disk_stay_what_they_are() -> None:
    """A name that changes would hide the vectors of every store that has been written."""
    assert SPACES.of("x" * 40) == "blocks." + "x" * 40
    assert SPACES.of("BAAI/bge-small-en-v1.5") == "blocks.BAAI-bge-small-en-v1.5-fd820408beaf"
    assert SPACES.of("x" * 41) == "blocks." + "x" * 40 + "-3164596df4fd"


def test_vectors_of_another_model_are_not_compared(blocks: Blocks) -> None:
    Memory(blocks, embedder=CallableEmbedder("one", angles), **REFERENCE_RULES).remember("Fact 0")
    other = Memory(blocks, embedder=CallableEmbedder("two", angles), **REFERENCE_RULES)
    assert [found.similarity for found in other.recall("about 360")] == [0.0]


def test_a_new_vector_replaces_the_old_one(blocks: Blocks) -> None:
    memory = Memory(blocks, embedder=CallableEmbedder("one", angles), **REFERENCE_RULES)
    block_id = memory.remember("Fact 0").block_id
    assert memory.recall("about 90")[0].similarity == pytest.approx(0.0, abs=1e-6)
    with blocks.begin() as conn:
        sync.update_block_scoring(conn, block_id, embedding=[0.0, 1.0])
    assert memory.recall("about 90")[0].similarity == pytest.approx(1.0)


def test_a_damaged_row_is_never_scored(tmp_path: Path) -> None:
    with open_blocks(tmp_path) as blocks:
        memory = Memory(blocks, embedder=CallableEmbedder("one", angles), **REFERENCE_RULES)
        memory.remember("Fact 0")
        assert memory.recall("about 360")[0].similarity == pytest.approx(1.0)
    (rows,) = (tmp_path / ".chronomemory" / "vectors").glob("*.f32")
    rows.write_bytes(np.array([0.5, 0.5], dtype="<f4").tobytes() + rows.read_bytes()[8:])
    with open_blocks(tmp_path) as blocks:
        memory = Memory(blocks, embedder=CallableEmbedder("one", angles), **REFERENCE_RULES)
        assert [found.similarity for found in memory.recall("about 360")] == [0.0]
        (by_words,) = memory.recall("about 0")
        assert by_words.similarity == pytest.approx(2 / 3.25)
        assert not blocks.store.verify().valid


def test_compaction_and_reopening_keep_them(tmp_path: Path) -> None:
    with open_blocks(tmp_path) as blocks:
        memory = Memory(blocks, embedder=CallableEmbedder("one", angles), **REFERENCE_RULES)
        for angle in range(0, 300, 30):
            memory.learn(f"Fact {angle}")
        memory.consolidate()
        before = memory.recall("about 100", top_k=9)
        blocks.store.compact()
        assert memory.recall("about 100", top_k=9) == before
    with open_blocks(tmp_path) as blocks:
        again = Memory(blocks, embedder=CallableEmbedder("one", angles), **REFERENCE_RULES)
        assert again.recall("about 100", top_k=9) == before


class TestABatchThatIsNotWritten:
    """Its embeddings are not either."""

    def test_because_another_writer_came_in_between(self, tmp_path: Path) -> None:
        with open_blocks(tmp_path) as mine, open_blocks(tmp_path) as yours:
            insert(mine, "a", [1.0, 0.0], "m")
            with pytest.raises(BatchConflict), mine.begin() as conn:
                sync.update_block_scoring(conn, "a", embedding=[0.0, 1.0], embedding_model="m")
                with yours.begin() as other:
                    sync.reinforce_blocks(other, ["a"], 1.0)
            with mine.connect() as conn:
                assert sync.get_block(conn, "a")["embedding"] == embedding_to_bytes([1.0, 0.0])

    def test_because_the_engine_refuses_it(self, blocks: Blocks) -> None:
        insert(blocks, "a", [1.0, 0.0], "m")
        with blocks.begin() as conn:
            sync.insert_block(conn, block_id="b", content="b", category="c", source="s", status="active")
            sync.insert_block(conn, block_id="c", content="c", category="c", source="s")
        with pytest.raises(InvalidRecord), blocks.begin() as conn:
            for block_id in "abc":
                sync.update_block_scoring(conn, block_id, embedding=[0.0, 1.0], embedding_model="m")
            conn.patch("block:a", {"data": {"note": math.nan}})
        with blocks.connect() as conn:
            found = [sync.get_block(conn, block_id)["embedding"] for block_id in "abc"]
        assert found == [embedding_to_bytes([1.0, 0.0]), None, None]
        assert blocks.store.vectors.get("block:b", space=SPACES.of("m")) is None
