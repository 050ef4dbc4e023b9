"""Gathers the commands, and runs the one that is called."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import Annotated, Any, ClassVar

import typer

from chronomemory._core import __version__
from chronomemory.cli.loading import LoadedGroup
from chronomemory.cli.output import clean
from chronomemory.interrupts import INTERRUPTED

__all__ = ["app", "help_", "main"]

_NAME = "chronomemory"

_NOTES = "\n\n".join(
    (
        "Exit codes: 0 fine, 1 a finding (chain invalid, not found) or a store that cannot be used, "
        "2 bad arguments or refused input, 3 a valid chain without the head that was seen here last.",
        "With --json, stdout holds one JSON document; query, search, history, replay and export write one "
        "object a line. Warnings and errors go to stderr, then also as JSON.",
    )
)


class _Root(LoadedGroup):
    """The commands; what is wrong with an argument is told without obeying what stands in it."""

    table: ClassVar = {
        "Start": {
            "demo": ".demo:demo",
            "help": "app:help_",
        },
        "Beliefs": {
            "put": "records:put",
            "get": "records:get",
            "query": "records:query",
            "search": "finding:search",
            "delete": "records:delete",
            "rollback": "records:rollback",
            "reinstate": "reasons:reinstate",
            "spaces": "spaces:spaces",
        },
        "Blocks": {
            "learn": "blocks:learn",
            "recall": "blocks:recall",
            "frame": "blocks:frame",
            "outcome": "blocks:outcome",
            "dream": "dreaming:dream",
            "curate": "dreaming:curate",
            "blocks": "blocks:blocks",
        },
        "Episodes": {
            "episodes": "episodes:episodes",
            "facts": "episodes:facts",
        },
        "Graph": {
            "workspace": "workspace:workspace",
        },
        "Pages": {
            "pages": "pages:pages",
        },
        "Assistants": {
            "mcp": "serving:mcp",
        },
        "Evidence": {
            "status": "evidence:status",
            "verify": "evidence:verify",
            "history": "past:history",
            "why": "reasons:why",
            "replay": "past:replay",
            "accept-head": "evidence:accept_head",
            "doctor": "doctor:doctor",
        },
        "In and out": {
            "ingest": "moving:ingest",
            "import": "moving:import_",
            "export": "moving:export",
            "migrate": "moving:migrate",
        },
        "Care": {
            "backup": "care:backup",
            "restore": "care:restore",
            "compact": "care:compact",
            "prune": "care:prune",
            "erase": "erasing:erase",
            "sweep": "sweeping:sweep",
            "repair": "care:repair",
        },
    }

    def make_context(self, *args: Any, **more: Any) -> Any:
        with _cleaned():
            return super().make_context(*args, **more)

    def invoke(self, ctx: Any) -> Any:
        with _cleaned():
            return super().invoke(ctx)


@contextmanager
def _cleaned() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        # Errors of arguments have a message that is put together when it is asked for.
        if callable(tell := getattr(error, "format_message", None)):
            told = clean(tell())
            error.format_message = lambda: told  # type: ignore[attr-defined]
        raise


app = typer.Typer(
    cls=_Root,
    name=_NAME,
    help="Memory that can be trusted: every belief is an event in one SHA-256 chained log.",
    epilog=_NOTES,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"chronomemory {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    pass


def help_(
    command: Annotated[list[str] | None, typer.Argument(metavar="COMMAND…", help="Without it, all.")] = None,
) -> None:
    """Show what a command does and takes."""
    app([*(command or []), "--help"], prog_name=_NAME)


def main() -> None:
    """Run the command line."""
    try:
        _run()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _run() -> None:
    # A terminal that cannot spell a character shows another one, rather than a traceback.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    app(prog_name=_NAME)
