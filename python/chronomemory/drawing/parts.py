"""What pictures are made of: dots and lines, branches and steps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import TypeVar

from chronomemory.errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class Dot:
    """A node; ``facts`` are shown when it is selected, ``weight`` (0 to 1) is its size."""

    id: str
    kind: str = ""
    label: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    weight: float | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """An edge between two dots, named by their ids; an ``alarm`` is dashed."""

    source: str
    target: str
    kind: str = ""
    weight: float = 0.5
    alarm: bool = False


@dataclass(frozen=True, slots=True)
class Branch:
    """A path of steps; ``begun_by``, ``ended_by`` and ``compacted_by`` name the steps that did so."""

    id: str
    parent_id: str | None = None
    event_ids: tuple[str, ...] = ()
    active: bool = True
    merged_into: str | None = None
    abandoned_reason: str | None = None
    compaction: str | None = None
    begun_by: str | None = None
    ended_by: str | None = None
    compacted_by: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """An event of a path; steps come in the order of their places, then of their times."""

    id: str
    kind: str = ""
    time: str = ""
    note: str = ""
    place: int = 0


_Item = TypeVar("_Item", Dot, Branch, Step)


def sorted_by_id(items: Iterable[_Item], noun: str) -> list[_Item]:
    """Return dots, branches or steps sorted by id; two with one id are an ``InvalidArgument``."""
    found = sorted(items, key=attrgetter("id"))
    for one, other in pairwise(found):
        if one.id == other.id:
            raise InvalidArgument(f"ids of {noun} must differ, got {one.id!r} twice", field="id")
    return found


def sorted_lines(lines: Iterable[Line]) -> list[Line]:
    return sorted(lines, key=attrgetter("source", "target", "kind", "weight", "alarm"))
