"""The memories of all are kept up, each as if its names had been given."""

from __future__ import annotations

from chronomemory import ChronoStore, Memory
from chronomemory.blocks import each_memory
from chronomemory.scope import Scope

NEAR = ("The red bus leaves at nine in the morning", "The red bus leaves at nine in the mornings")


def test_everyone_is_visited_who_has_blocks(store: ChronoStore) -> None:
    for names in ({}, {"user": "a"}, {"user": "b", "session": "s"}):
        Memory(store, **names).learn(NEAR[0])
    store.scoped(user="plain").upsert({"id": "x"})
    visited = {scope: memory.dream().consolidated.promoted for scope, memory in each_memory(store)}
    assert visited.keys() == {Scope(), Scope(user="a"), Scope(user="b", session="s")}
    assert all(len(promoted) == 1 for promoted in visited.values())


def test_dreams_for_all_keep_people_apart(store: ChronoStore) -> None:
    for name, content in zip("ab", NEAR, strict=True):
        Memory(store, user=name).learn(content, tags=[name])
    for _, memory in each_memory(store):
        assert not memory.dream().consolidated.duplicates
    for name, content in zip("ab", NEAR, strict=True):
        assert [(block.content, block.tags) for block in Memory(store, user=name).recall("bus")] == [
            (content, (name,))
        ]


def test_more_scopes_than_are_asked_for_at_once(store: ChronoStore) -> None:
    store.upsert_many([{"id": f"s{n}"} for n in range(3)])
    everyone = store.everyone()
    everyone.upsert_many([{"id": f"r{n}", "data": {"@scope": {"user": f"u{n}"}}} for n in range(2500)])
    Memory(store, user="u2400").learn("One of many")
    assert [scope.user for scope, _ in each_memory(store)] == ["u2400"]


def test_upkeep_of_nothing_writes_nothing(store: ChronoStore) -> None:
    Memory(store, user="a").remember("It is known")
    before = store.wal_seq()
    for _, memory in each_memory(store):
        memory.dream()
    assert store.wal_seq() == before


def test_known_words_take_over_new_tags(store: ChronoStore) -> None:
    memory = Memory(store)
    memory.remember("The key is under the mat", tags=["home"])
    assert memory.learn("The key is under the mat", tags=["home"]).status == "duplicate_rejected"
    before = store.wal_seq()
    assert memory.learn(" The key is under the mat", tags=["door", "home"]).status == "duplicate_rejected"
    assert store.wal_seq() == before + 1
    assert [block.tags for block in memory.recall("key", tags=["door"])] == [("door", "home")]
