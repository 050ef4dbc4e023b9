"""Where does a block's embedding live? Beside the log, in a space of its model: only this module knows."""

from __future__ import annotations

import hashlib
import re

import numpy as np
import numpy.typing as npt

from chronomemory.blocks.connection import Connection, Vector
from chronomemory.blocks.ids import block_key
from chronomemory.errors import InvalidRecord, UnknownSpace
from chronomemory.record import ChronoRecord

__all__ = ["attach", "bytes_to_embedding", "embedding_to_bytes", "has_embedding", "read", "space_of"]

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
    values = np.asarray(vector)
    if values.ndim != 1 or not values.size or values.dtype.kind not in "fiu":
        raise InvalidRecord("embedding: one row of numbers is needed", field="embedding")
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32)
    if not np.isfinite(narrow).all():
        raise InvalidRecord("embedding: a component is not a finite float32", field="embedding")
    space = space_of(model)
    conn.patch(block_key(block_id), {"data": {"space": space}})
    conn.attach(block_key(block_id), narrow, space, model or _UNNAMED)


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
