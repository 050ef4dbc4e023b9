"""Gathers the commands, and runs the one that is called."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, ClassVar

import typer
from typer import Argument, Option

from chronomemory._core import __version__
from chronomemory.cli.loading import LoadedGroup
from chronomemory.cli.output import clean

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
    """The commands; errors about arguments are cleaned of terminal control characters."""

    table: ClassVar = {
        "Start": {"demo": ".demo:demo", "help": "app:help_"},
        "Beliefs": {
            "put": "records:put",
            "get": "records:get",
            "query": "records:query",
            "search": "search:search",
            "delete": "records:delete",
            "rollback": "records:rollback",
            "reinstate": "reasons:reinstate",
            "spaces": "records:spaces",
        },
        "Blocks": {
            "learn": "blocks:learn",
            "recall": "blocks:recall",
            "frame": "blocks:frame",
            "outcome": "blocks:outcome",
            "dream": "blocks:dream",
            "curate": "blocks:curate",
            "blocks": "blocks:blocks",
        },
        "Episodes": {"episodes": "episodes:episodes", "facts": "episodes:facts"},
        "Graph": {"workspace": "workspace:workspace"},
        "Pages": {"pages": "pages:pages"},
        "Assistants": {"mcp": "serving:mcp"},
        "Evidence": {
            "status": "verification:status",
            "verify": "verification:verify",
            "history": "verification:history",
            "why": "reasons:why",
            "replay": "verification:replay",
            "accept-head": "verification:accept_head",
            "doctor": "doctor:doctor",
        },
        "In and out": {
            "ingest": "transfer:ingest",
            "import": "transfer:import_",
            "export": "transfer:export",
            "migrate": "transfer:migrate",
        },
        "Care": {
            "backup": "upkeep:backup",
            "restore": "upkeep:restore",
            "compact": "upkeep:compact",
            "prune": "upkeep:prune",
            "erase": "upkeep:erase",
            "sweep": "upkeep:sweep",
            "repair": "upkeep:repair",
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
        if callable(formatter := getattr(error, "format_message", None)):
            message = clean(formatter())
            error.format_message = lambda: message  # type: ignore[attr-defined]
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
        bool, Option("--version", callback=_say_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    pass


def help_(
    command: Annotated[list[str] | None, Argument(metavar="COMMAND…", help="Without it, all.")] = None,
) -> None:
    """Show what a command does and takes."""
    app([*(command or []), "--help"], prog_name=_NAME)
