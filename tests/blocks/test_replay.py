"""The log alone gives back everything that feeds a score, after any sequence of life."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from chronomemory.blocks import Memory, open_blocks, sync
from chronomemory.face.batch import Connection
from living import REFERENCE_RULES, Time

WORDS = (
    "deploy", "key", "vault", "anna", "prefers", "short", "answers", "release", "signed", "tag", "tests",
    "run", "nightly", "cache", "miss",
)  # fmt: skip
TAGS = ("self/constitutional", "self/goal", "self/value", "work", "home")
CATEGORIES = ("knowledge", "observation", "mind")


def known(conn: Connection) -> dict[str, Any]:
    """All that scores, links, clock and frames are made of."""
    blocks = [
        {**row, "tags": sync.get_tags(conn, row["id"]), "degree": sync.get_weighted_degree(conn, [row["id"]])}
        for row in (*sync.get_active_blocks(conn), *sync.get_inbox_blocks(conn))
    ]
    ids = [row["id"] for row in blocks]
    return {
        "blocks": blocks,
        "edges": [edge for block_id in ids for edge in sync.get_edges_for_block(conn, block_id)],
        "contradictions": sync.get_contradictions_for_blocks(conn, ids),
        "forming": sorted((link.id, link.data["sessions"]) for link in conn.records("bedge", "forming")),
        "learned": {row["id"]: conn.record(f"block:{row['id']}").data["learned_at"] for row in blocks},
        "hours": sync.get_total_active_hours(conn),
        "session": sync.get_active_session(conn),
    }


def scores(memory: Memory) -> list[list[tuple[Any, ...]]]:
    asked = (None, "deploy the release", "what does anna like?")
    # Weights of links are summed in the order in which they came, so the last digits may differ.
    return [
        [
            (found.id, *(round(value, 12) for value in (found.score, *found.components)))
            for found in memory.recall(query, top_k=8)
        ]
        for query in asked
    ]


def step(memory: Memory, time: Time, dice: random.Random) -> None:
    """Do one thing that agents do."""
    ids = [row["id"] for row in memory.list()]
    some = dice.sample(ids, min(len(ids), 3))
    time.pass_hours(dice.random() * 8.0)
    match dice.randrange(12):
        case 0 | 1 | 2:
            text = " ".join(dice.choices(WORDS, k=5))
            memory.learn(text, dice.sample(TAGS, dice.randrange(3)), dice.choice(CATEGORIES))
        case 3:
            memory.consolidate(limit=dice.choice((None, 2)))
        case 4 | 5:
            memory.frame(
                dice.choice(("self", "attention", "task", "simulate")), dice.choice((None, "release"))
            )
        case 6 if some:
            memory.outcome(some, dice.random(), dice.choice((1.0, 3.0)))
        case 7:
            memory.curate()
        case 8:
            memory.end_session()
            memory.begin_session()
        case 10 if len(some) > 1:
            memory.connect(*some[:2], dice.choice((None, "supports")), note="why", if_exists="update")
        case 11 if len(some) > 1:
            memory.outcome(some, 1.0, source="tests")
        case 9 if some:
            dice.choice((memory.forget, lambda one: memory.edit(one, f"edited {one} {dice.random()}")))(
                some[0]
            )


@pytest.mark.parametrize("seed", range(8))
def test_the_log_gives_back_the_live_system(seed: int, tmp_path: Path) -> None:
    dice, time = random.Random(seed), Time()
    live = Memory(tmp_path, seconds=time, **REFERENCE_RULES)
    for _ in range(60):
        step(live, time, dice)
    live.end_session()
    if seed % 2:
        live.blocks.store.compact()
    with live.blocks.connect() as conn:
        before = known(conn)
    told = scores(live)
    live.close()
    with open_blocks(tmp_path) as blocks, blocks.connect() as conn:
        assert known(conn) == before
    with Memory(tmp_path, seconds=time, **REFERENCE_RULES) as again:
        assert scores(again) == told
        assert again.blocks.store.chain_valid()
