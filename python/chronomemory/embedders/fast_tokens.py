"""Embeds the tokens of texts by fastembed. Needs the extra ``fastembed``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastembed import LateInteractionTextEmbedding

from chronomemory.embedders.protocol import Matrix, as_tokens


class FastTokenEmbedder:
    """Asks a model of fastembed that gives a vector for each token."""

    def __init__(self, model: str = "answerdotai/answerai-colbert-small-v1", **options: Any) -> None:
        self._model = LateInteractionTextEmbedding(model_name=model, **options)
        self._name = model

    @property
    def model_name(self) -> str:
        """The name of the model."""
        return self._name

    def embed_tokens(self, texts: Sequence[str]) -> list[Matrix]:
        """Return the vectors of the tokens of texts."""
        return as_tokens(list(self._model.embed(list(texts))), len(texts))

    def embed_query_tokens(self, text: str) -> Matrix:
        """Return the vectors of the tokens of a question."""
        return as_tokens(list(self._model.query_embed(text)), 1)[0]
