"""Event logs and audit sinks, in memory, in a file of JSON lines, or in a workspace."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from chronomemory.face.files import Folder
from chronomemory.graph.changes import Changes, Home, MemoryHome
from chronomemory.graph.errors import DuplicateEventError
from chronomemory.graph.json_files import SCHEMAS, Line, line_of, read_lines, tagged
from chronomemory.graph.log_home import LogHome
from chronomemory.graph.models import AuditRecord, Diagnostic, MemoryEvent, exact
from chronomemory.graph.replaying import GraphSnapshot, own_events, replayed
from chronomemory.graph.view import event_findings, hanging, replay_findings


class _EventLog:
    def append_many(self, events: Iterable[MemoryEvent]) -> list[MemoryEvent]:
        """Append several events, all of them or none."""
        raise NotImplementedError

    def events(self, kind: str | None = None) -> list[MemoryEvent]:
        """Return the events of a kind, or all, in the order of their appending."""
        raise NotImplementedError

    def append(self, event: MemoryEvent) -> MemoryEvent:
        """Append an event and return it, with a new id if it had none."""
        return self.append_many([event])[0]

    def replay(self) -> GraphSnapshot:
        """Return the graph that the events lead to; those of other kinds are counted as skipped."""
        return replayed(self.events())


class HomeEventLog(_EventLog):
    """The events of a home; beside a graph, only its operations write events that describe it."""

    def __init__(self, home: MemoryHome | LogHome) -> None:
        self.home = home

    def append_many(self, events: Iterable[MemoryEvent]) -> list[MemoryEvent]:
        given = own_events(events) if self.home.keeps_graph else tuple(exact(MemoryEvent, events))
        return list(self.home.run(lambda look: Changes(events=given)).events) if given else []

    def event(self, event_id: str) -> MemoryEvent | None:
        """Return an event, or None."""
        return self.home.look().event(event_id)

    def events(self, kind: str | None = None) -> list[MemoryEvent]:
        return self.home.look().events(kind)

    def diagnose(self) -> list[Diagnostic]:
        """Return the events that name something missing; nothing is written."""
        look = self.home.look()
        return [*hanging(look), *replay_findings(look)] if self.home.keeps_graph else []


class InMemoryEventLog(HomeEventLog):
    """Events in memory; with the ``home`` of a graph store they are kept together with it."""

    def __init__(self, home: MemoryHome | None = None) -> None:
        super().__init__(MemoryHome() if home is None else home)


class _JsonlFile:
    def __init__(self, path: str | os.PathLike[str]) -> None:
        place = Path(path).absolute()
        self._folder = Folder(place.parent)
        self._name = place.name

    def _content(self) -> bytes:
        try:
            return self._folder.read(self._name)
        except FileNotFoundError:
            return b""


class JsonlMemoryEventLog(_JsonlFile, _EventLog):
    """Events as JSON lines in a file of their own; lines are only added, and a bad one is skipped."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        #: The ids in use and whether the last line is whole, as of some state of the file.
        self._known: set[str] = set()
        self._whole = True
        self._stamp: tuple[int, int, int] | None = None

    def append_many(self, events: Iterable[MemoryEvent]) -> list[MemoryEvent]:
        given = exact(MemoryEvent, events)
        if not given:
            return []
        self._folder.make()
        with self._folder.locked():
            known, new = self._known_ids(), set[str]()
            appended = []
            for number, event in enumerate(given, len(known) + 1):
                if not event.id:
                    event = replace(event, id=_free(event.kind, number, known, new))
                elif event.id in known or event.id in new:
                    raise DuplicateEventError(event_id=event.id)
                new.add(event.id)
                appended.append(event)
            # A torn line stays on a line of its own: existing bytes never change.
            torn = b"" if self._whole else b"\n"
            lines = (line_of(tagged(SCHEMAS["events"], event.to_dict())) for event in appended)
            self._folder.append(self._name, torn + b"".join(lines))
            known |= new
            self._whole, self._stamp = True, self._folder.stamp(self._name)
        return appended

    def _known_ids(self) -> set[str]:
        """Return the ids in use; the file is read if another program changed it."""
        stamp = self._folder.stamp(self._name)
        if stamp is None or stamp != self._stamp:
            content = self._content()
            self._known = {event.id for event in _good(content)}
            self._whole = not content or content.endswith(b"\n")
        return self._known

    def event(self, event_id: str) -> MemoryEvent | None:
        """Return an event, or None."""
        return next((event for event in self.events() if event.id == event_id), None)

    def events(self, kind: str | None = None) -> list[MemoryEvent]:
        return [event for event in _good(self._content()) if kind is None or event.kind == kind]

    def diagnose(self) -> list[Diagnostic]:
        """Return the lines that cannot be read, and duplicate ids; nothing is written."""
        return event_findings(self._name, _lines(self._content()))


def _lines(content: bytes) -> list[Line[MemoryEvent]]:
    return list(read_lines(content, MemoryEvent, SCHEMAS["events"]))


def _good(content: bytes) -> list[MemoryEvent]:
    """Return the events that can be read, each id once."""
    found: dict[str, MemoryEvent] = {}
    for line in _lines(content):
        if line.item is not None:
            found.setdefault(line.item.id, line.item)
    return list(found.values())


def _free(kind: str, number: int, *taken: set[str]) -> str:
    while any((name := f"{kind}-{number:08d}") in ids for ids in taken):
        number += 1
    return name


class HomeAuditSink:
    """The audit records of a home."""

    def __init__(self, home: Home) -> None:
        self.home = home

    def record(self, entry: AuditRecord) -> AuditRecord:
        """Write an audit record, and return it with its id."""
        exact(AuditRecord, [entry])
        return self.home.run(lambda look: Changes(audits=(entry,))).audits[0]

    def records(self) -> list[AuditRecord]:
        """Return all audit records, in order."""
        return self.home.look().audits()


class InMemoryAuditSink(HomeAuditSink):
    """Audit records in memory."""

    def __init__(self, home: MemoryHome | None = None) -> None:
        super().__init__(MemoryHome() if home is None else home)


class JsonlAuditSink(_JsonlFile):
    """Audit records as JSON lines in a file of their own."""

    def record(self, entry: AuditRecord) -> AuditRecord:
        """Write an audit record, and return it with its id."""
        self._folder.make()
        with self._folder.locked():
            content = self._content()
            number = content.count(b"\n") + 1
            kept = replace(entry, id=f"{number:012d}")
            torn = b"\n" if content and not content.endswith(b"\n") else b""
            self._folder.append(self._name, torn + line_of(tagged(SCHEMAS["audit"], kept.to_dict())))
        return kept

    def records(self) -> list[AuditRecord]:
        """Return the audit records that can be read."""
        read = read_lines(self._content(), AuditRecord, SCHEMAS["audit"])
        return [line.item for line in read if line.item is not None]
