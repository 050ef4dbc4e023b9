"""The embeddings that a batch carries: checked before it is written, and attached around it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import numpy.typing as npt

from chronomemory.errors import InvalidRecord
from chronomemory.record import ChronoRecord
from chronomemory.vectors import HasEngine, attach_many, embedding, spaces

__all__ = ["Attachments", "Vector"]

Vector = npt.NDArray[np.float32]


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
                raise InvalidRecord(
                    f"embedding: {len(vector)} numbers of {model!r} do not fit {known[1]} of {known[0]!r}",
                    field="embedding",
                    recovery="Name the model: each has a space of its own.",
                )

    def arriving(self, store: HasEngine, waits: Callable[[ChronoRecord], bool]) -> set[str]:
        """Return the records that wait, and have nothing yet that an embedding would replace."""
        known = {space.name for space in spaces(store)}
        arriving = set()
        for record_id, (_, space, _) in self._pending.items():
            found = store.get(record_id)
            if (
                found is not None
                and waits(found)
                and (space not in known or embedding(store, record_id, space=space) is None)
            ):
                arriving.add(record_id)
        return arriving

    def write(self, store: HasEngine, record_ids: Iterable[str]) -> None:
        """Attach the embeddings of some records."""
        of_space: dict[tuple[str, str, int], list[str]] = {}
        for record_id in record_ids:
            vector, space, model = self._pending[record_id]
            of_space.setdefault((space, model, len(vector)), []).append(record_id)
        for (space, model, _), members in of_space.items():
            rows = np.stack([self._pending[record_id][0] for record_id in members])
            attach_many(store, members, rows, space=space, model=model)
