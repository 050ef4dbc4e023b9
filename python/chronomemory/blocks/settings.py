"""What holds for a memory until someone says otherwise: its settings, and what every store begins with."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from chronomemory._core import Edition
from chronomemory.blocks.engine import Blocks
from chronomemory.blocks.storage.config import MOST_RESULTS, get_number
from chronomemory.blocks.storage.seed import is_seeded, seed_keys, seed_memory
from chronomemory.blocks.time.timed import Timed
from chronomemory.face.arguments import count, within
from chronomemory.face.batch import Connection
from chronomemory.face.moments import Seconds

__all__ = ["Settled"]

T = TypeVar("T")


class Settled(Timed):
    """Blocks with a clock and settings: those that were given hold here, whatever the store says.

    To read writes nothing: the built-in frames and settings hold without being there, and are written down
    with the first batch. To learn is no batch, and stays one event.
    """

    def __init__(
        self,
        blocks: Blocks,
        seconds: Seconds = time.monotonic,
        *,
        top_k: int | None = None,
        inbox_threshold: int | None = None,
        prune_threshold: float | None = None,
    ) -> None:
        super().__init__(blocks, seconds)
        self._settings: dict[str, float] = {}
        if top_k is not None:
            self._settings["top_k"] = count("top_k", top_k, 1, MOST_RESULTS)
        if inbox_threshold is not None:
            self._settings["inbox_threshold"] = count("inbox_threshold", inbox_threshold, 1, None)
        if prune_threshold is not None:
            self._settings["prune_threshold"] = within("prune_threshold", prune_threshold)
        self._is_seeded = False

    def _setting(self, conn: Connection, key: str) -> float:
        given = self._settings.get(key)
        return get_number(conn, key) if given is None else given

    def _look_at(self, conn: Connection, record_ids: Iterable[str]) -> Edition:
        """Look at several records in one go; at what a memory begins with, too, unless that is known."""
        if self._is_seeded:
            return conn.fetch(record_ids)
        seen = conn.fetch([*record_ids, *seed_keys(conn.scope)])
        self._is_seeded = is_seeded(conn)
        return seen

    def _run(self, work: Callable[[Connection], T]) -> T:
        """Run a batch; the first that writes writes down, too, what a memory begins with."""
        if self._is_seeded:
            return super()._run(work)
        wrote = False

        def seeded(conn: Connection) -> T:
            nonlocal wrote
            done = work(conn)
            wrote = conn.events() > 0
            if wrote:
                seed_memory(conn)
            return done

        done = super()._run(seeded)
        self._is_seeded = self._is_seeded or wrote
        return done
