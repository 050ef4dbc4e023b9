"""The graph of blocks as one page that needs nothing but a browser."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from chronomemory import drawing
from chronomemory.blocks.ids import BLOCK, CONTRADICTION, EDGE, plain_id
from chronomemory.blocks.storage.blocks import tags_of
from chronomemory.drawing import Dot, Line
from chronomemory.face.batch import Connection
from chronomemory.record import ChronoRecord


@dataclass(frozen=True, slots=True)
class BlockGraph:
    """Blocks as dots, links and contradictions as lines, and how many blocks are left out."""

    blocks: list[Dot]
    edges: list[Line]
    contradictions: list[Line]
    left_out: int

    def page(self) -> str:
        """Return a self-contained page; block contents are shown as text and never run."""
        left_out = f" {self.left_out:,} blocks with fewer links are left out." if self.left_out else ""
        return drawing.graph_page(
            self.blocks,
            [*self.edges, *self.contradictions],
            title="Blocks and their links",
            note="A larger dot is believed more, a dashed red line is a contradiction." + left_out,
            empty="There are no blocks to draw yet: chronomemory learn takes something in.",
            dot_noun="block",
            line_noun="link",
            directed=False,
            limit=len(self.blocks),
        )


def block_graph(conn: Connection, *, limit: int = 2000) -> BlockGraph:
    """Return blocks, links and contradictions; of many blocks those with the most links."""
    records = {plain_id(record.id): record for record in conn.records(BLOCK, "active", "inbox")}
    edges = [record.data for record in conn.records(EDGE, "active")]
    clashes = [record.data for record in conn.records(CONTRADICTION, "active")]
    links = Counter(end for edge in edges for end in (edge["from_id"], edge["to_id"]))
    kept = set(sorted(records, key=lambda block_id: (-links[block_id], block_id))[:limit])
    lines = [Line(edge["from_id"], edge["to_id"], "link", weight=edge["weight"]) for edge in edges]
    alarms = [
        Line(clash["block_a_id"], clash["block_b_id"], "contradiction", weight=clash["score"], alarm=True)
        for clash in clashes
    ]
    return BlockGraph(
        [_dot(block_id, record) for block_id, record in records.items() if block_id in kept],
        [line for line in lines if {line.source, line.target} <= kept],
        [line for line in alarms if {line.source, line.target} <= kept],
        len(records) - len(kept),
    )


def _dot(block_id: str, record: ChronoRecord) -> Dot:
    facts = {
        "status": record.status,
        "confidence": str(record.confidence),
        "reinforcement count": str(record.data.get("reinforcement_count", 0)),
        "tags": ", ".join(tags_of(record)),
    }
    category, content = record.data["category"], record.data["content"]
    return Dot(block_id, category, content, tuple(facts.items()), weight=record.confidence)
