"""A record behaves as a plain value."""

from __future__ import annotations

import copy
import pickle

import pytest
from chronomemory import ChronoRecord
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

FIELDS = [
    "id",
    "kind",
    "status",
    "label",
    "confidence",
    "source_type",
    "evidence",
    "epistemic_boundary",
    "is_hypothesis",
    "model_assumptions",
    "recursion_depth",
    "data",
]

FULL = ChronoRecord(
    "HYP-1",
    "hypothesis",
    "active",
    "a label",
    0.75,
    "inferred",
    ["a", "b"],
    ["lab only"],
    True,
    {"model": "m", "temperature": 0.0},
    2,
    {"deep": {"list": [1, 2.5, None, True, "x"]}},
)


class Note(BaseModel):
    record: ChronoRecord


def test_defaults_and_order_are_those_of_the_format() -> None:
    record = ChronoRecord()
    assert list(record.to_dict()) == FIELDS
    assert record.to_dict() == {
        "id": "",
        "kind": "fact",
        "status": "active",
        "label": "",
        "confidence": 0.7,
        "source_type": "observed",
        "evidence": [],
        "epistemic_boundary": [],
        "is_hypothesis": False,
        "model_assumptions": {},
        "recursion_depth": 0,
        "data": {},
    }


def test_records_share_no_containers() -> None:
    one, other = ChronoRecord(), ChronoRecord()
    one.evidence.append("x")
    one.data["x"] = 1
    assert other == ChronoRecord()
    told = FULL.to_dict()
    told["data"]["deep"]["list"].append("new")
    made = ChronoRecord.from_dict(told)
    told["evidence"].append("c")
    assert FULL.data == {"deep": {"list": [1, 2.5, None, True, "x"]}}
    assert made.evidence == ["a", "b"]


def test_dict_round_trip_ignores_unknown_keys_and_defaults_missing_ones() -> None:
    assert ChronoRecord.from_dict(FULL.to_dict()) == FULL
    assert ChronoRecord.from_dict({"id": "X", "colour": "red"}) == ChronoRecord(id="X")


def test_equality_repr_copy_and_pickle() -> None:
    assert ChronoRecord(id="A") == ChronoRecord(id="A") != ChronoRecord(id="B")
    assert "id='HYP-1'" in repr(FULL)
    assert eval(repr(FULL)) == FULL
    for twin in (copy.copy(FULL), copy.deepcopy(FULL), pickle.loads(pickle.dumps(FULL))):
        assert twin == FULL
        assert twin is not FULL
    assert copy.deepcopy(FULL).data is not FULL.data


@pytest.mark.parametrize(
    ("confidence", "status", "passes"),
    [(0.6, "active", True), (0.59, "active", False), (1.0, "tombstone", False)],
)
def test_prompts_get_only_active_and_believed_records(confidence: float, status: str, passes: bool) -> None:
    record = ChronoRecord(id="A", confidence=confidence, status=status)
    assert record.passes_rag_filter() is passes


def test_a_record_is_a_field_of_a_pydantic_model() -> None:
    assert Note(record=FULL).record == FULL
    dumped = Note(record=FULL).model_dump()
    assert dumped["record"] == FULL.to_dict()
    assert Note.model_validate(dumped).record == FULL
    assert Note.model_validate_json(Note(record=FULL).model_dump_json()).record == FULL
    with pytest.raises(ValidationError):
        Note.model_validate({"record": {"id": "A", "confidence": "high"}})


@given(
    st.builds(
        ChronoRecord,
        id=st.text(),
        confidence=st.floats(0, 1),
        evidence=st.lists(st.text()),
        data=st.dictionaries(st.text(), st.integers() | st.text()),
    )
)
def test_any_record_survives_dict_and_pickle(record: ChronoRecord) -> None:
    assert ChronoRecord.from_dict(record.to_dict()) == record
    assert pickle.loads(pickle.dumps(record)) == record
