"""Embeds texts by fastembed. Needs the extra ``fastembed``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastembed import TextEmbedding

from chronomemory.embedders.protocol import Matrix, Vector, as_matrix


class FastEmbedder:
    """Asks a model of fastembed: small, on the processor, without PyTorch."""

    def __init__(self, model: str = "BAAI/bge-small-en-v1.5", **options: Any) -> None:
        self._model = TextEmbedding(model_name=model, **options)
        self._name = model

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
        return as_matrix(list(self._model.embed(list(texts))), len(texts))
