"""The shapes of the answers, as output schemas: what a client may rely on in the structured channel."""

from __future__ import annotations

from typing import Any

from typing_extensions import NotRequired, TypedDict

__all__ = ["EventList", "Explanation", "MemoryList", "OneMemory", "Verdict", "Written", "slim"]


class Named(TypedDict):
    """Which store and scope an answer is about, and what else is to be known."""

    store: str
    scope: str


class Memory(TypedDict):
    """One memory."""

    id: str
    kind: str
    text: str
    source: str
    status: str
    confidence: float
    created_at: str
    updated_at: str
    tags: list[str]
    score: NotRequired[float]
    cut: NotRequired[bool]


class MemoryList(Named):
    """Memories, best first."""

    memories: list[Memory]
    left_out: int
    left_out_is_exact: bool
    next_cursor: str
    notes: list[str]


class OneMemory(Named):
    """One memory whole."""

    memory: Memory
    evidence: list[str]
    data: dict[str, Any]
    left_out: int
    next_offset: int
    notes: list[str]


class Written(Named):
    """What a write did."""

    outcome: str
    memory_id: str
    superseded_id: NotRequired[str]
    doubted: NotRequired[list[str]]
    repeated: bool
    notes: list[str]


class Event(TypedDict):
    """One event of a memory."""

    seq: int
    time: str
    op: str
    changes: list[str]


class EventList(Named):
    """The life of a memory."""

    id: str
    events: list[Event]
    left_out: int
    notes: list[str]


class Ground(TypedDict):
    """Something that a memory stands on, or that speaks against it."""

    depth: int
    relation: str
    id: str
    text: str
    status: str
    confidence: float


class Explanation(Named):
    """Why a memory is believed, or not any more."""

    memory: Memory
    grounds: list[Ground]
    circles: list[str]
    left_out: int
    notes: list[str]


class Verdict(Named):
    """What the files prove."""

    valid: bool
    rung: str
    events: int
    last_seq: int
    head: str
    damage: list[str]
    left_out: int
    advice: str
    notes: list[str]


def slim(schema: Any, *without: str) -> Any:
    """Return a schema without some words about its types, such as titles: a model reads every one of them.

    A default that is empty goes as well: that an argument may be left out is said elsewhere.

    >>> slim({"title": "T", "properties": {"title": {"title": "X", "type": "string"}}}, "title")
    {'properties': {'title': {'type': 'string'}}}
    """
    if isinstance(schema, list):
        return [slim(part, *without) for part in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {}
    for name, part in schema.items():
        if name in ("properties", "$defs"):  # what stands here are names of the caller's
            kept[name] = {key: slim(each, *without) for key, each in part.items()}
        elif name not in without and not (name == "default" and part in ("", [], {})):
            kept[name] = slim(part, *without)
    return kept
