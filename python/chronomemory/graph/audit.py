"""Audit sinks: where it is put down what was applied and what was denied, in memory or in lines of JSON."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from chronomemory.face.files import Folder
from chronomemory.graph.changes import Changes, Home
from chronomemory.graph.jsonl import read_lines
from chronomemory.graph.memory_home import MemoryHome
from chronomemory.graph.models import AuditRecord, exact
from chronomemory.graph.spelling import SCHEMAS, line_of, tagged
from chronomemory.graph.storage.log_home import LogHome

__all__ = ["InMemoryAuditSink", "JsonlAuditSink"]


class _HomeSink:
    """The audit records of a home."""

    def __init__(self, home: Home) -> None:
        self.home = home

    def record(self, entry: AuditRecord) -> AuditRecord:
        """Put something down, and return it with the id that it was given."""
        exact(AuditRecord, [entry])
        return self.home.run(lambda look: Changes(audits=(entry,))).audits[0]

    def records(self) -> list[AuditRecord]:
        """Return all of it, in order."""
        return self.home.look().audits()


class InMemoryAuditSink(_HomeSink):
    """Audit records in memory."""

    def __init__(self, home: MemoryHome | None = None) -> None:
        super().__init__(MemoryHome() if home is None else home)


class JsonlAuditSink:
    """Audit records as lines of JSON: with a path alone in their file, else as the view of a workspace."""

    def __init__(self, path: str | os.PathLike[str] | LogHome) -> None:
        self._sink = _HomeSink(path) if isinstance(path, LogHome) else _FileSink(Path(path).absolute())

    @property
    def home(self) -> Home | None:
        """Where it is kept, if that is a workspace."""
        return self._sink.home if isinstance(self._sink, _HomeSink) else None

    def record(self, entry: AuditRecord) -> AuditRecord:
        """Put something down, and return it with the id that it was given."""
        return self._sink.record(entry)

    def records(self) -> list[AuditRecord]:
        """Return all of it, in order."""
        return self._sink.records()


class _FileSink:
    """A file of audit records that stands alone."""

    def __init__(self, path: Path) -> None:
        self._folder = Folder(path.parent)
        self._name = path.name

    def record(self, entry: AuditRecord) -> AuditRecord:
        """Add a line."""
        self._folder.make()
        with self._folder.locked():
            content = self._content()
            number = content.count(b"\n") + 1
            kept = replace(entry, id=f"{number:012d}")
            torn = b"\n" if content and not content.endswith(b"\n") else b""
            self._folder.append(self._name, torn + line_of(tagged(SCHEMAS["audit"], kept.to_dict())))
        return kept

    def records(self) -> list[AuditRecord]:
        """Return what can be read."""
        read = read_lines(self._content(), AuditRecord, SCHEMAS["audit"])
        return [line.item for line in read if line.item is not None]

    def _content(self) -> bytes:
        try:
            return self._folder.read(self._name)
        except FileNotFoundError:
            return b""
