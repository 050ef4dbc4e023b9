"""What a store of blocks begins with."""

from __future__ import annotations

import json
from typing import Any

from chronomemory.blocks.ids import config_key, frame_key
from chronomemory.blocks.storage.config import DEFAULT_CONFIG, get_config, set_config
from chronomemory.blocks.storage.frames import get_frame, upsert_frame
from chronomemory.face.batch import Connection
from chronomemory.scope import Scope

__all__ = ["BUILTIN_FRAMES", "KNOWN_FRAMES", "is_seeded", "seed_builtin_data", "seed_keys", "seed_memory"]

#: How far back a frame looks unless it says otherwise, in active hours.
SEARCH_WINDOW_HOURS = 200.0

_NAMES = ("similarity", "confidence", "recency", "centrality", "reinforcement")


def _frame(
    weights: tuple[float, ...],
    *,
    tags: tuple[str, ...] = (),
    guarantees: tuple[str, ...] = (),
    template: str,
    budget: int,
    cache_seconds: int | None = None,
) -> dict[str, Any]:
    filters = {"tag_patterns": list(tags), "categories": [], "search_window": SEARCH_WINDOW_HOURS}
    return {
        "weights_json": json.dumps(dict(zip(_NAMES, weights, strict=True))),
        "filters_json": json.dumps(filters),
        "guarantees_json": json.dumps(list(guarantees)),
        "template": template,
        "token_budget": budget,
        "cache_json": None if cache_seconds is None else json.dumps({"ttl_seconds": cache_seconds}),
        "source": "builtin",
    }


#: The three frames of every store.
BUILTIN_FRAMES: dict[str, dict[str, Any]] = {
    "self": _frame(
        (0.10, 0.30, 0.05, 0.25, 0.30),
        tags=("self/%",),
        guarantees=("self/constitutional",),
        template="## Who I am\n{blocks}",
        budget=600,
        cache_seconds=3600,
    ),
    "attention": _frame(
        (0.35, 0.15, 0.25, 0.15, 0.10), template="## What matters here\n{blocks}", budget=2000
    ),
    "task": _frame(
        (0.20, 0.20, 0.20, 0.20, 0.20),
        guarantees=("self/goal",),
        template="## What to do\n{blocks}",
        budget=800,
    ),
}

#: What a memory knows unless its store says otherwise: one more, for thinking through what others would do.
KNOWN_FRAMES: dict[str, dict[str, Any]] = {
    **BUILTIN_FRAMES,
    "simulate": _frame(
        (0.25, 0.25, 0.15, 0.20, 0.15),
        guarantees=("self/constitutional", "mind/%"),
        template="## What others may think\n{blocks}",
        budget=2000,
    ),
}


def seed_builtin_data(conn: Connection) -> None:
    """Write the built-in frames and settings that are not there yet; doing it twice changes nothing."""
    _seed_frames(conn, BUILTIN_FRAMES)
    for key, value in DEFAULT_CONFIG.items():
        if get_config(conn, key) is None:
            set_config(conn, key, value)


def seed_memory(conn: Connection) -> None:
    """Write down all that a memory begins with, so that others who read the store know it too.

    What is shared begins with it, and nothing else does.
    """
    keys = seed_keys(conn.scope)
    if not keys:
        return
    conn.fetch(keys)
    if not is_seeded(conn):
        seed_builtin_data(conn)
        _seed_frames(conn, KNOWN_FRAMES)


def seed_keys(scope: Scope) -> list[str]:
    """Return the ids of all that a memory of this scope begins with."""
    return [] if scope.to_dict() else [*map(frame_key, KNOWN_FRAMES), *map(config_key, DEFAULT_CONFIG)]


def is_seeded(conn: Connection) -> bool:
    """Say whether all of it is there.

    A batch that finds all of it has not looked at it: the clock is among it, which others set all the time.
    """
    return all(conn.glimpse(key) is not None for key in seed_keys(conn.scope))


def _seed_frames(conn: Connection, frames: dict[str, dict[str, Any]]) -> None:
    for name, fields in frames.items():
        if get_frame(conn, name) is None:
            upsert_frame(conn, name=name, **fields)
