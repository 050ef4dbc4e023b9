"""Embeddings of records in spaces, one for each model: attaching, exact search, and embedding again."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypedDict, overload

from chronomemory._core import token_rows
from chronomemory.embedders.protocol import as_tokens
from chronomemory.errors import (
    EmbeddingMismatch,
    InvalidArgument,
    InvalidRecord,
    LogCorrupted,
    UnknownSpace,
    WriteConflict,
)
from chronomemory.face import arguments as check
from chronomemory.face.results import Fields
from chronomemory.filters import Where, where_json
from chronomemory.layout import unlinked
from chronomemory.numpy_later import Floats, np, npt
from chronomemory.record import ChronoRecord
from chronomemory.scope import Answer, answered
from chronomemory.types import EngineHolder, HasEngine, Progress, Unpack
from chronomemory.updates import retry_in_turn
from chronomemory.watching import timed

#: The space of tokens when none is named, and how many codes a row of a new one has room for.
TOKEN_SPACE, MOST_CODES = "tokens", 48
_FLOAT_BYTES = 4
_CODE_BYTES = 16
_CODE_FLOATS = _CODE_BYTES // _FLOAT_BYTES
#: How many records are embedded at a time, and how often those are repeated that others change meanwhile.
_EMBED_AT_ONCE, _ROUNDS = 256, 8
#: An id that can never have an embedding: it keeps the books of this face.
_NOBODY = "vector::default"


@dataclass(frozen=True, slots=True)
class Space(Fields):
    """An embedding space: one model, one dimension, a row for each embedding ever attached."""

    name: str
    model: str
    dim: int
    generation: int
    #: The length of the token vectors whose codes the rows are; 0 if a row is an embedding.
    tokens: int
    #: How many rows the log names, and how many are living; a handle counts those of records that it sees.
    rows: int
    living: int
    bytes: int
    #: How many rows this process has found damaged so far; ``verify()`` checks all of them.
    damaged: int
    is_default: bool


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A record that was found, with the cosine of the angle between its embedding and the query."""

    record_id: str
    score: float
    row: int


class NearestOptions(TypedDict, total=False):
    """The options of ``Vectors.nearest``."""

    space: str | None
    k: int
    kind: str | None
    status: str | None
    min_confidence: float
    among: Iterable[str] | None
    min_score: float | None
    where: Where | None


def float_rows(vectors: object, dimensions: tuple[int, ...]) -> Floats:
    """Return vectors as a matrix; a single vector is a matrix of one row."""
    return np.atleast_2d(check.floats("vector", vectors, dimensions))


class Vectors:
    """The embeddings of the records that a handle sees: ``store.vectors``.

    >>> import tempfile
    >>> from chronomemory import ChronoStore
    >>> with ChronoStore(tempfile.mkdtemp()) as store:
    ...     _ = store.upsert_many([{"id": "TEA"}, {"id": "COFFEE"}])
    ...     _ = store.vectors.attach_many(["TEA", "COFFEE"], [[1, 0], [0, 1]], model="toy")
    ...     [near.record_id for near in store.vectors.nearest([0.9, 0.1])]
    ['TEA', 'COFFEE']
    """

    __slots__ = ("_store",)

    def __init__(self, store: HasEngine) -> None:
        self._store = store

    def attach(
        self, record_id: str, vector: npt.ArrayLike, *, space: str | None = None, model: str | None = None
    ) -> range:
        """Give a record an embedding, or a new one; the first binds the space to its ``model`` and length."""
        name = check.string("id", record_id)
        with check.contents:
            rows = float_rows(vector, (1,))
        return self._attach([name], rows, space, model)

    def attach_many(
        self,
        record_ids: Iterable[str],
        vectors: npt.ArrayLike,
        *,
        space: str | None = None,
        model: str | None = None,
    ) -> range:
        """Give records embeddings as one atomic batch: row i of ``vectors`` is that of the i-th id."""
        ids = _ids(record_ids)
        with check.contents:
            rows = float_rows(vectors, (2,))
        if len(ids) != len(rows):
            raise check.refuse(f"{len(ids)} ids and {len(rows)} vectors do not go together", "vector")
        return self._attach(ids, rows, space, model)

    def attach_tokens(
        self,
        record_id: str,
        tokens: npt.ArrayLike,
        *,
        space: str = TOKEN_SPACE,
        model: str | None = None,
        most: int | None = None,
    ) -> range:
        """Give a record the vectors of its tokens, in place of those it had; return the seqs of the events.

        Of each row a code of 16 bytes is kept. The first tokens bind the ``space`` to their ``model``, length
        and ``most`` codes of a record (48 by default); of more tokens neighbours share a code.
        """
        name = check.string("id", record_id)
        return self.attach_tokens_many([name], [tokens], space=space, model=model, most=most)

    def attach_tokens_many(
        self,
        record_ids: Iterable[str],
        tokens: Iterable[npt.ArrayLike],
        *,
        space: str = TOKEN_SPACE,
        model: str | None = None,
        most: int | None = None,
    ) -> range:
        """Give records the vectors of their tokens as one atomic batch: the i-th array is for the i-th id."""
        ids = _ids(record_ids)
        with check.contents:
            rows = [_tokens(one) for one in check.many("tokens", tokens)]
        if len(ids) != len(rows):
            raise check.refuse(
                f"{len(ids)} ids and {len(rows)} arrays of tokens do not go together", "tokens"
            )
        if not rows:
            raise check.refuse("there must be at least one", "ids")
        codes = self.codes(rows, check.string("space", space), most)
        return self._attach(ids, codes, space, model, rows[0].shape[1])

    def _attach(
        self, ids: list[str], rows: Floats, space: str | None, model: str | None, tokens: int = 0
    ) -> range:
        named = check.string_or_none("space", space), check.string_or_none("model", model)
        attached = self._store.engine.vectors.attach((ids, rows, *named, tokens))
        return range(*(attached or (0, 0)))

    def detach(self, record_id: str, *, space: str | None = None) -> bool:
        """Remove the embedding of a record; return whether it had one."""
        removed = self._store.engine.vectors.detach(
            [check.string("id", record_id)], space=check.string_or_none("space", space)
        )
        return removed > 0

    def get(self, record_id: str, *, space: str | None = None) -> Floats | None:
        """Return the embedding of a record, bit for bit, or None; a damaged row raises ``LogCorrupted``."""
        found = self._store.engine.vectors.embedding(
            check.string("id", record_id), space=check.string_or_none("space", space)
        )
        return None if found is None else np.frombuffer(found, dtype="<f4").astype(np.float32)

    @overload
    def nearest(self, vector: Sequence[float], **options: Unpack[NearestOptions]) -> Answer[Neighbour]: ...
    @overload
    def nearest(self, vector: npt.NDArray[Any], **options: Unpack[NearestOptions]) -> Any: ...
    def nearest(
        self,
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
        """Return the ``k`` records nearest to a vector by exact search; for a matrix, a list for each row.

        Filters are those of ``query``, over records of all faces; ``among`` names the only ids that count,
        ``min_score`` is the least cosine.
        """
        queries = check.floats("vector", vector, (1, 2))
        if isinstance(among, str):
            raise check.must("among", "be a list of ids", among)
        engine = self._store.engine
        with timed("a question for neighbours"):
            request = {
                "k": check.count("k", k),
                "space": check.string_or_none("space", space),
                "kind": check.string_or_none("kind", kind),
                "status": check.string_or_none("status", status) or None,
                "min_confidence": check.number("min_confidence", min_confidence),
                "among": None if among is None else check.strings("among", among),
                "min_score": None if min_score is None else _least(check.number("min_score", min_score)),
                "condition": where_json(where),
            }
            found = engine.vectors.nearest(queries if queries.ndim == 2 else queries[None], request)
        named = [[Neighbour(*hit) for hit in hits] for hits in found]
        return answered(engine, named if queries.ndim == 2 else named[0], is_any=any(named))

    def matrix(self, *, space: str | None = None) -> tuple[list[str], Floats]:
        """Return the ids and the read-only, unchecked matrix of the embeddings seen here, in file order."""
        tried = None
        while True:
            path, rows, dim, owners = self._store.engine.vectors.matrix(
                space=check.string_or_none("space", space)
            )
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
                file = Path(path)
                there = file.stat().st_size if file.exists() else 0
                name = f"{file.parent.name}/{file.name}"
                raise LogCorrupted(
                    f"{name}: it holds {there // (dim * _FLOAT_BYTES)} of the {rows} rows that the log names",
                    path=name,
                    offset=there,
                    damage="row-missing",
                    recovery="nearest() goes on without them; verify() lists them, repair() takes them back.",
                )
            # A compaction may have replaced the file meanwhile; one that is still named is damaged.
            tried = path

    def spaces(self) -> list[Space]:
        """Return all embedding spaces, by name; their counts are of the records that the handle sees."""
        engine = self._store.engine
        found = [Space(**space) for space in engine.vectors.spaces()]
        seen = [(space, engine.vectors.rows_seen(space.name)) for space in found]
        for number, (space, counts) in enumerate(seen):
            if counts is not None:
                rows, damaged = counts
                size = rows * space.dim * _FLOAT_BYTES
                found[number] = replace(space, rows=rows, living=rows, bytes=size, damaged=damaged)
        return found

    def codes(self, rows: list[Floats], space: str, most: int | None = None) -> Floats:
        """Return a row of codes for the token vectors of each record, as a space has room for them."""
        room = {known.name: known.dim // _CODE_FLOATS for known in self.spaces() if known.tokens}.get(space)
        if most is not None and check.count("most", most, 1) != (room or most):
            raise check.refuse(f"a record of {space!r} has room for {room} codes", "most")
        lengths = {one.shape[1] for one in rows}
        if len(lengths) > 1:
            raise check.refuse(
                f"rows of {' and '.join(map(str, sorted(lengths)))} numbers are of several models", "tokens"
            )
        together = np.concatenate(rows)
        if not np.isfinite(together).all():
            raise check.refuse("a number is not finite", "tokens")
        return token_rows(together, [len(one) for one in rows], room or most or MOST_CODES)

    def _owners(self, space: str | None) -> list[str]:
        return [name for name in self._store.engine.vectors.matrix(space=space)[3] if name is not None]

    def _living(self, names: Iterable[str]) -> list[ChronoRecord]:
        found = map(self._store.engine.get, names)
        return [record for record in found if record is not None and record.status != "tombstone"]


class StoreVectors(Vectors):
    """The embeddings of a store, with the operations on whole spaces, which concern all scopes."""

    __slots__ = ()

    def use(self, space: str) -> None:
        """Choose the space that is searched when none is named, for every process from now on."""
        name = check.string("space", space)
        if any(known.tokens for known in self.spaces() if known.name == name):
            raise check.refuse(f"{name!r} holds codes of tokens, and is named where these are meant", "space")
        self._store.engine.vectors.choose_space(name)

    def drop(self, space: str, *, force: bool = False) -> int:
        """Remove a space; return how many embeddings it had. The default space needs ``force``."""
        return self._store.engine.vectors.drop_space(
            check.string("space", space), force=check.flag("force", force)
        )

    def reembed(
        self,
        space: str | None,
        *,
        model: str,
        embed: Callable[[list[str]], npt.ArrayLike | Iterable[npt.ArrayLike]],
        into: str,
        text: Callable[[ChronoRecord], str] = lambda record: record.label,
        default: bool = False,
        progress: Progress | None = None,
    ) -> int:
        """Embed every record of a space again, with another model, into another space; return how many.

        The old space stays, and an interrupted run continues. With ``default=True`` the new space becomes the
        default. For a space of tokens ``embed`` returns an array for each text.
        """
        space, default = check.string_or_none("space", space), check.flag("default", default)
        check.function("embed", embed)
        check.function("text", text)
        check.function_or_none("progress", progress)
        whole = StoreVectors(EngineHolder(self._store.engine.unscoped()))
        owners = whole._owners(space)
        old = next(
            known for known in whole.spaces() if (known.is_default if space is None else known.name == space)
        )
        if default and old.tokens:
            raise check.refuse(
                "a space of tokens is none that vectors are asked of; name it as token_space", "default"
            )
        _try_space(whole, into, model, old)
        has_rows = into in {known.name for known in whole.spaces()}
        done = set(whole._owners(into)) if has_rows else set()
        left = [name for name in owners if name not in done]
        added = 0
        for start in range(0, len(left), _EMBED_AT_ONCE):
            names = left[start : start + _EMBED_AT_ONCE]
            for _ in range(_ROUNDS):
                texts = {record.id: text(record) for record in whole._living(names)}
                if not texts:
                    break
                made = _Made(whole, texts, text, into, model, *_rows(whole, texts, embed, into, old))
                new, names = retry_in_turn(whole._store, made.attach)
                added += new
                if not names:
                    break
            else:
                raise _conflict()
            if progress is not None:
                progress(min(start + _EMBED_AT_ONCE, len(left)), len(left))
        if default:
            try:
                whole.use(into)
            except UnknownSpace as error:
                raise InvalidArgument(
                    f"default: no record was there to be embedded, so there is no space {into!r} to ask",
                    field="default",
                    recovery="Attach the first embedding to the new space, then choose it by vectors.use().",
                ) from error
        return added


def _ids(given: Iterable[str]) -> list[str]:
    if isinstance(given, str):
        raise check.must("ids", "be a list of ids", given)
    return check.strings("ids", given)


def _tokens(given: object) -> Floats:
    rows = check.floats("tokens", given, (2,))
    if not rows.size:
        raise check.must("tokens", "have at least one row and one column", rows.shape)
    return rows


def _least(score: float) -> float:
    """Return the least float32 that is not below a score: scores are float32."""
    with np.errstate(over="ignore"):
        near = np.float32(score)
    return float(near if float(near) >= score else np.nextafter(near, np.float32(np.inf)))


def _mapped(path: str, rows: int, dim: int) -> Floats | None:
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


def _rows(
    vectors: Vectors,
    texts: dict[str, str],
    embed: Callable[[list[str]], npt.ArrayLike | Iterable[npt.ArrayLike]],
    into: str,
    old: Space,
) -> tuple[dict[str, Floats], int]:
    """Return what a model makes of texts, by the ids of their records, and the length of token vectors."""
    made = embed(list(texts.values()))
    with check.contents:
        if not old.tokens:
            rows = float_rows(made, (2,))
            if len(rows) != len(texts):
                raise check.refuse(f"{len(texts)} texts and {len(rows)} vectors do not go together", "vector")
            return dict(zip(texts, rows, strict=True)), 0
        tokens = dict(zip(texts, as_tokens(made, len(texts)), strict=True))
        by_id = {name: rows for name, rows in tokens.items() if len(rows)}
        if not by_id:
            return {}, 0
        is_new = into not in {known.name for known in vectors.spaces()}
        room = old.dim * _FLOAT_BYTES // _CODE_BYTES if is_new else None
        codes = vectors.codes(list(by_id.values()), into, room)
        return dict(zip(by_id, codes, strict=True)), next(iter(by_id.values())).shape[1]


def _try_space(vectors: Vectors, name: str, model: str, old: Space) -> None:
    """Let the engine refuse a name or a model before a long work: it checks the space before the ids."""
    known = {space.name: space for space in vectors.spaces()}.get(check.string("into", name))
    tokens = old.tokens if known is None else known.tokens
    dim = (old.dim if old.tokens else 1) if known is None else known.dim
    row = np.zeros((1, dim), dtype=np.float32)
    if bool(tokens) != bool(old.tokens):
        raise check.refuse(
            f"{name!r} holds {'codes of tokens' if tokens else 'vectors'}, and the old one not", "into"
        )
    try:
        vectors._store.engine.vectors.attach(([_NOBODY], row, name, check.string("model", model), tokens))
    except EmbeddingMismatch as bound:
        # Bound a moment ago, by another process with the same model: how long its vectors are was a guess.
        if bound.model != model or known is not None:
            raise
    except InvalidRecord as refused:
        if refused.field != "id":
            raise


@dataclass(frozen=True, slots=True)
class _Made:
    """Vectors that a model has made of texts; others may change the records meanwhile."""

    vectors: Vectors
    texts: dict[str, str]
    text: Callable[[ChronoRecord], str]
    space: str
    model: str
    rows: dict[str, Floats]
    tokens: int

    def attach(self) -> tuple[int, list[str]]:
        """Attach the rows of unchanged records that have none yet; return how many, and what changed."""
        engine = self.vectors._store.engine
        since = engine.bookmark()
        now = {record.id: self.text(record) for record in self.vectors._living(self.texts)}
        changed = [name for name, text in now.items() if text != self.texts[name]]
        kept = [name for name in self.rows if now.get(name) == self.texts[name] and not self._has_one(name)]
        if kept:
            rows = np.stack([self.rows[name] for name in kept])
            written = engine.vectors.attach((kept, rows, self.space, self.model, self.tokens), since)
            if written is None:
                raise _conflict()
        return len(kept), changed

    def _has_one(self, name: str) -> bool:
        try:
            return self.vectors._store.engine.vectors.embedding(name, space=self.space) is not None
        except UnknownSpace:
            return False
        except LogCorrupted:  # a damaged row is replaced only by an explicit attach
            return True


def _conflict() -> WriteConflict:
    return WriteConflict(
        "other writers kept changing the records that were embedded; nothing was written of the last of them",
        recovery="Run it again: it goes on where it stopped.",
    )
