"""How do files of records come in without a Python object per row?"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from typing import Protocol

from chronomemory._core import Engine
from chronomemory.face.arguments import function_or_none, many, path
from chronomemory.types import IngestReport, Progress

__all__ = ["ingest"]


class HasEngine(Protocol):
    """What a load needs of a store."""

    @property
    def engine(self) -> Engine:
        """The open engine."""


def ingest(
    store: HasEngine,
    source: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    progress: Progress | None = None,
) -> IngestReport:
    """Load NDJSON files of records, one object a line, without a Python object per row.

    Each file goes in as a row of atomic batches: an error ends the load at the batch that
    has the bad line, and what came before it stays. ``progress`` gets bytes done and in all; what
    it raises is raised once its file is loaded, and the files after that are not.
    """
    progress = function_or_none("progress", progress)
    sources = [source] if isinstance(source, str | os.PathLike) else many("source", source)
    paths = [path("source", name) for name in sources]
    sizes = [file.stat().st_size for file in paths]
    for file in paths:
        if not file.is_file():
            raise OSError(errno.EINVAL, "not a regular file; its rows can only be read once", str(file))
    records = done = 0
    seqs: list[int] = []
    for file, size in zip(paths, sizes, strict=True):
        told = store.engine.ingest(os.fspath(file), _shifted(progress, done, sum(sizes)))
        done += size
        records += told["records"]
        if told["records"]:
            seqs += (told["first_seq"], told["last_seq"])
    first, last = (seqs[0], seqs[-1]) if seqs else (None, None)
    return IngestReport(records, done, first, last, [str(file) for file in paths])


def _shifted(progress: Progress | None, before: int, total: int) -> Progress | None:
    """Let the progress of one file among several count as progress of them all."""
    if progress is None:
        return None
    return lambda done, _: progress(before + done, total)
