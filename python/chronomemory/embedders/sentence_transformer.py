"""Embeds texts by sentence-transformers. Needs the extra ``sentence-transformers``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sentence_transformers import SentenceTransformer

from chronomemory.embedders.endpoint import CallableEmbedder
from chronomemory.embedders.protocol import Matrix, as_tokens


class SentenceTransformerEmbedder(CallableEmbedder):
    """Asks a model of sentence-transformers, given by its name or ready made."""

    def __init__(self, model: str | SentenceTransformer = "all-MiniLM-L6-v2", **options: Any) -> None:
        self._model = SentenceTransformer(model, **options) if isinstance(model, str) else model
        super().__init__(
            model if isinstance(model, str) else str(getattr(model, "model_name", "sentence-transformer")),
            lambda texts: self._model.encode(texts, convert_to_numpy=True, show_progress_bar=False),
        )

    def embed_tokens(self, texts: Sequence[str]) -> list[Matrix]:
        rows = self._model.encode(
            list(texts), output_value="token_embeddings", convert_to_numpy=False, show_progress_bar=False
        )
        return as_tokens([one.cpu().numpy() for one in rows], len(texts))

    def embed_query_tokens(self, text: str) -> Matrix:
        return self.embed_tokens([text])[0]
