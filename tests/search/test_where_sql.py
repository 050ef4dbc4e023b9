"""A filter of SQL can be said as a where: three values become two, and SQLite agrees to the row.

Of each expression two wheres are made: where it is true, and where it is false. What is neither is unknown.
"""

from __future__ import annotations

import random
import sqlite3
from typing import Any

import pytest
from chronomemory import ChronoStore
from shares import share

EXPRESSIONS = share(300, 10_000)
ROWS = 200
COLUMNS = ("a", "b", "c")
NEVER: dict[str, Any] = {"or": []}
COMPARED = {"<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}
OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
Where = dict[str, Any]


def there(path: str) -> Where:
    return {path: {"type": ["number", "string", "bool", "array", "object"]}}


def both(*wheres: Where) -> Where:
    return {"and": list(wheres)}


def either(*wheres: Where) -> Where:
    return {"or": list(wheres)}


def equal(path: str, value: Any) -> Where:
    """SQLite's booleans are 0 and 1."""
    if value is None:
        return NEVER
    if value in (0, 1) and not isinstance(value, str):
        return {path: {"in": [value, bool(value)]}}
    return {path: {"eq": value}}


def compared(path: str, op: str, value: Any) -> Where:
    """In SQLite's order of types numbers, booleans among them, come before all text."""
    if value is None:
        return NEVER
    own = {path: {COMPARED[op]: value}}
    if isinstance(value, str):
        return either(own, {path: {"type": ["number", "bool"]}}) if "<" in op else own
    holds = {"<": value.__gt__, "<=": value.__ge__, ">": value.__lt__, ">=": value.__le__}[op]
    booleans = {path: {"in": [truth for truth in (False, True) if holds(int(truth)) is True]}}
    return either(own, booleans, {path: {"type": "string"}} if ">" in op else NEVER)


def true(node: Any) -> Where:
    kind, *rest = node
    if kind == "not":
        return false(rest[0])
    if kind in ("and", "or"):
        return {kind: [true(one) for one in rest]}
    path = f"data.{rest[0]}"
    if kind == "null":
        return {"not": there(path)} if rest[1] else there(path)
    if kind == "in":
        return either(*(equal(path, value) for value in rest[1]))
    if kind == "like":
        return {path: {"like": rest[1]}}
    op, value = rest[1:]
    if op == "=":
        return equal(path, value)
    if op == "<>":
        return NEVER if value is None else both(there(path), {"not": equal(path, value)})
    return compared(path, op, value)


def false(node: Any) -> Where:
    kind, *rest = node
    if kind == "not":
        return true(rest[0])
    if kind in ("and", "or"):
        return {"or" if kind == "and" else "and": [false(one) for one in rest]}
    path = f"data.{rest[0]}"
    if kind == "null":
        return true(("null", rest[0], not rest[1]))
    if kind == "in":
        return both(*(false(("compare", rest[0], "=", value)) for value in rest[1]))
    if kind == "like":
        return both({path: {"type": "string"}}, {"not": {path: {"like": rest[1]}}})
    op, value = rest[1:]
    if value is None:
        return NEVER
    if op in ("=", "<>"):
        return true(("compare", rest[0], "<>" if op == "=" else "=", value))
    return compared(path, OPPOSITE[op], value)


def spelled(node: Any, values: list[Any]) -> str:
    """The expression in SQL; a LIKE of what is no text is unknown, as everything is that has no meaning."""
    kind, *rest = node
    if kind == "not":
        return f"(NOT {spelled(rest[0], values)})"
    if kind in ("and", "or"):
        return "(" + f" {kind.upper()} ".join(spelled(one, values) for one in rest) + ")"
    if kind == "null":
        return f"({rest[0]} IS {'' if rest[1] else 'NOT '}NULL)"
    if kind == "in":
        values.extend(rest[1])
        return f"({rest[0]} IN ({', '.join('?' * len(rest[1]))}))"
    if kind == "like":
        values.append(rest[1])
        return f"(CASE WHEN typeof({rest[0]}) = 'text' THEN {rest[0]} LIKE ? ESCAPE '\\' END)"
    values.append(rest[2])
    return f"({rest[0]} {rest[1]} ?)"


def scalar(choice: random.Random) -> Any:
    numbers = [-2, -1, 0, 0.5, 1, 1.0, 2, 5, 5.5, 2**53, 2**53 + 1, 1e300]
    texts = ["", "a", "A", "ab", "b", "1", "a%", "é", "z"]
    return choice.choice([None, *numbers, *texts])


def expression(choice: random.Random, depth: int = 0) -> Any:
    if depth < 4 and choice.random() < 0.6:
        kind = choice.choice(["and", "or", "not"])
        count = 1 if kind == "not" else choice.randint(1, 3)
        return (kind, *(expression(choice, depth + 1) for _ in range(count)))
    column = choice.choice(COLUMNS)
    leaves: list[Any] = [("compare", column, op, scalar(choice)) for op in ("=", "<>", *COMPARED)]
    leaves.append(("null", column, choice.random() < 0.5))
    leaves.append(("in", column, [scalar(choice) for _ in range(choice.randint(1, 4))]))
    leaves.append(("like", column, choice.choice(["a%", "%", "_", "a\\%", "%b", "", "A_", "é%"])))
    return choice.choice(leaves)


@pytest.mark.parametrize("seed", range(4))
def test_a_filter_of_sql_is_two_wheres(store: ChronoStore, seed: int) -> None:
    choice = random.Random(seed)
    rows = []
    for number in range(ROWS):
        held = {
            column: choice.choice([scalar(choice), choice.random() < 0.5])
            for column in COLUMNS
            if choice.random() < 0.85
        }
        rows.append((f"R{number:03}", held))
    store.upsert_many({"id": name, "data": held} for name, held in rows)
    if seed % 2:
        for column in COLUMNS:
            store.upkeep.create_index(f"data.{column}")
    table = sqlite3.connect(":memory:")
    table.execute("PRAGMA case_sensitive_like = ON")
    table.execute("CREATE TABLE t (id, a, b, c)")
    table.executemany(
        "INSERT INTO t VALUES (?, ?, ?, ?)",
        [(name, *(held.get(column) for column in COLUMNS)) for name, held in rows],
    )
    for _ in range(EXPRESSIONS // 4):
        node = expression(choice)
        values: list[Any] = []
        text = spelled(node, values)
        truth = dict(table.execute(f"SELECT id, {text} FROM t", values))
        for where, wanted in ((true(node), 1), (false(node), 0)):
            found = [record.id for record in store.query(where=where)]
            assert found == [name for name, _ in rows if truth[name] == wanted], (text, values)
    table.close()
