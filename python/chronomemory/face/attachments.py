"""The embeddings that a batch carries: checked before it is written, and written with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from chronomemory.errors import EmbeddingMismatch
from chronomemory.vectors import HasEngine, spaces

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
else:
    from chronomemory import numpy_later as np

__all__ = ["Attachment", "Attachments", "Vector"]

Vector: TypeAlias = "npt.NDArray[np.float32]"
#: Ids, their rows, the space and the model.
Attachment: TypeAlias = "tuple[list[str], npt.NDArray[np.float32], str | None, str | None]"


class Attachments:
    """Embeddings by record, each with its space and the model that made it."""

    def __init__(self) -> None:
        self._pending: dict[str, tuple[Vector, str, str]] = {}

    def __len__(self) -> int:
        return len(self._pending)

    def __iter__(self) -> Iterator[str]:
        return iter(self._pending)

    def add(self, record_id: str, vector: Vector, space: str, model: str) -> None:
        """Carry an embedding for a record, in place of one that is carried already."""
        self._pending[record_id] = (vector, space, model)

    def drop(self, record_id: str) -> None:
        """Carry no embedding for a record any more."""
        self._pending.pop(record_id, None)

    def get(self, record_id: str) -> Vector | None:
        """Return the embedding that is carried for a record, or None."""
        found = self._pending.get(record_id)
        return None if found is None else found[0]

    def check(self, store: HasEngine) -> None:
        """Refuse vectors that their space cannot hold before anything is written."""
        bound = {space.name: (space.model, space.dim) for space in spaces(store)}
        for vector, space, model in self._pending.values():
            known = bound.setdefault(space, (model, len(vector)))
            # A space whose line was lost in a repair has no model until somebody names one.
            if known not in ((model, len(vector)), ("", len(vector))):
                raise EmbeddingMismatch(
                    f"embedding: {len(vector)} numbers of {model!r} do not fit {known[1]} of {known[0]!r}",
                    space=space,
                    model=known[0],
                    dim=known[1],
                    field="embedding",
                    recovery="Name the model: each has a space of its own.",
                )

    def by_space(self) -> list[Attachment]:
        """Return the embeddings as the engine takes them: ids, rows, space, model."""
        members: dict[tuple[str, str], list[str]] = {}
        for record_id, (_, space, model) in self._pending.items():
            members.setdefault((space, model), []).append(record_id)
        return [
            (ids, np.stack([self._pending[record_id][0] for record_id in ids]), space, model)
            for (space, model), ids in members.items()
        ]
