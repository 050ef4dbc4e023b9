"""The command line takes the wheres that the store takes, and refuses them in the same words."""

from __future__ import annotations

from pathlib import Path

import pytest
from chronomemory import ChronoStore
from chronomemory.blocks import Memory
from cli_answer import Run


@pytest.fixture
def orders(tmp_path: Path) -> None:
    with ChronoStore(tmp_path) as store:
        for number in range(6):
            store.upsert(
                {
                    "id": f"O{number}",
                    "label": "an order",
                    "data": {
                        "total": 10 * number,
                        "tags": ["paid"] * (number % 2),
                        "date": f"2026-01-0{number + 1}",
                    },
                }
            )
    with Memory(tmp_path) as memory:
        memory.learn("The river is cold", category="nature")
        memory.learn("The river bank is shut", category="city")
        memory.consolidate()


@pytest.mark.usefixtures("orders")
def test_a_where_is_json(run: Run) -> None:
    def ids(*args: str) -> list[str]:
        return [record["id"] for record in run("query", "--json", *args).listing]

    assert ids("--where", '{"data.total": {"gte": 40}}') == ["O4", "O5"]
    assert ids("--where", '{"data.total": {"gte": 30}}', "--tag", "paid") == ["O3", "O5"]
    assert ids("--since", "2026-01-02T00:00:00Z", "--until", "2026-01-03T00:00:00Z") == ["O1", "O2"]
    assert ids("--where", '{"data.total": 0}', "--as-of", "1") == ["O0"]
    hits = run("search", "order", "--json", "--where", '{"data.total": {"lt": 20}}').listing
    assert {hit["record"]["id"] for hit in hits} == {"O0", "O1"}
    assert "no index: 6 records of the scope" in run("query", "--where", "{}", "--explain").stdout


@pytest.mark.usefixtures("orders")
def test_blocks_are_filtered_too(run: Run) -> None:
    where = ("--where", '{"data.category": "city"}')
    recalled = run("recall", "river", "--json", *where).document["blocks"]
    assert [block["content"] for block in recalled] == ["The river bank is shut"]
    shown = run("frame", "attention", "river", "--json", *where).document["blocks"]
    assert [block["content"] for block in shown if not block["guaranteed"]] == ["The river bank is shut"]


@pytest.mark.usefixtures("orders")
@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("{", "--where is not JSON"),
        ("[]", "--where must be a JSON object"),
        ('{"data.x": {"gt": true}}', 'where."data.x".gt: true has no order; use eq, ne or in'),
        ('{"dat.x": 1}', 'where."dat.x": no such field; fields of your own begin with data.'),
    ],
)
def test_what_says_nothing_is_refused(run: Run, where: str, words: str) -> None:
    for command in (["query"], ["search", "order"], ["recall", "river"], ["frame", "attention"]):
        answer = run(*command, "--where", where)
        assert answer.code == 2
        assert words in " ".join(answer.stderr.replace("│", " ").split())


def test_a_plan_is_for_people(run: Run) -> None:
    assert run("query", "--json", "--explain").code == 2
