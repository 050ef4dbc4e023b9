"""Embedders that call a function or a server."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Callable, Sequence
from typing import Any

from chronomemory._core import parse_json
from chronomemory.embedders.protocol import Matrix, Vector, as_matrix, as_tokens
from chronomemory.errors import ChronoError, InvalidArgument
from chronomemory.face.arguments import must


class _Named:
    """A model's name, under which vectors are kept, and the function that embeds."""

    def __init__(self, model_name: str, function: Callable[[list[str]], object]) -> None:
        if not model_name:
            raise must("model_name", "not be empty: vectors are kept under it", model_name)
        self._name = model_name
        self._function = function

    @property
    def model_name(self) -> str:
        return self._name


class CallableEmbedder(_Named):
    """Wraps a function that takes a list of texts and returns a row of numbers for each.

    >>> embedder = CallableEmbedder("length", lambda texts: [[float(len(text))] for text in texts])
    >>> embedder.embed("four").tolist()
    [4.0]
    """

    def embed(self, text: str) -> Vector:
        row: Vector = self.embed_batch([text])[0]
        return row

    def embed_batch(self, texts: Sequence[str]) -> Matrix:
        return as_matrix(self._function(list(texts)), len(texts))


class CallableTokenEmbedder(_Named):
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
        super().__init__(model_name, function)
        self._query = query or function

    def embed_tokens(self, texts: Sequence[str]) -> list[Matrix]:
        return as_tokens(self._function(list(texts)), len(texts))

    def embed_query_tokens(self, text: str) -> Matrix:
        return as_tokens(self._query([text]), 1)[0]


_BATCH_TEXTS = 128
_MOST_BYTES = 64 << 20


class EndpointError(ChronoError, OSError):
    """The server could not be reached, or did not answer as such servers do."""

    usual_recovery = "Check that the server runs, its address, the model and the key."


class EndpointEmbedder(CallableEmbedder):
    """Asks a server for vectors; ``key_variable`` names the environment variable with the key."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str = "https://api.openai.com/v1",
        key_variable: str | None = "OPENAI_API_KEY",
        timeout_seconds: float = 30.0,
        dimensions: int | None = None,
    ) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise InvalidArgument(
                f"base_url: {base_url!r} is no address of a server",
                field="base_url",
                recovery="An address begins with http:// or https://.",
            )

        def embed(texts: list[str]) -> list[Any]:
            starts = range(0, len(texts), _BATCH_TEXTS)
            return [row for start in starts for row in self._ask(texts[start : start + _BATCH_TEXTS])]

        super().__init__(model if dimensions is None else f"{model}-{dimensions}", embed)
        self._model = model
        self._url = base_url.rstrip("/") + "/embeddings"
        self._key_variable = key_variable
        self._timeout_seconds = timeout_seconds
        self._dimensions = dimensions

    def _ask(self, texts: list[str]) -> list[Any]:
        asked: dict[str, Any] = {"model": self._model, "input": texts}
        if self._dimensions is not None:
            asked["dimensions"] = self._dimensions
        headers = {"Content-Type": "application/json"}
        key = os.environ.get(self._key_variable or "", "")
        if key:
            headers["Authorization"] = f"Bearer {key}"
        # Loaded on first use: it is a quarter of what a store needs.
        http: Any = importlib.import_module("urllib.request")
        request = http.Request(self._url, json.dumps(asked).encode("utf-8"), headers)
        try:
            with http.urlopen(request, timeout=self._timeout_seconds) as answer:
                content = parse_json(answer.read(_MOST_BYTES))
            found = sorted(content["data"], key=lambda item: int(item["index"]))
            rows = [item["embedding"] for item in found]
        except http.HTTPError as fault:
            with fault:
                reason = fault.read(500).decode("utf-8", "replace")
            raise EndpointError(
                f"{self._url} answered {fault.code}: {reason}", recovery="Check model, address and key."
            ) from fault
        except (OSError, ValueError, KeyError, TypeError) as fault:
            raise EndpointError(
                f"{self._url} gave no vectors: {fault}",
                recovery="Check that the server runs and its address.",
            ) from fault
        if len(rows) != len(texts):
            raise EndpointError(f"{self._url} gave {len(rows)} vectors for {len(texts)} texts")
        return rows
