"""Reads and changes frames as data, and writes what a store of blocks begins with."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from chronomemory.blocks.ids import FRAME, called, config_key, frame_key, looks_scoped
from chronomemory.blocks.storage.config import DEFAULT_CONFIG, get_config, set_config
from chronomemory.face.arguments import contents, count, must, string
from chronomemory.face.batch import Connection
from chronomemory.face.moments import now
from chronomemory.record import ChronoRecord
from chronomemory.scope import Scope

#: More than any model reads; the engine counts no further than this without losing ones.
_MOST_TOKENS = 2**53

_COLUMNS = (
    "weights_json",
    "filters_json",
    "guarantees_json",
    "template",
    "token_budget",
    "cache_json",
    "source",
    "created_at",
)


def checked_budget(tokens: int) -> int:
    """Return how many tokens a frame may have, or refuse it."""
    return count("token_budget", tokens, 0, _MOST_TOKENS)


def get_frame(conn: Connection, name: str) -> dict[str, Any] | None:
    """Return a frame, one's own before what is wider, its JSON fields as raw strings, or None."""
    found = (conn.record(key) for key in frame_keys(name, conn.scope))
    return next((_frame_dict(record) for record in found if record is not None), None)


@lru_cache(maxsize=4096)
def frame_keys(name: str, scope: Scope) -> tuple[str, ...]:
    """Return the ids under which a frame may stand, one's own first."""
    return tuple(frame_key(name, wider) for wider in scope.narrowest_first())


def _frame_dict(record: ChronoRecord) -> dict[str, Any]:
    return {
        "name": called(record.id, record.data),
        **{column: record.data.get(column) for column in _COLUMNS},
    }


@contents
def upsert_frame(
    conn: Connection,
    *,
    name: str,
    weights_json: str,
    filters_json: str,
    guarantees_json: str,
    template: str,
    token_budget: int,
    cache_json: str | None,
    source: str,
) -> None:
    """Write a frame, in place of one with its name; when it was first written is kept."""
    string("name", name, empty=False)
    if looks_scoped(name):
        raise must("name", "not begin with the digits of a scope", name)
    known = conn.record(frame_key(name, conn.scope))
    data: dict[str, Any] = {
        "weights_json": string("weights_json", weights_json),
        "filters_json": string("filters_json", filters_json),
        "guarantees_json": string("guarantees_json", guarantees_json),
        "template": string("template", template),
        "token_budget": checked_budget(token_budget),
        "source": string("source", source),
        "created_at": known.data["created_at"] if known is not None else now(),
    }
    if cache_json is not None:
        data["cache_json"] = string("cache_json", cache_json)
    conn.put(ChronoRecord(id=frame_key(name, conn.scope), kind=FRAME, data=data))


def list_frames(conn: Connection) -> list[dict[str, Any]]:
    """Return all frames, by name; one's own stands for what is wider."""
    names = sorted({called(record.id, record.data) for record in conn.records(FRAME)})
    return [frame for frame in (get_frame(conn, name) for name in names) if frame is not None]


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
