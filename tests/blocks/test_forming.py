"""Links that are still forming stay few, and go away with their blocks."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from chronomemory.blocks import Blocks, Memory, content_hash, open_blocks, open_test_blocks, sync
from chronomemory.blocks.storage import forming as rules
from chronomemory.blocks.storage.forming import FORMING, forming_links
from chronomemory.embedders import CallableEmbedder
from living import Time, angles
from step_by_step import MOST_OF_A_BLOCK


def forming(memory: Memory) -> set[frozenset[str]]:
    found = memory.blocks.store.engine.query(kind="bedge", status=FORMING)
    return {frozenset((link.data["from_id"], link.data["to_id"])) for link in found}


def shown_together(memory: Memory, *contents: str) -> None:
    """Show exactly these blocks, in a session of their own."""
    with memory.session():
        memory._write(lambda conn: memory._reinforce(conn, [[content_hash(text) for text in contents]]))


@pytest.fixture
def facts(memory: Memory) -> list[str]:
    contents = [f"Fact {degrees}" for degrees in (0, 70, 140, 210)]
    for content in contents:
        memory.remember(content)
    return contents


def shown_at_once(memory: Memory, *ids: str) -> None:
    """Show blocks by their ids, in a session of their own."""
    with memory.session():
        memory._write(lambda conn: memory._reinforce(conn, [list(ids)]))


def known(memory: Memory, *contents: str) -> frozenset[str]:
    return frozenset(content_hash(content) for content in contents)


def blocks_called(ids: list[str]) -> Blocks:
    blocks = open_test_blocks()
    with blocks.begin() as conn:
        for one in ids:
            sync.insert_block(
                conn, block_id=one, content=f"Block {one}", category="knowledge", source="t", status="active"
            )
    return blocks


class TestALinkDiesWithItsBlock:
    @pytest.mark.parametrize(
        "leave",
        [
            lambda memory, block_id: memory.forget(block_id),
            lambda memory, block_id: memory.edit(block_id, "Other words 1"),
            lambda memory, block_id: memory.remember("Nearly the same 20"),
        ],
        ids=["forgotten", "edited", "superseded"],
    )
    def test_it_is_gone(
        self, memory: Memory, facts: list[str], leave: Callable[[Memory, str], object]
    ) -> None:
        shown_together(memory, *facts[:3])
        assert memory.status().forming == 3
        leave(memory, content_hash(facts[0]))
        assert memory.blocks.store.get(f"block:{content_hash(facts[0])}").status == "archived"
        assert forming(memory) == {known(memory, *facts[1:3])}

    def test_also_if_it_faded(self, memory: Memory, time: Time) -> None:
        memory.remember("Seen 0", category="observation")
        memory.remember("Known 90")
        shown_together(memory, "Seen 0", "Known 90")
        with memory.session():
            time.pass_hours(70.0)
            assert memory.curate().archived == (content_hash("Seen 0"),)
        assert forming(memory) == set()

    def test_also_by_the_storage_functions(self, memory: Memory, facts: list[str]) -> None:
        shown_together(memory, *facts[:2])
        with memory.blocks.begin() as conn:
            sync.update_block_status(conn, content_hash(facts[1]), "archived", archive_reason="forgotten")
            assert forming_links(conn, content_hash(facts[0])) == []
        assert forming(memory) == set()

    def test_one_that_comes_back_begins_anew(self, memory: Memory, facts: list[str]) -> None:
        for _ in range(2):
            shown_together(memory, *facts[:2])
        memory.forget(content_hash(facts[0]))
        memory.remember(facts[0])
        shown_together(memory, *facts[:2])
        assert (memory.status().edges, memory.status().forming) == (0, 1)

    def test_what_was_put_away_while_it_was_shown_gets_none(self, memory: Memory, facts: list[str]) -> None:
        memory.forget(content_hash(facts[0]))
        shown_together(memory, *facts[:2])
        assert forming(memory) == set()


class TestThereAreFew:
    def test_a_block_has_no_more_than_a_frame_gives_it(self, time: Time) -> None:
        ids = [f"{number:03}" for number in range(40)]
        with Memory(blocks_called(ids), seconds=time) as memory:
            for other in ids[1:]:
                with memory.session():
                    time.pass_hours(0.1)
                    memory._write(lambda conn, pair=(ids[0], other): memory._reinforce(conn, [list(pair)]))
            assert len(forming(memory)) == MOST_OF_A_BLOCK
            # The oldest gave way, so the latest are there.
            assert frozenset((ids[0], ids[-1])) in forming(memory)
            assert frozenset((ids[0], ids[1])) not in forming(memory)

    def test_what_was_seen_more_often_stays(self, time: Time) -> None:
        ids = [f"{number:03}" for number in range(MOST_OF_A_BLOCK + 4)]
        with Memory(blocks_called(ids), seconds=time) as memory:
            for _ in range(2):
                shown_at_once(memory, ids[0], ids[1])
            for other in ids[2:]:
                shown_at_once(memory, ids[0], other)
            # Three gave way, the oldest of those that were seen once.
            assert forming(memory) == {frozenset((ids[0], other)) for other in (ids[1], *ids[5:])}
            shown_at_once(memory, ids[0], ids[1])
            assert memory.status().edges == 1

    def test_pairs_of_one_session_do_not_push_each_other_out(self, time: Time) -> None:
        """Frames of one session that are more than there is room for still become links, not all at once."""
        ids = [f"{number:03}" for number in range(MOST_OF_A_BLOCK + 6)]
        with Memory(blocks_called(ids), seconds=time) as memory:
            pairs = {frozenset((ids[0], other)) for other in ids[1:]}
            for number in range(6):
                with memory.session():
                    for start in (1, 14):
                        shown = [ids[0], *ids[start : start + 13]]
                        memory._write(lambda conn, shown=shown: memory._reinforce(conn, [shown]))
                if number == 0:
                    mine = {pair for pair in forming(memory) if ids[0] in pair}
                    assert mine == {frozenset((ids[0], other)) for other in ids[1 : MOST_OF_A_BLOCK + 1]}
            with memory.blocks.connect() as conn:
                linked = {frozenset((ids[0], other)) for other in sync.get_neighbours(conn, [ids[0]])}
            assert linked == pairs

    def test_many_sessions_leave_a_bounded_number(self, time: Time) -> None:
        """The larger case, of 300 blocks and 200 sessions, left 6,274 where 3,000 are the most."""
        dice = random.Random(7)
        blocks_of_all, sessions, of_a_session = 90, 60, 12
        ids = [f"{number:03}" for number in range(blocks_of_all)]
        with Memory(blocks_called(ids), seconds=time) as memory:
            for _ in range(sessions):
                with memory.session():
                    some = dice.sample(ids, of_a_session)
                    memory._write(lambda conn, some=some: memory._reinforce(conn, [some]))
                assert memory.status().forming <= blocks_of_all * MOST_OF_A_BLOCK // 2
            pairs = sessions * of_a_session * (of_a_session - 1) // 2
            assert memory.status().forming < blocks_of_all * MOST_OF_A_BLOCK // 2 < pairs
            with memory.blocks.connect() as conn:
                assert all(len(forming_links(conn, one)) <= MOST_OF_A_BLOCK for one in ids)


class TestCurationPrunesThem:
    def test_what_was_not_seen_for_long(self, memory: Memory, facts: list[str], time: Time) -> None:
        shown_together(memory, *facts[:2])
        with memory.session():
            time.pass_hours(150.0)
        shown_together(memory, *facts[1:3])
        with memory.session():
            time.pass_hours(100.0)
            assert memory.curate().forming_pruned == 1
        assert forming(memory) == {known(memory, *facts[1:3])}

    def test_what_is_too_many(
        self, memory: Memory, facts: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rules, "_MOST", 1)
        shown_together(memory, *facts)
        shown_together(memory, *facts[:2])
        # One for each active block is always allowed.
        assert memory.curate().forming_pruned == 2
        assert known(memory, *facts[:2]) in forming(memory)

    def test_what_is_in_use_stays(self, memory: Memory, facts: list[str]) -> None:
        shown_together(memory, *facts)
        assert memory.curate().forming_pruned == 0
        assert memory.status().forming == 6


def test_the_log_gives_them_back(tmp_path: Path, time: Time) -> None:
    with Memory(tmp_path, embedder=CallableEmbedder("angles", angles), seconds=time) as memory:
        facts = [f"Fact {degrees}" for degrees in (0, 70, 140)]
        for content in facts:
            memory.remember(content)
        shown_together(memory, *facts)
        memory.forget(content_hash(facts[0]))
        left = forming(memory)
    with open_blocks(tmp_path) as blocks, blocks.connect() as conn:
        (link,) = forming_links(conn, content_hash(facts[1]))
        assert {frozenset((link.data["from_id"], link.data["to_id"]))} == left
