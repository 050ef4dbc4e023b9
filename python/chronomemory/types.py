"""The types and protocols that modules share; verbs take any object with the methods of a protocol."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Protocol

from chronomemory._core import Engine
from chronomemory.event import WalEvent
from chronomemory.face.results import Fields
from chronomemory.record import ChronoRecord

if sys.version_info >= (3, 11):
    from typing import Unpack as Unpack
else:
    from typing_extensions import Unpack as Unpack

#: Called now and then with what is done and what there is to do.
Progress = Callable[[int, int], object]

DAMAGED_SYNCED = "synced is damaged: it cannot be told whether the log was cut at its end"

_UNBUILT_RUNGS = ("signed", "witnessed")


class HasEngine(Protocol):
    """Anything with an open engine: a store, or a handle of a scope."""

    @property
    def engine(self) -> Engine:
        """The open engine."""


class HasProject(HasEngine, Protocol):
    """A store or handle, with the folder of its project."""

    @property
    def project_root(self) -> Path: ...


@dataclass(frozen=True, slots=True)
class EngineHolder:
    """An engine for functions that take a store."""

    engine: Engine


class Readable(Protocol):
    """Anything that knows records: a store, or a look at what it once knew."""

    def get(self, record_id: str) -> ChronoRecord | None: ...

    def query(
        self,
        *,
        kind: str | None = None,
        status: str | None = "active",
        rag_filter: bool = False,
        min_confidence: float = 0.0,
        limit: int | None = None,
        faces: bool = False,
    ) -> list[ChronoRecord]: ...


class Linked(Readable, HasEngine, Protocol):
    """Anything whose records rest on each other: a store, or a handle of a scope."""


class Journal(Readable, Protocol):
    """Anything that also knows in which order it learned."""

    def replay(self, *, from_seq: int = 0) -> list[WalEvent]: ...

    def changed_since(self, seq: int) -> list[str]: ...


class Writable(Journal, HasEngine, Protocol):
    """Anything that takes records."""

    def upsert(self, record: ChronoRecord | Mapping[str, Any]) -> WalEvent: ...

    def upsert_many(self, records: Iterable[ChronoRecord | Mapping[str, Any]]) -> range: ...

    def delete(self, record_id: str) -> WalEvent: ...


@dataclass(frozen=True, slots=True)
class Damage(Fields):
    """One place where the files do not say what was once written."""

    path: str
    offset: int
    line: int
    seq: int | None
    kind: str
    reason: str
    #: The record that it is about, if it is one. No message has it: who reads that may not see the record.
    id: str | None = None

    def __str__(self) -> str:
        seq = "" if self.seq is None else f", seq {self.seq}"
        return f"{self.path} line {self.line}, offset {self.offset}{seq}: {self.kind}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Tail(Fields):
    """Bytes beyond the committed end: an interrupted write, which the next writer puts aside."""

    offset: int
    length: int
    reason: str
    #: How many whole events it holds, if it is more than an interrupted write: ``repair()`` takes them back.
    events: int = 0

    def __str__(self) -> str:
        whole = f", {self.events} whole events among them" if self.events else ""
        return f"{self.length} uncommitted bytes from offset {self.offset} on: {self.reason}{whole}"


@dataclass(frozen=True, slots=True)
class ScopeFinding(Fields):
    """A record whose ``@scope`` is none (``malformed-scope``), or another than before (``scope-changed``)."""

    kind: str
    id: str
    seq: int | None

    def __str__(self) -> str:
        place = "in the base" if self.seq is None else f"seq {self.seq}"
        return f'{self.kind}: id "{self.id}", {place}'


@dataclass(frozen=True, slots=True)
class VerifyReport(Fields):
    """What the files on disk prove, and what they cannot prove."""

    valid: bool = True
    events: int = 0
    first_seq: int | None = None
    last_seq: int = 0
    head: str = ""
    fast_lines: int = 0
    slow_lines: int = 0
    blank_lines: int = 0
    bytes: int = 0
    committed_end: int = 0
    base: str = "none"
    damage: tuple[Damage, ...] = ()
    #: Indexes that are not what the log would make of them; ``repair()`` removes them.
    altered_indexes: tuple[Damage, ...] = ()
    #: Files that an erasure took away and that are back, such as from a copy: what was erased can be read.
    returned: tuple[Damage, ...] = ()
    tail: Tail | None = None
    #: ``synced`` cannot be read: it would show that the log was cut at its end.
    damaged_synced: bool = False
    #: Why the log ends before the last known sync, or None. Writes are refused until ``repair()``.
    cut: str | None = None
    notes: tuple[str, ...] = ()
    #: Records that a line of another tool took out of their scope, or gave none; that is no damage.
    scopes: tuple[ScopeFinding, ...] = ()
    #: What became of the head that was seen last: kept, lost, unknown; unseen or unreadable without a note.
    remembered: str = "unseen"
    remembered_reason: str = ""

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> VerifyReport:
        """Make a report of what the engine found."""
        known = {item.name: found[item.name] for item in fields(cls) if item.name in found}
        for name in ("damage", "altered_indexes", "returned"):
            known[name] = tuple(Damage(**item) for item in found.get(name, ()))
        known["tail"] = Tail(**found["tail"]) if found.get("tail") else None
        known["notes"] = tuple(found.get("notes", ()))
        known["scopes"] = tuple(ScopeFinding(**item) for item in found.get("scopes", ()))
        return cls(**known)

    @property
    def rung(self) -> str:
        """The highest rung of evidence that was reached."""
        if not self.valid:
            return "corrupt"
        if self.cut:
            return "cut short"
        if self.altered_indexes:
            return "index altered"
        return "remembered" if self.remembered == "kept" else "chain ok"

    @property
    def rungs(self) -> dict[str, str]:
        """Every rung with its verdict; one that is not built yet says that it cannot tell."""
        remembered = {"kept": "ok", "lost": "lost"}.get(self.remembered, "cannot tell")
        return {
            "chain": "ok" if self.valid else "corrupt",
            "remembered": remembered,
            **dict.fromkeys(_UNBUILT_RUNGS, "cannot tell"),
        }

    def lines(self) -> list[str]:
        """Say it to a person, one finding a line."""
        lines = [
            f"{self.rung}: {self.events} events, seq {self.first_seq or 0} to {self.last_seq}, "
            f"{self.fast_lines} lines on the fast path, {self.slow_lines} on the slow one",
            *(f"damage: {item}" for item in self.damage),
            *(f"index: {item}" for item in self.altered_indexes),
            *(f"returned: {item}" for item in self.returned),
            *(f"tail: {item}" for item in (self.tail,) if item),
            *([DAMAGED_SYNCED] if self.damaged_synced else []),
            *(f"note: {item}" for item in self.notes),
            *(f"scope: {item}" for item in self.scopes),
        ]
        if self.base != "none":
            lines.insert(1, f"base: {self.base}")
        if self.remembered_reason:
            lines.append(f"{self.remembered}: {self.remembered_reason}")
        return [*lines, *(f"{name}: {verdict}" for name, verdict in self.rungs.items() if name != "chain")]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON can carry it."""
        return {**Fields.to_dict(self), "rung": self.rung, "rungs": self.rungs}


@dataclass(frozen=True, slots=True)
class RowError(Fields):
    """A row that was left out of a load; ``line`` (from 1) says where in a file, else ``row`` (from 0)."""

    row: int | None
    line: int | None
    file: str
    id: str | None
    path: str | None
    reason: str

    def __str__(self) -> str:
        place = f"row {self.row}" if self.line is None else f"{self.file} line {self.line}"
        shown = "" if self.id is None else f' (id "{self.id}")'
        return f"{place}{shown}, {self.reason}"


@dataclass(frozen=True, slots=True)
class IngestReport(Fields):
    """What a bulk load wrote, and how many rows it left out; ``errors`` has the first 1,000 of them."""

    records: int = 0
    bytes: int = 0
    first_seq: int | None = None
    last_seq: int | None = None
    files: list[str] = field(default_factory=list)
    skipped: int = 0
    errors: list[RowError] = field(default_factory=list)
    vectors: int = 0
