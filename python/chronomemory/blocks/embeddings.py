"""Where does a block's embedding live? Beside the log, in a space of its model: only this module knows."""

from __future__ import annotations

import hashlib
import re

import numpy as np
import numpy.typing as npt

from chronomemory.blocks.connection import Connection, Vector
from chronomemory.blocks.ids import block_key
from chronomemory.embedders import Embedder
from chronomemory.embedders.protocol import as_matrix
from chronomemory.errors import InvalidRecord, UnknownSpace
from chronomemory.record import ChronoRecord
from chronomemory.store import ChronoStore

__all__ = [
    "attach",
    "bytes_to_embedding",
    "embedding_to_bytes",
    "has_embedding",
    "of_query",
    "read",
    "space_of",
]

#: The space of vectors whose model nobody named.
_UNNAMED = "blocks"
_LONGEST_MODEL_LETTERS = 40


def embedding_to_bytes(vec: npt.ArrayLike) -> bytes:
    """Return a vector as little-endian float32 bytes."""
    return np.ascontiguousarray(vec, dtype="<f4").tobytes()


def bytes_to_embedding(data: bytes) -> Vector:
    """Return the vector that bytes hold; it cannot be written to.

    >>> bytes_to_embedding(embedding_to_bytes([1.0, 0.5])).tolist()
    [1.0, 0.5]
    """
    return np.frombuffer(data, dtype=np.float32)


def space_of(model: str | None) -> str:
    """Return the name of the space that holds the vectors of a model.

    >>> space_of("lexical-384-v1"), space_of(None)
    ('blocks.lexical-384-v1', 'blocks')
    """
    if model is None:
        return _UNNAMED
    plain = re.sub(r"[^A-Za-z0-9._-]", "-", model)
    if plain == model and len(plain) <= _LONGEST_MODEL_LETTERS:
        return f"{_UNNAMED}.{plain}"
    # Two models must not share a space because their names look alike.
    digest = hashlib.sha256(model.encode("utf-8")).hexdigest()[:12]
    return f"{_UNNAMED}.{plain[:_LONGEST_MODEL_LETTERS]}-{digest}"


def attach(conn: Connection, block_id: str, vector: npt.ArrayLike, model: str | None) -> None:
    """Give a block its embedding, as part of the batch."""
    space = space_of(model)
    values = _checked(vector)
    conn.patch(block_key(block_id), {"data": {"space": space}})
    conn.attach(block_key(block_id), values, space, model or _UNNAMED)


def _checked(vector: npt.ArrayLike) -> Vector:
    """Return a vector as the space will hold it, or refuse what is none."""
    try:
        row: Vector = as_matrix(np.asarray(vector)[np.newaxis], 1)[0]
    except ValueError as fault:
        raise InvalidRecord(
            f"embedding: one row of finite numbers is needed: {fault}", field="embedding"
        ) from None
    return row


def of_query(store: ChronoStore, text: str, embedder: Embedder) -> Vector:
    """Return the vector of a question, which must fit those of the blocks that it is compared with."""
    vector = _checked(embedder.embed(text))
    space = space_of(embedder.model_name)
    known = next((known.dim for known in store.spaces() if known.name == space), len(vector))
    if known != len(vector):
        raise InvalidRecord(
            f"embedding: {len(vector)} numbers for a query do not fit {known} of {embedder.model_name!r}",
            field="embedding",
            recovery="Use the embedder that the blocks were consolidated with.",
        )
    return vector


def read(conn: Connection, record: ChronoRecord) -> bytes | None:
    """Return the bytes of a block's embedding, exactly as they were given, or None."""
    if not has_embedding(record):
        return None
    pending = conn.attached(record.id)
    if pending is not None:
        return pending.tobytes()
    try:
        found = conn.store.embedding(record.id, space=record.data["space"])
    except UnknownSpace:
        return None
    return None if found is None else found.tobytes()


def has_embedding(record: ChronoRecord) -> bool:
    """Say whether a block has an embedding."""
    return "space" in record.data
