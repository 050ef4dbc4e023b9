"""Everything is refused that is no plain filter, before any episode is read."""

from __future__ import annotations

import pytest
from chronomemory import ChronoStore
from chronomemory.episodes import ConsolidationRuleError, Episodes
from conversing import episode, put, rule

HOSTILE = [
    "1=1; DROP TABLE episodes",
    "user = 'a';",
    ";",
    "user = 'a' -- and the rest",
    "user = 'a' /* and the rest */",
    "/* before */ user = 'a'",
    "-- nothing else",
    "/**/",
    "user = 'a' --",
    "user = 'a'/**/OR/**/1=1",
    "user = 'a' UNION SELECT * FROM episodes",
    "user = 'a' UNION ALL SELECT content FROM episodes",
    "user = 'a' INTERSECT SELECT 1",
    "user IN (SELECT user FROM episodes)",
    "user = (SELECT user FROM episodes LIMIT 1)",
    "EXISTS (SELECT 1)",
    "NOT EXISTS (SELECT 1)",
    "SELECT 1",
    "DROP TABLE episodes",
    "DELETE FROM episodes",
    "ATTACH DATABASE 'x' AS y",
    "PRAGMA case_sensitive_like = OFF",
    "load_extension('x')",
    "content = readfile('/etc/passwd')",
    "writefile('x', content) > 0",
    "length(content) > 5",
    "lower(user) = 'ann'",
    "upper(user) = 'ANN'",
    "abs(metadata.x) = 1",
    "randomblob(1000000000) IS NOT NULL",
    "coalesce(metadata.x, 1) = 1",
    "CASE WHEN user = 'a' THEN 1 ELSE 0 END = 1",
    "CAST(metadata.x AS INTEGER) = 1",
    "metadata.x + 1 = 2",
    "content || 'x' = 'yx'",
    "metadata.x & 1 = 1",
    "password = 'x'",
    "rowid = 1",
    "episodes.user = 'a'",
    "main.episodes.user = 'a'",
    "other.x = 1",
    "1 = 1",
    "'a' = 'a'",
    "1",
    "TRUE",
    "NULL",
    "user",
    "NOT user",
    "user = session",
    "metadata.x = metadata.y",
    "metadata.x = content",
    "user > 5",
    "content = 1",
    "timestamp = 20260518",
    "timestamp > 'yesterday'",
    "timestamp > '2026-05-18T09:00:00'",
    "timestamp > '2026-05-18 09:00'",
    "timestamp > CURRENT_TIMESTAMP",
    "timestamp > datetime('now')",
    "TIMESTAMP '2026-05-18' < timestamp",
    "user ILIKE 'a%'",
    "user GLOB 'a*'",
    "user REGEXP 'a'",
    "user MATCH 'a'",
    "user SIMILAR TO 'a'",
    "user LIKE session",
    "user LIKE 'a' ESCAPE 'xy'",
    "user LIKE 'a' ESCAPE ''",
    "user LIKE 'ax' ESCAPE 'x'",
    "user LIKE 5",
    "user LIKE NULL",
    "user COLLATE NOCASE = 'a'",
    "user = 'a' COLLATE NOCASE",
    "user IS 'a'",
    "user IS NOT 'a'",
    "metadata.x IS TRUE",
    "user IS DISTINCT FROM 'a'",
    "user <=> 'a'",
    "user IN ()",
    "user IN session",
    "user IN ('a', session)",
    "(user, session) = ('a', 's')",
    "(user, session) IN (('a', 's'))",
    "user BETWEEN 'a' AND session",
    "session BETWEEN user AND 'b'",
    "user = ?",
    "user = :name",
    "user = @name",
    "user = $1",
    "user = X'41'",
    'user = "ann"',
    "user = 'a",
    "user = 'a' AND",
    "AND user = 'a'",
    "(user = 'a'",
    "user = 'a')",
    "user = 'a' ORDER BY id",
    "user = 'a' LIMIT 1",
    "user = 'a' GROUP BY id",
    "user = 'a' = 'b'",
    "user == 'a' == 1",
    "metadata = '{}'",
    "metadata LIKE '%x%'",
    "metadata -> '$.x' = 1",
    "metadata ->> '$.x' = 1",
    "json_extract(metadata, '$') = 1",
    "json_extract(metadata, '$.a[0]') = 1",
    "json_extract(metadata, '$.*') = 1",
    "json_extract(metadata, '$..x') = 1",
    "json_extract(metadata, '$.dc:title') = 1",
    r"json_extract(metadata, '$.a\b') = 1",
    "json_extract(metadata, 'x') = 1",
    "json_extract(metadata, '.x') = 1",
    "json_extract(metadata, '$x') = 1",
    "json_extract(metadata, ' $.x') = 1",
    "json_extract(metadata, '$ .x') = 1",
    """json_extract(metadata, '$["x"]') = 1""",
    "json_extract(metadata, '$.x', '$.y') = 1",
    "json_extract(metadata, 'x' || 'y') = 1",
    "json_extract(content, '$.x') = 1",
    "json_extract(metadata) = 1",
    "json_type(metadata, '$.x') = 'text'",
    "json_each(metadata)",
    "metadata.x = 1e999",
    "metadata.x = 99999999999999999999",
    "metadata.x = 1 XOR metadata.x = 2",
    "user = 'a' \\g",
    "user = 'a\0b'",
    "user = 'a' OR",
    "user != ALL (SELECT 1)",
    "user = ANY ('a')",
    "user OVER ()",
    "count(*) > 1",
    "metadata.x::int = 1",
    "INTERVAL '1 day' > timestamp",
    "DATE '2026-05-18' = timestamp",
    "user = 'a' WHERE 1",
    "WHERE user = 'a'",
    "(" * 40 + "user = 'a' AND (user = 'b' OR (" + ")" * 42,
    "NOT " * 5000 + "user = 'a'",
    "(" * 3000 + "user = 'a'" + ")" * 3000,
    "user = '" + "a" * 70_000 + "'",
    " OR ".join(["user = 'a'"] * 3000),
]


def test_there_are_enough_of_them() -> None:
    assert len(HOSTILE) == len(set(HOSTILE)) >= 60


class UnreadError(Exception):
    """Somebody looked at an episode."""


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:40]))
def test_what_is_no_filter_is_refused_before_any_row_is_read(
    store: ChronoStore, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Episodes(store) as episodes:
        put(episodes, episode("e"))

        def look(*_: object, **__: object) -> None:
            raise UnreadError

        monkeypatch.setattr(type(episodes.handle.store), "stream", look)
        with pytest.raises(ConsolidationRuleError) as caught:
            episodes.consolidate(rule(text, name="r7"))
        assert caught.value.rule_id == "r7"
        assert caught.value.violation.startswith("when_filter: ")
        assert len(str(caught.value)) < 400
        assert episodes.health().fragment_count == 1


def test_too_many_tests_for_the_engine_are_refused_as_well(episodes: Episodes) -> None:
    """The parser lets these pass; the engine counts the tests of a where before it looks at a record."""
    put(episodes, episode("e"))
    text = " OR ".join(["metadata.x > 0"] * 400)
    with pytest.raises(ConsolidationRuleError, match="when_filter"):
        episodes.consolidate(rule(text))
