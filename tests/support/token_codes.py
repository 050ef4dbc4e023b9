"""What is kept of a token, and what a record says of a question's tokens, worked out in the plainest way.

Whole numbers are compared and numbers added in the engine's order: a score is the same to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

SIGNS, WORD_SIGNS, LARGEST = 124, 31, 31
MOST_PARTS, STEPS = 4, 1 << 20
TEXT, VECTOR, TOKENS = 1.0, 0.5, 3.0
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
    return values


def parts_of(count: int, dim: int, most: int) -> int:
    """Return how many codes each token of a record has."""
    size = len(turned(np.zeros(dim)))
    return max(1, min((most - 1) // min(count, most), size // SIGNS, MOST_PARTS))


def signs_of(tokens: npt.NDArray[np.float32], most: int) -> Signs:
    """Return 1 or -1 for each sign of each token of a record that is kept."""
    count = len(tokens)
    kept = min(count, most)
    signs = SIGNS * parts_of(count, tokens.shape[1], most)
    made = []
    for at in range(kept):
        total = np.zeros(tokens.shape[1])
        for vector in tokens[at * count // kept : (at + 1) * count // kept]:
            total += vector.astype(np.float64)
        made.append([1 if value > 0 else -1 for value in turned(total)[:signs]])
    return made


def row_of(tokens: npt.NDArray[np.float32], most: int) -> bytes:
    """Return the row of a record: a bit for each sign, but bit 30 of each word, which a heading has set."""
    kept = signs_of(tokens, most)
    parts = len(kept[0]) // SIGNS
    row = [(1 << 30 | len(kept) | parts << 32).to_bytes(16, "little")] if parts > 1 else []
    for token in kept:
        for part in range(parts):
            bits = 0
            for at, sign in enumerate(token[part * SIGNS : (part + 1) * SIGNS]):
                word, bit = divmod(at, WORD_SIGNS)
                bits |= (sign > 0) << 32 * word + bit + (bit >= 30)
            row.append(bits.to_bytes(16, "little"))
    filling = bytes(16) if parts > 1 else row[-1]
    return b"".join(row + [filling] * (most - len(row)))


def likenesses(question: npt.NDArray[np.float32], kept: Signs) -> list[int]:
    """Return the best estimate of a cosine of each token of a question with a token of a record, in steps."""
    best = []
    signs = len(kept[0])
    for vector in question:
        numbers = rounded(vector, signs)
        square = float(sum(number * number for number in numbers))
        factor = math.sqrt(math.pi / 2 / signs) / math.sqrt(square)
        product = max(sum(n * sign for n, sign in zip(numbers, token, strict=False)) for token in kept)
        best.append(round(product * factor * STEPS))
    return best


def rounded(vector: npt.NDArray[np.float32], signs: int) -> list[int]:
    """Return the whole numbers of a token of a question: of all its codes alike, where there are several."""
    values = turned(vector)
    shared = SIGNS if signs == SIGNS else SIGNS * min(len(values) // SIGNS, MOST_PARTS)
    top = max(abs(value) for value in values[:shared])
    return [round(value / top * LARGEST) for value in values[:signs]]


def scores(question: npt.NDArray[np.float32], records: Mapping[str, Signs]) -> dict[str, float]:
    """Return how much of a question the records say that are looked at."""
    said = {name: likenesses(question, kept) for name, kept in records.items()}
    weights = []
    for token in range(len(question)):
        all_said = [one[token] for one in said.values()]
        bar = max(all_said) * len(said) + sum(all_said)
        well = sum(2 * one * len(said) >= bar for one in all_said)
        weights.append(math.log(1.0 + (len(said) - well + 0.5) / (well + 0.5)))
    total = 0.0
    for weight in weights:
        total += weight
    worth = [weight / total / STEPS for weight in weights]
    made = {}
    for name, one in said.items():
        made[name] = 0.0
        for likeness, each in zip(one, worth, strict=True):
            made[name] += likeness * each
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
