"""Do the examples in the documentation of the modules run?"""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest
from chronomemory import deps, record, store
from chronomemory.blocks import engine, explain, graph, ids, memory, system, types
from chronomemory.embedders import calling, lexical

BLOCKS = [engine, explain, graph, ids, memory, system, types]


@pytest.mark.parametrize(
    "module", [record, deps, store, *BLOCKS, calling, lexical], ids=lambda module: module.__name__
)
def test_the_examples_of_a_module(module: ModuleType) -> None:
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
