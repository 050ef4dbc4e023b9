"""Tells a program's own log what a store does.

Everything goes to the logger ``chronomemory``: how long the large tasks took, what was slow, what is damaged.
What records say never does.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

LOGGER: Final = logging.getLogger("chronomemory")
# Without a handler of the program's own nothing is printed.
LOGGER.addHandler(logging.NullHandler())

#: A call that takes longer is told, however small its name.
SLOW_SECONDS: Final = 1.0

#: Marks what a person at a terminal sees anyway: a warning says it as well, or it is the waiting itself.
SEEN_ANYWAY: Final = "seen_anyway"


def tell(message: str) -> None:
    """Tell of damage, or of what may be missed: each time, where a warning may be shown once."""
    LOGGER.warning("%s", message, extra={SEEN_ANYWAY: True})


@contextmanager
def watched(task: str, place: Path, *, large: bool = False) -> Iterator[None]:
    """Tell how long a task took: a large one always, any other if that was long."""
    began = time.perf_counter()
    try:
        yield
    except BaseException as error:
        LOGGER.info("%s: %s failed after %.3f s: %s", place, task, _since(began), type(error).__name__)
        raise
    seconds = _since(began)
    if large:
        LOGGER.info("%s: %s took %.3f s", place, task, seconds)
    elif seconds >= SLOW_SECONDS:
        LOGGER.warning("%s: slow: %s took %.3f s", place, task, seconds, extra={SEEN_ANYWAY: True})


class timed:  # noqa: N801 (it is used as a function is)
    """Tell of a question that took long, and nothing of what was asked."""

    # No generator: this stands around every question, however quick.
    __slots__ = ("_began", "_question")

    def __init__(self, question: str) -> None:
        self._question = question

    def __enter__(self) -> None:
        self._began = time.perf_counter()

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        seconds = _since(self._began)
        if failed is None and seconds >= SLOW_SECONDS:
            LOGGER.warning("slow: %s took %.3f s", self._question, seconds, extra={SEEN_ANYWAY: True})


def _since(began: float) -> float:
    return time.perf_counter() - began
