"""Embeds the tokens of texts by fastembed. Needs the extra ``fastembed``."""

from __future__ import annotations

from typing import Any

from fastembed import LateInteractionTextEmbedding

from chronomemory.embedders.endpoint import CallableTokenEmbedder


class FastTokenEmbedder(CallableTokenEmbedder):
    """Asks a model of fastembed that gives a vector for each token."""

    def __init__(self, model: str = "answerdotai/answerai-colbert-small-v1", **options: Any) -> None:
        loaded = LateInteractionTextEmbedding(model_name=model, **options)
        super().__init__(
            model, lambda texts: list(loaded.embed(texts)), lambda texts: list(loaded.query_embed(texts[0]))
        )
