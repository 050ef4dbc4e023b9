"""Opens the store for a command, and turns errors into messages and exit codes.

Exit codes: 0 fine, 1 a finding or a store that cannot be used, 2 bad arguments or refused input.
"""

from __future__ import annotations

import errno
import logging
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import typer

from chronomemory.cli.output import Output
from chronomemory.errors import ChronoError, InvalidArgument
from chronomemory.interrupts import be_heard
from chronomemory.scope import Scope
from chronomemory.store import ChronoStore, Records, ScopedStore
from chronomemory.watching import SEEN_ANYWAY

__all__ = ["FINDING", "LOST", "REFUSED", "NotFoundError", "RefusedError", "Session", "Whose", "session"]

FINDING = 1
REFUSED = 2
LOST = 3


class NotFoundError(ChronoError):
    """The question was fine; the answer is that there is no such thing."""

    usual_recovery = "Check the name: query and blocks ls list what there is."


class RefusedError(ChronoError):
    """The command will not do this; nothing was written."""

    usual_recovery = "Correct the arguments; --help lists them."


@dataclass(frozen=True, slots=True)
class Session:
    """What a command works with. The store opens at the first call that needs it."""

    store: ChronoStore
    out: Output
    #: For whom it asks and writes: those who were named, everyone, or the store itself.
    door: Records

    def tell_of_nobody(self) -> bool:
        """Say so if nothing was ever written for those who were named: a name may be misspelled."""
        door = self.door
        if not isinstance(door, ScopedStore) or door.known:
            return False
        self.out.warn(f"nothing was ever written for {door.scope}")
        return True


@dataclass(frozen=True, slots=True)
class Whose:
    """Whose records a command is about."""

    user: str | None = None
    agent: str | None = None
    session: str | None = None
    everyone: bool = False

    @property
    def names(self) -> dict[str, str]:
        """The names that were given."""
        names = {"user": self.user, "agent": self.agent, "session": self.session}
        return {level: name for level, name in names.items() if name is not None}

    def door(self, store: ChronoStore) -> Records:
        """Return the handle for them."""
        given = self.names
        if self.everyone and given:
            raise RefusedError(f"--everyone and --{next(iter(given))} do not go together")
        if self.everyone:
            return store.everyone()
        return ScopedStore(store, Scope.of(**given)) if given else store


_SHARED = Whose()


@contextmanager
def session(project: Path, as_json: bool, *, depth: int = 0, whose: Whose = _SHARED) -> Iterator[Session]:
    """Lend a project's store; an error inside becomes two lines and an exit code."""
    out = Output(as_json)
    be_heard()
    try:
        with _heard(out), closing(ChronoStore(project, recursion_depth=depth)) as store:
            yield Session(store, out, whose.door(store))
    except ChronoError as error:
        out.fail(str(error), error.recovery, type(error).__name__)
        refused = isinstance(error, InvalidArgument | RefusedError)
        raise typer.Exit(REFUSED if refused else FINDING) from None
    except OSError as error:
        if error.errno == errno.EPIPE:  # whoever read our answer has gone
            raise
        place = "" if error.filename is None else f": {error.filename}"
        out.fail(f"{error.strerror or error}{place}", "", type(error).__name__)
        raise typer.Exit(FINDING) from None


@contextmanager
def _heard(out: Output) -> Iterator[None]:
    """Let what the modules warn of and log appear as our own lines."""

    def hear(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        out.warn(str(message))

    handler = _Handler(out)
    logger = logging.getLogger("chronomemory")
    logger.addHandler(handler)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", RuntimeWarning)
            warnings.showwarning = hear
            yield
    finally:
        logger.removeHandler(handler)


class _Handler(logging.Handler):
    def __init__(self, out: Output) -> None:
        super().__init__(logging.WARNING)
        self._out = out

    def emit(self, record: logging.LogRecord) -> None:
        if not getattr(record, SEEN_ANYWAY, False):
            self._out.warn(record.getMessage())
