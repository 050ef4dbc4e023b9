"""The shapes are those of the contract, and the stores fit the protocols."""

from __future__ import annotations

import copy
import inspect
import pickle
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoError
from chronomemory.episodes import (
    AddDelta,
    ChronoFactStore,
    ChronoMemoryStore,
    ConsolidationRule,
    ConsolidationRuleError,
    DeleteDelta,
    Episode,
    FactConflictError,
    FactPattern,
    FactStore,
    MemoryDelta,
    MemoryScopeError,
    MemoryStore,
    MigrationNotSupported,
    NoopDelta,
    StoreError,
    UpdateDelta,
    open_memory_store,
)
from pydantic import TypeAdapter, ValidationError

WHOLE: dict[str, Any] = {
    "source_episode_ids": ["e1"],
    "promotion_ts": datetime(2026, 5, 18, tzinfo=timezone.utc),
    "rule_id": "r",
    "confidence": 0.5,
}
KINDS: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "add": (AddDelta, {"fact_payload": {}}),
    "update": (UpdateDelta, {"fact_payload": {}, "replaces": ["f"]}),
    "delete": (DeleteDelta, {"replaces": ["f"]}),
    "noop": (NoopDelta, {}),
}


def test_the_stores_are_what_the_protocols_say(tmp_path: Path) -> None:
    assert isinstance(ChronoMemoryStore(tmp_path), MemoryStore)
    assert isinstance(ChronoFactStore(tmp_path), FactStore)
    memory: MemoryStore = ChronoMemoryStore(tmp_path)
    facts: FactStore = ChronoFactStore(tmp_path)
    assert memory is not facts


@pytest.mark.parametrize(
    ("verb", "names"),
    [
        ("put", ["episode", "user", "session", "agent"]),
        ("recent", ["user", "session", "agent", "limit"]),
        ("consolidate", ["rule"]),
        ("migrate", ["plan"]),
        ("bootstrap", []),
        ("health", []),
    ],
)
def test_parameters_are_called_as_in_the_contract(tmp_path: Path, verb: str, names: list[str]) -> None:
    found = inspect.signature(getattr(ChronoMemoryStore(tmp_path), verb)).parameters
    assert list(found)[: len(names)] == names
    assert all(found[name].default is not inspect.Parameter.empty for name in list(found)[len(names) :])


@pytest.mark.parametrize("kind", KINDS)
def test_a_delta_is_told_by_its_kind(kind: str) -> None:
    model, own = KINDS[kind]
    adapter: TypeAdapter[Any] = TypeAdapter(MemoryDelta)
    made = adapter.validate_python({"kind": kind, **WHOLE, **own})
    assert type(made) is model
    assert adapter.validate_json(adapter.dump_json(made)) == made


@pytest.mark.parametrize("kind", KINDS)
def test_no_field_of_a_delta_has_a_default(kind: str) -> None:
    model, own = KINDS[kind]
    given = {"kind": kind, **WHOLE, **own}
    for name in given:
        with pytest.raises(ValidationError):
            model(**{other: value for other, value in given.items() if other != name})
    with pytest.raises(ValidationError):
        model(**given, unheard_of=1)
    with pytest.raises(ValidationError):
        model(**{**given, "source_episode_ids": "e1"})


def test_an_unknown_kind_is_no_delta() -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(MemoryDelta).validate_python({"kind": "merge", **WHOLE})


def test_defaults_are_where_the_contract_has_them() -> None:
    moment = datetime(2026, 5, 18, tzinfo=timezone.utc)
    names = {"id": "e", "content": "c", "source_node": "n", "agent": "a", "user": "u", "session": "s"}
    assert Episode(timestamp=moment, **names).metadata == {}  # type: ignore[arg-type]
    assert FactPattern() == FactPattern(subject=None, user=None, channel=None)
    with pytest.raises(ValidationError):
        ConsolidationRule(id="r", cadence={}, when_filter="")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "error",
    [
        StoreError("so"),
        MigrationNotSupported(store="episodes", operation="drop", reason="v1-add-column-only"),
        MemoryScopeError(scope="user=a", operation="put", violation="no"),
        ConsolidationRuleError(rule_id="r", delta_type="add", violation="no", episode_ids=["e"]),
        FactConflictError(fact_id="f", operation="unpin"),
    ],
)
def test_an_error_says_what_to_do_and_survives_a_journey(error: StoreError) -> None:
    assert isinstance(error, ChronoError)
    assert error.message == str(error) != ""
    assert error.recovery
    for arrived in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(arrived) is type(error)
        assert (arrived.message, arrived.context, arrived.recovery) == (
            error.message,
            error.context,
            error.recovery,
        )


def test_a_wiring_names_a_folder(tmp_path: Path) -> None:
    assert open_memory_store(f"chrono:{tmp_path}/m").store.project_root == tmp_path / "m"
    assert open_memory_store("chrono:./.memory").store.project_root == Path(".memory").absolute()
    for url in ("sqlite:./.memory", "chrono:", "chrono", "", ":x"):
        with pytest.raises(ValueError, match="url must be"):
            open_memory_store(url)


def test_a_constructor_touches_nothing(tmp_path: Path) -> None:
    ChronoMemoryStore(tmp_path / "a" / "b")
    ChronoFactStore(tmp_path / "a" / "b")
    assert list(tmp_path.iterdir()) == []
