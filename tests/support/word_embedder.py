"""The embedders with tokens that the tests use."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

__all__ = ["DIM", "READY", "Floats", "SynonymEmbedder", "WordEmbedder", "vector"]

Floats = npt.NDArray[np.float32]
DIM = 32
#: What words stand for.
MEANT = {"automobile": "car", "beverage": "drink"}


def vector(word: str) -> Floats:
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).standard_normal(DIM, dtype=np.float32)


class WordEmbedder:
    """Has a vector for each word, and for a text their sum."""

    model_name = "words"

    def embed(self, text: str) -> Floats:
        return self.embed_batch([text])[0]

    def embed_batch(self, texts: list[str]) -> Floats:
        return np.stack([np.sum([vector(word) for word in text.split()], axis=0) for text in texts])

    def embed_tokens(self, texts: list[str]) -> list[Floats]:
        return [
            np.array([vector(word) for word in text.split() if len(word) > 3], dtype=np.float32).reshape(
                -1, DIM
            )
            for text in texts
        ]

    def embed_query_tokens(self, text: str) -> Floats:
        return self.embed_tokens([text])[0]


class SynonymEmbedder(WordEmbedder):
    """Knows that some words mean the same."""

    def __init__(self, model: str = "synonyms") -> None:
        self.model_name = model

    def embed_batch(self, texts: list[str]) -> Floats:
        return super().embed_batch([self._meant(text) for text in texts])

    def embed_tokens(self, texts: list[str]) -> list[Floats]:
        return super().embed_tokens([self._meant(text) for text in texts])

    def _meant(self, text: str) -> str:
        # Tokens are those of words of four letters and more.
        return " ".join(MEANT.get(word, word).ljust(4, "-") for word in text.lower().split())


#: One that is there already.
READY = SynonymEmbedder("ready")
