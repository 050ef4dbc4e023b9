"""Options that several commands share, and the search for the project of a command."""

from __future__ import annotations

import os
import re
import stat
import sys
from datetime import datetime, timedelta, timezone
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from chronomemory._core import parse_json
from chronomemory.cli.loading import loaded
from chronomemory.cli.output import Output
from chronomemory.layout import log_folder, read_bounded, read_config

VARIABLE = "CHRONOMEMORY_PROJECT"
_TOML = "tomllib" if sys.version_info >= (3, 11) else "tomli"
_MOST_BYTES = 1 << 20
_TRUSTED = frozenset({0, os.getuid()})


def resolve_project(ctx: typer.Context, given: Path) -> Path:
    """Return the project that was named, or the one found for the current folder; say which that is."""
    source = ctx.get_parameter_source("project")
    if ctx.resilient_parsing or (source is not None and source.name != "DEFAULT"):
        return given
    found = find_project()
    if found is None:
        return given
    Output(bool(ctx.params.get("as_json"))).note_project(found)
    return found


def find_project() -> Path | None:
    """Return the nearest folder above with a store, or the one a pyproject.toml names; None means here."""
    try:
        start = Path.cwd()
        device = start.stat().st_dev
        folders = [start, *takewhile(lambda folder: folder.stat().st_dev == device, start.parents)]
        nearest = next((folder for folder in folders if log_folder(folder).is_dir()), None)
    except OSError:  # the folder was deleted, or one above it cannot be examined
        return None
    if nearest is None:
        settings = (_setting(folder / "pyproject.toml") for folder in folders)
        return next((project for project in settings if project is not None), None)
    if nearest == start:
        return None
    _check_owner(log_folder(nearest))
    return nearest


def _check_owner(path: Path) -> None:
    if path.stat().st_uid not in _TRUSTED:
        raise typer.BadParameter(f"{path} belongs to another user; name its project, or --project . for here")


def _setting(path: Path) -> Path | None:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return None
        if b"chronomemory" not in read_bounded(path, _MOST_BYTES):
            return None
    except OSError:
        return None
    try:
        project = loaded(_TOML).loads(read_config(path, _MOST_BYTES))["tool"]["chronomemory"]["project"]
    except (KeyError, TypeError):
        return None
    except (ImportError, OSError, ValueError, RecursionError) as error:
        raise typer.BadParameter(f"{path} cannot be read as TOML: {error}") from None
    _check_owner(path)
    if not isinstance(project, str) or not (path.parent / project).is_dir():
        wanted = "must be the path of a folder that exists"
        raise typer.BadParameter(f"{path}: project in [tool.chronomemory] {wanted}, got {project!r}")
    return (path.parent / project).resolve()


HERE = Path()
STDIN = Path("-")

MAX_SEQ = 2**63 - 1
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


Project = Annotated[
    Path,
    Option(
        "--project",
        "-p",
        metavar="DIR",
        exists=True,
        file_okay=False,
        envvar=VARIABLE,
        show_default=False,
        callback=resolve_project,
        help="The project's folder; without it the nearest one above that has a store.",
    ),
]
#: The same for the server, whose commands resolve their own.
ServedProject = Annotated[
    Path,
    Option(
        "--project", "-p", metavar="DIR", envvar=VARIABLE, show_default=False, help="The project's folder."
    ),
]
Yes = Annotated[bool, Option("--yes", "-y", help="Do not ask.")]
Force = Annotated[bool, Option("--force", help="Replace FILE if it exists.")]
DryRun = Annotated[bool, Option("--dry-run", help="Only say what would be done.")]
LogReason = Annotated[str, Option("--reason", help="Why; it stays in the log.")]
RecordId = Annotated[str, Argument(metavar="ID", help="The record's id.")]
AsOf = Annotated[
    str | None, Option("--as-of", metavar="SEQ|TIME", help="As it was after this event, or at this moment.")
]
WhereJson = Annotated[
    str | None,
    Option("--where", metavar="JSON", help='What fields must be, such as {"data.age": {"gte": 18}}.'),
]


def moment(spelled: str, *, ends: bool = True) -> int | datetime:
    """Parse a seq or an ISO 8601 time with a zone; a date is the end, or the start, of that day in UTC."""
    if _DATE.fullmatch(spelled):
        return _day(spelled, ends=ends)
    if spelled.isascii() and spelled.isdigit():
        if int(spelled) > MAX_SEQ:
            raise typer.BadParameter(f"{spelled} is larger than any seq")
        return int(spelled)
    try:
        when = datetime.fromisoformat(f"{spelled[:-1]}+00:00" if spelled[-1:] in ("Z", "z") else spelled)
    except ValueError:
        raise typer.BadParameter(
            f"{spelled!r} is neither a seq nor a moment such as 2026-05-18T12:00:00Z"
        ) from None
    if when.utcoffset() is None:
        raise typer.BadParameter(f"{spelled!r} has no time zone: add Z, or an offset such as +02:00")
    return when


def _day(spelled: str, *, ends: bool) -> datetime:
    try:
        begins = datetime.fromisoformat(spelled).replace(tzinfo=timezone.utc)
    except ValueError:
        raise typer.BadParameter(f"{spelled!r} is no day of the calendar") from None
    if not ends:
        return begins
    now = datetime.now(timezone.utc)
    end = begins + timedelta(days=1, microseconds=-1)
    return now if begins <= now < end else end


def share(value: float) -> float:
    """Let a number between 0 and 1 through; NaN is none."""
    if not 0 <= value <= 1:
        raise typer.BadParameter(f"{value} is not between 0 and 1")
    return value


def json_object(spelled: str | bytes, name: str) -> dict[str, Any]:
    """Read one JSON object as strictly as the log does."""
    if isinstance(spelled, str):
        spelled = spelled.encode("utf-8", "surrogatepass")
    try:
        value = parse_json(spelled)
    except ValueError as error:
        raise typer.BadParameter(f"{name} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise typer.BadParameter(f"{name} must be a JSON object, such as {{}}")
    return value


def where_of(spelled: str | None) -> dict[str, Any] | None:
    return None if spelled is None else json_object(spelled, "--where")


def time_of(spelled: str | None, name: str) -> datetime | None:
    when = None if spelled is None else moment(spelled, ends=name != "--since")
    if isinstance(when, int):
        raise typer.BadParameter(f"{name} takes a moment such as 2026-05-18T12:00:00Z, not a seq")
    return when
