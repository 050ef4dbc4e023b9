"""The shapes of this face are what they say, and their bytes stay the same."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from chronomemory.graph import (
    Action,
    ActivationPlan,
    Approval,
    Edge,
    MemoryEvent,
    MemoryPath,
    ModelError,
    Node,
    Profile,
)
from chronomemory.graph.models import Model
from chronomemory.graph.view import file_name, line_of, page_of
from hypothesis import given, settings
from hypothesis import strategies as st
from workbench import START, TS

EACH: list[Model] = [
    Profile("p", "Ann", {"a": [1, 2.5, None]}),
    Node("n", "kind", "label", {"a": {"b": "ü"}}, "stable"),
    Edge("e", "a", "b", "knows"),
    MemoryPath("x", "y", ("e1", "e2"), False, "z", None, {"events": 2}),
    MemoryEvent("e", "said", TS, "x", ("n",), {"k": True}),
    ActivationPlan("l", "p", ("n",)),
    Action("a", "put_node", "n", {"kind": "k"}),
    Approval("a", "ann", "0" * 64, "fine"),
]


@pytest.mark.parametrize("item", EACH, ids=lambda item: item.called)
def test_what_is_written_down_comes_back(item: Model) -> None:
    fields = item.to_dict()
    assert type(item).from_dict(json.loads(json.dumps(fields))) == item


@pytest.mark.parametrize("item", EACH, ids=lambda item: item.called)
def test_a_field_too_much_and_one_too_few_are_named(item: Model) -> None:
    with pytest.raises(ModelError, match="there is no field 'wrong'") as refused:
        type(item).from_dict({**item.to_dict(), "wrong": 1})
    assert refused.value.field == "wrong"
    first = next(iter(item.to_dict()))
    with pytest.raises(ModelError, match=first):
        type(item).from_dict({name: value for name, value in item.to_dict().items() if name != first})


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: Node("", "k"), "id"),
        (lambda: Node("a", ""), "kind"),
        (lambda: Node("a", 3), "kind"),  # type: ignore[arg-type]
        (lambda: Node("a\ud800", "k"), "id"),
        (lambda: Node("a", "k", data={"x": float("nan")}), "data"),
        (lambda: Node("a", "k", data=[1]), "data"),  # type: ignore[arg-type]
        (lambda: Node("a", "k", phase=""), "phase"),
        (lambda: MemoryEvent("e", "k", "yesterday"), "ts"),
        (lambda: MemoryEvent("e", "k", "2026-01-01T00:00:00"), "ts"),
        (lambda: MemoryEvent("e", "k", TS, refs="abc"), "refs"),  # type: ignore[arg-type]
        (lambda: MemoryPath("p", event_ids=("",)), "event_ids"),
        (lambda: MemoryPath("p", active=1), "active"),  # type: ignore[arg-type]
        (lambda: Action("a", "explode", "n"), "op"),
    ],
)
def test_what_cannot_be_is_refused(make: object, field: str) -> None:
    with pytest.raises(ModelError) as refused:
        make()  # type: ignore[operator]
    assert refused.value.field == field


def test_a_moment_may_be_a_datetime() -> None:
    assert MemoryEvent("e", "k", START).ts == TS  # type: ignore[arg-type]


def test_a_digest_is_of_the_whole_action() -> None:
    action = Action("a", "delete_node", "n", {"edges": True})
    others = [
        replace(action, id="b"),
        replace(action, op="delete_edge"),
        replace(action, target="m"),
        replace(action, payload={}),
        replace(action, requires_review=True),
    ]
    assert len({action.digest, *(other.digest for other in others)}) == 6
    assert action.digest == Action("a", "delete_node", "n", {"edges": True}).digest
    approval = Approval.of(action, "ann")
    assert approval.covers(action)
    assert not any(approval.covers(other) for other in others)


@settings(deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), unique=True, max_size=20))
def test_no_two_ids_have_the_same_file_on_any_file_system(ids: list[str]) -> None:
    names = [file_name(one) for one in ids]
    assert len({name.casefold() for name in names}) == len(ids)
    for name in names:
        assert name.isascii()
        assert len(name) <= 200
        assert not set(name.removesuffix(".json")) & set('/\\:*?"<>|. \x00')


def test_long_ids_are_cut_and_told_apart() -> None:
    one, other = "ü" * 300 + "a", "ü" * 300 + "b"
    assert file_name(one) != file_name(other)
    assert len(file_name(one)) <= 200


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=4), JSON, max_size=4))
def test_a_page_is_spelled_as_python_would(value: dict[str, object]) -> None:
    spelled = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)
    assert page_of(value) == spelled.encode("utf-8", "surrogatepass") + b"\n"


def test_the_bytes_of_a_page_and_of_a_line() -> None:
    value = {"b": "ü\u2028\x85", "a": [1.0, 1e16]}
    assert page_of(value) == '{\n  "a": [\n    1.0,\n    1e+16\n  ],\n  "b": "ü\u2028\x85"\n}\n'.encode()
    assert line_of(value) == '{"a":[1.0,1e+16],"b":"ü\\u2028\\u0085"}\n'.encode()
    assert json.loads(line_of(value)) == value


@pytest.mark.parametrize("bad", ["a\x00b", "a\nb", "a\u202eb"])
def test_an_id_with_invisible_characters_is_refused(bad: str) -> None:
    for make in (
        lambda: Node(bad, "k"),
        lambda: Edge("e", "a", bad, "k"),
        lambda: MemoryPath("p", event_ids=(bad,)),
        lambda: Action("a", "delete_node", bad),
        lambda: MemoryEvent(bad, "k", TS),
    ):
        with pytest.raises(ModelError, match=r"invisible character U\+"):
            make()
