"""What is kept of a token, and what does a record say of a question's tokens, worked out in the plainest way?

Whole numbers are compared and numbers added in the engine's order: a score is the same to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

SIGNS, WORD_SIGNS, LARGEST = 124, 31, 31
TEXT, VECTOR, TOKENS = 1.5, 0.5, 3.0
POOL = 100
Wide = npt.NDArray[np.float64]
Signs = list[list[int]]


def mixed(place: int) -> int:
    """Return the number of SplitMix64 at a place."""
    mask = (1 << 64) - 1
    bits = place * 0x9E3779B97F4A7C15 & mask
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 & mask
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EB & mask
    return bits ^ bits >> 31


def turned(vector: npt.NDArray[np.float32] | Wide) -> list[float]:
    """Turn a vector: twice signs are flipped, and sums and differences of pairs are taken."""
    size = 128
    while size < len(vector):
        size *= 2
    values = [float(value) for value in vector] + [0.0] * (size - len(vector))
    for turn in range(2):
        flips = [mixed(turn * 4096 + at // 64 + 1) >> at % 64 & 1 for at in range(size)]
        values = [value if flip else -value for value, flip in zip(values, flips, strict=True)]
        half = 1
        while half < size:
            for start in range(0, size, 2 * half):
                for at in range(start, start + half):
                    one, other = values[at], values[at + half]
                    values[at], values[at + half] = one + other, one - other
            half *= 2
    return values[:SIGNS]


def signs_of(tokens: npt.NDArray[np.float32], most: int) -> Signs:
    """Return 1 or -1 for each sign of each code of a record."""
    count = len(tokens)
    kept = min(count, most)
    codes = []
    for at in range(kept):
        total = np.zeros(tokens.shape[1])
        for vector in tokens[at * count // kept : (at + 1) * count // kept]:
            total += vector.astype(np.float64)
        codes.append([1 if value > 0 else -1 for value in turned(total)])
    return codes


def row_of(tokens: npt.NDArray[np.float32], most: int) -> bytes:
    """Return the row of a record: a bit for each sign, but bit 30 of each word; the last code fills it up."""
    row = []
    for code in signs_of(tokens, most):
        bits = 0
        for at, sign in enumerate(code):
            word, bit = divmod(at, WORD_SIGNS)
            bits |= (sign > 0) << 32 * word + bit + (bit >= 30)
        row.append(bits.to_bytes(16, "little"))
    return b"".join(row + row[-1:] * (most - len(row)))


def products(question: npt.NDArray[np.float32], codes: Signs) -> list[int]:
    """Return the best product of each token of a question with a code of a record."""
    best = []
    for numbers in rounded(question):
        best.append(max(sum(n * sign for n, sign in zip(numbers, code, strict=True)) for code in codes))
    return best


def rounded(question: npt.NDArray[np.float32]) -> list[list[int]]:
    """Return the whole numbers of each token of a question."""
    made = []
    for vector in question:
        values = turned(vector)
        top = max(abs(value) for value in values)
        made.append([round(value / top * LARGEST) for value in values])
    return made


def scores(question: npt.NDArray[np.float32], records: Mapping[str, Signs]) -> dict[str, float]:
    """Return how much of a question the records say that are looked at."""
    said = {name: products(question, codes) for name, codes in records.items()}
    weights, factors = [], []
    for token, numbers in enumerate(rounded(question)):
        all_said = [one[token] for one in said.values()]
        bar = max(all_said) * len(said) + sum(all_said)
        well = sum(2 * one * len(said) >= bar for one in all_said)
        weights.append(math.log(1.0 + (len(said) - well + 0.5) / (well + 0.5)))
        square = float(sum(number * number for number in numbers))
        factors.append(math.sqrt(math.pi / 2 / SIGNS) / math.sqrt(square))
    total = 0.0
    for weight in weights:
        total += weight
    worth = [weight / total * factor for weight, factor in zip(weights, factors, strict=True)]
    made = {}
    for name, one in said.items():
        made[name] = 0.0
        for product, each in zip(one, worth, strict=True):
            made[name] += product * each
    return made


def shares(found: Mapping[str, float]) -> dict[str, float]:
    """Return the share of each in the best, from the hundredth best on."""
    ranked = sorted(found.values(), reverse=True)
    top, floor = ranked[0], ranked[min(POOL, len(ranked)) - 1]
    return {
        name: min(max((score - floor) / (top - floor), 0.0), 1.0) if score > 0 else 0.0
        for name, score in found.items()
    }


def fused(parts: Sequence[tuple[float, float | None]]) -> float:
    """Return one score of shares and their weights; what was not asked has none."""
    total, weights = 0.0, 0.0
    for weight, share in parts:
        if share is not None:
            total += weight * share
            weights += weight
    return total / weights
