"""Attaches embeddings to records, and finds those that are near.

Bring your own vectors: nothing here knows a model. A *space* holds the embeddings of one model, and a
search in it is exact. These functions stand below the store, which offers them as methods.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, overload

from chronomemory._core import Engine
from chronomemory.answers import Answer, answered
from chronomemory.errors import LogCorrupted
from chronomemory.face.arguments import (
    Floats,
    contents,
    count,
    flag,
    floats,
    must,
    number,
    refuse,
    string,
    string_or_none,
    strings,
)
from chronomemory.layout import unlinked
from chronomemory.record import ChronoRecord
from chronomemory.watching import timed
from chronomemory.where import Where, where_json

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
else:
    from chronomemory import numpy_later as np

__all__ = [
    "Neighbour",
    "Space",
    "attach",
    "attach_many",
    "detach",
    "drop_space",
    "embedding",
    "matrix",
    "nearest",
    "spaces",
    "use_space",
]

_FLOAT_BYTES = 4


class HasEngine(Protocol):
    """Anything with an open engine: a store."""

    @property
    def engine(self) -> Engine: ...

    def get(self, record_id: str) -> ChronoRecord | None: ...


@dataclass(frozen=True, slots=True)
class Space:
    """An embedding space: one model, one dimension, a row for each embedding ever attached."""

    name: str
    model: str
    dim: int
    generation: int
    #: How many numbers the token vectors had whose codes its rows are; 0 if a row is an embedding.
    tokens: int
    #: How many rows the log names, and how many of them are the embedding of a record. A handle that does not
    #: see all scopes counts the embeddings of the records that it sees, here and in the next two.
    rows: int
    living: int
    bytes: int
    #: How many rows this process has found damaged so far; ``verify()`` looks at all of them.
    damaged: int
    #: Whether it is asked when no space is named.
    is_default: bool

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON can carry it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A record that was found, with the cosine of the angle between its embedding and the query."""

    record_id: str
    score: float
    row: int


def float_rows(vectors: object, dimensions: tuple[int, ...]) -> Floats:
    """Make a matrix of what a caller gave; a single vector is one of a single row."""
    return np.atleast_2d(floats("vector", vectors, dimensions))


def attach(
    store: HasEngine,
    record_id: str,
    vector: npt.ArrayLike,
    *,
    space: str | None = None,
    model: str | None = None,
) -> range:
    """Give a record an embedding, in place of the one it had; return the seqs that took.

    ``model`` names what made the vector. The first embedding binds the space to it and to the
    vector's length; later ones may leave it out.
    """
    ids = [string("id", record_id)]
    with contents:
        rows = float_rows(vector, (1,))
    return _attach(store, ids, rows, space, model)


def attach_many(
    store: HasEngine,
    record_ids: Iterable[str],
    vectors: npt.ArrayLike,
    *,
    space: str | None = None,
    model: str | None = None,
) -> range:
    """Give records embeddings as one atomic batch: row i of ``vectors`` is that of the i-th id.

    Other writers wait until all of it is written. Attach a very large matrix in parts if that is too long.
    """
    if isinstance(record_ids, str):
        raise must("ids", "be a list of ids", record_ids)
    ids = strings("ids", record_ids)
    with contents:
        rows = float_rows(vectors, (2,))
    if len(ids) != len(rows):
        raise refuse(f"{len(ids)} ids and {len(rows)} vectors do not go together", "vector")
    return _attach(store, ids, rows, space, model)


def _attach(store: HasEngine, ids: list[str], rows: Floats, space: str | None, model: str | None) -> range:
    space, model = string_or_none("space", space), string_or_none("model", model)
    # Without a bookmark nothing can be in its way.
    return range(*(store.engine.attach(ids, rows, space=space, model=model) or (0, 0)))


def detach(store: HasEngine, record_id: str, *, space: str | None = None) -> bool:
    """Take a record's embedding back; say whether it had one."""
    return store.engine.detach([string("id", record_id)], space=string_or_none("space", space)) > 0


def embedding(store: HasEngine, record_id: str, *, space: str | None = None) -> Floats | None:
    """Return the embedding of a record, bit for bit as it was given, or None.

    A row that is not what the log says is never returned: that is a ``LogCorrupted``.
    """
    found = store.engine.embedding(string("id", record_id), space=string_or_none("space", space))
    return None if found is None else np.frombuffer(found, dtype="<f4").astype(np.float32)


def spaces(store: HasEngine) -> list[Space]:
    """Return all embedding spaces, by name; their counts are of the records that the handle sees."""
    engine = store.engine
    found = [Space(**space) for space in engine.spaces()]
    seen = [(space, engine.rows_seen(space.name)) for space in found]
    return [space if counts is None else _counted(space, *counts) for space, counts in seen]


def _counted(space: Space, rows: int, damaged: int) -> Space:
    size = rows * space.dim * _FLOAT_BYTES
    return replace(space, rows=rows, living=rows, bytes=size, damaged=damaged)


def use_space(store: HasEngine, name: str) -> None:
    """Say which space is meant when none is named, for every process from now on."""
    name = string("space", name)
    if any(known.tokens for known in spaces(store) if known.name == name):
        raise refuse(f"{name!r} holds codes of tokens, and is named where these are meant", "space")
    store.engine.choose_space(name)


def drop_space(store: HasEngine, name: str, *, force: bool = False) -> int:
    """Take a space back with all its embeddings; return how many records had one in it.

    The log keeps that it was there, and its rows leave the disk with the next ``compact()``. The space
    that is meant when none is named goes only if nobody has an embedding in it, or with ``force=True``.
    """
    return store.engine.drop_space(string("space", name), force=flag("force", force))


def matrix(store: HasEngine, *, space: str | None = None) -> tuple[list[str], Floats]:
    """Return the embeddings of the records that the handle sees, in the order of the file, and their ids.

    The array is read-only. It is a view of the file if each row of the file is the embedding of a record
    that is seen, and a copy of those rows otherwise. Nothing is checked here but that there is a file of
    that length: ``verify()`` does the rest.
    """
    tried = None
    while True:
        path, rows, dim, owners = store.engine.matrix(space=string_or_none("space", space))
        seen = [row for row, owner in enumerate(owners) if owner is not None]
        ids = [owner for owner in owners if owner is not None]
        if not seen:
            return ids, np.zeros((0, dim), dtype=np.float32)
        mapped = _mapped(path, rows, dim)
        if mapped is not None:
            if len(seen) < rows:
                mapped = np.array(mapped[seen])
                mapped.flags.writeable = False
            return ids, mapped
        if path == tried:
            raise _cut(path, rows, dim)
        # A compaction may have put another file in its place meanwhile; one that is still named is damaged.
        tried = path


def _mapped(path: str, rows: int, dim: int) -> Floats | None:
    """Map a file of rows that is there and holds all of them."""
    try:
        with open(path, "rb", opener=unlinked(Path(path).parents[1])) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise OSError(f"{path}: this is not a regular file")
            if found.st_size < rows * dim * _FLOAT_BYTES:
                return None
            return np.memmap(file, dtype="<f4", mode="r", shape=(rows, dim))
    except FileNotFoundError:
        return None


def _cut(path: str, rows: int, dim: int) -> LogCorrupted:
    file = Path(path)
    there = file.stat().st_size if file.exists() else 0
    name = f"{file.parent.name}/{file.name}"
    return LogCorrupted(
        f"{name}: it holds {there // (dim * _FLOAT_BYTES)} of the {rows} rows that the log names",
        path=name,
        offset=there,
        damage="row-missing",
        recovery="nearest() goes on without the others; verify() lists them, repair() takes them back.",
    )


@overload
def nearest(
    store: HasEngine,
    vector: Sequence[float],
    *,
    space: str | None = None,
    k: int = 10,
    kind: str | None = None,
    status: str | None = "active",
    min_confidence: float = 0.0,
    among: Iterable[str] | None = None,
    min_score: float | None = None,
    where: Where | None = None,
) -> Answer[Neighbour]: ...
@overload
def nearest(
    store: HasEngine,
    vector: npt.NDArray[Any],
    *,
    space: str | None = None,
    k: int = 10,
    kind: str | None = None,
    status: str | None = "active",
    min_confidence: float = 0.0,
    among: Iterable[str] | None = None,
    min_score: float | None = None,
    where: Where | None = None,
) -> Any: ...
def nearest(
    store: HasEngine,
    vector: npt.ArrayLike,
    *,
    space: str | None = None,
    k: int = 10,
    kind: str | None = None,
    status: str | None = "active",
    min_confidence: float = 0.0,
    among: Iterable[str] | None = None,
    min_score: float | None = None,
    where: Where | None = None,
) -> Any:
    """Return the ``k`` records nearest to a vector, best first; for a matrix, a list for each of its rows.

    The search is exact: it finds what comparing the vector with every embedding finds, bit for bit.
    ``kind``, ``status`` (None means any) and ``min_confidence`` choose among the records as in ``query``,
    records of all faces included, and so does ``where``; ``among`` names the only ids that count;
    ``min_score`` is the least cosine.
    """
    queries = floats("vector", vector, (1, 2))
    if isinstance(among, str):
        raise must("among", "be a list of ids", among)
    engine = store.engine
    with timed("a question for neighbours"):
        found = engine.nearest(
            np.atleast_2d(queries),
            count("k", k),
            space=string_or_none("space", space),
            kind=string_or_none("kind", kind),
            status=string_or_none("status", status) or None,
            min_confidence=number("min_confidence", min_confidence),
            among=None if among is None else strings("among", among),
            min_score=None if min_score is None else _least(number("min_score", min_score)),
            condition=where_json(where),
        )
    named = [[Neighbour(*hit) for hit in hits] for hits in found]
    return answered(engine, named if queries.ndim == 2 else named[0], is_any=any(named))


def _least(score: float) -> float:
    """Return the least float32 that is not below: scores are float32, and none below is wanted."""
    with np.errstate(over="ignore"):
        near = np.float32(score)
    return float(near if float(near) >= score else np.nextafter(near, np.float32(np.inf)))
