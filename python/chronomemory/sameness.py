"""Tells whether two values would be written alike."""

from __future__ import annotations

from chronomemory._core import canonical_json

__all__ = ["is_same"]


def is_same(one: object, other: object) -> bool:
    """Say whether two values are the same bytes in the log; what cannot be written is like nothing.

    To Python ``1``, ``1.0`` and ``True`` are equal, and NumPy casts what it compares. To the log they differ.

    >>> is_same((1, 2), [1, 2]), is_same(1, 1.0), is_same(1, True), is_same(0.0, -0.0)
    (True, False, False, False)
    """
    try:
        return canonical_json(one) == canonical_json(other)
    except (ValueError, TypeError):
        # Whoever writes it is told why not.
        return False
