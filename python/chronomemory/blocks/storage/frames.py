"""Reads and changes frames as data: weights, filters, guarantees, template, budget, cache."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from chronomemory.blocks.ids import FRAME, called, frame_key, looks_scoped
from chronomemory.face.arguments import contents, count, must, string
from chronomemory.face.batch import Connection
from chronomemory.face.moments import now
from chronomemory.record import ChronoRecord
from chronomemory.scope import Scope

__all__ = ["checked_budget", "frame_keys", "get_frame", "list_frames", "upsert_frame"]

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
