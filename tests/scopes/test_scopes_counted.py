"""Nothing of others is counted: three ways in which it could be, each with a store that would show it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoStore

Fill = Callable[[Any], None]


def told(project: Path, text: str, *fills: Fill) -> list[tuple[str, str, str]]:
    """Fill a store, search it as ann, and return what she is told to the last bit."""
    with ChronoStore(project) as store:
        for fill in fills:
            fill(store)
        hits = store.scoped(user="ann").search(text, limit=50, explain=True)
        return [(hit.id, hit.score.hex(), repr(hit.why)) for hit in hits]


def her_texts(store: ChronoStore) -> None:
    store.scoped(user="ann").upsert_many(
        [{"id": f"A-{n}", "label": label} for n, label in enumerate(("green tea", "black tea cup", "river"))]
    )


def his_texts(store: ChronoStore) -> None:
    labels = ["river"] * 40 + ["cup of green river water " * 3] * 10
    store.scoped(user="bob").upsert_many([{"id": f"B-{n}", "label": label} for n, label in enumerate(labels)])


@pytest.mark.parametrize("text", ["tea", "green tea", "river cup", "black tea cup river green"])
def test_words_are_worth_what_they_are_to_the_asker(tmp_path: Path, text: str) -> None:
    alone = told(tmp_path / "alone", text, her_texts)
    assert alone and told(tmp_path / "after", text, her_texts, his_texts) == alone
    assert told(tmp_path / "before", text, his_texts, her_texts) == alone


def her_links(store: ChronoStore) -> None:
    store.scoped(user="ann").upsert_many(
        [
            {"id": "A-1", "label": "green tea"},
            {"id": "A-2", "label": "a quiet house", "data": {"links": ["A-1"]}},
        ]
    )


@pytest.mark.parametrize("is_indexed", [False, True])
@pytest.mark.parametrize("user", ["bob", "aaron"])
def test_neighbours_of_others_take_no_room(tmp_path: Path, user: str, is_indexed: bool) -> None:
    def his_links(store: ChronoStore) -> None:
        """More than are looked at name her record, and came first; an index has them by scope."""
        if is_indexed:
            store.search("anything")
        store.scoped(user=user).upsert_many(
            [{"id": f"B-{n}", "label": "tea", "data": {"links": ["A-1"]}} for n in range(40)]
        )

    alone = told(tmp_path / "alone", "green tea", her_links)
    assert [name for name, *_ in alone] == ["A-1", "A-2"], "the house is lifted by the tea"
    assert told(tmp_path / "crowded", "green tea", his_links, her_links) == alone


def test_words_are_added_in_an_order_that_the_asker_sees(tmp_path: Path) -> None:
    words = [f"word{n}" for n in range(12)]

    def hers(store: ChronoStore) -> None:
        rows = [{"id": f"A-{n}", "label": " ".join(words[n % 5 :: 1 + n % 3])} for n in range(40)]
        store.scoped(user="ann").upsert_many(rows)

    def his(store: ChronoStore) -> None:
        """What is rare to her is common here, and the other way round."""
        rows = [{"id": f"B-{n}", "label": " ".join(words[: 1 + n % 12])} for n in range(60)]
        store.scoped(user="bob").upsert_many(rows)

    text = " ".join(words)
    assert told(tmp_path / "both", text, his, hers) == told(tmp_path / "alone", text, hers)
