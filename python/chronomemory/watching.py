"""Tells a program what a store does and what is wrong with it: by its log, and by warnings at opening."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from chronomemory.layout import network_file_system
from chronomemory.types import DAMAGED_SYNCED, VerifyReport

LOGGER: Final = logging.getLogger("chronomemory")
# Without a handler of the program's own nothing is printed.
LOGGER.addHandler(logging.NullHandler())

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


_PACKAGE = __name__.partition(".")[0]


def complaints(project_root: Path, findings: dict[str, Any]) -> list[str]:
    network = network_file_system(project_root)
    return [f"{project_root}: {sentence}" for sentence in _sentences(network, findings)]


def _sentences(network: str | None, findings: dict[str, Any]) -> Iterator[str]:
    found = VerifyReport.from_dict(findings)
    if network is not None:
        yield (
            f"on a network file system ({network}) several processes, "
            "and power failures of the server, are not promised anything"
        )
    if found.damage:
        yield (
            f"damage in {_first_of(found.damage)}; every good line is loaded, verify() lists the others, "
            "and records that a lost line may have changed say so (in_doubt)"
        )
    if found.damaged_synced:
        yield f"{DAMAGED_SYNCED}; the next sync writes it anew"
    if found.tail:
        first = "run repair() before anything is written: " if found.tail.events else ""
        yield f"{found.tail}; {first}the next write puts them aside"
    if found.cut and not any(item.kind == "log-missing" for item in found.damage):
        yield f"{found.cut}; run repair() before anything is written: until then a write is refused"
    if found.returned:
        files = _first_of([item.path for item in found.returned])
        yield f"what was erased is back: {files}; remove what is not yours to keep, verify() lists it"
    for short in findings["short_rows"]:
        yield f"{short}; these embeddings are missing, verify() lists them and repair() takes them back"
    if found.remembered in ("lost", "unknown", "unreadable"):
        meant = "if that was meant, accept_head() or 'chronomemory accept-head' says so"
        yield f"{found.remembered_reason}; {meant}"


def _first_of(found: Sequence[object]) -> str:
    return f"{found[0]} and {len(found) - 1} more" if len(found) > 1 else str(found[0])


def callers_level() -> int:
    """Return the ``stacklevel`` at which a warning points out of the package, however deep the call is."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        frame, level = frame.f_back, level + 1
    return level
