"""Embedders: a protocol, one that needs nothing, and adapters for what people use.

The adapters import what they adapt at their top, so each is a module of its own: import
``chronomemory.embedders.sentence_transformer`` or ``chronomemory.embedders.fast`` only where the
package behind it is installed.
"""

from __future__ import annotations

from chronomemory.embedders.endpoint import (
    CallableEmbedder,
    CallableTokenEmbedder,
    EndpointEmbedder,
    EndpointError,
)
from chronomemory.embedders.lexical import LexicalEmbedder
from chronomemory.embedders.protocol import (
    Embedder,
    Matrix,
    TokenEmbedder,
    Vector,
    check_embedder,
    usual_floor,
)

__all__ = [
    "CallableEmbedder",
    "CallableTokenEmbedder",
    "Embedder",
    "EndpointEmbedder",
    "EndpointError",
    "LexicalEmbedder",
    "Matrix",
    "TokenEmbedder",
    "Vector",
    "check_embedder",
    "usual_floor",
]
