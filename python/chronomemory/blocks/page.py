"""The graph of blocks as one page that needs nothing but a browser."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from chronomemory.blocks.ids import BLOCK, CONTRADICTION, EDGE, plain_id
from chronomemory.blocks.storage.blocks import tags_of
from chronomemory.face.batch import Connection

__all__ = ["graph_data", "graph_page"]

_PAGE = "graph_page.html"


def graph_data(conn: Connection, *, limit: int = 2000) -> dict[str, Any]:
    """Return blocks, links and contradictions; of many blocks those with the most links."""
    records = {plain_id(record.id): record for record in conn.records(BLOCK, "active", "inbox")}
    edges = [record.data for record in conn.records(EDGE, "active")]
    links = dict.fromkeys(records, 0)
    for edge in edges:
        for end in (edge["from_id"], edge["to_id"]):
            if end in links:
                links[end] += 1
    kept = set(sorted(links, key=lambda block_id: (-links[block_id], block_id))[:limit])
    clashes = [record.data for record in conn.records(CONTRADICTION, "active")]
    return {
        "blocks": [
            {
                "id": block_id,
                "content": record.data["content"],
                "category": record.data["category"],
                "status": record.status,
                "confidence": record.confidence,
                "reinforcement_count": record.data.get("reinforcement_count", 0),
                "tags": list(tags_of(record)),
            }
            for block_id, record in records.items()
            if block_id in kept
        ],
        "edges": [
            {"from": edge["from_id"], "to": edge["to_id"], "weight": edge["weight"]}
            for edge in edges
            if {edge["from_id"], edge["to_id"]} <= kept
        ],
        "contradictions": [
            {"from": clash["block_a_id"], "to": clash["block_b_id"], "score": clash["score"]}
            for clash in clashes
            if {clash["block_a_id"], clash["block_b_id"]} <= kept
        ],
        "left_out": len(records) - len(kept),
    }


def graph_page(conn: Connection, *, limit: int = 2000) -> str:
    """Return the page: self-contained, and what blocks say can do nothing in it."""
    page = resources.files("chronomemory.blocks").joinpath(_PAGE).read_text(encoding="utf-8")
    spelled = json.dumps(graph_data(conn, limit=limit), ensure_ascii=False)
    # Nothing in the data may end the script element, or begin a comment in it.
    for letter in "<>&":
        spelled = spelled.replace(letter, f"\\u{ord(letter):04x}")
    return page.replace("__DATA__", spelled)
