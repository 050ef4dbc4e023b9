"""Embeds texts by sentence-transformers. Needs the extra ``sentence-transformers``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sentence_transformers import SentenceTransformer

from chronomemory.embedders.protocol import Matrix, Vector, as_matrix, as_tokens


class SentenceTransformerEmbedder:
    """Asks a model of sentence-transformers, given by its name or ready made."""

    def __init__(self, model: str | SentenceTransformer = "all-MiniLM-L6-v2", **options: Any) -> None:
        self._model = SentenceTransformer(model, **options) if isinstance(model, str) else model
        self._name = (
            model if isinstance(model, str) else str(getattr(model, "model_name", "sentence-transformer"))
        )

    @property
    def model_name(self) -> str:
        """The name of the model."""
        return self._name

    def embed(self, text: str) -> Vector:
        """Return the vector of a text."""
        row: Vector = self.embed_batch([text])[0]
        return row

    def embed_batch(self, texts: Sequence[str]) -> Matrix:
        """Return the vectors of texts, one a row."""
        rows = self._model.encode(list(texts), convert_to_numpy=True, show_progress_bar=False)
        return as_matrix(rows, len(texts))

    def embed_tokens(self, texts: Sequence[str]) -> list[Matrix]:
        """Return the vectors of the tokens of texts."""
        rows = self._model.encode(
            list(texts), output_value="token_embeddings", convert_to_numpy=False, show_progress_bar=False
        )
        return as_tokens([one.cpu().numpy() for one in rows], len(texts))

    def embed_query_tokens(self, text: str) -> Matrix:
        """Return the vectors of the tokens of a question."""
        return self.embed_tokens([text])[0]
