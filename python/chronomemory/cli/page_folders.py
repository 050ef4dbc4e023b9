"""Opens a folder of pages for a command, with the arguments that all of these share."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from chronomemory._core import canonical_json
from chronomemory.cli.options import text
from chronomemory.cli.output import Output, clean
from chronomemory.cli.session import NotFoundError, RefusedError, session
from chronomemory.cli.tables import table
from chronomemory.face.results import Result
from chronomemory.pages import (
    Entry,
    Indexed,
    PageConflict,
    PageError,
    Pages,
    Problem,
    Rebuilt,
    Synced,
    UnknownEntry,
    UnknownFolder,
    UnknownPage,
)
from chronomemory.pages.layout import FREE, find_layout, is_vault

__all__ = [
    "Folder",
    "OpenedPages",
    "PageName",
    "Reported",
    "Since",
    "Tags",
    "Until",
    "Whose",
    "content_of",
    "entry_lines",
    "listed",
    "opened",
    "tell_of",
]

STDIN = "-"

Folder = Annotated[
    Path | None,
    typer.Option(
        "--folder",
        "-f",
        metavar="DIR",
        file_okay=False,
        help="Where the pages or notes are, seen from the project; memory unless told.",
    ),
]
PageName = Annotated[
    str,
    typer.Argument(metavar="PAGE", callback=text, help="Its name, such as topic-rust; .md may be left out."),
]
Tags = Annotated[
    list[str] | None, typer.Option("--tag", "-t", metavar="TAG", help="A tag; may be given again.")
]
Since = Annotated[
    str | None,
    typer.Option("--since", metavar="DAY|TIME", callback=text, help="From then on; a day is all of it."),
]
Until = Annotated[
    str | None,
    typer.Option("--until", metavar="DAY|TIME", callback=text, help="Up to then; a day is all of it."),
]


#: What tells which problems are left.
Reported = Synced | Rebuilt | Indexed


@dataclass(frozen=True, slots=True)
class Whose:
    """Which folder, and whose it is."""

    project: Path
    folder: Path | None
    user: str | None
    agent: str | None
    session: str | None
    layout: str | None = None

    @property
    def names(self) -> dict[str, Any]:
        """The names that were given."""
        names = {"user": self.user, "agent": self.agent, "session": self.session}
        return {level: name for level, name in names.items() if name is not None}


@dataclass(frozen=True, slots=True)
class OpenedPages:
    """The pages, and where answers go."""

    it: Pages
    out: Output


@contextmanager
def opened(
    whose: Whose, as_json: bool, *, create: bool = False, attach: bool = False
) -> Iterator[OpenedPages]:
    """Lend the pages; what this face refuses is an error of the arguments, what is not there a finding.

    With ``attach`` a folder of notes that was never opened before is taken in; no other is made.
    """
    with session(whose.project, as_json) as here:
        if attach:
            root = here.store.project_root / (whose.folder or "")
            is_free = whose.folder is not None and root.is_dir() and find_layout(root) == FREE
            create = is_free or is_vault(root) or whose.layout is not None
        try:
            with Pages(
                here.store, whose.folder, must_exist=not create, layout=whose.layout, **whose.names
            ) as made:
                yield OpenedPages(made, here.out)
        except (UnknownPage, UnknownEntry, UnknownFolder) as error:
            raise NotFoundError(str(error), recovery=error.recovery) from None
        except PageConflict:
            raise
        except PageError as error:
            raise RefusedError(str(error), recovery=error.recovery) from None


def content_of(given: str) -> str:
    """Return a content, or what stdin says for ``-``."""
    if given != STDIN:
        return given
    try:
        return sys.stdin.buffer.read().decode("utf-8").rstrip("\n")
    except UnicodeDecodeError:
        raise RefusedError("what came from stdin is not UTF-8") from None


def listed(out: Output, results: Iterable[Result]) -> None:
    """Write results as JSON, one a line."""
    out.lines(canonical_json(result.to_dict()) for result in results)


def entry_lines(entries: Iterable[Entry], *, page: bool) -> Iterator[Text]:
    """Show entries as a person reads them."""
    for entry in entries:
        style = "dim" if entry.superseded else "bold"
        said = [(entry.timestamp, style), ("  ", ""), (entry.id or "above the entries", "cyan")]
        if page:
            said += [("  ", ""), (clean(entry.page), "bold")]
        said += [("".join(f"  #{clean(tag)}" for tag in entry.tags), "green")]
        if entry.superseded:
            said.append((f"  superseded by {entry.superseded_by or 'nothing'}", "yellow"))
        yield Text.assemble(*said)
        yield Text.assemble((clean(entry.content, keep="\n"), "dim strike" if entry.superseded else ""), "\n")


def tell_of(out: Output, told: Reported) -> None:
    """Say what a command has done, and which problems are left."""
    if out.as_json:
        out.document(told.to_dict())
    elif told.problems:
        out.warn(told.summary)
        out.show(_problem_table(told.problems))
    else:
        out.done(clean(told.summary))


def _problem_table(problems: Iterable[Problem]) -> Any:
    """Show what a person should look at."""
    rows = table("what", "file", "why")
    for one in problems:
        rows.add_row(Text(one.kind, style="yellow"), clean(one.file), clean(one.message))
    return rows
