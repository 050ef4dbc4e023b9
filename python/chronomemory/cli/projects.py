"""Finds the project of a command that names none, as git finds its repository.

The search goes from the current folder up to the root of the file system and does not cross into another
one. A store or setting found above must belong to this user or to root: in a folder that others may write
to, such as ``/tmp``, anyone could have put it there.
"""

from __future__ import annotations

import os
import sys
from itertools import takewhile
from pathlib import Path

import typer

from chronomemory.cli.loading import loaded
from chronomemory.cli.output import Output
from chronomemory.layout import log_folder

__all__ = ["VARIABLE", "find_project", "resolve_project"]

VARIABLE = "CHRONOMEMORY_PROJECT"
#: TOML is part of Python from 3.11 on.
_TOML = "tomllib" if sys.version_info >= (3, 11) else "tomli"
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
    """Return the nearest folder above with a store, or else the one that a pyproject.toml names.

    None means the current folder: it has a store, or there is none to be found.
    """
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
    """Return the project that a pyproject.toml names, if it names one."""
    try:
        text = path.read_bytes()
    except OSError:
        return None
    if b"chronomemory" not in text:
        return None
    try:
        project = loaded(_TOML).loads(text.decode())["tool"]["chronomemory"]["project"]
    except (KeyError, TypeError):
        return None
    except (ImportError, ValueError) as error:
        raise typer.BadParameter(f"{path} cannot be read as TOML: {error}") from None
    _check_owner(path)
    if not isinstance(project, str) or not (path.parent / project).is_dir():
        wanted = "must be the path of a folder that exists"
        raise typer.BadParameter(f"{path}: project in [tool.chronomemory] {wanted}, got {project!r}")
    return (path.parent / project).resolve()
