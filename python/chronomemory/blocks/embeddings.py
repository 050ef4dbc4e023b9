"""Where does a block's embedding live? The only place that knows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from chronomemory.blocks.connection import Connection
from chronomemory.blocks.ids import block_key
from chronomemory.errors import InvalidRecord
from chronomemory.record import ChronoRecord

__all__ = ["attach", "bytes_to_embedding", "embedding_to_bytes", "has_embedding", "read"]

Vector = npt.NDArray[np.float32]


def embedding_to_bytes(vec: npt.ArrayLike) -> bytes:
    """Return a vector as little-endian float32 bytes."""
    return np.ascontiguousarray(vec, dtype="<f4").tobytes()


def bytes_to_embedding(data: bytes) -> Vector:
    """Return the vector that bytes hold; it cannot be written to.

    >>> bytes_to_embedding(embedding_to_bytes([1.0, 0.5])).tolist()
    [1.0, 0.5]
    """
    return np.frombuffer(data, dtype=np.float32)


def attach(conn: Connection, block_id: str, vector: npt.ArrayLike) -> None:
    """Give a block its embedding, as part of the batch."""
    values = np.asarray(vector)
    if values.ndim != 1 or not values.size or values.dtype.kind not in "fiu":
        raise InvalidRecord("embedding: one row of numbers is needed", field="embedding")
    with np.errstate(over="ignore"):
        narrow = values.astype("<f4")
    if not np.isfinite(narrow).all():
        raise InvalidRecord("embedding: a component is not a finite float32", field="embedding")
    conn.patch(block_key(block_id), {"data": {"embedding": narrow.tobytes().hex()}})


def read(record: ChronoRecord) -> bytes | None:
    """Return the bytes of a block's embedding, exactly as they were given, or None."""
    text: Any = record.data.get("embedding")
    return bytes.fromhex(text) if isinstance(text, str) else None


def has_embedding(record: ChronoRecord) -> bool:
    """Say whether a block has an embedding."""
    return "embedding" in record.data
