"""Pictures of graphs and paths, and the formats in which other tools take them; knows no face."""

from chronomemory.drawing.formats import to_dot, to_graphml
from chronomemory.drawing.graphs import graph_page
from chronomemory.drawing.parts import Branch, Dot, Line, Step
from chronomemory.drawing.paths import paths_page

__all__ = ["Branch", "Dot", "Line", "Step", "graph_page", "paths_page", "to_dot", "to_graphml"]
