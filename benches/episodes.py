"""Measures how fast episodes are put, found and consolidated, and facts applied.

`python -m benches.episodes [EPISODES USERS]`. Each figure is of an answer that is checked.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone

from chronomemory import ChronoStore
from chronomemory.episodes import (
    ChronoFactStore,
    ChronoMemoryStore,
    ConsolidationRule,
    Episode,
)

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
AT_ONCE = 500
ONE_BY_ONE = 5_000
ASKED = 1_000


def turns(user: int, users: int, total: int) -> Iterator[Episode]:
    """Yield the episodes of one user: every second one says something of a subject."""
    for number in range(user, total, users):
        name = f"user-{user}"
        said = {"subject": name, "predicate": f"p{number % 50}", "object": str(number)}
        yield Episode(
            id=f"e{number}",
            content=f"turn {number} of a conversation about this and that",
            timestamp=START + timedelta(seconds=number),
            source_node="chat",
            user=name,
            session="s1",
            agent="helper",
            metadata=said if number % 2 else {},
        )


class Watch:
    """How much time passes, and how much of it this process works: on a busy machine the two differ."""

    def __init__(self) -> None:
        self._begun, self._worked = time.perf_counter(), time.process_time()

    def tell(self, what: str, number: int) -> None:
        """Say how many were done in a second, and in a second of work."""
        took, worked = time.perf_counter() - self._begun, time.process_time() - self._worked
        print(f"{what:52}{number / took:>14,.0f}/s{number / worked:>14,.0f}/s of work")


def show(what: str, times: list[float]) -> None:
    print(f"{what:52}{statistics.median(times) * 1e6:>13,.0f} µs")


async def measure(total: int, users: int) -> None:
    with tempfile.TemporaryDirectory() as folder, ChronoStore(folder) as store:
        memory, facts = ChronoMemoryStore(store), ChronoFactStore(store)
        watch = Watch()
        for user in range(users):
            name, own = f"user-{user}", list(turns(user, users, total))
            memory.episodes.put_many(own, user=name, session="s1", agent="helper")
        watch.tell(f"put_many, {total:,} episodes of {users:,} users, made", total)

        new = [one.model_copy(update={"id": f"new-{one.id}"}) for one in turns(0, 1, ONE_BY_ONE)]
        watch = Watch()
        for one in new:
            await memory.put(one, user=one.user, session="s1", agent="helper")
        watch.tell("put, one at a time, awaited", ONE_BY_ONE)
        watch = Watch()
        for one in new:
            memory.episodes.put(one, user=one.user, session="s1", agent="helper")
        watch.tell("put, one at a time, plain", ONE_BY_ONE)

        begin = time.perf_counter()
        memory.episodes.recent("user-1", limit=10)
        show("the first recent, which makes the index", [time.perf_counter() - begin])
        took = []
        for user in range(ASKED):
            begin = time.perf_counter()
            found = memory.episodes.recent(f"user-{1 + user % (users - 1)}", limit=10)
            took.append(time.perf_counter() - begin)
            assert len(found) == min(10, total // users)
            assert found == sorted(found, key=lambda one: one.timestamp, reverse=True)
        show("recent(user, limit=10), median", took)

        for filtered, when in (("all", ""), ("1 in 100 by a filter", "metadata.object LIKE '%99'")):
            rule = ConsolidationRule(id="r", cadence={"every": 1}, when_filter=when, then_emits=[])
            watch = Watch()
            deltas = memory.episodes.consolidate(rule)
            watch.tell(f"consolidate, {filtered}", total + ONE_BY_ONE)
            assert len(deltas) == (total + ONE_BY_ONE if not when else len(deltas)) and deltas

        watch = Watch()
        for delta in deltas[:ASKED]:
            await facts.apply_delta(delta, missing_ok=True)
        watch.tell("apply_delta, one at a time, awaited", len(deltas[:ASKED]))


if __name__ == "__main__":
    episodes, users = (int(word) for word in sys.argv[1:3]) if len(sys.argv) > 2 else (1_000_000, 10_000)
    asyncio.run(measure(episodes, users))
