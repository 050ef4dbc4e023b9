"""Embeds texts by hashing words and pieces of words, without a model."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from functools import lru_cache

from chronomemory.embedders.protocol import Matrix, Vector
from chronomemory.face.arguments import must
from chronomemory.numpy_later import np

_WORD = re.compile(r"\w+")

_WORD_WEIGHT, _PIECES_WEIGHT = 0.8, 1.0
_COMMON_WEIGHT = 0.15
_COMMON_LIST = """a an and are as at be but by for from had has have he her his i in is it its me my of
on or our she so that the their them they this to was we were what when which who will with you your"""
COMMON_WORDS = frozenset(_COMMON_LIST.split())
_PIECE_LETTERS = 3


@lru_cache(maxsize=65_536)
def _places(word: str, dim: int) -> tuple[tuple[int, float], ...]:
    weight = _COMMON_WEIGHT if word in COMMON_WORDS else 1.0
    padded = f"^{word}$"
    pieces = [padded[at : at + _PIECE_LETTERS] for at in range(max(1, len(padded) - _PIECE_LETTERS + 1))]
    named = [(f"w {word}", weight * _WORD_WEIGHT)]
    named += [(f"p {piece}", weight * _PIECES_WEIGHT / len(pieces) ** 0.5) for piece in pieces]
    return tuple(_place(name, value, dim) for name, value in named)


def _place(name: str, value: float, dim: int) -> tuple[int, float]:
    number = zlib.crc32(name.encode("utf-8"))
    # One bit says the sign, so that names that meet in a place cancel out on average.
    return (number >> 1) % dim, value if number & 1 else -value


class LexicalEmbedder:
    """Hashes words and pieces of words into a vector of length one.

    >>> embedder = LexicalEmbedder()
    >>> cold, ice, tax = embedder.embed_batch(["cold ice", "the ice is cold", "income tax"])
    >>> bool(cold @ ice > 0.8), bool(abs(cold @ tax) < 0.2)
    (True, True)
    """

    #: Measured on questions with and without an answer: benches/relevance.py.
    min_similarity = 0.334

    def __init__(self, dim: int = 384) -> None:
        if dim < 1:
            raise must("dim", "be at least 1", dim)
        self.dim = dim

    @property
    def model_name(self) -> str:
        """The name of this way of hashing; another dimension is another model."""
        return f"lexical-{self.dim}-v1"

    def embed(self, text: str) -> Vector:
        row = np.zeros(self.dim, dtype=np.float64)
        for word in _WORD.findall(text.casefold()):
            for place, value in _places(word, self.dim):
                row[place] += value
        norm = float(np.sqrt(row @ row))
        return (row / norm if norm > 0 else row).astype(np.float32)

    def embed_batch(self, texts: Sequence[str]) -> Matrix:
        if not texts:
            return np.empty((0, self.dim), dtype=np.float32)
        return np.stack([self.embed(text) for text in texts])
