"""Every way to make vectors keeps the protocol."""

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
from chronomemory import InvalidArgument, InvalidRecord, Memory
from chronomemory.embedders import (
    CallableEmbedder,
    CallableTokenEmbedder,
    Embedder,
    EndpointEmbedder,
    EndpointError,
    LexicalEmbedder,
    TokenEmbedder,
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


class TestTokens:
    def test_any_function_will_do(self) -> None:
        def sizes(texts: list[str]) -> list[list[list[int]]]:
            return [[[len(word)] for word in text.split()] for text in texts]

        embedder = CallableTokenEmbedder("sizes", sizes, lambda texts: [[[0.5]] for _ in texts])
        assert isinstance(embedder, TokenEmbedder)
        assert [one.tolist() for one in embedder.embed_tokens(["ab c", "d"])] == [[[2.0], [1.0]], [[1.0]]]
        assert embedder.embed_query_tokens("ab c").tolist() == [[0.5]]

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            (None, "0 arrays for 1 texts"),
            ([[[1.0]], [[2.0]]], "2 arrays for 1 texts"),
            ([[[1.0], [1.0, 2.0]]], "no matrix"),
            ([[1.0, 2.0]], "shape"),
            ([[[float("nan")]]], "not finite"),
        ],
    )
    def test_what_is_no_matrix_for_each_text_is_refused(self, given: object, said: str) -> None:
        with pytest.raises(InvalidRecord, match=said):
            CallableTokenEmbedder("odd", lambda texts: given).embed_tokens(["one"])
        with pytest.raises(InvalidArgument, match="model_name"):
            CallableTokenEmbedder("", lambda texts: given)


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

    def test_tokens_of_sentence_transformers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Tensor:
            def __init__(self, rows: list[list[float]]) -> None:
                self.rows = rows

            def cpu(self) -> Tensor:
                return self

            def numpy(self) -> np.ndarray:
                return np.array(self.rows)

        class SentenceTransformer:
            def __init__(self, name: str) -> None:
                self.model_name = name

            def encode(
                self, texts: list[str], *, output_value: str, convert_to_numpy: bool, show_progress_bar: bool
            ) -> list[Tensor]:
                assert (output_value, convert_to_numpy, show_progress_bar) == (
                    "token_embeddings",
                    False,
                    False,
                )
                return [Tensor([[len(word), 1.0] for word in text.split()]) for text in texts]

        embedder = self.adapter(
            monkeypatch,
            "sentence_transformers",
            "sentence_transformer",
            SentenceTransformer=SentenceTransformer,
        ).SentenceTransformerEmbedder("mini")
        assert [one.tolist() for one in embedder.embed_tokens(["ab c", "d"])] == [[[2, 1], [1, 1]], [[1, 1]]]
        assert embedder.embed_query_tokens("abc").tolist() == [[3.0, 1.0]]
        assert isinstance(embedder, TokenEmbedder)

    def test_tokens_of_fastembed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class LateInteractionTextEmbedding:
            def __init__(self, model_name: str) -> None:
                self.name = model_name

            def embed(self, texts: list[str]) -> Iterator[np.ndarray]:
                yield from (np.array([[len(word), 1.0] for word in text.split()]) for text in texts)

            def query_embed(self, text: str) -> Iterator[np.ndarray]:
                yield np.array([[len(text), 2.0]])

        adapter = self.adapter(
            monkeypatch,
            "fastembed",
            "fast_tokens",
            LateInteractionTextEmbedding=LateInteractionTextEmbedding,
        )
        embedder = adapter.FastTokenEmbedder("colbert")
        assert [one.tolist() for one in embedder.embed_tokens(["ab c"])] == [[[2.0, 1.0], [1.0, 1.0]]]
        assert embedder.embed_query_tokens("abc").tolist() == [[3.0, 2.0]]
        assert (embedder.model_name, isinstance(embedder, TokenEmbedder)) == ("colbert", True)

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
