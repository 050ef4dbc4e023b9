"""Does every way to make vectors keep the protocol?"""

from __future__ import annotations

import importlib
import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from chronomemory import InvalidArgument, Memory
from chronomemory.embedders import (
    CallableEmbedder,
    Embedder,
    EndpointEmbedder,
    EndpointError,
    LexicalEmbedder,
)


class TestLexical:
    def test_it_is_the_same_everywhere(self) -> None:
        vector = LexicalEmbedder(8).embed("Water is wet")
        assert vector.dtype == np.float32
        assert vector.tolist() == pytest.approx(LexicalEmbedder(8).embed("water IS wet").tolist())
        assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-6)

    def test_shared_words_and_parts_of_words_are_alike(self) -> None:
        embedder = LexicalEmbedder()
        deploy, deploying, tax = embedder.embed_batch(["deploy the key", "deploying keys", "income tax"])
        assert deploy @ deploying > 0.3
        assert abs(deploy @ tax) < 0.2

    def test_a_text_without_words_has_no_direction(self) -> None:
        assert not LexicalEmbedder().embed("?!").any()
        assert LexicalEmbedder().embed_batch([]).shape == (0, 384)

    def test_it_keeps_the_protocol(self) -> None:
        assert isinstance(LexicalEmbedder(), Embedder)
        assert LexicalEmbedder(8).model_name != LexicalEmbedder(16).model_name
        with pytest.raises(ValueError, match="dim"):
            LexicalEmbedder(0)


class TestCallable:
    def test_any_function_will_do(self) -> None:
        embedder = CallableEmbedder("lengths", lambda texts: [[len(text), 1] for text in texts])
        assert embedder.embed_batch(["a", "bcd"]).tolist() == [[1.0, 1.0], [3.0, 1.0]]
        assert isinstance(embedder, Embedder)

    @pytest.mark.parametrize("rows", [[[1.0]], [1.0, 2.0], [[float("nan")], [1.0]]])
    def test_what_makes_no_sense_is_refused(self, rows: Any) -> None:
        with pytest.raises(ValueError, match="embedder"):
            CallableEmbedder("bad", lambda texts: rows).embed_batch(["a", "b"])
        with pytest.raises(ValueError, match="name"):
            CallableEmbedder("", lambda texts: rows)


class Server(BaseHTTPRequestHandler):
    """Answers as servers of embeddings do, in an order of its own."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if asked["model"] == "broken":
            self.send_error(404, "no such model")
            return
        rows = [{"index": at, "embedding": [len(text), 1.0]} for at, text in enumerate(asked["input"])]
        told = json.dumps({"data": rows[::-1], "key": self.headers.get("Authorization")}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(told)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def address() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Server) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


class TestEndpoint:
    def test_vectors_come_in_the_order_of_the_texts(self, address: str) -> None:
        embedder = EndpointEmbedder("m", base_url=address)
        assert embedder.embed_batch(["a", "bcd"]).tolist() == [[1.0, 1.0], [3.0, 1.0]]
        assert embedder.embed_batch(["x"] * 300).shape == (300, 2)
        assert isinstance(embedder, Embedder)

    def test_what_goes_wrong_is_told(self, address: str) -> None:
        with pytest.raises(EndpointError, match="404"):
            EndpointEmbedder("broken", base_url=address).embed("a")
        with pytest.raises(EndpointError, match="gave no vectors"):
            EndpointEmbedder("m", base_url="http://127.0.0.1:1", timeout_seconds=0.5).embed("a")
        with pytest.raises(ValueError, match="base_url"):
            EndpointEmbedder("m", base_url="file:///etc/passwd")

    def test_shortened_vectors_are_another_model(self) -> None:
        assert EndpointEmbedder("m", dimensions=256).model_name == "m-256"


class TestAdapters:
    """The packages behind the extras are large; what they promise is imitated here."""

    def test_sentence_transformers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class SentenceTransformer:
            def __init__(self, name: str) -> None:
                self.model_name = name

            def encode(
                self, texts: list[str], *, convert_to_numpy: bool, show_progress_bar: bool
            ) -> np.ndarray:
                assert convert_to_numpy
                assert not show_progress_bar
                return np.array([[len(text), 1.0] for text in texts])

        embedder = self.adapter(
            monkeypatch,
            "sentence_transformers",
            "sentence_transformer",
            SentenceTransformer=SentenceTransformer,
        ).SentenceTransformerEmbedder("mini")
        assert (embedder.model_name, embedder.embed("abc").tolist()) == ("mini", [3.0, 1.0])
        assert isinstance(embedder, Embedder)

    def test_fastembed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class TextEmbedding:
            def __init__(self, model_name: str) -> None:
                self.name = model_name

            def embed(self, texts: list[str]) -> Iterator[np.ndarray]:
                yield from (np.array([len(text), 1.0]) for text in texts)

        embedder = self.adapter(monkeypatch, "fastembed", "fast", TextEmbedding=TextEmbedding).FastEmbedder(
            "small"
        )
        assert (embedder.model_name, embedder.embed("abc").tolist()) == ("small", [3.0, 1.0])
        assert isinstance(embedder, Embedder)

    @staticmethod
    def adapter(monkeypatch: pytest.MonkeyPatch, package: str, name: str, **contents: Any) -> ModuleType:
        fake = ModuleType(package)
        fake.__dict__.update(SimpleNamespace(**contents).__dict__)
        monkeypatch.setitem(sys.modules, package, fake)
        monkeypatch.delitem(sys.modules, f"chronomemory.embedders.{name}", raising=False)
        return importlib.import_module(f"chronomemory.embedders.{name}")


@pytest.mark.parametrize(
    ("given", "lacking"), [(lambda texts: texts, "no model_name"), ("lexical", "no embed")]
)
def test_what_is_no_embedder_is_told_so(tmp_path: Path, given: Any, lacking: str) -> None:
    with pytest.raises(InvalidArgument, match=lacking) as refused:
        Memory(tmp_path, embedder=given)
    assert refused.value.field == "embedder" and "CallableEmbedder" in refused.value.recovery
    assert not (tmp_path / ".chronomemory").exists()
