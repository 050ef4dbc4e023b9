"""The open store of a project, and whose records are asked: chosen at the start, never by a model."""

from __future__ import annotations

import site
import sysconfig
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chronomemory.errors import ChronoError, InvalidArgument, UnknownRecord, UnknownScope
from chronomemory.mcp.lazy import LazyModule
from chronomemory.mcp.rendering import Budget
from chronomemory.record import ChronoRecord
from chronomemory.scope import Scope
from chronomemory.store import ChronoStore, Records, ScopedStore
from chronomemory.tools import find_record
from chronomemory.watching import complaints

if TYPE_CHECKING:
    from chronomemory.embedders import Embedder

#: It loads the face of blocks, which only a write needs.
_remembering = LazyModule("chronomemory.mcp.remembering")

OPERATION_LETTERS = 200
_CHECK_NAMES = "Check --user, --agent, --session and --project, with which the server was started."


def checked_project(project: Path) -> Path:
    """Return the absolute folder of a project; one inside an installation would be lost with an update."""
    folder = project.absolute()
    if not folder.is_dir():
        raise InvalidArgument(
            f"project: {folder} is not a folder",
            field="project",
            recovery="Give the folder of a project that exists, by --project.",
        )
    if folder.resolve() == Path(folder.resolve().anchor):
        raise InvalidArgument(
            f"project: {folder} is the root of the file system, and no project",
            field="project",
            recovery="Give the folder of a project, by --project: a client may start us from anywhere.",
        )
    places = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()}
    for place in filter(None, places):
        if folder.resolve().is_relative_to(Path(place).resolve()):
            raise InvalidArgument(
                f"project: {folder} lies inside an installation of Python, and would go with it",
                field="project",
                recovery="Give the folder of a project of your own, by --project.",
            )
    return folder


def is_block(record: ChronoRecord) -> bool:
    """Return whether a record is a block, by its id: any record may claim that kind."""
    return record.id.startswith("block:")


@dataclass(frozen=True)
class ServedStore:
    """A store and a scope; every answer names both."""

    store: ChronoStore
    scope: Scope
    read_only: bool = False
    #: Refuse every call while nothing was ever written for the scope: a name may be misspelled.
    must_exist: bool = False
    #: What reads texts and questions, chosen at the start as well; without one words are compared.
    embedder: Embedder | None = None
    structured: bool = False

    @cached_property
    def door(self) -> Records:
        return ScopedStore(self.store, self.scope) if self.scope.to_dict() else self.store

    @property
    def place(self) -> str:
        return self.store.project_root.name.encode("utf-8", "backslashreplace").decode()

    def named(self) -> dict[str, Any]:
        """Return what every answer says: which store and scope it is about."""
        return {"store": self.place, "scope": str(self.scope)}

    def budget(self, max_tokens: int, notes: list[str], *, both: bool = False) -> Budget:
        """Return the room for an answer beside its heading; ``both`` is for tools that use both channels."""
        return Budget(max_tokens, self.place, str(self.scope), *notes, both=both or self.structured)

    @cached_property
    def keeper(self) -> Any:
        return _remembering.open_keeper(self)

    @cached_property
    def seen_files(self) -> dict[str, Any]:
        return {}

    @cached_property
    def _found_at_opening(self) -> tuple[str, ...]:
        root = self.store.project_root
        findings = complaints(root, self.door.engine.upkeep.findings())
        return tuple(finding.replace(str(root), self.place) for finding in findings)

    def notes(self, *, nothing_found: bool = False) -> list[str]:
        """Return notes for the reader: damage, or a scope without any records."""
        notes = list(self._found_at_opening)
        if nothing_found and not self.door.engine.is_known():
            # Who may write begins a scope; who only reads was started for names that are not these.
            if self.read_only and self.scope.to_dict():
                raise self._unknown_scope()
            notes.append(f"nothing was ever written for {self.scope}")
        return notes

    def check_writable(self) -> None:
        if self.read_only:
            raise ChronoError(
                "this server only reads: nothing was written",
                recovery="Start it without --read-only to write.",
            )

    def check_scope(self) -> None:
        if self.must_exist and not self.door.engine.is_known():
            raise self._unknown_scope()

    def _unknown_scope(self) -> UnknownScope:
        return UnknownScope(
            f"nothing was ever written for {self.scope} in {self.place}", recovery=_CHECK_NAMES
        )

    def warm_up(self) -> None:
        """Open the store and its text index, while the interpreter is busy with something else."""
        # The first call that needs the store meets the same error and reports it.
        with suppress(ChronoError, OSError):
            self.door.search("a", limit=1)

    def find(self, memory_id: str) -> ChronoRecord:
        if (record := find_record(self.door, memory_id)) is not None:
            return record
        known = self.door.engine.is_known()
        raise UnknownRecord(
            f'there is no memory "{memory_id[:200]}" in {self.scope}',
            id=memory_id,
            recovery="Look the id up with a search."
            if known
            else f"Nothing was ever written for {self.scope}. {_CHECK_NAMES}",
        )
