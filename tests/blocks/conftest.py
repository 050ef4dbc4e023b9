"""What the tests of blocks share: blocks in memory, with and without what every store begins with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from chronomemory.blocks import Blocks, Memory, open_test_blocks, sync
from chronomemory.embedders import CallableEmbedder
from chronomemory.face.batch import Connection
from living import REFERENCE_RULES, Time, angles


@pytest.fixture
def blocks() -> Iterator[Blocks]:
    with open_test_blocks() as opened:
        yield opened


@pytest.fixture
def conn(blocks: Blocks) -> Iterator[Connection]:
    """One batch with the blocks a, b and c in it."""
    with blocks.begin() as batch:
        for name in "abc":
            sync.insert_block(
                batch, block_id=name, content=f"Block {name}", category="knowledge", source="test"
            )
        yield batch


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def memory(time: Time) -> Iterator[Memory]:
    """A memory with the rules of the reference system."""
    embedder = CallableEmbedder("angles", angles)
    with Memory(open_test_blocks(), embedder=embedder, seconds=time, **REFERENCE_RULES) as opened:
        yield opened
