"""What the tests of a memory's life share: time that can be passed, and meanings that can be chosen."""

from __future__ import annotations

import math
from typing import Any

from chronomemory.blocks import Memory, content_hash, sync

#: Options that restore the rules of the reference system: texts merge by their vectors alone, no floor keeps
#: unrelated blocks out, and newer values have no precedence.
REFERENCE_RULES: dict[str, Any] = {"merge": "similar", "min_similarity": 0.0, "prefer_newest": False}


class Time:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds

    def pass_hours(self, hours: float) -> None:
        self.seconds += hours * 3600.0


def angles(texts: list[str]) -> list[list[float]]:
    """A text ends with an angle in degrees: how alike two texts are is up to the test."""
    degrees = [math.radians(float(text.split()[-1])) for text in texts]
    return [[math.cos(angle), math.sin(angle)] for angle in degrees]


def block(memory: Memory, content: str) -> dict[str, object]:
    with memory.blocks.connect() as conn:
        found = sync.get_block(conn, content_hash(content))
    assert found is not None
    return found


def degrees_for(cosine: float) -> float:
    return math.degrees(math.acos(cosine))
