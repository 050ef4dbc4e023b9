"""A filter lets through what SQLite lets through, to the row."""

from __future__ import annotations

import json
import random
import re
import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest
from chronomemory import ChronoStore
from chronomemory.episodes import Episodes
from chronomemory.episodes.memory import utc_text
from conversing import START, episode, put, rule
from shares import share

EXPRESSIONS = share(200, 10_000)
TEXTS = ["user", "session", "agent", "content", "source_node", "id"]
WORDS = ["", "a", "A", "ab", "b", "1", "a%", "a_b", "a\\b", "é", "it's", "z", "-- x", "; y"]
#: What no value of SQL is, and a field can be: to SQLite it is text.
NESTED = [[], [1, 2], ["a"], {}, {"a": [1.5, None]}, {"b": "a%", "a": "é"}]
NUMBERS = [0.1, -12.5, 1e-05, 100.0, 1e15, 123456789.25, 2**63, -(2**63)]
SCALARS = [None, True, False, -2, 0, 0.5, 1, 1.0, 2, 5, 2**53 + 1, 1e300, *WORDS]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Episodes, sqlite3.Connection]]:
    choice = random.Random(7)
    table = sqlite3.connect(":memory:")
    table.execute("PRAGMA case_sensitive_like = ON")
    table.execute(
        "CREATE TABLE episodes (id TEXT, user TEXT, session TEXT, agent TEXT, source_node TEXT,"
        " timestamp TEXT, content TEXT, scope_key TEXT, metadata TEXT)"
    )
    with ChronoStore(tmp_path_factory.mktemp("sql"), durability="off") as store, Episodes(store) as episodes:
        for number in range(150):
            names = {
                level: choice.choice(["a", "A", "ab", "a_b", "%"]) for level in ("user", "session", "agent")
            }
            anything = [*SCALARS, *NESTED, *NUMBERS]
            metadata = {key: choice.choice(anything) for key in ("x", "y") if choice.random() < 0.8}
            if choice.random() < 0.7:
                metadata["in"] = {"deep": choice.choice(SCALARS), "a b": choice.choice(SCALARS)}
            made = episode(
                f"{choice.choice('aAb')}{number:03}", choice.choice(WORDS[1:]), minute=choice.randrange(5000),
                source_node=choice.choice(WORDS), **names, **metadata,
            )  # fmt: skip
            put(episodes, made)
            key = "/user/{user}/session/{session}/agent/{agent}/".format(**names)
            table.execute(
                "INSERT INTO episodes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (made.id, *names.values(), made.source_node, utc_text(made.timestamp), made.content, key,
                 json.dumps(metadata, sort_keys=True, ensure_ascii=False, separators=(",", ":"))),
            )  # fmt: skip
        yield episodes, table
    table.close()


def in_sqlite(text: str) -> str:
    """Say ``metadata.x`` as SQLite does."""
    text = re.sub(r'metadata\.in\."a b"', """json_extract(metadata, '$.in."a b"')""", text)
    return re.sub(r"metadata\.([a-z.]+)", r"json_extract(metadata, '$.\1')", text)


def check(both: tuple[Episodes, sqlite3.Connection], text: str) -> int:
    episodes, table = both
    wanted = {row[0] for row in table.execute(f"SELECT id FROM episodes WHERE {in_sqlite(text)}")}
    found = [delta.source_episode_ids[0] for delta in episodes.consolidate(rule(text))]
    assert set(found) == wanted, text
    assert len(found) == len(wanted)
    return len(wanted)


LEGITIMATE = [
    "user = 'a'",
    "USER = 'a' and Session <> 'ab'",
    '"user" = \'a\'',
    "[user] = 'a' OR `agent` = 'A'",
    "user == 'a'",
    "user != 'a'",
    "'a' = user",
    "5 > metadata.x",
    "-2 <= metadata.x",
    "user = ('a')",
    "(user) = 'a'",
    "((user = 'a'))",
    "NOT user = 'a'",
    "NOT (user = 'a' AND agent = 'a')",
    "user IN ('a', 'A')",
    "user NOT IN ('a', 'A')",
    "metadata.x IN (1, 'a', NULL)",
    "metadata.x NOT IN (1, 'a')",
    "metadata.x NOT IN (1, NULL)",
    "metadata.x BETWEEN 0 AND 2",
    "metadata.x NOT BETWEEN 0 AND 2",
    "content BETWEEN 'a' AND 'b'",
    "user LIKE 'a%'",
    "user LIKE 'a_b'",
    "user LIKE 'A'",
    "user NOT LIKE 'a%'",
    r"content LIKE 'a\b'",
    r"content LIKE 'a!%' ESCAPE '!'",
    r"user LIKE 'a\_b' ESCAPE '\'",
    "user LIKE '!%' ESCAPE '!'",
    "user LIKE '%'",
    "content LIKE 'it''s'",
    "id LIKE 'a0%'",
    "id < 'b'",
    "id >= 'a100'",
    "id = 'a001' OR id > 'b1'",
    "scope_key = '/user/a/session/a/agent/a/'",
    "scope_key LIKE '/user/a/%'",
    "source_node = ''",
    "content = '-- x'",
    "content = '; y'",
    "metadata IS NULL",
    "metadata IS NOT NULL",
    "metadata.x IS NULL",
    "metadata.x IS NOT NULL",
    "metadata.x ISNULL OR metadata.y NOTNULL",
    "metadata.x = 1",
    "metadata.x = 1.0",
    "metadata.x = TRUE",
    "metadata.x <> FALSE",
    "metadata.x > 1",
    "metadata.x >= 0.5",
    "metadata.x < 'b'",
    "metadata.x <= ''",
    "metadata.x > 'a'",
    "metadata.x = NULL",
    "metadata.x <> NULL",
    "NOT metadata.x = NULL",
    "metadata.x = 9007199254740993",
    "metadata.x < 1e300",
    "metadata.in.deep = 1",
    "metadata.in.deep > 0 OR metadata.in.\"a b\" = 'a'",
    "json_extract(metadata, '$.x') = 1",
    "JSON_EXTRACT(metadata, '$.in.deep') IS NULL",
    """json_extract(metadata, '$.in."a b"') <> 'a'""",
    "metadata.x LIKE '1%'",
    "metadata.x LIKE '%.0'",
    "metadata.x NOT LIKE '%e+%'",
    "metadata.x LIKE '[%'",
    "metadata.x = '[1,2]'",
    """metadata.x <> '{"a":"é","b":"a%"}'""",
    "metadata.x IN ('[]', '{}', 1)",
    "metadata.x > '['",
    "metadata.x <= '[1,2]'",
    "metadata.x BETWEEN '[' AND 'a'",
    "NOT metadata.x > 5",
    "metadata.x LIKE 'a%'",
    "metadata.x NOT LIKE 'a%'",
    f"timestamp >= '{utc_text(START)}'",
    "timestamp < '2026-05-20'",
    "timestamp LIKE '2026-05-1%'",
    "timestamp BETWEEN '2026-05-19' AND '2026-05-20'",
    "user = 'a' AND (metadata.x = 1 OR NOT metadata.y = 'a') AND content <> 'z'",
]  # fmt: skip


@pytest.mark.parametrize("text", LEGITIMATE)
def test_what_people_write(both: tuple[Episodes, sqlite3.Connection], text: str) -> None:
    check(both, text)


def test_most_of_these_find_something(both: tuple[Episodes, sqlite3.Connection]) -> None:
    assert sum(check(both, text) > 0 for text in LEGITIMATE) > len(LEGITIMATE) * 3 // 4


def quoted(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    return "'{}'".format(value.replace("'", "''")) if isinstance(value, str) else repr(value)


def expression(choice: random.Random, depth: int = 0) -> str:
    if depth < 4 and choice.random() < 0.6:
        kind = choice.choice(["AND", "OR", "NOT"])
        if kind == "NOT":
            return f"NOT ({expression(choice, depth + 1)})"
        return f"({f' {kind} '.join(expression(choice, depth + 1) for _ in range(choice.randint(2, 3)))})"
    is_free = choice.random() < 0.6
    column = choice.choice(["metadata.x", "metadata.y", "metadata.in.deep"] if is_free else TEXTS)
    free = [*SCALARS, *NUMBERS[:6], "[1,2]", "{}", '["a"]', "["]
    values = [choice.choice(free if is_free else [None, *WORDS]) for _ in range(3)]
    one, two, three = map(quoted, values)
    likes = ["a%", "%", "_", "%b", "A_", "é%", "a!%", "a\\%", "1%", "%.%", "[%", "%]", "0", "-%"]
    return choice.choice(
        [
            *(f"{column} {op} {one}" for op in ("=", "<>", "<", "<=", ">", ">=")),
            f"{one} <= {column}",
            f"{column} IS NULL",
            f"{column} IS NOT NULL",
            f"{column} IN ({one}, {two}, {three})",
            f"{column} NOT IN ({one}, {two})",
            f"{column} BETWEEN {one} AND {two}",
            f"{column} NOT BETWEEN {one} AND {two}",
            f"{column} LIKE {quoted(choice.choice(likes))}",
            f"{column} NOT LIKE 'a!_%' ESCAPE '!'",
        ]
    )


@pytest.mark.parametrize("seed", range(4))
def test_what_chance_writes(both: tuple[Episodes, sqlite3.Connection], seed: int) -> None:
    choice = random.Random(seed)
    assert sum(check(both, expression(choice)) > 0 for _ in range(EXPRESSIONS // 4)) > EXPRESSIONS // 8


def test_a_moment_is_the_same_in_every_time_zone(episodes: Episodes) -> None:
    put(episodes, episode("e"), episode("f", minute=1))
    for text, wanted in (
        ("timestamp = '2026-05-18T11:00:00+02:00'", ["e"]),
        ("timestamp > '2026-05-18T09:00:00Z'", ["f"]),
        ("timestamp >= '2026-05-18T04:00:00-05:00'", ["e", "f"]),
        ("timestamp IN ('2026-05-18T09:01:00.000+00:00')", ["f"]),
    ):
        assert [delta.source_episode_ids[0] for delta in episodes.consolidate(rule(text))] == wanted
