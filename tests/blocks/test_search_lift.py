"""Does a search over the whole store follow the links between blocks?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from chronomemory import ChronoRecord, ChronoStore
from chronomemory.blocks import Memory, content_hash, sync

CABLE, MOTOR = "The red cable hums", "A motor was replaced on Monday"


@pytest.fixture
def linked(memory_of_words: Memory) -> Memory:
    for content in (CABLE, MOTOR, "Bread is baked in the cellar"):
        memory_of_words.remember(content)
    memory_of_words.connect(content_hash(CABLE), content_hash(MOTOR), weight=0.7)
    return memory_of_words


@pytest.fixture
def memory_of_words(tmp_path: Path) -> Iterator[Memory]:
    with Memory(tmp_path) as opened:
        yield opened


def hits(store: ChronoStore, text: str, **options: object) -> dict[str, dict[str, object]]:
    return {hit.id: hit.why or {} for hit in store.search(text, kind="block", explain=True, **options)}


def key(content: str) -> str:
    return f"block:{content_hash(content)}"


def test_a_linked_block_is_lifted(linked: Memory) -> None:
    found = hits(linked.blocks.store, "cable")
    assert found[key(MOTOR)]["linked_by"] == key(CABLE)
    assert found[key(MOTOR)]["linked"] == pytest.approx(0.3 * found[key(CABLE)]["alone"])
    assert len(found) == 2
    assert set(hits(linked.blocks.store, "cable", context=False)) == {key(CABLE)}


def test_a_link_that_was_taken_away_lifts_nobody(linked: Memory) -> None:
    linked.disconnect(content_hash(CABLE), content_hash(MOTOR))
    assert set(hits(linked.blocks.store, "cable")) == {key(CABLE)}


def test_nor_does_one_that_is_forming(memory_of_words: Memory) -> None:
    ids = [memory_of_words.remember(content).block_id for content in (CABLE, MOTOR)]
    with memory_of_words.session():
        memory_of_words._write(lambda conn: memory_of_words._reinforce(conn, [ids]))
    assert memory_of_words.status().forming == 1
    assert set(hits(memory_of_words.blocks.store, "cable")) == {key(CABLE)}


def test_many_that_are_forming_do_not_stand_in_the_way(memory_of_words: Memory) -> None:
    """Only so many neighbours are looked at; those that do not count must not take their places."""
    one = memory_of_words.remember(CABLE).block_id
    others = [f"other-{number}" for number in range(10)]
    for number in range(4):
        with memory_of_words.blocks.begin() as conn:
            for other in others:
                block = f"{other}-{number}"
                sync.insert_block(conn, block_id=block, content=block, category="note", source="t")
                low, high = sorted((one, block))
                sync.insert_edge(conn, from_id=low, to_id=high, weight=0.5)
                conn.patch(f"bedge:{low}:{high}", {"status": "forming", "data": {"sessions": {"s": True}}})
    motor = memory_of_words.remember(MOTOR).block_id
    memory_of_words.connect(one, motor)
    assert key(MOTOR) in hits(memory_of_words.blocks.store, "cable")


def test_a_plain_record_is_not_taken_for_the_block_of_its_name(linked: Memory) -> None:
    """A link speaks of blocks; a plain record may be called what follows ``block:`` in the id of one."""
    store = linked.blocks.store
    store.upsert(ChronoRecord(id=content_hash(CABLE), label="Something else about trumpets"))
    found = {hit.id: hit.why for hit in store.search("trumpets", explain=True)}
    assert set(found) == {content_hash(CABLE)}


def test_it_holds_after_reopening_and_compacting(linked: Memory, tmp_path: Path) -> None:
    linked.blocks.store.compact()
    linked.close()
    with ChronoStore(tmp_path) as store:
        assert hits(store, "cable")[key(MOTOR)]["linked_by"] == key(CABLE)
        assert hits(store, "cable", as_of=store.wal_seq())[key(MOTOR)]["linked_by"] == key(CABLE)
