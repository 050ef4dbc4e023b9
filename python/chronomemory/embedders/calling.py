"""Makes an embedder of any function."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from chronomemory.embedders.protocol import Matrix, Vector, as_matrix, as_tokens
from chronomemory.face.arguments import must

__all__ = ["CallableEmbedder", "CallableTokenEmbedder"]


class CallableEmbedder:
    """Wraps a function that takes a list of texts and returns a row of numbers for each.

    >>> embedder = CallableEmbedder("length", lambda texts: [[float(len(text))] for text in texts])
    >>> embedder.embed("four").tolist()
    [4.0]
    """

    def __init__(self, model_name: str, function: Callable[[list[str]], object]) -> None:
        if not model_name:
            raise must("model_name", "not be empty: vectors are kept under it", model_name)
        self._name = model_name
        self._function = function

    @property
    def model_name(self) -> str:
        """The name that was given."""
        return self._name

    def embed(self, text: str) -> Vector:
        """Return the vector of a text."""
        row: Vector = self.embed_batch([text])[0]
        return row

    def embed_batch(self, texts: Sequence[str]) -> Matrix:
        """Return the vectors of texts, one a row."""
        return as_matrix(self._function(list(texts)), len(texts))


class CallableTokenEmbedder:
    """Wraps a function that takes a list of texts and returns a row of numbers for each token of each.

    Questions are read by the same function, unless ``query`` is another.

    >>> embedder = CallableTokenEmbedder("sizes", lambda ts: [[[len(w)] for w in t.split()] for t in ts])
    >>> embedder.embed_query_tokens("two tokens").tolist()
    [[3.0], [6.0]]
    """

    def __init__(
        self,
        model_name: str,
        function: Callable[[list[str]], object],
        query: Callable[[list[str]], object] | None = None,
    ) -> None:
        if not model_name:
            raise must("model_name", "not be empty: tokens are kept under it", model_name)
        self._name = model_name
        self._function = function
        self._query = query or function

    @property
    def model_name(self) -> str:
        """The name that was given."""
        return self._name

    def embed_tokens(self, texts: Sequence[str]) -> list[Matrix]:
        """Return the vectors of the tokens of texts."""
        return as_tokens(self._function(list(texts)), len(texts))

    def embed_query_tokens(self, text: str) -> Matrix:
        """Return the vectors of the tokens of a question."""
        return as_tokens(self._query([text]), 1)[0]
