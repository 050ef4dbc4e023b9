"""An event says what its line says, read lazily or made by hand."""

from __future__ import annotations

import copy
import gc
import hashlib
import json
import pickle
import weakref
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoRecord, ChronoStore, WalEvent
from chronomemory import store as store_module
from hypothesis import given
from hypothesis import strategies as st

VALUES: dict[str, Any] = {
    "seq": 7,
    "ts": "2026-01-02T03:04:05.000006Z",
    "op": "upsert",
    "record_id": "A",
    "record": {"id": "A", "label": "grüß dich", "confidence": 1e-05},
    "prev_hash": "ab" * 32,
    "hash": "",
    "recursion_depth": 1,
}
NAMES = list(VALUES)

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def payload_hash(values: dict[str, Any]) -> str:
    payload = {name: value for name, value in values.items() if name != "hash"}
    text = json.dumps(payload, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def sealed(**changes: Any) -> WalEvent:
    event = WalEvent(**{**VALUES, **changes})
    event.hash = event.compute_hash()
    return event


def test_the_store_module_offers_events_and_records_too() -> None:
    assert store_module.WalEvent is WalEvent
    assert store_module.ChronoRecord is ChronoRecord


def test_fields_by_position_by_name_and_by_default() -> None:
    assert WalEvent(*VALUES.values()) == WalEvent(**VALUES)
    empty = WalEvent()
    assert [getattr(empty, name) for name in NAMES] == [0, "", "upsert", "", None, "", "", 0]


def test_the_hash_is_that_of_the_canonical_payload() -> None:
    event = WalEvent(**VALUES)
    assert event.compute_hash() == payload_hash(VALUES)
    assert event.hash == ""


def test_our_line_is_the_payload_with_its_hash_in_front() -> None:
    event = sealed()
    line = event.to_json_line()
    assert line.startswith(f'{{"hash":"{event.hash}",')
    assert hashlib.sha256(b"{" + line.encode()[75:]).hexdigest() == event.hash
    assert WalEvent.from_json_line(line) == event
    assert "\n" not in line


def test_careless_line_ends_are_escaped_in_the_line_but_not_in_the_hash() -> None:
    event = sealed(record={"id": "A", "label": "a\x85b\u2028c\u2029d"})
    assert len(event.to_json_line().splitlines()) == 1
    assert "\\u2028" in event.to_json_line()
    assert WalEvent.from_json_line(event.to_json_line()) == event
    assert event.hash == payload_hash({**VALUES, "record": event.record})


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_lines_of_either_dialect_are_read(separators: tuple[str, str], end: str) -> None:
    line = json.dumps({**VALUES, "more": 1}, separators=separators, ensure_ascii=False) + end
    assert WalEvent.from_json_line(line) == WalEvent(**VALUES)
    assert WalEvent.from_json_line(line.encode()) == WalEvent(**VALUES)


@pytest.mark.parametrize("name", NAMES)
def test_a_line_without_a_field_is_no_event(name: str) -> None:
    line = json.dumps({key: value for key, value in VALUES.items() if key != name})
    with pytest.raises(ValueError, match=name):
        WalEvent.from_json_line(line)


@pytest.mark.parametrize("line", ["", "nonsense", "[1]", "7", '{"seq": NaN}'])
def test_what_is_no_object_is_no_event(line: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        WalEvent.from_json_line(line)


def test_an_event_of_the_log_is_read_at_the_first_look() -> None:
    event = WalEvent._of_line(b"nonsense")
    with pytest.raises(ValueError, match="not a value"):
        _ = event.seq
    event = WalEvent._of_line(sealed().to_json_line().encode())
    assert (event.op, event.seq) == ("upsert", 7)
    assert event == sealed()
    with pytest.raises(AttributeError, match="colour"):
        _ = event.colour  # type: ignore[attr-defined]


def test_an_event_is_no_key() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(sealed())


class _Watched(dict[str, Any]):
    """A dict that can be watched."""


def test_an_event_in_a_circle_is_let_go() -> None:
    event = sealed()
    event.record = _Watched(event=event)
    watched = weakref.ref(event.record)
    del event
    gc.collect()
    assert watched() is None


def test_a_field_set_before_the_line_was_read_stays_set() -> None:
    event = WalEvent._of_line(sealed().to_json_line().encode())
    event.seq = 99
    assert event.ts == VALUES["ts"]
    assert event.seq == 99


def test_equality_repr_copy_and_pickle() -> None:
    lazy = WalEvent._of_line(sealed().to_json_line().encode())
    assert pickle.loads(pickle.dumps(lazy)) == sealed()
    assert copy.deepcopy(lazy) == lazy == copy.copy(lazy)
    assert eval(repr(lazy)) == lazy
    assert lazy != sealed(seq=8)
    assert lazy != "something else"


def test_what_a_write_returns_is_the_line_in_the_log(store: ChronoStore, log: Path) -> None:
    events = [store.upsert(ChronoRecord(id="A", label="\u2028")), store.delete("A")]
    lines = log.read_bytes().split(b"\n")[:-1]
    assert [event.to_json_line().encode() for event in events] == lines
    assert [event.compute_hash() for event in events] == [event.hash for event in events]
    assert events[1].prev_hash == events[0].hash
    assert events[1].record == {"id": "A", "status": "tombstone"}


@given(record=st.dictionaries(st.text(), JSON_VALUES, max_size=4), seq=st.integers(0, 2**63 - 1))
def test_any_event_survives_its_line(record: dict[str, Any], seq: int) -> None:
    event = sealed(record=record, seq=seq)
    assert event.hash == payload_hash({**VALUES, "record": record, "seq": seq})
    again = WalEvent.from_json_line(event.to_json_line())
    assert again == event
    assert again.compute_hash() == event.hash
