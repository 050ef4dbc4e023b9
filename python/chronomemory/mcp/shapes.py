"""Output schemas of all tools: what a client may rely on in the structured channel."""

from __future__ import annotations

from typing import Any

from typing_extensions import NotRequired, TypedDict

#: How long an operation id may be.
OPERATION_LETTERS = 200


class Named(TypedDict):
    store: str
    scope: str


class Memory(TypedDict):
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
    memories: list[Memory]
    left_out: int
    left_out_is_exact: bool
    next_cursor: str
    notes: list[str]


class OneMemory(Named):
    memory: Memory
    evidence: list[str]
    data: dict[str, Any]
    left_out: int
    next_offset: int
    notes: list[str]


class Written(Named):
    outcome: str
    memory_id: str
    superseded_id: NotRequired[str]
    doubted: NotRequired[list[str]]
    repeated: bool
    notes: list[str]


class Event(TypedDict):
    seq: int
    time: str
    op: str
    changes: list[str]


class EventList(Named):
    id: str
    events: list[Event]
    left_out: int
    notes: list[str]


class Ground(TypedDict):
    depth: int
    relation: str
    id: str
    text: str
    status: str
    confidence: float


class Explanation(Named):
    memory: Memory
    grounds: list[Ground]
    circles: list[str]
    left_out: int
    notes: list[str]


class Verdict(Named):
    valid: bool
    rung: str
    events: int
    last_seq: int
    head: str
    damage: list[str]
    left_out: int
    advice: str
    notes: list[str]


#: A bound that is larger, or that says no more than that a number is not negative, tells a model nothing.
_TELLING = 10**6


def slim(schema: Any, *without: str) -> Any:
    """Return a schema without some words about its types, such as titles: a model reads every one of them.

    Defaults that are empty and bounds that nobody reaches go as well. A shape that is named once stands where
    it is named.

    >>> slim({"title": "T", "properties": {"title": {"title": "X", "type": "string"}}}, "title")
    {'properties': {'title': {'type': 'string'}}}
    """
    names = _named(schema)
    once = {name: part for name, part in schema.get("$defs", {}).items() if names.count(name) == 1}
    slimmed = _slim(schema, without, once)
    slimmed["$defs"] = {name: part for name, part in slimmed.get("$defs", {}).items() if name not in once}
    return slimmed if slimmed["$defs"] else {key: slimmed[key] for key in slimmed if key != "$defs"}


def _named(schema: Any) -> list[str]:
    if isinstance(schema, list):
        return [name for part in schema for name in _named(part)]
    if not isinstance(schema, dict):
        return []
    own = [schema["$ref"].rpartition("/")[2]] if isinstance(schema.get("$ref"), str) else []
    return [*own, *(name for part in schema.values() for name in _named(part))]


def _slim(schema: Any, without: tuple[str, ...], once: dict[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_slim(part, without, once) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if isinstance(name := schema.get("$ref"), str) and name.rpartition("/")[2] in once:
        return _slim({**once[name.rpartition("/")[2]], **schema, "$ref": None}, without, once)
    kept = {}
    for name, part in schema.items():
        if name in ("properties", "$defs"):  # what stands here are names of the caller's
            kept[name] = {key: _slim(each, without, once) for key, each in part.items()}
        elif name not in without and not _is_empty(name, part):
            kept[name] = _slim(part, without, once)
    return kept


def _is_empty(name: str, part: Any) -> bool:
    """Return whether a keyword of a schema can be left out."""
    match name:
        case "maximum":
            return bool(part >= _TELLING)
        case "minimum":
            return bool(part == 0)
        case "default":
            return part in ("", [], {})
        case "additionalProperties":
            return part is True
        case _:
            return part is None


class PageTold(TypedDict):
    page: str
    title: str
    description: str
    tags: list[str]
    status: str
    updated: str
    entry_count: int


class EntryTold(TypedDict):
    id: str
    page: str
    time: str
    tags: list[str]
    text: str
    source: str
    status: str
    confidence: float
    superseded_by: NotRequired[str]
    reason: NotRequired[str]
    score: NotRequired[float]
    cut: NotRequired[bool]


class PagesTold(Named):
    pages: list[PageTold]
    #: Memories as ``search_memories`` shows them, if there are no pages.
    memories: NotRequired[list[dict[str, Any]]]
    next_cursor: NotRequired[str]
    left_out: int
    next_offset: int
    notes: list[str]


class EntriesTold(Named):
    entries: list[EntryTold]
    left_out: int
    notes: list[str]


class RecentTold(EntriesTold):
    memories: NotRequired[list[dict[str, Any]]]
    next_cursor: NotRequired[str]


class PageRead(EntriesTold):
    next_offset: int


class FileTold(Named):
    result: str
    left_out: int
    notes: list[str]
    repeated: NotRequired[bool]


class SchemaTold(Named):
    schema: str
