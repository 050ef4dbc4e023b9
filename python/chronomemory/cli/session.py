"""The bundles of common options, which open the store, and the mapping of errors to exit codes."""

from __future__ import annotations

import errno
import logging
import warnings
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer
from typer import Option

from chronomemory.cli.loading import loaded
from chronomemory.cli.options import HERE, AsOf, Project, WhereJson, share, time_of, where_of
from chronomemory.cli.output import Output
from chronomemory.errors import ChronoError, InvalidArgument
from chronomemory.face.results import counted
from chronomemory.record import ChronoRecord
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
    door: Records

    def warn_unknown_scope(self) -> None:
        """Warn if nothing was ever written for the named scope: a name may be misspelled."""
        door = self.door
        if isinstance(door, ScopedStore) and not door.known:
            self.out.warn(f"nothing was ever written for {door.scope}")


def record_document(record: ChronoRecord) -> dict[str, Any]:
    """Return a record for JSON; one in doubt says why."""
    return record.to_dict() | ({"in_doubt": record.in_doubt} if record.in_doubt else {})


def end_in_doubt(out: Output, records: Iterable[ChronoRecord]) -> None:
    """Exit with 3 and a warning if later changes of one of the records may be missing."""
    if doubtful := [record for record in records if record.in_doubt]:
        out.warn(
            f"{counted(len(doubtful), 'record')} in doubt: {doubtful[0].in_doubt}; "
            "chronomemory repair goes on from there"
        )
        raise typer.Exit(LOST)


@dataclass(frozen=True)
class JsonOption:
    """The option that every command has."""

    as_json: Annotated[bool, Option("--json", help="Answer in JSON, for scripts.")] = False


@dataclass(frozen=True)
class Target(JsonOption):
    """The options of a command on a project."""

    project: Project = HERE

    def door(self, store: ChronoStore) -> Records:
        return store

    @contextmanager
    def open(self, *, depth: int = 0) -> Iterator[Session]:
        """Open the store; an error inside becomes two lines and an exit code."""
        out = Output(self.as_json)
        try:
            with _shown_as_lines(out), closing(ChronoStore(self.project, recursion_depth=depth)) as store:
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

    user: Annotated[
        str | None, Option("--user", metavar="NAME", help="Whose: this user's, and what is wider.")
    ] = None
    agent: Annotated[str | None, Option("--agent", metavar="NAME", help="Whose: this agent's, likewise.")] = (
        None
    )
    in_session: Annotated[
        str | None, Option("--session", metavar="NAME", help="Whose: this session's, likewise.")
    ] = None

    @property
    def names(self) -> dict[str, Any]:
        names = {"user": self.user, "agent": self.agent, "session": self.in_session}
        return {level: name for level, name in names.items() if name is not None}


@dataclass(frozen=True)
class NamedTarget(Names, Target):
    """The options of a command on a project for a scope."""


@dataclass(frozen=True)
class _Everyone:
    everyone: Annotated[
        bool, Option("--everyone", help="Of everyone, whosever it is; without any of these, what is shared.")
    ] = False


@dataclass(frozen=True)
class ScopedTarget(Names, _Everyone, Target):
    """The same, with an option for all scopes."""

    def door(self, store: ChronoStore) -> Records:
        if self.everyone and self.names:
            raise RefusedError(f"--everyone and --{next(iter(self.names))} do not go together")
        if self.everyone:
            return store.everyone()
        return ScopedStore(store, Scope.of(**self.names)) if self.names else store


@dataclass(frozen=True)
class Filters:
    """The options that select records."""

    kind: Annotated[list[str] | None, Option(help="Only this kind; may be given again.")] = None
    status: Annotated[str, Option(help="Only this status.")] = "active"
    every_status: Annotated[bool, Option("--all", help="Every status.")] = False
    min_confidence: Annotated[float, Option(callback=share, help="At least this.")] = 0.0
    tag: Annotated[list[str] | None, Option(help="Must have this tag; may be given again.")] = None
    since: Annotated[str | None, Option(metavar="TIME", help="Not before this moment.")] = None
    until: Annotated[str | None, Option(metavar="TIME", help="Not after this moment.")] = None
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

    endpoint: Annotated[
        str | None, Option(metavar="URL", help="A server for embeddings; without it words are compared.")
    ] = None
    model: Annotated[
        str | None, Option(metavar="NAME", help="The model at the endpoint, or of the embedder.")
    ] = None
    embedder: Annotated[
        str | None,
        Option(
            metavar="MODULE:NAME",
            help="An embedder in Python instead of a server; if it has tokens, they are kept and asked too.",
        ),
    ] = None

    def chosen(self) -> Embedder | None:
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
def _shown_as_lines(out: Output) -> Iterator[None]:
    """Show warnings and log messages as lines of our own."""

    def show_warning(
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
            warnings.showwarning = show_warning
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
