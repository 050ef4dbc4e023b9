"""Measures what the machine allows in two things no log can do without: SHA-256 and write(2).

SHA-256 of the same lines on all cores is measured by ``rust/engine/benches/probes/sha_limit.rs``: the
engine's own SHA-256 on native threads, lines found beforehand, nothing but hashing timed. hashlib
would set a softer limit: a call costs about as much as hashing a line does, and below 2048 bytes
it keeps the GIL, so that threads do not help it.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from types import TracebackType

from benches.probes import built

__all__ = ["ShaLimit", "write_lines"]


class ShaLimit:
    """A process that has a log in memory and hashes its lines whenever it is asked."""

    def __init__(self, log: Path) -> None:
        self._process = subprocess.Popen(
            [built("sha_limit"), os.fspath(log)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def seconds(self, lines: int) -> float:
        """Hash every line once; ``lines`` is how many there must be."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("again\n")
        seconds, good = self._process.stdout.readline().split()
        assert int(good) == lines, f"{good} of {lines} lines carry their hash"
        return float(seconds)

    def __enter__(self) -> ShaLimit:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()


def write_lines(lines: Sequence[bytes], path: Path) -> float:
    """Write each of the lines with one write(2) to a new file; return the seconds."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    began = perf_counter()
    for line in lines:
        os.write(file, line)
    seconds = perf_counter() - began
    assert os.fstat(file).st_size == sum(map(len, lines))
    os.close(file)
    return seconds
