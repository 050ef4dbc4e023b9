"""Can every error be caught as callers expect, and does it survive a trip between processes?"""

from __future__ import annotations

import importlib
import pickle
import pkgutil
from collections.abc import Callable
from pathlib import Path

import chronomemory
import pytest
from chronomemory import errors
from chronomemory.blocks import Memory
from chronomemory.embedders import CallableEmbedder, EndpointEmbedder, LexicalEmbedder

WITH_DETAILS = [
    errors.ChronoError("no", recovery="try again"),
    errors.StoreLocked("held by 7", recovery="wait"),
    errors.StoreClosed("closed", recovery="open it"),
    errors.StorePoisoned("sync failed", recovery="repair"),
    errors.FormatUnsupported("version 9", recovery="upgrade"),
    errors.LogCorrupted("bad line", path="events.wal", offset=10, seq=3, damage="altered", recovery="repair"),
    errors.InvalidRecord("out of range", field="confidence", recovery="use 0..1"),
    errors.HistoryUnavailable("compacted", first_seq=40, recovery="ask for 40 or later"),
]


@pytest.mark.parametrize("error", WITH_DETAILS, ids=lambda error: type(error).__name__)
def test_every_error_pickles_with_its_details(error: errors.ChronoError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)
    assert again.recovery


@pytest.mark.parametrize("name", errors.__all__)
def test_every_error_needs_only_a_message(name: str) -> None:
    error = getattr(errors, name)("what happened")
    assert isinstance(error, errors.ChronoError)
    assert str(error) == "what happened"
    assert error.recovery


def every_error() -> list[type[errors.ChronoError]]:
    """All there are in the package, wherever they are."""
    for module in pkgutil.walk_packages(chronomemory.__path__, "chronomemory."):
        if module.name.rpartition(".")[2] not in ("__main__", "fast", "sentence_transformer"):
            importlib.import_module(module.name)
    found, waiting = [], [errors.ChronoError]
    while waiting:
        found.append(waiting.pop())
        waiting += found[-1].__subclasses__()
    return [kind for kind in found if kind.__module__.startswith("chronomemory.")]


@pytest.mark.parametrize("kind", every_error(), ids=lambda kind: kind.__name__)
def test_every_error_says_what_to_do_next(kind: type[errors.ChronoError]) -> None:
    recovery = kind("what happened").recovery
    assert recovery.endswith(".")
    assert recovery[0].isupper()
    assert kind is errors.ChronoError or recovery != errors.ChronoError.usual_recovery
    assert kind("what happened", recovery="Do this.").recovery == "Do this."
    assert pickle.loads(pickle.dumps(kind("what happened"))).recovery == recovery


def test_what_blocks_refuse_is_told_with_what_to_do(tmp_path: Path) -> None:
    """No bare ValueError: what is refused is an error of this package that callers catch as they used to."""
    with Memory(tmp_path) as memory:
        calls: list[Callable[[], object]] = [
            lambda: memory.learn(""),
            lambda: memory.learn("x", tags="work"),
            lambda: memory.recall("x", top_k=0),
            lambda: memory.outcome([], 2.0),
            lambda: memory.outcome(["a"], 1.0, 0.0),
            lambda: memory.connect("a", "a"),
            lambda: memory.learn_document("x", chunk_size=0),
            lambda: Memory(tmp_path, top_k=0),
            lambda: CallableEmbedder("", list),
            lambda: LexicalEmbedder(0),
            lambda: EndpointEmbedder("m", base_url="nowhere"),
        ]
        for call in calls:
            with pytest.raises(errors.ChronoError) as told:
                call()
            assert isinstance(told.value, ValueError)
            assert told.value.recovery.endswith(".")


def test_errors_are_what_callers_already_catch() -> None:
    assert issubclass(errors.StoreLocked, TimeoutError)
    assert issubclass(errors.InvalidRecord, ValueError)
    assert issubclass(errors.HistoryUnavailable, LookupError)
