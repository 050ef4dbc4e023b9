"""Errors about a call name the method as the caller wrote it, and no class that callers do not know."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoStore, Memory
from chronomemory.blocks import Blocks
from chronomemory.episodes import Episodes, Facts
from chronomemory.store import Everyone, ScopedStore


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda store: store.record_count(5), "record_count()"),
        (lambda store: store.scoped(user="ann").get(), "Store.get()"),
        (lambda store: store.compact(1), "compact()"),
        (lambda store: store.upkeep.prune(1), "Upkeep.prune()"),
        (lambda store: store.stream(foo=1), "stream()"),
        (lambda store: store.query(foo=1), "query()"),
        (lambda store: store.search("x", foo=1), "search()"),
        (lambda store: store.everyone().history(), "history()"),
    ],
)
def test_a_wrong_call_of_a_store_names_its_method(
    store: ChronoStore, call: Callable[[Any], object], name: str
) -> None:
    with pytest.raises(TypeError) as wrong:
        call(store)
    assert str(wrong.value).startswith(name)


def test_a_wrong_call_of_a_memory_names_its_method(tmp_path: Path) -> None:
    with Memory(tmp_path) as memory, pytest.raises(TypeError, match=r"^recall\(\) got an unexpected"):
        memory.recall("x", foo=1)  # type: ignore[call-arg]


def test_no_public_method_is_named_after_an_internal_class() -> None:
    classes = (ChronoStore, ScopedStore, Everyone, Memory, Blocks, Episodes, Facts)
    known = {each.__name__ for each in classes}
    wrong = [
        method.__qualname__
        for each in classes
        for name, method in inspect.getmembers(each, inspect.isfunction)
        if not name.startswith("_") and method.__module__.startswith("chronomemory")
        if "." in method.__qualname__ and method.__qualname__.split(".")[0] not in known
    ]
    assert wrong == []
