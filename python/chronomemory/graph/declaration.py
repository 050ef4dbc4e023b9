"""What the ground must know of the graph face."""

from __future__ import annotations

from chronomemory.face.batch import Face
from chronomemory.face.handle import Handle
from chronomemory.graph.ids import FACE

__all__ = ["GRAPH", "GraphHandle"]

GRAPH = Face(name=FACE)


class GraphHandle(Handle):
    """The graph of one project, as one scope sees it."""

    face = GRAPH
