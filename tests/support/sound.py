"""Each kind of the blocks face as the face writes it."""

from __future__ import annotations

from typing import Any

__all__ = ["SOUND", "sound"]

_WHEN = "2026-01-31T12:00:00+00:00"
_WEIGHTS = '{"similarity":0.2,"confidence":0.2,"recency":0.2,"centrality":0.2,"reinforcement":0.2}'

#: By kind: an id and the data.
SOUND: dict[str, tuple[str, dict[str, Any]]] = {
    "block": ("block:1", {"content": "Ice is cold", "category": "fact", "source": "me", "created_at": _WHEN}),
    "bedge": ("bedge:1:2", {"from_id": "1", "to_id": "2", "weight": 0.5, "created_at": _WHEN}),
    "contradiction": (
        "contradiction:1:2",
        {"block_a_id": "1", "block_b_id": "2", "score": 0.5, "created_at": _WHEN},
    ),
    "frame": (
        "frame:1",
        {
            "weights_json": _WEIGHTS,
            "filters_json": "{}",
            "guarantees_json": "[]",
            "template": "{blocks}",
            "token_budget": 100,
            "source": "me",
            "created_at": _WHEN,
        },
    ),
    "session": ("session:1", {"task_type": "general", "started_at": _WHEN, "start_active_hours": 0.0}),
    "config": ("config:1", {"value": "any"}),
}


def sound(kind: str, **data: Any) -> dict[str, Any]:
    """Return a record of a kind with other data; what is None is left out."""
    record_id, usual = SOUND[kind]
    changed = {name: value for name, value in {**usual, **data}.items() if value is not None}
    return {"id": record_id, "kind": kind, "data": changed}
