"""What an embedder makes of a text that the whole store is searched for, where it has read blocks."""

from __future__ import annotations

from typing import Any

from chronomemory.blocks.declaration import READER, SPACES
from chronomemory.blocks.ids import BLOCK, block_key
from chronomemory.embedders import Embedder
from chronomemory.store import Records

__all__ = ["reading_of"]


def reading_of(door: Records, embedder: Embedder, text: str) -> dict[str, Any]:
    """Return the arguments for ``door.search``; none where the asker sees no block that was embedded by it.

    That others have such blocks does not count: what one scope holds changes no answer in another.
    """
    space = SPACES.of(embedder.model_name)
    # A plain record may be of any kind, and say anything of spaces.
    embedded = {"id": {"starts": block_key("")}, "data.space": space}
    known = {one.name for one in door.vectors.spaces()}
    if not text.strip() or space not in known or not door.query(kind=BLOCK, where=embedded, limit=1):
        return {}
    reading: dict[str, Any] = {"vector": SPACES.of_query(door, text, embedder), "space": space}
    token_space = READER.tokens.of(embedder.model_name)
    if token_space in known:
        tokens = READER.query_tokens(text, embedder)
        if tokens is not None:
            reading.update(query_tokens=tokens, token_space=token_space)
    return reading
