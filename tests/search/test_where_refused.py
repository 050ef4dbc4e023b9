"""A where that says nothing is refused with its place and in words that help, before anything is done."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pytest
from chronomemory import ChronoStore
from chronomemory.errors import InvalidArgument

NO_FIELD = "no such field; fields of your own begin with data."
OBJECT = 'for an object write {"eq": {…}}'
MOMENT = 'a moment such as "2026-05-18T09:00:00Z" expected, got '
NO_ZONE = "has no time zone; write Z or an offset behind it"
TYPES = "the types are number, string, bool, null, array, object"
ONLY_MOMENTS = "is a moment; use eq, ne, in, gt, gte, lt, lte or exists"
NAN, INFINITE = float("nan"), float("inf")
X = 'where."data.x"'


def nested(levels: int) -> Any:
    where: Any = {}
    for _ in range(levels):
        where = {"not": where}
    return where


def listed(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


#: What is wrong, where, and the words for it.
REFUSED: list[tuple[Any, str, str]] = [
    # A where is an object.
    (5, "where", "an object expected, got 5"),
    ("kind", "where", 'an object expected, got "kind"'),
    ([], "where", "an object expected, got an empty list"),
    ([{}], "where", "an object expected, got a list"),
    (True, "where", "an object expected, got true"),
    (1.5, "where", "an object expected, got 1.5"),
    ({"and": {}}, "where.and", "a list of objects expected, got an object"),
    ({"and": 1}, "where.and", "a list of objects expected, got 1"),
    ({"or": None}, "where.or", "a list of objects expected, got null"),
    ({"or": "x"}, "where.or", 'a list of objects expected, got "x"'),
    ({"and": [{}, 1]}, "where.and[1]", "an object expected, got 1"),
    ({"and": [{}, {"or": [None]}]}, "where.and[1].or[0]", "an object expected, got null"),
    ({"not": []}, "where.not", "an object expected, got an empty list"),
    ({"not": [{}]}, "where.not", "an object expected, got a list"),
    ({"not": {"not": "x"}}, "where.not.not", 'an object expected, got "x"'),
    # Paths.
    ({"dat.x": 1}, 'where."dat.x"', NO_FIELD),
    ({"": 1}, 'where.""', NO_FIELD),
    ({"x": {"gt": 1}}, 'where."x"', NO_FIELD),
    ({"AND": []}, 'where."AND"', NO_FIELD),
    ({"Data.x": 1}, 'where."Data.x"', NO_FIELD),
    ({" data.x": 1}, 'where." data.x"', NO_FIELD),
    ({".data": 1}, 'where.".data"', NO_FIELD),
    ({"eq": 1}, 'where."eq"', NO_FIELD),
    ({"user": "ann"}, 'where."user"', NO_FIELD),
    ({"version": "x"}, 'where."version"', NO_FIELD),
    ({"$and": []}, 'where."$and"', 'no such field; write "and"'),
    ({"updated": "2026-05-18T09:00:00Z"}, 'where."updated"', 'no such field; write "updated_at"'),
    ({"and": [{"or": [{"y.z": 1}]}]}, 'where.and[0].or[0]."y.z"', NO_FIELD),
    ({"data.": 1}, 'where."data."', "an empty name; where a key is empty, write"),
    ({"data..x": 1}, 'where."data..x"', "an empty name; where a key is empty, write"),
    ({"data.a\\b": 1}, 'where."data.a\\\\b"', "\\b is no escape; write \\\\ for a backslash"),
    ({"data.a\\": 1}, 'where."data.a\\\\"', "ends in an escape; write \\\\ for a backslash"),
    ({"data.😀\\😀": 1}, 'where."data.😀\\\\😀"', "\\😀 is no escape; write \\\\ for a backslash"),
    ({"path": "data.x", "eq": 1}, "where.path", 'a list of names expected, got "data.x"'),
    ({"path": [], "eq": 1}, "where.path", "a list of names expected, got an empty list"),
    ({"path": {"data": 1}, "eq": 1}, "where.path", "a list of names expected, got an object"),
    ({"path": ["data", 1], "eq": 1}, "where.path[1]", "text expected, got 1"),
    ({"path": [None], "eq": 1}, "where.path[0]", "text expected, got null"),
    ({"path": ["dat", "x"], "eq": 1}, "where.path", NO_FIELD),
    ({"path": ["data.x"], "eq": 1}, "where.path", NO_FIELD),
    ({"path": ["data", "x"]}, "where", f"no operator; {OBJECT}"),
    ({"path": ["data", "x"], "kind": "a"}, "where", f'unknown operator "kind"; {OBJECT}'),
    ({"path": ["data", "x"], "gt": []}, "where.gt", "an empty list has no order; use eq, ne or in"),
    # Operators.
    ({"data.x": {"a": 1}}, X, f'unknown operator "a"; {OBJECT}'),
    ({"data.x": {}}, X, f"no operator; {OBJECT}"),
    ({"data.x": {"$gt": 1}}, X, 'unknown operator "$gt"; write "gt"'),
    ({"data.x": {"$gte": 1}}, X, 'unknown operator "$gte"; write "gte"'),
    ({"data.x": {">=": 1}}, X, 'unknown operator ">="; write "gte"'),
    ({"data.x": {"GT": 1}}, X, 'unknown operator "GT"; write "gt"'),
    ({"data.x": {"$nin": [1]}}, X, 'unknown operator "$nin"; write {"not": {field: {"in": […]}}}'),
    ({"data.x": {"between": [1, 2]}}, X, 'unknown operator "between"; write {"gte": …, "lte": …}'),
    (
        {"data.x": {"contains": "a"}},
        X,
        'unknown operator "contains"; for a list write {"any": […]}, for a text {"like": "%…%"}',
    ),
    ({"data.x": {"startswith": "a"}}, X, 'unknown operator "startswith"; write "starts"'),
    ({"data.x": {"eq": 1, "not": {}}}, X, f'unknown operator "not"; {OBJECT}'),
    ({"data.x": {"": 1}}, X, f'unknown operator ""; {OBJECT}'),
    ({"data.x": {"moment": "x", "y": 1}}, X, f'unknown operator "moment"; {OBJECT}'),
    ({"data.x": [1]}, X, 'a list needs an operator; write {"in": […]} or {"eq": […]}'),
    ({"tags": []}, 'where."tags"', 'a list needs an operator; write {"in": […]} or {"eq": […]}'),
    # Orders.
    (
        {"and": [{}, {"data.age": {"gt": True}}]},
        'where.and[1]."data.age".gt',
        "true has no order; use eq, ne or in",
    ),
    ({"data.x": {"gt": None}}, f"{X}.gt", "null has no order; use eq, ne or in"),
    ({"data.x": {"gte": [1]}}, f"{X}.gte", "a list has no order; use eq, ne or in"),
    ({"data.x": {"lt": {"a": 1}}}, f"{X}.lt", "an object has no order; use eq, ne or in"),
    ({"data.x": {"lte": False}}, f"{X}.lte", "false has no order; use eq, ne or in"),
    ({"created_at": {"gt": True}}, 'where."created_at".gt', "true has no order; use eq, ne or in"),
    # Texts.
    ({"data.x": {"starts": 1}}, f"{X}.starts", "text expected, got 1"),
    ({"data.x": {"starts": None}}, f"{X}.starts", "text expected, got null"),
    ({"data.x": {"starts": ["a"]}}, f"{X}.starts", "text expected, got a list"),
    ({"data.x": {"like": 1.5}}, f"{X}.like", "text expected, got 1.5"),
    ({"data.x": {"like": {}}}, f"{X}.like", "text expected, got an object"),
    ({"data.x": {"like": "a\\"}}, f"{X}.like", "ends in an escape; write \\\\ for a backslash"),
    ({"data.x": {"like": "%\\\\\\"}}, f"{X}.like", "ends in an escape; write \\\\ for a backslash"),
    # Lists.
    ({"data.x": {"in": 1}}, f"{X}.in", "a list expected, got 1"),
    ({"data.x": {"in": "abc"}}, f"{X}.in", 'a list expected, got "abc"'),
    ({"data.x": {"in": {"a": 1}}}, f"{X}.in", "a list expected, got an object"),
    ({"data.x": {"any": None}}, f"{X}.any", "a list expected, got null"),
    ({"tags": {"any": "a"}}, 'where."tags".any', 'a list expected, got "a"'),
    ({"tags": {"all": "a"}}, 'where."tags".all', 'a list expected, got "a"'),
    ({"data.x": {"under": True}}, f"{X}.under", "a list expected, got true"),
    ({"data.x": {"under": "a/b"}}, f"{X}.under", 'a list expected, got "a/b"'),
    ({"data.x": {"in": [1] * 10_001}}, f"{X}.in", "10,001 operands; at most 10,000"),
    ({"data.x": {"all": [1] * 10_002}}, f"{X}.all", "10,002 operands; at most 10,000"),
    # Types and presence.
    ({"data.x": {"type": "str"}}, f"{X}.type", f'unknown type "str"; {TYPES}'),
    ({"data.x": {"type": ["number", "int"]}}, f"{X}.type[1]", f'unknown type "int"; {TYPES}'),
    ({"data.x": {"type": 1}}, f"{X}.type", "the name of a type expected, got 1"),
    ({"data.x": {"type": []}}, f"{X}.type", "the name of a type expected, got an empty list"),
    ({"data.x": {"type": [None]}}, f"{X}.type[0]", "the name of a type expected, got null"),
    ({"data.x": {"exists": 1}}, f"{X}.exists", "true or false expected, got 1"),
    ({"data.x": {"exists": "yes"}}, f"{X}.exists", 'true or false expected, got "yes"'),
    ({"data.x": {"exists": None}}, f"{X}.exists", "true or false expected, got null"),
    # Moments.
    ({"data.x": {"moment": 5}}, f"{X}.moment", f"{MOMENT}5"),
    ({"data.x": {"gt": {"moment": "soon"}}}, f"{X}.gt.moment", f'{MOMENT}"soon"'),
    ({"data.x": {"gt": {"moment": "2026-02-30T00:00:00Z"}}}, f"{X}.gt.moment", f'{MOMENT}"2026-02-30'),
    (
        {"data.x": {"lt": {"moment": "2026-05-18T09:00:00"}}},
        f"{X}.lt.moment",
        f'"2026-05-18T09:00:00" {NO_ZONE}',
    ),
    ({"data.x": {"in": [{"moment": "2026-05-18"}]}}, f"{X}.in[0].moment", f'"2026-05-18" {NO_ZONE}'),
    ({"data.x": {"eq": [{"moment": "2026-05-18T09:00:00Z"}]}}, f"{X}.eq", "a moment cannot stand within"),
    ({"created_at": 5}, 'where."created_at"', f"{MOMENT}5"),
    ({"created_at": None}, 'where."created_at"', f"{MOMENT}null"),
    ({"created_at": {"eq": []}}, 'where."created_at".eq', f"{MOMENT}an empty list"),
    ({"updated_at": {"gt": "2026-05-18"}}, 'where."updated_at".gt', f'"2026-05-18" {NO_ZONE}'),
    ({"happened_at": {"in": ["now"]}}, 'where."happened_at".in[0]', f'{MOMENT}"now"'),
    ({"created_at": {"starts": "2026"}}, 'where."created_at".starts', f"created_at {ONLY_MOMENTS}"),
    ({"updated_at": {"like": "2026%"}}, 'where."updated_at".like', f"updated_at {ONLY_MOMENTS}"),
    ({"happened_at": {"type": "string"}}, 'where."happened_at".type', f"happened_at {ONLY_MOMENTS}"),
    ({"created_at": {"any": []}}, 'where."created_at".any', f"created_at {ONLY_MOMENTS}"),
    # Too much.
    (nested(32), "where" + ".not" * 32, "more than 32 levels deep"),
    ({"data.x": {"eq": listed(32)}}, f"{X}.eq", "more than 32 levels deep"),
    ({"or": [{"data.x": 1}] * 1_025}, "where", "more than 1,024 tests"),
    ({"data.x": "a" * 2**20}, "where", "1,048,589 bytes of JSON; at most 1 MiB"),
]

#: The same of what only Python can say.
REFUSED_IN_PYTHON: list[tuple[Any, str, str]] = [
    (
        {"data.x": {"gt": datetime(2026, 5, 18, 9)}},
        f"{X}.gt",
        "2026-05-18 09:00:00 has no time zone; give it one",
    ),
    ({"data.x": datetime(2026, 5, 18)}, X, "2026-05-18 00:00:00 has no time zone; give it one"),
    (
        {"data.x": {"eq": [datetime(2026, 5, 18, tzinfo=timezone.utc)]}},
        f"{X}.eq",
        "a moment cannot stand within",
    ),
    ({"data.x": datetime(2026, 5, 18).date()}, X, "a date is nothing that JSON can carry"),
    ({"data.x": {"in": {1, 2}}}, f"{X}.in", "a set is nothing that JSON can carry"),
    ({"data.x": b"a"}, X, "a bytes is nothing that JSON can carry"),
    ({"data.x": Decimal("1.5")}, X, "a Decimal is nothing that JSON can carry"),
    ({"data.x": NAN}, X, "nan is no JSON number"),
    ({"data.x": {"lt": INFINITE}}, f"{X}.lt", "inf is no JSON number"),
    ({"data.x": {"in": [1, -INFINITE]}}, f"{X}.in[1]", "-inf is no JSON number"),
    ({"data.x": "a\ud800"}, X, "the character at 1 is half of a surrogate pair"),
    ({"data.\udfff": 1}, "where", "the character at 5 is half of a surrogate pair"),
    ({5: 1}, "where", "keys are text, got 5"),
    ({"and": [{None: 1}]}, "where.and[0]", "keys are text, got None"),
    ({"data.x": {"eq": {1: 2}}}, f"{X}.eq", "keys are text, got 1"),
    ({"data.x": 10**4_300}, X, "an integer of more than 4,300 digits"),
    (nested(200), "where" + ".not" * 100, "more than 32 levels deep"),
    (object(), "where", "a object is nothing that JSON can carry"),
]


def check(caught: pytest.ExceptionInfo[InvalidArgument], path: str, words: str) -> None:
    assert str(caught.value).startswith(f"{path}: {words}")
    assert (caught.value.field, caught.value.path) == ("where", path)


@pytest.mark.parametrize(("where", "path", "words"), [*REFUSED, *REFUSED_IN_PYTHON])
def test_what_says_nothing_is_refused_with_its_place(
    store: ChronoStore, where: Any, path: str, words: str
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        store.query(where=where)
    check(caught, path, words)


def test_there_are_a_hundred_of_them() -> None:
    assert len(REFUSED) >= 100
    json.dumps([where for where, _, _ in REFUSED])


def test_every_door_refuses_alike(store: ChronoStore) -> None:
    where = {"and": [{"data.x": {"gt": None}}]}
    view = store.as_of(0)
    for ask in (
        lambda: view.query(where=where),
        lambda: store.search("x", where=where),
        lambda: store.search("x", where=where, as_of=0),
        lambda: store.export_records(where=where),
        lambda: store.vectors.nearest([1.0], where=where),
    ):
        with pytest.raises(InvalidArgument) as caught:
            ask()
        check(caught, 'where.and[0]."data.x".gt', "null has no order; use eq, ne or in")


def test_limits_are_as_large_as_they_say(store: ChronoStore) -> None:
    store.upsert({"id": "A", "data": {"x": listed(31)}})
    asked = [
        nested(31),
        {"or": [{"data.x": 1}] * 1_024},
        {"data.x": {"in": list(range(10_000))}},
        {"data.x": "a" * (2**20 - 13)},
    ]
    assert [len(store.query(where=where)) for where in asked] == [0, 0, 0, 0]
    assert len(store.query(where={"data.x": {"eq": listed(31)}})) == 1
