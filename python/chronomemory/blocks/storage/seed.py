"""What does a store of blocks begin with?"""

from __future__ import annotations

import json
from typing import Any

from chronomemory.blocks.connection import Connection
from chronomemory.blocks.storage.config import DEFAULT_CONFIG, get_config, set_config
from chronomemory.blocks.storage.frames import get_frame, upsert_frame

__all__ = ["BUILTIN_FRAMES", "SIMULATE", "seed_builtin_data", "seed_frame"]

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

#: For thinking through what others would do; a memory system adds it.
SIMULATE = _frame(
    (0.25, 0.25, 0.15, 0.20, 0.15),
    guarantees=("self/constitutional", "mind/%"),
    template="## What others may think\n{blocks}",
    budget=2000,
)


def seed_frame(conn: Connection, name: str, fields: dict[str, Any]) -> None:
    """Write a frame unless there is one of this name."""
    if get_frame(conn, name) is None:
        upsert_frame(conn, name=name, **fields)


def seed_builtin_data(conn: Connection) -> None:
    """Write the built-in frames and settings that are not there yet; doing it twice changes nothing."""
    for name, fields in BUILTIN_FRAMES.items():
        seed_frame(conn, name, fields)
    for key, value in DEFAULT_CONFIG.items():
        if get_config(conn, key) is None:
            set_config(conn, key, value)
