"""Embeds texts by fastembed. Needs the extra ``fastembed``."""

from __future__ import annotations

from typing import Any

from fastembed import TextEmbedding

from chronomemory.embedders.endpoint import CallableEmbedder


class FastEmbedder(CallableEmbedder):
    """Asks a model of fastembed: small, on the processor, without PyTorch."""

    def __init__(self, model: str = "BAAI/bge-small-en-v1.5", **options: Any) -> None:
        loaded = TextEmbedding(model_name=model, **options)
        super().__init__(model, lambda texts: list(loaded.embed(texts)))
