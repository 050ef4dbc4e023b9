"""What an embedder makes of texts: a vector for each, and codes of their tokens if it offers them.

Both are made before a batch begins, since models take their time, and written with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from chronomemory.embedders import Embedder, Matrix, Vector
from chronomemory.embedders.protocol import as_tokens, offers_tokens
from chronomemory.face.arguments import contents
from chronomemory.face.batch import Connection
from chronomemory.face.spaces import Spaces, bytes_to_embedding, embedding_of
from chronomemory.record import ChronoRecord
from chronomemory.types import HasEngine
from chronomemory.vectors import Vectors

__all__ = ["Reader", "Reading"]


@dataclass(frozen=True)
class Reading:
    """What was made of some texts."""

    vectors: Matrix
    #: The codes of each, or None for one that has no tokens; none at all if the embedder offers none.
    codes: Sequence[Vector | None] = ()
    #: The length of the token vectors.
    token_dim: int = 0

    def part(self, start: int, end: int) -> Reading:
        """Return what was made of the texts from one place to another."""
        return Reading(self.vectors[start:end], self.codes[start:end], self.token_dim)

    def codes_of(self, place: int) -> Vector | None:
        """Return the codes of a text, if it has any."""
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
        """Return what an embedder makes of records; a vector of the same model is kept as it is.

        Embedding takes long: this is for a connection that only reads.
        """
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
        told = [name for name in once if len(made[name])]
        if not told:
            return Reading(vectors)
        with contents:
            codes = Vectors(store).codes([made[name] for name in told], self.tokens.of(embedder.model_name))
        found = dict(zip(told, codes, strict=True))
        return Reading(vectors, [found.get(name) for name in texts], made[told[0]].shape[1])

    def query_tokens(self, text: str, embedder: Embedder) -> Matrix | None:
        """Return the vectors of the tokens of a question, or None if there are none."""
        if not offers_tokens(embedder):
            return None
        (made,) = as_tokens([embedder.embed_query_tokens(text)], 1)
        return made if len(made) else None

    def attach(
        self, conn: Connection, record_id: str, reading: Reading, place: int, model: str | None
    ) -> None:
        """Give a record what was made of it, as part of the batch."""
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
