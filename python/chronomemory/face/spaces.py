"""The vector spaces of a face: one for each model, named by ``data.space`` of a record."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from chronomemory.embedders import Embedder, Matrix, Vector
from chronomemory.embedders.protocol import as_matrix, as_tokens, offers_tokens
from chronomemory.errors import InvalidArgument, UnknownSpace
from chronomemory.face.arguments import contents
from chronomemory.face.batch import Connection
from chronomemory.numpy_later import np, npt
from chronomemory.record import ChronoRecord
from chronomemory.types import HasEngine
from chronomemory.vectors import Vectors

#: How much of a model stands in the name of its space, and what the engine takes for a name at most.
_LONGEST_MODEL_LETTERS, _LONGEST_NAME_LETTERS = 40, 64
_DIGEST_DIGITS = 12


def embedding_to_bytes(vec: npt.ArrayLike) -> bytes:
    """Return a vector as little-endian float32 bytes."""
    return np.ascontiguousarray(vec, dtype="<f4").tobytes()


def bytes_to_embedding(data: bytes) -> Vector:
    """Return the vector that bytes hold; it cannot be written to.

    >>> bytes_to_embedding(embedding_to_bytes([1.0, 0.5])).tolist()
    [1.0, 0.5]
    """
    return np.frombuffer(data, dtype=np.float32)


def has_embedding(record: ChronoRecord) -> bool:
    return "space" in record.data


def embedding_of(conn: Connection, record: ChronoRecord) -> bytes | None:
    if not has_embedding(record):
        return None
    pending = conn.attached(record.id)
    if pending is not None:
        return pending.tobytes()
    try:
        found = Vectors(conn.store).get(record.id, space=record.data["space"])
    except UnknownSpace:
        return None
    return None if found is None else found.tobytes()


@lru_cache(maxsize=256)
def _name_of(name: str, model: str) -> str:
    """Return the name of a space; every question asks for it, and few models are in use."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "-", model)
    room = _LONGEST_NAME_LETTERS - len(name) - len(".-") - _DIGEST_DIGITS
    most = min(_LONGEST_MODEL_LETTERS, room)
    if plain == model and len(plain) <= most:
        return f"{name}.{plain}"
    # Two models must not share a space because their names look alike.
    digest = hashlib.sha256(model.encode("utf-8")).hexdigest()[:_DIGEST_DIGITS]
    return f"{name}.{plain[:most]}-{digest}"


@dataclass(frozen=True)
class Spaces:
    """The spaces of a face; its name is that of the space of vectors without a named model."""

    name: str

    def of(self, model: str | None) -> str:
        """Return the name of the space that holds the vectors of a model.

        >>> Spaces("blocks").of("lexical-384-v1"), Spaces("blocks").of(None)
        ('blocks.lexical-384-v1', 'blocks')
        """
        return self.name if model is None else _name_of(self.name, model)

    def attach(self, conn: Connection, record_id: str, vector: npt.ArrayLike, model: str | None) -> None:
        space = self.of(model)
        with contents:
            values = _checked(vector)
        conn.patch(record_id, {"data": {"space": space}})
        conn.attach(record_id, values, space, model or self.name)

    def embedded(
        self,
        conn: Connection,
        records: Sequence[ChronoRecord],
        text: Callable[[ChronoRecord], str],
        embedder: Embedder,
    ) -> Matrix:
        """Return a vector for each record, embedding each text once; for connections that only read."""
        rows: list[Any] = [None] * len(records)
        wanted: dict[str, list[int]] = {}
        for at, record in enumerate(records):
            same_model = record.data.get("space") == self.of(embedder.model_name)
            known = embedding_of(conn, record) if same_model else None
            if known is None:
                wanted.setdefault(text(record), []).append(at)
            else:
                rows[at] = bytes_to_embedding(known)
        if wanted:
            made = as_matrix(embedder.embed_batch(list(wanted)), len(wanted))
            for row, places in zip(made, wanted.values(), strict=True):
                for at in places:
                    rows[at] = row
        return as_matrix(rows, len(records))

    @staticmethod
    def vector_of(text: str, embedder: Embedder) -> Vector:
        """Return the vector of a question; the comparison checks whether it fits."""
        return _checked(embedder.embed(text))

    def of_query(self, store: HasEngine, text: str, embedder: Embedder) -> Vector:
        """Return the vector of a question, which must fit those of the records that it is compared with."""
        vector = self.vector_of(text, embedder)
        space = self.of(embedder.model_name)
        dims = {known["name"]: known["dim"] for known in store.engine.vectors.spaces()}
        known = dims.get(space, len(vector))
        if known != len(vector):
            raise InvalidArgument(
                f"embedding: {len(vector)} numbers for a query do not fit {known} of {embedder.model_name!r}",
                field="embedding",
                recovery="Use the embedder that what is searched was embedded with.",
            )
        return vector


def _checked(vector: npt.ArrayLike) -> Vector:
    try:
        row: Vector = as_matrix(np.asarray(vector)[np.newaxis], 1)[0]
    except ValueError as fault:
        raise InvalidArgument(
            f"embedding: one row of finite numbers is needed: {fault}", field="embedding"
        ) from None
    return row


@dataclass(frozen=True)
class Reading:
    """What was made of some texts."""

    vectors: Matrix
    #: The codes of each, or None for one that has no tokens; none at all if the embedder offers none.
    codes: Sequence[Vector | None] = ()
    token_dim: int = 0

    def part(self, start: int, end: int) -> Reading:
        return Reading(self.vectors[start:end], self.codes[start:end], self.token_dim)

    def codes_of(self, place: int) -> Vector | None:
        return self.codes[place] if self.codes else None


@dataclass(frozen=True)
class Reader:
    """The spaces of a face for vectors, and those for codes of tokens."""

    vectors: Spaces
    tokens: Spaces

    def read(
        self,
        conn: Connection,
        records: Sequence[ChronoRecord],
        text: Callable[[ChronoRecord], str],
        embedder: Embedder,
    ) -> Reading:
        """Return what an embedder makes of records; for connections that only read, as it takes long."""
        vectors = self.vectors.embedded(conn, records, text, embedder)
        return self.with_tokens(conn.store, vectors, [text(record) for record in records], embedder)

    def with_tokens(
        self, store: HasEngine, vectors: Matrix, texts: Sequence[str], embedder: Embedder
    ) -> Reading:
        """Add the codes of the tokens to vectors, if the embedder offers tokens."""
        if not offers_tokens(embedder):
            return Reading(vectors)
        once = list(dict.fromkeys(texts))
        made = dict(zip(once, as_tokens(embedder.embed_tokens(once), len(once)), strict=True))
        nonempty = [name for name in once if len(made[name])]
        if not nonempty:
            return Reading(vectors)
        with contents:
            codes = Vectors(store).codes(
                [made[name] for name in nonempty], self.tokens.of(embedder.model_name)
            )
        found = dict(zip(nonempty, codes, strict=True))
        return Reading(vectors, [found.get(name) for name in texts], made[nonempty[0]].shape[1])

    def query_tokens(self, text: str, embedder: Embedder) -> Matrix | None:
        if not offers_tokens(embedder):
            return None
        (made,) = as_tokens([embedder.embed_query_tokens(text)], 1)
        return made if len(made) else None

    def attach(
        self, conn: Connection, record_id: str, reading: Reading, place: int, model: str | None
    ) -> None:
        self.vectors.attach(conn, record_id, reading.vectors[place], model)
        codes = reading.codes_of(place)
        if codes is not None:
            space = self.tokens.of(model)
            conn.attach_codes(record_id, codes, space, model or self.tokens.name, reading.token_dim)

    def hand_on(self, conn: Connection, old: ChronoRecord, record_id: str, model: str | None) -> None:
        """Give a record what was made of another one that says the same, as part of the batch."""
        vector = embedding_of(conn, old)
        if vector is None:
            return
        self.vectors.attach(conn, record_id, bytes_to_embedding(vector), model)
        space = self.tokens.of(model)
        bound = next((known for known in Vectors(conn.store).spaces() if known.name == space), None)
        codes = None if bound is None else Vectors(conn.store).get(old.id, space=space)
        if bound is not None and codes is not None:
            conn.attach_codes(record_id, codes, space, bound.model, bound.tokens)
