"""What does a stored frame ask for?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from chronomemory.blocks.connection import Connection
from chronomemory.blocks.errors import FrameError
from chronomemory.blocks.storage.frames import get_frame, list_frames, upsert_frame
from chronomemory.blocks.storage.seed import SEARCH_WINDOW_HOURS
from chronomemory.blocks.types import CachePolicy, ScoringWeights

__all__ = ["Frame", "FrameFilters", "define_frame", "load_frame"]


class FrameFilters(BaseModel):
    """Which blocks a frame looks at; nothing means all."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    tag_patterns: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    search_window: float | None = Field(default=SEARCH_WINDOW_HOURS, ge=0.0)
    min_confidence: float = Field(default=0.0, ge=0.0, le=1.0)


class Frame(BaseModel):
    """A way to look at the memory: weights, filters, guarantees, template, budget, cache."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1)
    weights: ScoringWeights
    filters: FrameFilters = FrameFilters()
    guarantees: tuple[str, ...] = ()
    template: str = "{blocks}"
    token_budget: int = Field(default=2000, ge=0)
    cache: CachePolicy | None = None

    def render(self, contents: list[str], query: str | None) -> str:
        """Return the text of the frame; a template without a place for blocks stands before them."""
        blocks = "\n".join(f"- {content.strip()}" for content in contents)
        template = self.template if "{blocks}" in self.template else self.template + "\n{blocks}"
        parts = {"{blocks}": blocks, "{query}": query or "", "{frame}": self.name}
        # From left to right and once: a block may have braces in it.
        text, rest = "", template
        while rest:
            found = [(rest.index(mark), mark) for mark in parts if mark in rest]
            if not found:
                return text + rest
            at, mark = min(found)
            text, rest = text + rest[:at] + parts[mark], rest[at + len(mark) :]
        return text


def load_frame(conn: Connection, name: str) -> Frame:
    """Return a frame of the store; FrameError if there is none, or if it makes no sense."""
    stored = get_frame(conn, name)
    if stored is None:
        known = ", ".join(str(frame["name"]) for frame in list_frames(conn))
        raise FrameError(f"there is no frame {name!r}", recovery=f"There are: {known or 'none'}.")
    return frame_of(name, stored)


def frame_of(name: str, stored: Mapping[str, Any]) -> Frame:
    """Return the frame that the columns of a table hold, its JSON fields as raw strings."""
    try:
        parts: dict[str, Any] = {
            "weights": json.loads(stored["weights_json"]),
            "filters": json.loads(stored["filters_json"] or "{}"),
            "guarantees": json.loads(stored["guarantees_json"] or "[]"),
            "cache": json.loads(stored["cache_json"]) if stored.get("cache_json") else None,
        }
    except ValueError as fault:
        raise FrameError(
            f"the frame {name!r} holds broken JSON: {fault}", recovery="Write it anew."
        ) from fault
    return Frame(name=name, template=stored["template"], token_budget=stored["token_budget"], **parts)


def define_frame(conn: Connection, frame: Frame, *, source: str = "user") -> None:
    """Write a frame, in place of one with its name."""
    upsert_frame(
        conn,
        name=frame.name,
        weights_json=frame.weights.model_dump_json(),
        filters_json=frame.filters.model_dump_json(),
        guarantees_json=json.dumps(list(frame.guarantees)),
        template=frame.template,
        token_budget=frame.token_budget,
        cache_json=None if frame.cache is None else frame.cache.model_dump_json(),
        source=source,
    )
