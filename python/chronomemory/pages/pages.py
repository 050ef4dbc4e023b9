"""The Pages class and its asynchronous twin."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

from chronomemory.face.arguments import flag, function, function_or_none
from chronomemory.face.arguments import path as path_argument
from chronomemory.face.awaited import Awaited, awaited_verb
from chronomemory.face.handle import Closing
from chronomemory.face.moments import Now
from chronomemory.page_files import INDEX_FILE
from chronomemory.pages import compaction, syncing
from chronomemory.pages.compaction import Rewrite, merge_superseded
from chronomemory.pages.errors import PageConflict
from chronomemory.pages.layout import FREE, PREFIXED
from chronomemory.pages.storage.home import open_home
from chronomemory.pages.syncing import OF_OTHERS, write_index
from chronomemory.pages.types import Cleaned, Compaction, Indexed, Rebuilt, Synced
from chronomemory.pages.writing import PageWriter, Settings
from chronomemory.scope import NOT_GIVEN, Scope
from chronomemory.store import ChronoStore
from chronomemory.types import Progress

_SEEDED = {
    "user-profile": ("Who the user is", ("identity",)),
    "user-preferences": ("What the user prefers", ("preferences",)),
}
#: ``list`` is a method of Pages.
_Compactions = list[Compaction]


def schema() -> str:
    """Return the guide for writing pages: prefixes, tense and style."""
    return resources.files("chronomemory.pages").joinpath("schema.md").read_text(encoding="utf-8")


class Pages(Closing, PageWriter):
    """Markdown pages in a folder of the project, ``memory`` by default, over the project's log.

    The files may be edited by hand; ``sync`` takes that in. The ``layout`` is decided at the first opening:
    ``"prefixed"``, or ``"free"`` for a folder with notes of any name, such as an Obsidian vault.

    >>> import tempfile
    >>> with Pages(tempfile.mkdtemp()) as pages:
    ...     entry = pages.append("user-profile", "The user lives in Lisbon.", ["home"])
    ...     [hit.entry.content for hit in pages.search("Lisbon")]
    ['The user lives in Lisbon.']
    """

    def __init__(
        self,
        project: str | os.PathLike[str] | ChronoStore,
        folder: str | os.PathLike[str] | None = None,
        *,
        user: str = NOT_GIVEN,
        agent: str = NOT_GIVEN,
        session: str = NOT_GIVEN,
        clock: Now | None = None,
        must_exist: bool = False,
        layout: str | None = None,
        **options: Any,
    ) -> None:
        scope = Scope.of(user=user, agent=agent, session=session)
        place = project if isinstance(project, ChronoStore) else path_argument("project", project)
        where = None if folder is None else path_argument("folder", folder)
        home = open_home(place, where, scope, clock, options, layout)
        #: What was found when the notes of a free folder were read for the first time, else None.
        self.first_sync: Synced | None = None
        try:
            super().__init__(home, Settings.of_project(home.handle.project.project_root))
            if flag("must_exist", must_exist):
                self._home.check()
            elif self._home.create():
                self._begin()
        except BaseException:
            home.handle.close()
            raise

    def _begin(self) -> None:
        """Read the notes of a free folder, or make the pages that every other one begins with."""
        if self._home.is_free:
            self.first_sync = self.sync()
            return
        for name, (description, tags) in _SEEDED.items():
            if self._home.content(name) is None and self._home.look.page(name) is None:
                self.create(name, description, tags)
        self._is_index_due = False
        self._write_index()

    def _write_index(self) -> None:
        why = write_index(self._home)
        if why not in (None, OF_OTHERS):
            warnings.warn(f"{self.folder / INDEX_FILE}: {why}", RuntimeWarning, stacklevel=4)

    @property
    def folder(self) -> Path:
        return self._home.folder.root

    @property
    def layout(self) -> str:
        """``"prefixed"``, or ``"free"`` for a folder of a user's notes."""
        return FREE if self._home.is_free else PREFIXED

    @property
    def store(self) -> ChronoStore:
        """The project behind them: its log, its search, its evidence."""
        return self._home.handle.project

    @property
    def scope(self) -> Scope:
        """The names that they belong to."""
        return self._home.handle.scope

    def close(self) -> None:
        """Write ``index.md`` if it is due, and let go of the project; closing twice is fine."""
        try:
            if self._is_index_due:
                self._is_index_due = False
                with self._home.locked():
                    self._write_index()
        finally:
            self._home.handle.close()

    def __repr__(self) -> str:
        return f"<Pages {os.fspath(self.folder)!r}, {self.scope}>"

    def compact(self, path: str, rewrite: Rewrite = merge_superseded) -> Compaction:
        """Let a function rewrite a page, by default into notes; a rewrite that loses facts is rejected."""
        report = compaction.compact(self._home, path, rewrite)
        self._is_index_due = True
        return report

    def compact_flagged(self, rewrite: Rewrite = merge_superseded) -> _Compactions:
        """Compact every page that is flagged, and report on each."""
        reports = compaction.compact_flagged(self._home, function("rewrite", rewrite))
        self._is_index_due = True
        return reports

    def sync(self, *, forget_missing: bool = False, progress: Progress | None = None) -> Synced:
        """Take in edits made by hand, update stale files, report problems, and let idle pages sleep."""
        return syncing.sync(
            self._home,
            self.settings,
            forget_missing=flag("forget_missing", forget_missing),
            progress=function_or_none("progress", progress),
        )

    def watch(self, tell: Callable[[Synced], object], stop: threading.Event | None = None) -> None:
        """Sync now, and each page that is edited from now on, until ``stop`` is set."""
        syncing.watch(self._home, self.settings, function("tell", tell), stop)

    def rebuild(self, *, progress: Progress | None = None) -> Rebuilt:
        """Write all files that are missing or stale; files edited by hand are reported and kept."""
        return syncing.rebuild(self._home, function_or_none("progress", progress))

    def rebuild_index(self, *, progress: Progress | None = None) -> Indexed:
        """Read all pages, correct the log in one batch, and write ``index.md``."""
        return syncing.rebuild_index(self._home, function_or_none("progress", progress))

    def clean(self, what: str = "memory") -> Cleaned:
        """Take all pages away; ``"all"`` also forgets when was synced. The chained history stays."""
        return syncing.clean(self._home, self.settings, what)

    def _take_in(self, name: str) -> None:
        home = self._home
        try:
            if not home.is_edited(name):
                return
            with home.locked():
                home.catch_up(name)
            self._is_index_due = True
        except PageConflict as error:
            warnings.warn(f"{error}; what is shown is as it was before", RuntimeWarning, stacklevel=3)


class AsyncPages(Awaited[Pages]):
    """The verbs of ``Pages``, each awaited: ``AsyncPages(Pages(folder))``."""

    create = awaited_verb(Pages.create)
    append = awaited_verb(Pages.append)
    supersede = awaited_verb(Pages.supersede)
    flag_compact = awaited_verb(Pages.flag_compact)
    set_status = awaited_verb(Pages.set_status)
    compact = awaited_verb(Pages.compact)
    compact_flagged = awaited_verb(Pages.compact_flagged)
    list = awaited_verb(Pages.list)
    info = awaited_verb(Pages.info)
    text = awaited_verb(Pages.text)
    read = awaited_verb(Pages.read)
    chain = awaited_verb(Pages.chain)
    recent = awaited_verb(Pages.recent)
    tagged = awaited_verb(Pages.tagged)
    search = awaited_verb(Pages.search)
    links = awaited_verb(Pages.links)
    picture = awaited_verb(Pages.picture)
    sync = awaited_verb(Pages.sync)
    rebuild = awaited_verb(Pages.rebuild)
    rebuild_index = awaited_verb(Pages.rebuild_index)
    clean = awaited_verb(Pages.clean)
    close = awaited_verb(Pages.close)

    async def __aenter__(self) -> AsyncPages:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
