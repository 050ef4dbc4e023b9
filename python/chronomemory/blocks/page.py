"""The graph of blocks as one page that needs nothing but a browser."""

from __future__ import annotations

from typing import Any

from chronomemory import drawing
from chronomemory.blocks.ids import BLOCK, CONTRADICTION, EDGE, plain_id
from chronomemory.blocks.storage.blocks import tags_of
from chronomemory.drawing import Dot, Line
from chronomemory.face.batch import Connection

#: What is told of a block that is chosen, beside its id, its category and its tags.
_FACTS = ("status", "confidence", "reinforcement_count")


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
    return page_of_graph(graph_data(conn, limit=limit))


def page_of_graph(data: dict[str, Any]) -> str:
    """Return the page of what ``graph_data`` told."""
    dots = [_dot(block) for block in data["blocks"]]
    lines = [Line(edge["from"], edge["to"], "link", weight=edge["weight"]) for edge in data["edges"]]
    lines += [
        Line(clash["from"], clash["to"], "contradiction", weight=clash["score"], alarm=True)
        for clash in data["contradictions"]
    ]
    left_out = f" {data['left_out']:,} blocks with fewer links are left out." if data["left_out"] else ""
    return drawing.graph_page(
        dots,
        lines,
        title="Blocks and their links",
        note="A larger dot is believed more, a dashed red line is a contradiction." + left_out,
        empty="There are no blocks to draw yet: chronomemory learn takes something in.",
        dot_noun="block",
        line_noun="link",
        directed=False,
        limit=len(dots),
    )


def _dot(block: dict[str, Any]) -> Dot:
    facts = [(name.replace("_", " "), str(block[name])) for name in _FACTS]
    facts.append(("tags", ", ".join(block["tags"])))
    return Dot(block["id"], block["category"], block["content"], tuple(facts), weight=block["confidence"])
