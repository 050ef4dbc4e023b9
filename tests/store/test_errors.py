"""Every error can be caught as callers expect, and survives a trip between processes."""

from __future__ import annotations

import importlib
import inspect
import json
import pickle
import pkgutil
from collections.abc import Callable
from pathlib import Path

import chronomemory
import pytest
from chronomemory import errors
from chronomemory._core import canonical_json, event_hash
from chronomemory.blocks import Memory
from chronomemory.blocks.errors import BatchConflict, ConfigError
from chronomemory.embedders import CallableEmbedder, EndpointEmbedder, LexicalEmbedder

WITH_DETAILS = [
    errors.ChronoError("no", recovery="try again"),
    errors.StoreLocked("held by 7", recovery="wait"),
    errors.StoreClosed("closed", recovery="open it"),
    errors.StorePoisoned("sync failed", recovery="repair"),
    errors.FormatUnsupported("version 9", recovery="upgrade"),
    errors.LogCorrupted("bad line", path="events.wal", offset=10, seq=3, damage="altered", recovery="repair"),
    errors.InvalidArgument("k must be at least 0, got -1", field="k", path="k", recovery="use 0"),
    errors.InvalidRecord("out of range", field="confidence", recovery="use 0..1"),
    errors.RecordTooLarge("over 16 MiB", field="record", recovery="divide it"),
    errors.EmbeddingMismatch("another model", space="s", model="m", dim=3, recovery="name a space"),
    errors.UnknownSpace("no such", space="s", known=["default"], recovery="name another"),
    errors.Busy("rows keep being replaced", recovery="wait"),
    errors.Limit("2^32 rows", recovery="another space"),
    errors.HistoryUnavailable("compacted", first_seq=40, recovery="ask for 40 or later"),
]


@pytest.mark.parametrize("error", WITH_DETAILS, ids=lambda error: type(error).__name__)
def test_every_error_pickles_with_its_details(error: errors.ChronoError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)
    assert again.recovery


NAMES = sorted(
    name for name, value in vars(errors).items() if inspect.isclass(value) and issubclass(value, Exception)
)


@pytest.mark.parametrize("name", NAMES)
def test_every_error_needs_only_a_message(name: str) -> None:
    error = getattr(errors, name)("what happened")
    assert isinstance(error, errors.ChronoError)
    assert str(error) == "what happened"
    assert error.recovery


def every_error() -> list[type[errors.ChronoError]]:
    """All there are in the package, wherever they are."""
    for module in pkgutil.walk_packages(chronomemory.__path__, "chronomemory."):
        name = module.name.rpartition(".")[2]
        # What needs something that is not here, and the second verifier, which is a script.
        needing = ("__main__", "fast", "fast_tokens", "sentence_transformer")
        if name not in needing and ".verify_log." not in module.name:
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
    assert issubclass(errors.CallInProgress, RuntimeError)
    assert issubclass(errors.EmbeddingMismatch, ValueError)
    assert issubclass(ConfigError, ValueError)


def test_errors_say_what_a_caller_can_do() -> None:
    """Correct the call, wait, or go elsewhere: each has one name to catch."""
    for refused in (errors.InvalidRecord, errors.RecordTooLarge, errors.EmbeddingMismatch, ConfigError):
        assert issubclass(refused, errors.InvalidArgument)
    for delayed in (errors.StoreLocked, errors.WriteConflict, errors.CallInProgress, BatchConflict):
        assert issubclass(delayed, errors.Busy)
    assert issubclass(errors.RecordTooLarge, errors.Limit)
    assert issubclass(errors.RecordTooLarge, errors.InvalidRecord)
    assert not issubclass(errors.UnknownSpace, errors.InvalidArgument)


def test_a_path_is_the_field_unless_it_leads_further() -> None:
    assert errors.InvalidArgument("no", field="where").path == "where"
    assert errors.InvalidArgument("no", field="where", path="where.and[1]").path == "where.and[1]"
    assert errors.InvalidArgument("no").path is None


def test_every_error_is_offered_and_told_of() -> None:
    told = (Path(__file__).parents[2] / "docs" / "guide" / "records.md").read_text()
    own = {kind.__name__ for kind in every_error() if kind.__module__ == "chronomemory.errors"}
    assert own == set(NAMES)
    assert all(f"`{name}`" in told for name in own)
    at_the_root = {"ChronoError", "Conflict", "InvalidArgument", "InvalidRecord", "LogCorrupted"}
    assert own & set(chronomemory.__all__) == at_the_root | {"StoreLocked", "UnknownRecord"}


def test_a_callback_may_not_use_the_store_that_calls_it(tmp_path: Path) -> None:
    rows = tmp_path / "rows.ndjson"
    rows.write_text('{"id": "B"}\n')
    with chronomemory.ChronoStore(tmp_path) as store:
        store.upsert({"id": "A"})
        with pytest.raises(errors.CallInProgress, match="progress callback") as told:
            store.ingest(rows, progress=lambda *_: store.get("A"))
        assert isinstance(told.value, errors.Busy)


def test_a_log_that_is_full_is_no_newer_version(tmp_path: Path) -> None:
    with chronomemory.ChronoStore(tmp_path) as store:
        store.upsert({"id": "A"})
    log = tmp_path / ".chronomemory" / "events.wal"
    event = json.loads(log.read_bytes())
    event["seq"] = 2**63 - 1
    event["hash"] = event_hash(event)
    log.write_bytes(canonical_json(event) + b"\n")
    with pytest.warns(RuntimeWarning), chronomemory.ChronoStore(tmp_path) as store:
        with pytest.raises(errors.Limit, match="the largest there can be") as told:
            store.upsert({"id": "B"})
        assert "newer" not in told.value.recovery
