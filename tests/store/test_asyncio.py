"""Asyncio tasks that write at the same time share their syncs."""

from __future__ import annotations

import asyncio
from pathlib import Path

from chronomemory import ChronoStore

TASKS = 200


def test_tasks_share_syncs_and_lose_nothing(tmp_path: Path) -> None:
    async def write_all(store: ChronoStore) -> None:
        await asyncio.gather(
            *(asyncio.to_thread(store.upsert, {"id": f"T-{number}"}) for number in range(TASKS))
        )

    with ChronoStore(tmp_path, durability="full") as store:
        store.upsert({"id": "first"})
        before = store.engine.log_status()["syncs"]
        asyncio.run(write_all(store))
        syncs = store.engine.log_status()["syncs"] - before
        assert store.record_count() == TASKS + 1
        assert syncs < TASKS, f"{syncs} syncs for {TASKS} writes"
        assert [event.seq for event in store.replay()] == list(range(1, TASKS + 2))
        assert store.chain_valid()
