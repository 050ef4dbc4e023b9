"""What a where means: plain lines against which the engine is held, and random records and wheres."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

MISSING = object()
DEFAULTS = {"kind": "fact", "status": "active", "label": "", "confidence": 0.7, "evidence": [], "data": {}}


def kind_of(value: Any) -> str:
    names = {bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}
    return "null" if value is None else names[type(value)]


def same(one: Any, other: Any) -> bool:
    if kind_of(one) != kind_of(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return exact(one) == exact(other)


def exact(value: Any) -> Any:
    """A number is what it is: a float from 2**53 on is an integer, mostly not the one it is spelled as."""
    return Decimal(value) if kind_of(value) == "number" else value


def ordered(held: Any, operand: Any) -> int | None:
    if kind_of(held) != kind_of(operand):
        return None
    one, other = exact(held), exact(operand)
    return (one > other) - (one < other)


def like(pattern: str, text: str) -> bool:
    parts = re.findall(r"\\.|[^\\]", pattern, re.DOTALL)
    spelled = "".join({"%": ".*", "_": "."}.get(part, re.escape(part[-1])) for part in parts)
    return re.fullmatch(spelled, text, re.DOTALL) is not None


def field(record: dict[str, Any], path: str) -> Any:
    root, *steps = re.split(r"(?<!\\)\.", path)
    held = record.get(root, DEFAULTS.get(root, MISSING))
    if root == "tags":
        held = record["data"].get("tags", MISSING)
        held = sorted(held) if isinstance(held, dict) else held
    for step in steps:
        held = held.get(step.replace("\\.", "."), MISSING) if isinstance(held, dict) else MISSING
    return held


def passes(held: Any, op: str, operand: Any) -> bool:
    if op == "ne":
        return not passes(held, "eq", operand)
    if held is MISSING or op == "exists":
        return op == "exists" and operand is (held is not MISSING)
    order = ordered(held, operand) if op in ("gt", "gte", "lt", "lte") else None
    return {
        "eq": lambda: same(held, operand),
        "in": lambda: any(same(held, one) for one in operand),
        "gt": lambda: order is not None and order > 0,
        "gte": lambda: order is not None and order >= 0,
        "lt": lambda: order is not None and order < 0,
        "lte": lambda: order is not None and order <= 0,
        "starts": lambda: isinstance(held, str) and held.startswith(operand),
        "like": lambda: isinstance(held, str) and like(operand, held),
        "any": lambda: isinstance(held, list) and any(same(one, two) for one in operand for two in held),
        "all": lambda: isinstance(held, list) and all(any(same(one, two) for two in held) for one in operand),
        "under": lambda: isinstance(held, list) and same(held[: len(operand)], operand),
        "type": lambda: kind_of(held) in ([operand] if isinstance(operand, str) else operand),
    }[op]()


def holds(where: dict[str, Any], record: dict[str, Any]) -> bool:
    def one(key: str, value: Any) -> bool:
        if key in ("and", "or"):
            return (all if key == "and" else any)(holds(inner, record) for inner in value)
        if key == "not":
            return not holds(value, record)
        held = field(record, key)
        tests = value if isinstance(value, dict) else {"eq": value}
        return all(passes(held, op, operand) for op, operand in tests.items())

    return all(one(key, value) for key, value in where.items())


# What random records and wheres are made of: few values, so that they meet, and the spellings that differ.
NUMBERS = st.sampled_from(
    [
        0,
        -0.0,
        1,
        1.0,
        -1,
        1.5,
        2,
        10,
        2**53,
        2**53 + 1,
        float(2**53),
        10**22,
        1e22,
        1e-7,
        -(10**30),
        -1e30,
        2.0**63,
        2**63,
        2**63 + 1,
    ]
)
TEXTS = st.sampled_from(
    ["", "a", "A", "ab", "abc", "b", "é", "e\u0301", "😀", "a\nb", "a\u0000", "100%", "a_b", "\\", '"', "1"]
)
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b.c", "é"]), inner, max_size=2)
    ),
    max_leaves=4,
)
PATHS = st.sampled_from(
    ["data.x", "data.y", "data.z.a", "data.z.b\\.c", "data.z", "data", "data.x.a", "tags", "data.tags"]
) | st.sampled_from(["kind", "status", "label", "confidence", "evidence"])
TYPES = st.sampled_from(["number", "string", "bool", "null", "array", "object"])
PATTERNS = st.text(st.sampled_from("%_ab\u00e9"), max_size=5) | st.sampled_from(
    ["100\\%", "a\\_b", "\\\\", "%"]
)
TESTS = st.one_of(
    SCALARS,
    st.fixed_dictionaries({}, optional={"eq": VALUES, "ne": VALUES}).filter(bool),
    st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(("gt", "gte", "lt", "lte"), NUMBERS | TEXTS),
    ).filter(bool),
    *(
        st.fixed_dictionaries({op: operands})
        for op, operands in {
            "in": st.lists(VALUES, max_size=6),
            "any": st.lists(VALUES, max_size=6),
            "all": st.lists(VALUES, max_size=3),
            "under": st.lists(VALUES, max_size=2),
            "starts": TEXTS,
            "like": PATTERNS,
            "type": TYPES | st.lists(TYPES, min_size=1, max_size=3),
            "exists": st.booleans(),
        }.items()
    ),
)
WHERES = st.recursive(
    st.dictionaries(PATHS, TESTS, max_size=3),
    lambda inner: st.one_of(
        st.fixed_dictionaries({"and": st.lists(inner, max_size=3)}),
        st.fixed_dictionaries({"or": st.lists(inner, max_size=3)}),
        st.fixed_dictionaries({"not": inner}),
    ),
    max_leaves=5,
)
TAGS = st.lists(TEXTS, max_size=3) | st.dictionaries(TEXTS, st.just(1), max_size=3) | SCALARS
DATA = st.fixed_dictionaries({}, optional={"x": VALUES, "y": VALUES, "z": VALUES, "tags": TAGS})
RECORDS = st.fixed_dictionaries(
    {"data": DATA},
    optional={
        "kind": st.sampled_from(["fact", "note", "a"]),
        "status": st.sampled_from(["active", "a", "tombstone"]),
        "label": TEXTS,
        "confidence": st.sampled_from([0.0, 0.5, 0.7, 1.0]),
        "evidence": st.lists(TEXTS, max_size=2),
    },
)
