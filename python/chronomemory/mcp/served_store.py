"""The open store of a project, and whose records are asked: chosen at the start, never by a model."""

from __future__ import annotations

import site
import sysconfig
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chronomemory.complaints import complaints
from chronomemory.errors import ChronoError, InvalidArgument, UnknownRecord, UnknownScope
from chronomemory.mcp.rendering import Budget
from chronomemory.record import ChronoRecord
from chronomemory.scope import Scope
from chronomemory.store import ChronoStore, Records, ScopedStore

if TYPE_CHECKING:
    from chronomemory.embedders import Embedder

#: The prefix of block ids, which is reserved for blocks.
_BLOCK = "block:"
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
    return record.id.startswith(_BLOCK)


@dataclass(frozen=True)
class ServedStore:
    """A store and a scope; every answer names both."""

    store: ChronoStore
    scope: Scope
    #: Refuse every write.
    read_only: bool = False
    #: Refuse every call while nothing was ever written for the scope: a name may be misspelled.
    must_exist: bool = False
    #: What reads texts and questions, chosen at the start as well; without one words are compared.
    embedder: Embedder | None = None

    @cached_property
    def door(self) -> Records:
        """The handle that asks and writes for the scope."""
        return ScopedStore(self.store, self.scope) if self.scope.to_dict() else self.store

    @property
    def place(self) -> str:
        """Where the store is, as text that JSON can carry."""
        return str(self.store.project_root).encode("utf-8", "backslashreplace").decode()

    def named(self) -> dict[str, Any]:
        """Return what every answer says: which store and scope it is about."""
        return {"store": self.place, "scope": str(self.scope)}

    def budget(self, max_tokens: int, notes: list[str]) -> Budget:
        """Return how much room there is for an answer, beside what every answer says."""
        return Budget(max_tokens, self.place, str(self.scope), *notes)

    @cached_property
    def seen_files(self) -> dict[str, Any]:
        """The stamps of page files at the last look."""
        return {}

    @cached_property
    def _found_at_opening(self) -> tuple[str, ...]:
        return tuple(complaints(self.store.project_root, self.door.engine.findings()))

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
        """Raise if the server only reads."""
        if self.read_only:
            raise ChronoError(
                "this server only reads: nothing was written",
                recovery="Start it without --read-only to write.",
            )

    def check_scope(self) -> None:
        """Raise if the scope must be known and is not."""
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
        """Return a memory by its id, with or without the prefix of blocks."""
        for name in (memory_id, f"{_BLOCK}{memory_id}"):
            if name and (record := self.door.get(name)) is not None:
                return record
        known = self.door.engine.is_known()
        raise UnknownRecord(
            f'there is no memory "{memory_id[:200]}" in {self.scope}',
            id=memory_id,
            recovery="Look the id up with a search."
            if known
            else f"Nothing was ever written for {self.scope}. {_CHECK_NAMES}",
        )
