"""The operations on conversational paths: pure functions that return the new path and its event."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from chronomemory.graph.errors import PathError
from chronomemory.graph.models import MemoryEvent, MemoryPath, moment_of

PathStep = tuple[MemoryPath, MemoryEvent]


def branch(
    path_id: str, parent: MemoryPath | None = None, *, ts: datetime | str, event_id: str = ""
) -> PathStep:
    """Begin a path: off another one, or at the beginning if there is none.

    >>> path, event = branch("main", ts="2026-05-18T09:00:00Z")
    >>> path.active, event.kind
    (True, 'path.branched')
    """
    path = MemoryPath(path_id, parent_id=None if parent is None else parent.id)
    if parent is not None and parent.id == path_id:
        raise PathError(f"path {path_id!r} cannot branch off itself", path_id=path_id)
    return path, _event("path.branched", path_id, ts, event_id, parent_id=path.parent_id)


def record(path: MemoryPath, event_ids: Iterable[str], *, ts: datetime | str, event_id: str = "") -> PathStep:
    """Put events on a path that is active, behind those that are there; one that is there stays once."""
    _check_active(path, "takes no new events")
    known = set(path.event_ids)
    new = [one for one in dict.fromkeys(event_ids) if one not in known]
    grown = replace(path, event_ids=(*path.event_ids, *new))
    return grown, _event("path.recorded", path.id, ts, event_id, event_ids=new)


def merge(
    path: MemoryPath,
    into: MemoryPath,
    *,
    known: Mapping[str, MemoryPath],
    ts: datetime | str,
    event_id: str = "",
) -> PathStep:
    """End an active path in another active one, which must not come from it; ``known`` are all paths."""
    if path.id == into.id:
        raise PathError(f"path {path.id!r} cannot be merged into itself", path_id=path.id)
    _check_active(path, "cannot be merged")
    _check_active(into, "takes no other path")
    if path.id in origins_of(into, known):
        raise PathError(
            f"path {into.id!r} comes from {path.id!r}: merging it there would make a cycle", path_id=path.id
        )
    merged = replace(path, active=False, merged_into=into.id)
    return merged, _event("path.merged", path.id, ts, event_id, merged_into=into.id)


def abandon(path: MemoryPath, reason: str, *, ts: datetime | str, event_id: str = "") -> PathStep:
    """End an active path, and say why."""
    if not isinstance(reason, str) or not reason.strip():
        raise PathError(f"path {path.id!r}: a reason is needed to abandon it", path_id=path.id)
    _check_active(path, "cannot be abandoned")
    ended = replace(path, active=False, abandoned_reason=reason)
    return ended, _event("path.abandoned", path.id, ts, event_id, reason=reason)


def compact(
    path: MemoryPath, *, summary_id: str | None = None, ts: datetime | str, event_id: str = ""
) -> PathStep:
    """Mark the events of a path as summed up, by a node if one is named; all of them stay where they are."""
    if not path.event_ids:
        raise PathError(f"path {path.id!r} has no events to compact", path_id=path.id)
    compaction = {"events": len(path.event_ids), "summary_id": summary_id}
    done = replace(path, compaction=compaction)
    return done, _event("path.compacted", path.id, ts, event_id, compaction=compaction)


def _event(kind: str, path_id: str, ts: datetime | str, event_id: str, **data: object) -> MemoryEvent:
    return MemoryEvent(event_id, kind, moment_of(ts), path_id=path_id, data=data)


def _check_active(path: MemoryPath, why: str) -> None:
    if not path.active:
        ended = f"merged into {path.merged_into!r}" if path.merged_into else "abandoned"
        raise PathError(f"path {path.id!r} was {ended}: it {why}", path_id=path.id)


def origins_of(path: MemoryPath, known: Mapping[str, MemoryPath]) -> set[str]:
    """Return the paths that one comes from, or has gone into, however far."""
    found: set[str] = set()
    left = [path.parent_id, path.merged_into]
    while left:
        name = left.pop()
        if name is not None and name not in found:
            found.add(name)
            if (one := known.get(name)) is not None:
                left += [one.parent_id, one.merged_into]
    return found
