"""Reads each text once with a model, and keeps what came of it in a folder."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benches.retrieval.minilm import MODEL, MiniLM

__all__ = ["Known", "SentenceModel", "TokenModel"]

Floats = Any
FOLDER = Path(tempfile.gettempdir()) / "chronomemory-retrieval"
AT_ONCE_TEXTS = 64


class Known:
    """The vectors of texts and of their tokens; what is not known yet is read by the model."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder
        self._model: MiniLM | None = None
        self._read: dict[str, tuple[Floats, Floats]] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def read(self, texts: Sequence[str]) -> None:
        """Make the vectors of texts known."""
        new = [text for text in dict.fromkeys(texts) if text not in self._read]
        missing = [text for text in new if not self._file(text).exists()]
        for start in range(0, len(missing), AT_ONCE_TEXTS):
            self._model = self._model or MiniLM()
            some = missing[start : start + AT_ONCE_TEXTS]
            for text, vector, tokens in zip(some, *self._model.both(some), strict=True):
                np.savez(self._file(text), vector=vector, tokens=tokens.astype(np.float16))
        for text in new:
            with np.load(self._file(text)) as kept:
                self._read[text] = (kept["vector"], kept["tokens"].astype(np.float32))

    def vectors(self, texts: Sequence[str]) -> Floats:
        """Return a vector for each text."""
        self.read(texts)
        return np.stack([self._read[text][0] for text in texts])

    def tokens(self, texts: Sequence[str]) -> list[Floats]:
        """Return the vectors of the tokens of each text."""
        self.read(texts)
        return [self._read[text][1] for text in texts]

    def _file(self, text: str) -> Path:
        return self._folder / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.npz"


class SentenceModel:
    """An embedder of sentences."""

    model_name = MODEL

    def __init__(self, known: Known) -> None:
        self._known = known

    def embed(self, text: str) -> Floats:
        """Return the vector of a text."""
        return self._known.vectors([text])[0]

    def embed_batch(self, texts: Sequence[str]) -> Floats:
        """Return the vectors of texts."""
        return self._known.vectors(texts)


class TokenModel(SentenceModel):
    """The same, with a vector for each token."""

    def embed_tokens(self, texts: Sequence[str]) -> list[Floats]:
        """Return the vectors of the tokens of texts."""
        return self._known.tokens(texts)

    def embed_query_tokens(self, text: str) -> Floats:
        """Return the vectors of the tokens of a question."""
        return self._known.tokens([text])[0]
