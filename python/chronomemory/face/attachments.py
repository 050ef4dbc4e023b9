"""The embeddings that a batch carries: checked before it is written, and written with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from chronomemory.errors import EmbeddingMismatch
from chronomemory.types import HasEngine
from chronomemory.vectors import Vectors

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
else:
    from chronomemory import numpy_later as np

__all__ = ["Attachment", "Attachments", "Vector"]

Vector: TypeAlias = "npt.NDArray[np.float32]"
#: Ids, their rows, the space and the model, and the length of token vectors if the rows are codes of them.
Attachment: TypeAlias = "tuple[list[str], npt.NDArray[np.float32], str | None, str | None, int]"


class Attachments:
    """Embeddings by record, each with its space and the model that made it, and codes of tokens."""

    def __init__(self) -> None:
        self._pending: dict[str, tuple[Vector, str, str]] = {}
        self._codes: dict[str, tuple[Vector, str, str, int]] = {}

    def __len__(self) -> int:
        return len(self._pending) + len(self._codes)

    def __iter__(self) -> Iterator[str]:
        return iter(self._pending.keys() | self._codes.keys())

    def add(self, record_id: str, vector: Vector, space: str, model: str) -> None:
        """Carry an embedding for a record, in place of one that is carried already."""
        self._pending[record_id] = (vector, space, model)

    def add_codes(self, record_id: str, codes: Vector, space: str, model: str, dim: int) -> None:
        """Carry the codes of a record's tokens likewise; their vectors had ``dim`` numbers each."""
        self._codes[record_id] = (codes, space, model, dim)

    def drop(self, record_id: str) -> None:
        """Carry no embedding for a record any more."""
        self._pending.pop(record_id, None)
        self._codes.pop(record_id, None)

    def get(self, record_id: str) -> Vector | None:
        """Return the embedding that is carried for a record, or None."""
        found = self._pending.get(record_id)
        return None if found is None else found[0]

    def check(self, store: HasEngine) -> None:
        """Refuse vectors that their space cannot hold before anything is written."""
        bound = {space.name: (space.model, space.dim) for space in Vectors(store).spaces()}
        carried = [*self._pending.values(), *(codes[:3] for codes in self._codes.values())]
        for vector, space, model in carried:
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
        """Return the embeddings as the engine takes them."""
        members: dict[tuple[str, str, int], dict[str, Vector]] = {}
        for record_id, (vector, space, model) in self._pending.items():
            members.setdefault((space, model, 0), {})[record_id] = vector
        for record_id, (codes, space, model, dim) in self._codes.items():
            members.setdefault((space, model, dim), {})[record_id] = codes
        return [
            (list(rows), np.stack(list(rows.values())), space, model, dim)
            for (space, model, dim), rows in members.items()
        ]
