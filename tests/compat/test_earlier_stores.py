"""A store that an earlier version wrote answers as it did then.

The store in ``data/november`` was written before the log had a body of its own, blocks stood on the ground
of the faces, and a showing was one event: records, batches, tombstones, embeddings, a compaction with its
archive, and a memory of blocks with sessions, links and outcomes. ``expected.json`` is what that version
answered, but for the recall: what surrounds a block counts in it since, and beside the lexical embedder words
count alone.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from chronomemory import ChronoStore
from chronomemory.blocks import Memory, sync

EARLIER = Path(__file__).parents[1] / "data" / "november"


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    shutil.copytree(EARLIER, tmp_path / ".chronomemory", ignore=shutil.ignore_patterns("expected.json"))
    return tmp_path


def answers(root: Path) -> dict[str, Any]:
    """Return what a store says of itself, in JSON's own types."""
    with ChronoStore(root) as store:
        last = store.wal_seq()
        told: dict[str, Any] = {
            "seq": last,
            "head": store.health().head,
            "ok": store.chain_valid(),
            "records": [record.to_dict() for record in store.query(status="")],
            "tally": sorted(map(list, store.engine.tally())),
            "histories": {
                name: [event.hash for event in store.history(name)] for name in ("R1", "R9", "R45", "B3")
            },
            "then": {
                str(seq): sorted(
                    [record.id, record.label, record.status] for record in store.as_of(seq).query(status="")
                )
                for seq in (10, 41, 55, last)
            },
            "nearest": [
                [near.record_id, round(near.score, 6)]
                for near in store.vectors.nearest([1.0] + [0.0] * 7, k=5, space="demo")
            ],
            "changed": store.engine.changed_since(60),
        }
        # The rules of the version that wrote the store.
        with Memory(store, min_similarity=0.0, prefer_newest=False) as memory:
            items = memory.list(status=None)[::-1]
            with memory.blocks.connect() as conn:
                rows = [{**(sync.get_block(conn, item.id) or {}), "tags": list(item.tags)} for item in items]
            told["blocks"] = [
                {name: value for name, value in row.items() if name != "embedding"} for row in rows
            ]
            found = memory.recall("harbour lantern", top_k=8)
            told["recall"] = [[block.id, block.score, *block.components] for block in found]
            told["edges"] = sorted(
                [link.id, link.status, json.dumps(link.data, sort_keys=True)]
                for link in store.engine.query(kind="bedge", status=None)
            )
        told["after"] = store.wal_seq()
    plain: dict[str, Any] = json.loads(json.dumps(told))
    return plain


def expected() -> dict[str, Any]:
    told: dict[str, Any] = json.loads((EARLIER / "expected.json").read_text(encoding="utf-8"))
    return told


@pytest.mark.parametrize("missing", [(), ("snapshot.json",), ("snapshot.json", "synced")])
def test_it_answers_alike(earlier: Path, missing: tuple[str, ...]) -> None:
    for name in missing:
        (earlier / ".chronomemory" / name).unlink()
    assert answers(earlier) == expected()


def test_what_is_derived_is_the_same_again(earlier: Path) -> None:
    with ChronoStore(earlier) as store:
        store.verify()
        store.search("harbour")
    assert answers(earlier) == expected()


def test_it_goes_on(earlier: Path) -> None:
    with Memory(earlier) as memory, memory.session():
        shown = memory.frame("attention", "harbour lantern")
        assert shown.blocks
        memory.outcome([block.id for block in shown.blocks], 1.0)
        memory.blocks.store.compact()
    with ChronoStore(earlier) as store:
        assert store.chain_valid()
        before = {record["id"]: record for record in expected()["records"]}
        for record in store.query(status=""):
            assert before[record.id]["label"] == record.label
        assert [event.hash for event in store.history("R1")] == expected()["histories"]["R1"]
