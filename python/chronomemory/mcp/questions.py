"""What the embedder of a server makes of a question; loaded by the first search of a server that has one."""

from __future__ import annotations

from typing import Any

from chronomemory.blocks.recall.searching import reading_of
from chronomemory.mcp.desk import Desk

__all__ = ["read"]


def read(desk: Desk, query: str) -> dict[str, Any]:
    """Return the arguments for ``door.search``: one answer asks several times, and a model takes its time."""
    return {} if desk.embedder is None else reading_of(desk.door, desk.embedder, query)
