"""A search over the whole store follows the links between blocks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from chronomemory import ChronoRecord, ChronoStore
from chronomemory.blocks import Memory, content_hash, sync
from living import REFERENCE_RULES

CABLE, MOTOR = "The red cable hums", "A motor was replaced on Monday"


@pytest.fixture
def linked(memory_of_words: Memory) -> Memory:
    for content in (CABLE, MOTOR, "Bread is baked in the cellar"):
        memory_of_words.remember(content)
    memory_of_words.connect(content_hash(CABLE), content_hash(MOTOR), weight=0.7)
    return memory_of_words


@pytest.fixture
def memory_of_words(tmp_path: Path) -> Iterator[Memory]:
    with Memory(tmp_path, **REFERENCE_RULES) as opened:
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


class TestLinksOfLikeness:
    """Consolidation links blocks that are alike; words and vectors say that already."""

    HALL, LOUD = "The red cable hums in the hall", "The red cable hums loudly"

    @pytest.fixture
    def alike(self, memory_of_words: Memory) -> Memory:
        for content in (self.HALL, self.LOUD, MOTOR):
            memory_of_words.remember(content)
        assert memory_of_words.status().edges == 1
        return memory_of_words

    def lifted(self, memory: Memory) -> tuple[bool, bool]:
        """Whether a question about one brings the other up, by a search and by a recall."""
        found = hits(memory.blocks.store, "hall")
        recalled = {block.content: block.similarity for block in memory.recall("hall")}
        return key(self.LOUD) in found, recalled[self.LOUD] > 0

    def test_they_lift_nothing(self, alike: Memory) -> None:
        assert self.lifted(alike) == (False, False)

    def test_they_count_as_links_all_the_same(self, alike: Memory) -> None:
        centrality = {block.content: block.centrality for block in alike.recall("hall")}
        assert centrality[self.LOUD] == centrality[self.HALL] == 1.0 > centrality[MOTOR]

    def test_being_shown_makes_nothing_else_of_them(self, alike: Memory) -> None:
        for _ in range(4):
            with alike.session():
                alike.frame("attention", "red cable", top_k=2)
        assert self.lifted(alike) == (False, False)

    @pytest.mark.parametrize("mode", ["reinforce", "update"])
    def test_whoever_says_it_makes_it_a_link_like_others(
        self, alike: Memory, mode: Literal["reinforce", "update"]
    ) -> None:
        alike.connect(content_hash(self.HALL), content_hash(self.LOUD), if_exists=mode)
        assert self.lifted(alike) == (True, True)

    def test_leaving_it_alone_does_not(self, alike: Memory) -> None:
        alike.connect(content_hash(self.HALL), content_hash(self.LOUD), if_exists="skip")
        assert self.lifted(alike) == (False, False)

    def test_an_edited_block_keeps_them_as_they_are(self, alike: Memory) -> None:
        new = alike.edit(content_hash(self.LOUD), "It is noisy").block_id
        links = [link.data for link in alike.blocks.store.query(kind="bedge") if new in link.id]
        assert [link["made_by"] for link in links] == ["likeness"]
        assert f"block:{new}" not in hits(alike.blocks.store, "hall")

    def test_a_plain_edge_may_say_so_and_lifts(self, tmp_path: Path) -> None:
        """Who made a link is a field of blocks alone; elsewhere it is the caller's."""
        with ChronoStore(tmp_path) as store:
            store.upsert_many([ChronoRecord(id="a", label="hall"), ChronoRecord(id="b", label="loud")])
            data = {"source_id": "a", "target_id": "b", "made_by": "likeness"}
            store.upsert(ChronoRecord(id="e", kind="edge", data=data))
            assert {"a", "b"} <= {hit.id for hit in store.search("hall")}


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
