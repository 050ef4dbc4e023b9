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
from types import ModuleType

import typer

from chronomemory.cli.loading import loaded
from chronomemory.cli.output import Output
from chronomemory.layout import log_folder

__all__ = ["VARIABLE", "find_project", "resolve_project"]

VARIABLE = "CHRONOMEMORY_PROJECT"
_SETTINGS = "pyproject.toml"
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
    except FileNotFoundError:  # the folder was deleted
        return None
    # A folder that cannot be examined ends the search.
    folders = list(takewhile(lambda folder: _device(folder) == device, (start, *start.parents)))
    for folder in folders:
        store = log_folder(folder)
        if os.path.isdir(store):
            if folder == start:
                return None
            _check_owner(store)
            return folder
    for folder in folders:
        named = _setting(folder / _SETTINGS)
        if named is not None:
            return named
    return None


def _device(folder: Path) -> int | None:
    try:
        return folder.stat().st_dev
    except OSError:
        return None


def _check_owner(path: Path) -> None:
    if path.stat().st_uid not in _TRUSTED:
        raise typer.BadParameter(
            f"{path} belongs to another user and is not used unasked; name its project with --project "
            f"or {VARIABLE}, or make a store here with --project ."
        )


def _setting(path: Path) -> Path | None:
    """Return the project that a pyproject.toml names, if it names one."""
    try:
        text = path.read_bytes()
    except OSError:
        return None
    if b"chronomemory" not in text:
        return None
    try:
        project = _toml().loads(text.decode())["tool"]["chronomemory"]["project"]
    except (KeyError, TypeError):
        return None
    except (ImportError, ValueError) as error:
        raise typer.BadParameter(f"{path} cannot be read as TOML: {error}") from None
    _check_owner(path)
    if not isinstance(project, str) or not (path.parent / project).is_dir():
        raise typer.BadParameter(
            f"{path}: project in [tool.chronomemory] must be the path of a folder that exists, got {project!r}"
        )
    return (path.parent / project).resolve()


def _toml() -> ModuleType:
    """Return the parser of TOML, which is part of Python from 3.11 on."""
    return loaded("tomllib" if sys.version_info >= (3, 11) else "tomli")
