"""The similarity of a block that meaning and words both speak of, as the reference computes it."""

from __future__ import annotations

#: How many of the best cosines say what a low and a high one is.
POOL = 100
TEXT_WEIGHT, VECTOR_WEIGHT = 2.0, 1.25


def fused(cosine: float | None, words: float, cosines: list[float], best_words: float) -> float:
    """Two parts words, one and a half meaning, each as a share of the best.

    ``cosines`` are those of all blocks that pass the filter and have a vector.
    """
    pool = sorted(cosines, reverse=True)[:POOL]
    text_share = min(words / best_words, 1.0) if best_words > 0 else 0.0
    vector_share = 0.0
    if cosine is not None and cosine > 0 and pool:
        high, low = pool[0], pool[-1]
        if high == low:
            vector_share = 1.0 if cosine >= high else 0.0
        else:
            vector_share = min(max((cosine - low) / (high - low), 0.0), 1.0)
    return (TEXT_WEIGHT * text_share + VECTOR_WEIGHT * vector_share) / (TEXT_WEIGHT + VECTOR_WEIGHT)
