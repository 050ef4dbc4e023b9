"""The bundles of common options, which open the store, and the mapping of errors to exit codes."""

from __future__ import annotations

import errno
import logging
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from chronomemory.cli.loading import loaded
from chronomemory.cli.options import (
    HERE,
    AgentName,
    AsJson,
    AsOf,
    EmbedderName,
    Endpoint,
    Model,
    OfEveryone,
    Project,
    SessionName,
    UserName,
    WhereJson,
    share,
    text,
    time_of,
    where_of,
)
from chronomemory.cli.output import Output
from chronomemory.errors import ChronoError, InvalidArgument
from chronomemory.interrupts import be_heard
from chronomemory.scope import Scope
from chronomemory.store import ChronoStore, Records, ScopedStore
from chronomemory.watching import SEEN_ANYWAY

if TYPE_CHECKING:
    from chronomemory.embedders import Embedder

FINDING = 1
REFUSED = 2
LOST = 3


class NotFoundError(ChronoError):
    """What the command asks for does not exist."""

    usual_recovery = "Check the name: query and blocks ls list what there is."


class RefusedError(ChronoError):
    """The command will not do this; nothing was written."""

    usual_recovery = "Correct the arguments; --help lists them."


@dataclass(frozen=True, slots=True)
class Session:
    """An open store, the output, and the handle for the scope that the command names."""

    store: ChronoStore
    out: Output
    #: The handle of the named scope, of everyone, or the store itself.
    door: Records

    def warn_unknown_scope(self) -> None:
        """Warn if nothing was ever written for the named scope: a name may be misspelled."""
        door = self.door
        if isinstance(door, ScopedStore) and not door.known:
            self.out.warn(f"nothing was ever written for {door.scope}")


@dataclass(frozen=True)
class JsonOption:
    """The option that every command has."""

    as_json: AsJson = False


@dataclass(frozen=True)
class Target(JsonOption):
    """The options of a command on a project."""

    project: Project = HERE

    def door(self, store: ChronoStore) -> Records:
        """Return the handle that the command reads and writes through."""
        return store

    @contextmanager
    def open(self, *, depth: int = 0) -> Iterator[Session]:
        """Open the store; an error inside becomes two lines and an exit code."""
        out = Output(self.as_json)
        be_heard()
        try:
            with _heard(out), closing(ChronoStore(self.project, recursion_depth=depth)) as store:
                yield Session(store, out, self.door(store))
        except ChronoError as error:
            out.fail(str(error), error.recovery, type(error).__name__)
            refused = isinstance(error, InvalidArgument | RefusedError)
            raise typer.Exit(REFUSED if refused else FINDING) from None
        except OSError as error:
            if error.errno == errno.EPIPE:  # the reader of our output has gone
                raise
            place = "" if error.filename is None else f": {error.filename}"
            out.fail(f"{error.strerror or error}{place}", "", type(error).__name__)
            raise typer.Exit(FINDING) from None


@dataclass(frozen=True)
class Names:
    """The options that name a scope."""

    user: UserName = None
    agent: AgentName = None
    in_session: SessionName = None

    @property
    def names(self) -> dict[str, Any]:
        """The names that were given, by level."""
        names = {"user": self.user, "agent": self.agent, "session": self.in_session}
        return {level: name for level, name in names.items() if name is not None}


@dataclass(frozen=True)
class NamedTarget(Names, Target):
    """The options of a command on a project for a scope."""


@dataclass(frozen=True)
class _Everyone:
    everyone: OfEveryone = False


@dataclass(frozen=True)
class ScopedTarget(Names, _Everyone, Target):
    """The same, with an option for all scopes."""

    def door(self, store: ChronoStore) -> Records:
        """Return the handle of the named scope."""
        if self.everyone and self.names:
            raise RefusedError(f"--everyone and --{next(iter(self.names))} do not go together")
        if self.everyone:
            return store.everyone()
        return ScopedStore(store, Scope.of(**self.names)) if self.names else store


@dataclass(frozen=True)
class Filters:
    """The options that select records."""

    kind: Annotated[list[str] | None, typer.Option(help="Only this kind; may be given again.")] = None
    status: Annotated[str, typer.Option(callback=text, help="Only this status.")] = "active"
    every_status: Annotated[bool, typer.Option("--all", help="Every status.")] = False
    min_confidence: Annotated[float, typer.Option(callback=share, help="At least this.")] = 0.0
    tag: Annotated[list[str] | None, typer.Option(help="Must have this tag; may be given again.")] = None
    since: Annotated[str | None, typer.Option(metavar="TIME", help="Not before this moment.")] = None
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Not after this moment.")] = None
    where: WhereJson = None
    as_of: AsOf = None

    @property
    def terms(self) -> dict[str, Any]:
        """The arguments of a query, except ``as_of``."""
        return {
            "kind": self.kind or None,
            "status": None if self.every_status else self.status,
            "min_confidence": self.min_confidence,
            "tags": self.tag or (),
            "since": time_of(self.since, "--since"),
            "until": time_of(self.until, "--until"),
            "where": where_of(self.where),
        }


@dataclass(frozen=True)
class Embeds:
    """The options that choose an embedder."""

    endpoint: Endpoint = None
    model: Model = None
    embedder: EmbedderName = None

    def chosen(self) -> Embedder | None:
        """Return the embedder that the options name, or None where words are compared."""
        if self.embedder is not None and self.endpoint is not None:
            raise RefusedError("--endpoint and --embedder both embed", recovery="Give one of them.")
        if self.embedder is not None:
            found: Embedder = loaded("chronomemory.embedders.protocol").named_embedder(
                self.embedder, self.model
            )
            return found
        if (self.endpoint is None) != (self.model is None):
            raise RefusedError(
                "--endpoint and --model belong together",
                recovery="Give both, or neither; or --embedder with a model of its own.",
            )
        if self.endpoint is None:
            return None
        try:
            found = loaded("chronomemory.embedders").EndpointEmbedder(self.model, base_url=self.endpoint)
        except ValueError as error:
            raise RefusedError(str(error), recovery="An address begins with http:// or https://.") from None
        return found


@contextmanager
def _heard(out: Output) -> Iterator[None]:
    """Show warnings and log messages as lines of our own."""

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
