"""What the embedder of a server makes of a question; loaded by the first search of a server that has one."""

from __future__ import annotations

from typing import Any

from chronomemory.blocks.retrieval import reading_of
from chronomemory.mcp.served_store import ServedStore

__all__ = ["read"]


def read(served: ServedStore, query: str) -> dict[str, Any]:
    """Return the arguments for ``door.search``: one answer asks several times, and a model takes its time."""
    return {} if served.embedder is None else reading_of(served.door, served.embedder, query)
