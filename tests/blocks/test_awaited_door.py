"""Every verb of the memory can be awaited, with the same arguments."""

from __future__ import annotations

import inspect
from types import FunctionType

import pytest
from chronomemory.blocks import Memory, MemorySystem, queries, sync

#: What is not awaited, or is written out: it gives out the system, not the memory.
OWN = {"from_config", "guide", "session"}


def verbs(door: type) -> dict[str, FunctionType]:
    found = inspect.getmembers(door, inspect.isfunction)
    return {name: verb for name, verb in found if not name.startswith("_")}


def test_no_verb_is_missing_and_none_is_new() -> None:
    assert verbs(Memory).keys() == verbs(MemorySystem).keys()


@pytest.mark.parametrize("name", sorted(verbs(Memory).keys() - OWN))
def test_a_twin_says_what_the_plain_verb_says(name: str) -> None:
    plain, twin = getattr(Memory, name), getattr(MemorySystem, name)
    assert inspect.iscoroutinefunction(twin)
    assert inspect.signature(twin) == inspect.signature(plain)
    assert inspect.getdoc(twin) == inspect.getdoc(plain)
    assert (twin.__module__, twin.__qualname__) == (MemorySystem.__module__, f"MemorySystem.{name}")


@pytest.mark.parametrize("name", queries.__all__)
def test_so_does_a_storage_function(name: str) -> None:
    plain, twin = getattr(sync, name), getattr(queries, name)
    assert inspect.iscoroutinefunction(twin)
    assert inspect.signature(twin) == inspect.signature(plain)
    assert inspect.getdoc(twin) == inspect.getdoc(plain)
