"""A workspace: a graph with its events, paths and audit in one folder, over the chained log in it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from chronomemory.errors import LogCorrupted
from chronomemory.face.arguments import path as path_argument
from chronomemory.face.handle import Closing
from chronomemory.face.moments import Now, utc_now
from chronomemory.face.results import Result, counted
from chronomemory.graph.changes import Changes, GraphSnapshot, Look, snapshot_of
from chronomemory.graph.envelope import Imported, KeyMap, changes_of, envelope_page, read_envelope
from chronomemory.graph.errors import WorkspaceError
from chronomemory.graph.log_home import LogHome, PastLook, open_home
from chronomemory.graph.models import Diagnostic, moment_of
from chronomemory.graph.runtime import PhaseMemoryRuntime
from chronomemory.graph.stores import FileBackedMemoryGraphStore, HomeAuditSink, HomeEventLog
from chronomemory.graph.view import chain_findings, hanging, replay_findings, view_findings
from chronomemory.scope import NOT_GIVEN, Scope
from chronomemory.store import ChronoStore


@dataclass(frozen=True, slots=True)
class Rebuilt(Result):
    """The result of a rebuild of the files."""

    written: int
    removed: int
    #: What stood where a file of ours belongs and was none: it is there under these names now.
    set_aside: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        if not self.written and not self.removed:
            return "the files show what the log says"
        aside = f", set aside {', '.join(self.set_aside)}" if self.set_aside else ""
        return f"wrote {counted(self.written, 'file')}, removed {counted(self.removed, 'file')}{aside}"


class Workspace(Closing):
    """A graph workspace; the log in ``.chronomemory`` is the truth, the other files show it.

    Make one with ``create``, open it with ``open``. It belongs to the names that it was made with, if any.

    >>> import tempfile
    >>> from chronomemory.graph import Node
    >>> with Workspace.create(tempfile.mkdtemp()) as workspace:
    ...     workspace.graph.save_node(Node("tea", "drink", "Green tea"))
    ...     [node.label for node in workspace.graph.nodes(kind="drink")], workspace.diagnose()
    (['Green tea'], [])
    """

    def __init__(self, home: LogHome, *, clock: Now = utc_now) -> None:
        self.home = home
        self._clock = clock
        self.graph = FileBackedMemoryGraphStore(home, clock=clock)
        self.events = HomeEventLog(home)
        self.audit = HomeAuditSink(home)
        self.runtime = PhaseMemoryRuntime(self.graph, self.events, self.audit, clock=clock)

    @classmethod
    def create(
        cls,
        folder: str | os.PathLike[str],
        *,
        user: str = NOT_GIVEN,
        agent: str = NOT_GIVEN,
        session: str = NOT_GIVEN,
        clock: Now | None = None,
        **options: Any,
    ) -> Workspace:
        """Create a workspace, or open an existing one; other options are those of ``ChronoStore``."""
        scope = Scope.of(user=user, agent=agent, session=session)
        made = cls(open_home(path_argument("folder", folder), scope, clock, options), clock=clock or utc_now)
        with made._closed_on_error():
            if not made.home.create():
                made.home.forget()
                made._warn_of_drift()
        return made

    @classmethod
    def open(
        cls,
        folder: str | os.PathLike[str],
        *,
        user: str = NOT_GIVEN,
        agent: str = NOT_GIVEN,
        session: str = NOT_GIVEN,
        clock: Now | None = None,
        **options: Any,
    ) -> Workspace:
        """Open a workspace; stale files warn, and are rewritten after an erasure."""
        scope = Scope.of(user=user, agent=agent, session=session)
        place = path_argument("folder", folder)
        if not place.is_dir():
            raise WorkspaceError(f"{folder} is no folder")
        made = cls(open_home(place, scope, clock, options), clock=clock or utc_now)
        with made._closed_on_error():
            if made.home.look().books() is None and made.home.is_stale() and made.home.view.is_of_scope():
                made.home.create()  # the books were erased with all that the files showed
            made.home.books()
            made.home.forget()
            made._warn_of_drift()
        return made

    @contextmanager
    def _closed_on_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.close()
            raise

    def _warn_of_drift(self) -> None:
        if not self.home.follows(self.home.books()):
            warnings.warn(
                f"{self.folder}: the files do not show what the log says; rebuild() writes them anew",
                RuntimeWarning,
                stacklevel=3,
            )

    @property
    def folder(self) -> Path:
        return self.home.view.folder.root

    @property
    def store(self) -> ChronoStore:
        """The project behind it: its log, its search, its evidence."""
        return self.home.handle.project

    @property
    def scope(self) -> Scope:
        """The names that it belongs to."""
        return self.home.handle.scope

    def close(self) -> None:
        """Let go of the folder; closing twice is fine."""
        self.home.handle.close()

    def __repr__(self) -> str:
        return f"<Workspace {os.fspath(self.folder)!r}, {self.scope}>"

    def import_graph(self, envelope: Mapping[str, Any], *, keys: KeyMap | None = None) -> Imported:
        """Import an envelope or a fixture, all or nothing; ``keys`` maps our field names to theirs."""
        given = read_envelope(envelope, keys)

        def work(look: Look) -> Changes:
            return changes_of(given, look, moment_of(self._clock()))

        return Imported.of(self.home.run(work))

    def export_graph(self) -> bytes:
        """Return the graph as one envelope: the same bytes for the same graph, whenever and wherever."""
        return envelope_page(self.home.look())

    def replay(self) -> GraphSnapshot:
        """Return the graph that the events lead to; it is the one that ``snapshot`` returns."""
        return self.events.replay()

    def snapshot(self, *, as_of: int | datetime | None = None) -> GraphSnapshot:
        """Return the graph as it is kept, or as it was after an event of the log or at a moment."""
        if as_of is None:
            return snapshot_of(self.home.look())
        return snapshot_of(PastLook(self.home.handle.store, as_of))

    def rebuild(self) -> Rebuilt:
        """Rewrite files that differ from the log; foreign files are kept or renamed."""
        broken = self._broken()
        if broken:
            raise WorkspaceError(
                f"{self.folder}: the log is damaged ({broken[0].message}), so the files are left as they are",
                recovery="Repair the store first: chronomemory repair, or workspace.store.upkeep.repair().",
            )
        return Rebuilt(*self.home.rebuild())

    def diagnose(self) -> list[Diagnostic]:
        """Return everything that is wrong with the log, the graph and the files; nothing is written."""
        broken = self._broken()
        if broken:
            return [*broken, *view_findings(self.home.view, None, None)]
        look = self.home.look()
        return [
            *hanging(look),
            *replay_findings(look),
            *view_findings(self.home.view, look, self.home.shown()),
        ]

    def _broken(self) -> list[Diagnostic]:
        try:
            return chain_findings(self.store.verify())
        except LogCorrupted as error:  # the log that was open here is gone, or shorter than it was
            return [Diagnostic("chain-break", "error", "events.wal", None, None, str(error))]
