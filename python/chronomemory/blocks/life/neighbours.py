"""The active blocks that are like a newcomer, also those that others have made active just now.

To find neighbours takes its time, so it is done before a batch begins. Every batch that makes blocks active
leaves a mark: one that finds another mark than before looks at what has come since, and one that is overtaken
by a mark is not written.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from chronomemory.blocks.declaration import SPACES
from chronomemory.blocks.engine import Blocks
from chronomemory.blocks.ids import BLOCK, CONFIG, block_key, config_key, plain_id
from chronomemory.embedders import Matrix
from chronomemory.errors import HistoryUnavailable, LogCorrupted
from chronomemory.face.batch import Connection
from chronomemory.face.spaces import bytes_to_embedding, embedding_of
from chronomemory.record import ChronoRecord
from chronomemory.scope import carrying
from chronomemory.types import HasEngine

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
else:
    from chronomemory import numpy_later as np

__all__ = ["Near", "Neighbours", "leave_mark", "unit_rows"]

#: For each newcomer the active blocks that are like it, with the cosine.
Near = list[list[tuple[str, float]]]

#: How many neighbours of a newcomer are looked at.
_NEIGHBOURS = 64
_MARK = "last_arrival"


def leave_mark(conn: Connection) -> None:
    """Let others know, as part of a batch, that blocks have become active."""
    owner = conn.scope.of_owner
    data = carrying(owner, {"value": uuid.uuid4().hex})
    conn.put(ChronoRecord(id=config_key(_MARK, owner), kind=CONFIG, data=data))


def _mark(conn: Connection) -> str | None:
    found = conn.record(config_key(_MARK, conn.scope.of_owner))
    return None if found is None else str(found.data["value"])


def unit_rows(vectors: Matrix) -> npt.NDArray[np.float64]:
    """Return vectors of length one; what has no direction stays as it is."""
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    rows: npt.NDArray[np.float64] = vectors / np.where(norms > 0, norms, 1.0)
    return rows


class Neighbours:
    """The active neighbours of some vectors, as of the moment in which they were looked for."""

    def __init__(self, blocks: Blocks, model: str, vectors: Matrix, least: float) -> None:
        self._space = SPACES.of(model)
        self._vectors = vectors
        self._least = least
        self._seq = blocks.project.wal_seq()
        self._known = _mark(blocks.look())
        self._near = self._looked(blocks.store)

    def caught_up(self, conn: Connection) -> Near:
        """Return them with those that have come since; the batch is in conflict with any that come now."""
        if _mark(conn) == self._known:
            return self._near
        try:
            came = self._came(conn)
        except HistoryUnavailable:  # someone has compacted without keeping the events of meanwhile
            return self._looked(conn.store)
        if not came:
            return self._near
        rows = np.stack(list(came.values()))
        cosines = np.clip(unit_rows(self._vectors) @ unit_rows(rows).T, -1.0, 1.0)
        return [
            [(block_id, cosine) for block_id, cosine in near if block_id not in came]
            + [
                (block_id, float(cosine))
                for block_id, cosine in zip(came, cosines[at], strict=True)
                if cosine >= self._least
            ]
            for at, near in enumerate(self._near)
        ]

    def _looked(self, store: HasEngine) -> Near:
        dim = self._vectors.shape[1]
        return store.engine.nearest_blocks(
            self._space, self._vectors.tobytes(), dim, _NEIGHBOURS, self._least
        )

    def _came(self, conn: Connection) -> dict[str, np.ndarray]:
        """Return the vectors of the active blocks that something was written about since."""
        came = {}
        for record_id in conn.store.engine.changed_since(self._seq + 1, faces=True):
            record = conn.glimpse(record_id) if record_id.startswith(block_key("")) else None
            if record is None or record.kind != BLOCK or record.status != "active":
                continue
            if record.data.get("space") != self._space:
                continue
            try:
                vector = embedding_of(conn, record)
            except LogCorrupted:  # a damaged row is never compared; verify tells of it
                continue
            if vector is not None:
                came[plain_id(record_id)] = bytes_to_embedding(vector)
        return came
