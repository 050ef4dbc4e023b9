"""A list that answers a question says who asked, and whether anything was ever written for them."""

from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoStore, InvalidArgument, Scope
from chronomemory.errors import StaleCursor
from chronomemory.scope import Answer
from chronomemory.search import Hits


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with ChronoStore(tmp_path) as store:
        ann = store.scoped(user="ann")
        ann.upsert_many([{"id": f"A-{n}", "label": f"tea number {n}", "data": {"n": n}} for n in range(7)])
        ann.vectors.attach("A-1", [1.0, 0.0], model="m")
        yield store


def test_an_answer_knows_who_asked(store: ChronoStore) -> None:
    for handle, scope, known in (
        (store.scoped(user="ann"), Scope(user="ann"), True),
        (store.scoped(user="anm"), Scope(user="anm"), False),
        (store.scoped(user="anm", session="s"), Scope(user="anm", session="s"), False),
        (store.everyone(), None, True),
    ):
        answers: list[Answer[Any]] = [
            handle.query(),
            handle.query(limit=1),
            handle.search("tea"),
            handle.vectors.nearest([1.0, 0.0]),
            handle.as_of(store.wal_seq()).query(),
            handle.search("tea", as_of=store.wal_seq()),
        ]
        for answer in answers:
            assert (answer.scope, answer.known) == (scope, known)
            assert isinstance(answer, list) and bool(answer) == known
    assert store.query().scope == Scope()
    assert not store.scoped(user="ann").as_of(0).query().known


def test_a_tombstone_is_known(store: ChronoStore) -> None:
    bob = store.scoped(user="bob")
    bob.upsert({"id": "B"})
    bob.delete("B")
    assert bob.query() == [] and bob.query().known


def test_an_export_takes_what_is_own(store: ChronoStore) -> None:
    store.upsert({"id": "RULE"})
    ann = store.scoped(user="ann")
    assert len(ann.query()) == 8
    assert [record["id"] for record in ann.export_records()] == [f"A-{n}" for n in range(7)]
    assert [record["id"] for record in ann.export_records(where={"data.n": {"gte": 5}})] == ["A-5", "A-6"]
    assert [record["id"] for record in store.export_records()] == ["RULE"]
    assert len(store.everyone().export_records()) == 8


# Pages of a search.


def test_a_search_goes_on_where_it_ended(store: ChronoStore) -> None:
    ann = store.scoped(user="ann")
    whole = ann.search("tea number", limit=100)
    assert len(whole) == 7 and whole.cursor is None
    pages, after = [], None
    while True:
        page = ann.search("tea number", limit=3, after=after)
        pages.append([(hit.id, hit.score) for hit in page])
        if (after := page.cursor) is None:
            break
    assert [len(page) for page in pages] == [3, 3, 1]
    assert [hit for page in pages for hit in page] == [(hit.id, hit.score) for hit in whole]


def test_a_page_of_a_search_goes_with_the_one_before_or_not_at_all(store: ChronoStore) -> None:
    ann, bob = store.scoped(user="ann"), store.scoped(user="bob")
    cursor = ann.search("tea", limit=3).cursor
    assert cursor is not None
    bob.upsert({"id": "B", "label": "tea tea"})
    assert len(ann.search("tea", limit=3, after=cursor)) == 3, "what others write changes nothing"
    for other in (
        lambda: ann.search("tea number", after=cursor),
        lambda: ann.search("tea", after=cursor, kind="note"),
        lambda: ann.search("tea", after=cursor, where={"data.n": 1}),
        lambda: bob.search("tea", after=cursor),
        lambda: store.everyone().search("tea", after=cursor),
        lambda: store.scoped(user="ann", shared=False).search("tea", after=cursor),
    ):
        with pytest.raises(InvalidArgument, match="the cursor belongs to another question"):
            other()
    for wrong in ("", "!", "abc", ann.query(limit=1).cursor, "W10"):
        with pytest.raises(InvalidArgument, match="after must be the cursor of a search"):
            ann.search("tea", after=wrong)
    for change in (
        lambda: ann.upsert({"id": "A-9", "label": "tea"}),
        lambda: ann.update("A-1", confidence=0.9),
        lambda: ann.delete("A-2"),
        lambda: store.upsert({"id": "RULE", "label": "tea"}),
    ):
        cursor = ann.search("tea", limit=3).cursor
        change()
        with pytest.raises(StaleCursor, match="what is seen here has changed since that page"):
            ann.search("tea", limit=3, after=cursor)


def test_embeddings_end_a_walk_only_where_they_change_what_was_shown(store: ChronoStore) -> None:
    ann, bob = store.scoped(user="ann"), store.scoped(user="bob")
    bob.upsert({"id": "B", "label": "tea"})
    ann.vectors.attach_many([f"A-{n}" for n in range(3)], [[1.0, n / 10] for n in range(3)], model="m")

    def asked(after: str | None = None, *, vector: list[float] | None = None) -> Hits:
        return ann.search("tea", vector=vector, limit=3, after=after)

    by_words, by_both = asked(), asked(vector=[0.0, 1.0])
    bob.vectors.attach("B", [0.0, 1.0], model="m")
    bob.vectors.attach("B", [1.0, 1.0], model="m")
    bob.vectors.detach("B")
    assert len(asked(by_words.cursor)) == 3, "what others attach changes nothing"
    assert len(asked(by_both.cursor, vector=[0.0, 1.0])) == 3
    ann.vectors.attach("A-5", [0.0, 1.0], model="m")
    assert asked(vector=[0.0, 1.0])[0].id == "A-5"
    assert len(asked(by_words.cursor)) == 3, "words are found as before"
    with pytest.raises(StaleCursor, match="what is seen here has changed since that page"):
        asked(by_both.cursor, vector=[0.0, 1.0])


def test_pages_of_the_past_stay(store: ChronoStore) -> None:
    then = store.wal_seq()
    ann = store.scoped(user="ann")
    first = ann.search("tea", limit=3, as_of=then)
    ann.upsert({"id": "A-9", "label": "tea"})
    second = ann.search("tea", limit=10, as_of=then, after=first.cursor)
    assert len(first) + len(second) == 7 and not {hit.id for hit in first} & {hit.id for hit in second}


def test_cursors_of_pages_are_of_one_asker(store: ChronoStore) -> None:
    for n in range(3):
        store.upsert({"id": f"R-{n}"})
    ann, alone = store.scoped(user="ann"), store.scoped(user="ann", shared=False)
    cursor = ann.query(limit=2).cursor
    assert cursor and ann.query(limit=2, after=cursor)
    for other in (alone, store, store.everyone()):
        with pytest.raises(InvalidArgument, match="the cursor belongs to another question"):
            other.query(limit=2, after=cursor)
