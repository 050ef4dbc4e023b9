"""A memory that an earlier version wrote answers as it did then.

The store in ``data/earlier`` was written before links that are forming had an hour and a bound, and before
blocks knew when they were learned; ``expected.json`` is what that version answered, but for
recalls: what surrounds a block counts in them since.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chronomemory.blocks import Memory, content_hash, sync
from chronomemory.embedders import CallableEmbedder
from living import REFERENCE_RULES, Time, angles

EARLIER = Path(__file__).parent / "data" / "earlier"
FORGOTTEN = content_hash("A note to forget 240")


@pytest.fixture
def expected() -> dict[str, Any]:
    told: dict[str, Any] = json.loads((EARLIER / "expected.json").read_text(encoding="utf-8"))
    return told


@pytest.fixture
def earlier(tmp_path: Path, time: Time) -> Iterator[Memory]:
    shutil.copytree(EARLIER, tmp_path / ".chronomemory", ignore=shutil.ignore_patterns("*.json"))
    with Memory(
        tmp_path, embedder=CallableEmbedder("angles", angles), seconds=time, **REFERENCE_RULES
    ) as memory:
        yield memory


def forming(memory: Memory) -> list[str]:
    return sorted(link.id for link in memory.blocks.store.engine.query(kind="bedge", status="forming"))


def test_it_answers_alike(earlier: Memory, expected: dict[str, Any]) -> None:
    before = earlier.blocks.store.wal_seq()
    with earlier.blocks.connect() as conn:
        edges = sorted(
            [edge["from_id"], edge["to_id"], edge["weight"], edge["reinforcement_count"]]
            for row in earlier.list()
            for edge in sync.get_edges_for_block(conn, row["id"])
        )
        assert edges == expected["edges"]
        assert sync.get_total_active_hours(conn) == expected["hours"]
        found = [sync.get_block(conn, item.id) or {} for item in earlier.list(status=None)[::-1]]
        tags = {item.id: list(item.tags) for item in earlier.list(status=None)}
    shown = [{**block, "tags": tags[block["id"]]} for block in found]
    assert [
        {name: block[name] for name in row} for block, row in zip(shown, expected["blocks"], strict=True)
    ] == (expected["blocks"])
    for query, blocks in expected["recall"].items():
        found = earlier.recall(query or None, top_k=8)
        assert [[block.id, block.score, *block.components] for block in found] == blocks
    told = earlier.status()
    assert [told.inbox, told.active, told.archived, told.edges, told.contradictions] == expected["status"]
    assert forming(earlier) == expected["forming"]
    assert (earlier.blocks.store.chain_valid(), earlier.blocks.store.wal_seq()) == (True, before)


def test_curation_takes_away_what_died_with_its_block(earlier: Memory) -> None:
    of_the_forgotten = {key for key in forming(earlier) if FORGOTTEN in key}
    assert of_the_forgotten
    left = set(forming(earlier)) - of_the_forgotten
    assert earlier.curate().forming_pruned == len(of_the_forgotten)
    assert set(forming(earlier)) == left


def test_a_block_that_comes_back_does_not_bring_them_along(earlier: Memory) -> None:
    earlier.learn("A note to forget 240")
    assert not any(FORGOTTEN in key for key in forming(earlier))


def test_what_was_seen_twice_needs_one_more_session(earlier: Memory) -> None:
    sessions = {
        link.id: link.data for link in earlier.blocks.store.engine.query(kind="bedge", status="forming")
    }
    twice = next(data for data in sessions.values() if len(data["sessions"]) == 2)
    pair = [twice["from_id"], twice["to_id"]]
    with earlier.session():
        earlier._write(lambda conn: earlier._reinforce(conn, [pair]))
    with earlier.blocks.connect() as conn:
        assert pair[1] in sync.get_neighbours(conn, [pair[0]])


def test_those_of_unknown_age_go_when_their_blocks_were_long_unused(earlier: Memory, time: Time) -> None:
    with earlier.session():
        time.pass_hours(250.0)
        earlier.curate()
    assert forming(earlier) == []


def test_what_waited_in_the_inbox_was_learned_then(earlier: Memory) -> None:
    earlier.consolidate()
    record = earlier.blocks.store.get(f"block:{content_hash('Still in the inbox 280')}")
    assert (record.status, record.data["learned_at"]) == ("active", 22.0)
