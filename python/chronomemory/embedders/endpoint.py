"""Embeds texts at a server that speaks the usual protocol.

``POST <base>/embeddings`` with a model and inputs is what OpenAI, vLLM, llama.cpp, Ollama, LM Studio
and many others answer. The key comes from an environment variable and is kept nowhere.
"""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from typing import Any

from chronomemory._core import parse_json
from chronomemory.embedders.calling import CallableEmbedder
from chronomemory.errors import ChronoError, InvalidArgument

__all__ = ["EndpointEmbedder", "EndpointError"]

_BATCH_TEXTS = 128
#: Of a longer answer no more is read.
_MOST_BYTES = 64 << 20


class EndpointError(ChronoError, OSError):
    """The server could not be reached, or did not answer as such servers do."""

    usual_recovery = "Check that the server runs, its address, the model and the key."


class EndpointEmbedder(CallableEmbedder):
    """Asks a server for vectors. ``key_variable`` names the environment variable that has the key.

    Shortened vectors, of so many ``dimensions``, are those of another model.
    """

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
        super().__init__(model if dimensions is None else f"{model}-{dimensions}", self._ask_in_batches)
        self._model = model
        self._url = base_url.rstrip("/") + "/embeddings"
        self._key_variable = key_variable
        self._timeout_seconds = timeout_seconds
        self._dimensions = dimensions

    def _ask_in_batches(self, texts: list[str]) -> list[Any]:
        starts = range(0, len(texts), _BATCH_TEXTS)
        return [row for start in starts for row in self._ask(texts[start : start + _BATCH_TEXTS])]

    def _ask(self, texts: list[str]) -> list[Any]:
        asked: dict[str, Any] = {"model": self._model, "input": texts}
        if self._dimensions is not None:
            asked["dimensions"] = self._dimensions
        headers = {"Content-Type": "application/json"}
        key = os.environ.get(self._key_variable or "", "")
        if key:
            headers["Authorization"] = f"Bearer {key}"
        request = urllib.request.Request(self._url, json.dumps(asked).encode("utf-8"), headers)
        try:
            with urllib.request.urlopen(request, timeout=self._timeout_seconds) as answer:
                told = parse_json(answer.read(_MOST_BYTES))
            found = sorted(told["data"], key=lambda item: int(item["index"]))
            rows = [item["embedding"] for item in found]
        except urllib.error.HTTPError as fault:
            with fault:
                said = fault.read(500).decode("utf-8", "replace")
            raise EndpointError(
                f"{self._url} answered {fault.code}: {said}", recovery="Check model, address and key."
            ) from fault
        except (OSError, ValueError, KeyError, TypeError) as fault:
            raise EndpointError(
                f"{self._url} gave no vectors: {fault}",
                recovery="Check that the server runs and its address.",
            ) from fault
        if len(rows) != len(texts):
            raise EndpointError(f"{self._url} gave {len(rows)} vectors for {len(texts)} texts")
        return rows
